"""`/documents`: the stored text of one document with a passage marked, for a user who may read it now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flask import Response

from datafari_rag.core.documents import HIGHLIGHTING, Document, Extract, Passage, place_at
from datafari_rag.core.errors import BadRequest, NotFound
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.search_request import STORED
from datafari_rag.core.text.folding import without_invisible
from datafari_rag.core.text.structure import header_above, is_in_table
from datafari_rag.pipeline import fetch
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, wants_json
from datafari_rag.web.pages.messages import summary_words
from datafari_rag.web.pages.rendering import PageReader, failure_page, page, reader_of
from datafari_rag.web.responses import NDJSON, failure, json_response, plain

PATH = "/documents"


def opened(exchange: Exchange) -> Response:
    """Return the document's page, or JSON for those who accept that; an absent and a forbidden one look alike."""
    incoming = exchange.incoming
    document_id, field = incoming.param("id"), incoming.param("field") or "exactContent"
    if not document_id:
        raise NotFound
    snapshot = exchange.snapshot
    document = fetch(
        document_id,
        # Snippets are stored nowhere: what they were cut from is opened.
        STORED["highlighting"] if field == HIGHLIGHTING else field,
        exchange.user(),
        settings=snapshot.settings,
        dependencies=snapshot.dependencies,
        index=incoming.param("index"),
    )
    if document is None:
        raise NotFound
    start, end = (None, None) if field == HIGHLIGHTING else _span(incoming, len(document.text))
    exchange.extracts = (Extract(1, document.id, document, (Passage(start or 0, end or len(document.text)),), ""),)
    if not wants_json():
        return _as_page(exchange.worker, document, start, end)
    body = {
        "id": document.id,
        "title": title_of(document),
        "url": target_of(document),
        "field": document.field,
        "text": document.text,
        "start": start,
        "end": end,
        "place": _place(document, start),
    }
    return json_response(plain(body))


def _span(incoming: Incoming, length: int) -> tuple[int | None, int | None]:
    """Return the passage to mark, cut to the text; (None, None) when none was requested or nothing is left."""
    start, end = (_offset(incoming, name) for name in ("start", "end"))
    if start is None or end is None:
        return None, None
    start, end = min(start, length), min(end, length)
    return (start, end) if start < end else (None, None)


def _offset(incoming: Incoming, name: str) -> int | None:
    text = incoming.param(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise BadRequest(f"The parameter {name} must be a whole number of characters, 0 or more.")
    return int(text)


def _place(document: Document, start: int | None, language: str = "en") -> str | None:
    """Return the page, slide or row of the passage, None without a passage or without such a place."""
    where = None if start is None else place_at(document.places, document.text, start)
    return None if where is None else where.label(language)


def _as_page(worker: WorkerContext, document: Document, start: int | None, end: int | None) -> Response:
    reader = reader_of(worker)
    values = {
        "title": title_of(document),
        "url": without_invisible(document.url or ""),
        "parts": parts_of(document.text, start or 0, end or 0),
        "place": _place(document, start, reader.language),
        "summary": _summary(document, reader),
        "date": (document.last_modified or "")[:10],
    }
    return page(worker, reader, "document.html", values)


def _summary(document: Document, reader: PageReader) -> Mapping[str, object] | None:
    """Return what the script of the page needs to offer a summary, None where there is none to be had."""
    return {"id": document.id, **summary_words(reader.translate)} if document.text.strip() else None


DOCUMENTS = DialectRoute("documents", Questionless(failure), NDJSON, page=failure_page, work=opened)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of the text and how it is shown: `plain`, `passage`, `row` (the passage as a row), or `header`."""

    text: str
    kind: str = "plain"


def parts_of(text: str, start: int, end: int) -> tuple[TextPart, ...]:
    """
    Return *text* in non-empty parts; joined they are *text*.

    A passage from *start* to *end* within one row of a table is marked as that row, from edge to edge, and
    the header above it is shown as one.
    """
    if start >= end:
        return (TextPart(text),) if text else ()
    kind, header = "passage", None
    if "\n" not in text[start:end] and is_in_table(text, start, end):
        line_end = text.find("\n", end)
        start, end = text.rfind("\n", 0, start) + 1, line_end if line_end >= 0 else len(text)
        kind, header = "row", header_above(text, start)
    first, last = header or (0, 0)
    parts = (
        TextPart(text[:first]),
        TextPart(text[first:last], "header"),
        TextPart(text[last:start]),
        TextPart(text[start:end], kind),
        TextPart(text[end:]),
    )
    return tuple(part for part in parts if part.text)
