"""
What failed, as Datafari 7 names it: 23 labels, a code that is text, HTTP 200 where the request itself was good.

Datafari has one label for all technical failures of an action; `cause` says which it was.
"""

from __future__ import annotations

from collections.abc import Mapping

from datafari_rag.core.errors import (
    BadRequest,
    NoAnswer,
    NoDocuments,
    NoQuery,
    NotFound,
    QueryTooLong,
    RagError,
    RefusedByModel,
)
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.whole.work import EmptyDocument, SwitchedOff

Json = dict[str, object]

_OF_REQUEST = (BadRequest, NoQuery, QueryTooLong)

_WITH_STATUS = frozenset(
    {
        *("notAuthenticated", "methodNotAllowed", "bodyTooLarge", "unsupportedMediaType", "unknownHost"),
        *("tooManyRequests", "budgetSpent", "accountsUnavailable", "overloaded"),
    }
)
"""What is wrong with the way in, and not with the request, keeps its HTTP status."""

SENTENCES: Mapping[str, str] = {
    "NoFileFound": "Sorry, I couldn't find any relevant document to answer your request.",
    "FileNotFound": "Sorry, I couldn't find this document.",
    "NoFileContent": "Sorry, I couldn't read any of these documents.",
    "EmptyFile": "Sorry, this document has no text.",
    "NoValidAnswer": "Sorry, the model could not provide a valid answer.",
}
"""What Datafari's pages show where they have no translation of a label; other failures have their own sentences."""

Label = tuple[str, str]
"""The end of a label, and its code in Datafari."""

_OF_ANSWERS: Mapping[type[RagError], Label] = {
    SwitchedOff: ("ErrorNotEnabled", "422"),
    NotFound: ("FileNotFound", "428"),
    NoDocuments: ("NoFileFound", "428"),
    NoAnswer: ("NoValidAnswer", "428"),
}

LABELS: Mapping[str, Mapping[type[RagError], Label]] = {
    "rag": _OF_ANSWERS,
    "agentic": _OF_ANSWERS,
    "summarization": {
        SwitchedOff: ("ErrorNotEnabled", "422"),
        EmptyDocument: ("EmptyFile", "422"),
        NotFound: ("NoFileFound", "422"),
    },
    "synthesis": {
        SwitchedOff: ("ErrorNotEnabled", "422"),
        NoDocuments: ("NoFileContent", "422"),
        NotFound: ("NoFileContent", "422"),
    },
    "ai": {},
}
"""Subject of the labels → failure → the end of its label and its code; the first row that fits counts."""


def error_of(error: RagError, subject: str) -> Json:
    """Return *error* as an event or a reply has it; *subject* is how the action's labels begin."""
    if isinstance(error, _OF_REQUEST) and not isinstance(error, RefusedByModel):
        return _body_of(error, "aiBadRequest", "400", error.reason)
    for kind, (end, code) in LABELS[subject].items():
        if isinstance(error, kind):
            return _body_of(error, f"{subject}{end}", code, SENTENCES.get(end, error.reason))
    return _body_of(error, f"{subject}TechnicalError", str(error.code), error.reason)


def status_of(error: RagError, settings: Settings) -> int:
    """Return the HTTP status: 400 for a bad request, else 200 unless `rag.reply` has errors."""
    if isinstance(error, _OF_REQUEST) and not isinstance(error, RefusedByModel):
        return 400
    return error.code if settings.rag_reply.http_errors or error.label in _WITH_STATUS else 200


def _body_of(error: RagError, label: str, code: str, message: str) -> Json:
    return {"code": code, "label": label, "message": message, "reason": error.reason, "cause": error.label}
