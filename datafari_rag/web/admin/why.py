"""
`GET /admin/why`: why a question is answered from a document, or is not; for `security.admins` alone.

Everything is searched and read with the administrator's own rights: of a document that these hide the reply says what
it says of one that does not exist. Of another user it says whether they may read a document that the administrator may
read, and no more: what ranks before it for them may be hidden from the administrator. No model is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flask import Response

from datafari_rag.core.access import User
from datafari_rag.core.ask import MAX_ID_CHARS, MAX_QUESTION_CHARS, Ask, Effort
from datafari_rag.core.documents import Candidate
from datafari_rag.core.errors import BadRequest, NoQuery, NotAllowed, QueryTooLong
from datafari_rag.core.events import Stopwatch
from datafari_rag.core.identity import MAX_NAME_CHARS, VerifiedIdentity, mapped_name
from datafari_rag.core.search_request import CANDIDATES, STORED
from datafari_rag.pipeline import fetch, found_for, prepare
from datafari_rag.protocols.request import Questionless
from datafari_rag.web.responses import NDJSON, failure, json_response, plain
from datafari_rag.web.turn import DialectRoute, Turn
from datafari_rag.web.user import is_admin, user_for

PATH = "/admin/why"

SEARCHES = 2
"""Units of work: the question's search, and one narrowed to the document."""

REASONS: Mapping[str, str] = {
    "not found": "There is no such document, or your own rights hide it.",
    "not readable": "This user may not read it.",
    "no match": "No search for this question finds it.",
    "beyond": "Other documents have more of the words, or come before it among the best "
    f"{CANDIDATES}, or rag.maxFiles, that are looked at.",
    "rank": "Other documents answer better, and rag.maxFiles leaves no place for it.",
    "no evidence": "The documents that were found hold too little of the question (rag.evidence.min).",
    "duplicate": "A better document has the same text.",
    "budget": "The better documents leave no room for it (rag.chars, rag.maxJsonLength, llm.context.window).",
    "chosen": "The question is answered from it.",
}
"""What each verdict means; the last five are those of the trace."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A key of `REASONS`; with the document's *rank* among so many *candidates* where the search found it."""

    verdict: str
    rank: int | None = None
    candidates: int | None = None


def why(turn: Turn) -> Response:
    """Return the verdict on the document `id` for the question `q`. Raises: NotAllowed, BadRequest, SearchError."""
    if not is_admin(turn.user_name, turn.settings.security):
        raise NotAllowed
    question, document_id = (turn.incoming.param("q") or "").strip(), turn.incoming.param("id") or ""
    if not question:
        raise NoQuery
    if len(question) > MAX_QUESTION_CHARS:
        raise QueryTooLong
    if not document_id or len(document_id) > MAX_ID_CHARS:
        raise BadRequest(f"id must be the id of a document, of at most {MAX_ID_CHARS} characters.", field="id")
    turn.question = question
    turn.require_settings()
    turn.charge(SEARCHES)
    found = verdict_on(document_id, question, turn.user(), turn)
    ranked = {} if found.rank is None else {"rank": found.rank, "candidates": found.candidates}
    body = {"id": document_id, "question": question, "verdict": found.verdict, **ranked}
    return json_response(plain({**body, "reason": REASONS[found.verdict]}))


def verdict_on(document_id: str, question: str, user: User, turn: Turn) -> Verdict:
    """Return why the answer to *question* is made of the document, or is not, as *user* sees it. Raises: RagError."""
    settings, dependencies = turn.settings, turn.snapshot.dependencies
    field = STORED[settings.rag.solr_field]
    if fetch(document_id, field, user, security=settings.security, dependencies=dependencies) is None:
        return Verdict("not found")
    other = _named_user(turn)
    if (
        other is not None
        and fetch(document_id, field, other, security=settings.security, dependencies=dependencies) is None
    ):
        return Verdict("not readable")
    # A plan of the model's would be another one with each call.
    effort: Effort | None = "minimal" if settings.rag.effort == "low" else None
    ask = Ask(question, effort=effort)
    prepared = prepare(ask, user, settings=settings, dependencies=dependencies, stopwatch=Stopwatch(dependencies.clock))
    mine = [each for each in prepared.candidates if each.document_id == document_id]
    if mine:
        verdict = _verdict_of(mine)
        if verdict == "chosen" and all(each.document.id != document_id for each in prepared.sources.extracts):
            verdict = "budget"
        return Verdict(verdict, mine[0].rank, len({each.document_id for each in prepared.candidates}))
    alone = Ask(question, effort=effort, documents=(document_id,))
    found = found_for(alone, user, settings=settings, dependencies=dependencies)
    return Verdict("beyond" if found.documents else "no match")


def _verdict_of(rows: list[Candidate]) -> str:
    """Return what became of a document: *rows* are its own and those of its passages."""
    verdicts = {row.verdict for row in rows}
    return next(verdict for verdict in (*REASONS,)[::-1] if verdict in verdicts)


def _named_user(turn: Turn) -> User | None:
    """Return the other user that the request names, with their rights; None without one. Raises: BadRequest."""
    text = turn.incoming.param("user")
    if text is None:
        return None
    security = turn.settings.security
    name = mapped_name(text, security.domain)
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise BadRequest("user must be the name of a user.", field="user")
    if security.tokens == "claims" and security.mode == "tokens":
        raise BadRequest("The rights of users are in their own tokens: ask without user.", field="user")
    return user_for(VerifiedIdentity(name), turn.snapshot)


WHY = DialectRoute("why", Questionless(failure), NDJSON, work=why)
