"""
`POST /retrieve`: the passages that an answer would be made of, without the answer.

The request is a question and what narrows it; the reply lists passages, the best one of each document before the second
of any. Each has its place in the stored text, so that it can be quoted and opened.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Annotated, cast

from msgspec import Meta, Struct

from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, WantedEffort, effort_of
from datafari_rag.core.errors import QueryTooLong, RagError
from datafari_rag.core.events import Sources
from datafari_rag.core.proof.labels import file_name, title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.query.filter_queries import facets_of
from datafari_rag.core.settings.table import RagSettings, Settings
from datafari_rag.protocols.chat_reply_parts import Json, partial
from datafari_rag.protocols.mcp.tools import Filters, restrictions_of
from datafari_rag.protocols.openai.renderings import nodes_of
from datafari_rag.protocols.records import NOT_BLANK, DocumentIds, about, distinct, read, unknown_names
from datafari_rag.protocols.request import Incoming

MAX_PASSAGES = 100
MAX_CHARACTERS = 1_000_000


class RetrieveRequest(Struct, frozen=True):
    """A question, what narrows its search, and how much is wanted; null is absent, and other names are ignored."""

    question: Annotated[
        str,
        about(
            f"The question, or the words to look for, at most {MAX_QUESTION_CHARS} characters.",
            pattern=NOT_BLANK,
            extra={"absent": True},
        ),
    ]
    filters: Filters = {}
    documents: Annotated[
        DocumentIds | None,
        about("The only documents to search, by their ids. An empty list finds nothing. Default: all."),
    ] = None
    passages: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_PASSAGES)] | None, about("Most passages, of at most as many documents.")
    ] = None
    characters: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_CHARACTERS)] | None, about("Most characters of all passages together.")
    ] = None
    effort: Annotated[
        WantedEffort | None,
        about("How many steps the search takes; none and minimal call no model, medium is as low. Default: none."),
    ] = None


def parse(incoming: Incoming, settings: Settings) -> tuple[RetrieveRequest, Ask]:
    """
    Return the request, and what is searched for it.

    Raises:
        NoQuery, QueryTooLong: the question is absent or too long.
        TooManyValues, BadRequest: a value does not fit; the error names its field.
    """
    record = read(RetrieveRequest, incoming.body)
    if len(record.question) > MAX_QUESTION_CHARS:
        raise QueryTooLong(field="question")
    effort, unread = effort_of(record.effort or "none")
    return record, Ask(
        record.question,
        accept_language=incoming.headers.get("accept-language"),
        restrictions=restrictions_of(record.filters, facets_of(settings.solr)),
        documents=None if record.documents is None else distinct(record.documents),
        max_documents=record.passages,
        effort=effort,
        ignored=(*unknown_names(RetrieveRequest, incoming.body), *unread),
    )


def reply(record: RetrieveRequest, sources: Sources, settings: Settings, *, is_admin: bool) -> Json:
    """Return the passages of *sources* within the limits of *record*, none cut; scores are for administrators alone."""
    by_document: list[list[Json]] = []
    for extract in sources.extracts:
        document = extract.document
        named: Json = {"id": document.id, "title": title_of(document), "url": target_of(document, settings.server.root)}
        beside: Json = {"document": {**named, "fileName": file_name(document.url or "")}}
        beside |= {"score": document.score} if is_admin else {}
        nodes = [(cast("Json", node["metadata"]), node["text"]) for node in nodes_of([extract])]
        keys = ("field", "start", "end", "place")
        by_document.append([{"text": text, **{key: at[key] for key in keys}, **beside} for at, text in nodes])
    # The best passage of each document before the second of any.
    rounds = zip_longest(*by_document)
    best_first = [passage for some in rounds for passage in some if passage is not None and passage["text"]]
    rest = MAX_CHARACTERS if record.characters is None else record.characters
    fitting: list[Json] = []
    for passage in best_first[: record.passages]:
        rest -= len(str(passage["text"]))
        if rest < 0:
            break
        fitting.append(passage)
    return {"passages": fitting, "foundBy": sources.found_by, "language": sources.language, **partial(sources)}


def failure(error: RagError, rag: RagSettings) -> tuple[int, Json]:
    """Return an error with its code as HTTP status."""
    named = {} if error.field is None else {"field": error.field}
    return error.code, {"error": {"code": error.code, "reason": error.reason, "label": error.label, **named}}
