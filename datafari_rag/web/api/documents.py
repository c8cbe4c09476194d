"""`/documents`: the text of a document, or a page of its file, with a passage marked, for who may read it now."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from flask import Response

from datafari_rag.core.documents import HIGHLIGHTING, Document, Extract, Passage, Place, place_at
from datafari_rag.core.errors import BadRequest, NotFound, Overloaded, TooManyRequests
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.search_request import STORED
from datafari_rag.core.text.cleaning import without_invisible
from datafari_rag.core.text.structure import table_at
from datafari_rag.pipeline import fetch
from datafari_rag.ports import PagePicture
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.pages.messages import summary_words
from datafari_rag.web.pages.rendering import PageReader, failure_page, page, reader_of
from datafari_rag.web.responses import NDJSON, failure, json_response, plain
from datafari_rag.web.turn import DialectRoute, Turn, wants_json

log = logging.getLogger(__name__)

PATH = "/documents"
PICTURE_PATH = "/documents/page"

MAX_WIDTH, TRIED_WIDTH = 1600, 64
"""Pixels of a picture from left to right, and of the one that is drawn to see whether a page can be shown."""

Span = tuple[int, int] | None
"""Where the passage to mark begins and ends in the text, None for none."""


def opened(turn: Turn) -> Response:
    """Return the document's page, or JSON for those who accept that; an absent and a forbidden one look alike."""
    document, span = _read(turn)
    if not wants_json():
        return _html_page(turn, document, span)
    start, end = span or (None, None)
    body = {
        "id": document.id,
        "title": title_of(document),
        "url": target_of(document, turn.settings.server.root),
        "field": document.field,
        "text": document.text,
        "start": start,
        "end": end,
        "place": None if (where := _where(document, span)) is None else where.label(),
    }
    return json_response(plain(body))


def picture(turn: Turn) -> Response:
    """Return a page of the document's file as PNG. Raises: NotFound, Overloaded: there is none, or not now."""
    document, span = _read(turn)
    width = _number(turn.incoming, "width")
    drawn = _drawn(turn, document, span, MAX_WIDTH if width is None else min(max(1, width), MAX_WIDTH))
    response = Response(drawn.png, mimetype="image/png")
    # Pages of other sites ask for it as `server.cors.origins` says, and cannot embed it.
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response


def _drawn(turn: Turn, document: Document, span: Span, width: int) -> PagePicture:
    draw, number = turn.snapshot.dependencies.draw_page, _number(turn.incoming, "page")
    if draw is None or document.file is None or number is None:
        raise NotFound
    turn.charge()
    return draw(document, number, span, width)


def _read(turn: Turn) -> tuple[Document, Span]:
    """Return the document with the passage to mark. Raises: NotFound: also where it is hidden."""
    incoming = turn.incoming
    document_id, field = incoming.param("id"), incoming.param("field") or "exactContent"
    if not document_id:
        raise NotFound
    snapshot = turn.snapshot
    document = fetch(
        document_id,
        # Snippets are stored nowhere: what they were cut from is opened.
        STORED["highlighting"] if field == HIGHLIGHTING else field,
        turn.user(),
        security=snapshot.settings.security,
        dependencies=snapshot.dependencies,
        index=incoming.param("index"),
    )
    if document is None:
        raise NotFound
    span = None if field == HIGHLIGHTING else _span(incoming, len(document.text))
    turn.extracts = (Extract(1, document.id, document, (Passage(*(span or (0, len(document.text)))),), ""),)
    return document, span


def _span(incoming: Incoming, length: int) -> Span:
    """Return the passage to mark, cut to the text; None when none was requested or nothing is left."""
    start, end = (_number(incoming, name) for name in ("start", "end"))
    if start is None or end is None:
        return None
    start, end = min(start, length), min(end, length)
    return (start, end) if start < end else None


def _number(incoming: Incoming, name: str) -> int | None:
    text = incoming.param(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise BadRequest(f"The parameter {name} must be a whole number, 0 or more.")
    return int(text)


def _where(document: Document, span: Span) -> Place | None:
    return None if span is None else place_at(document.places, document.text, span[0])


def _address(incoming: Incoming, page: int | None = None, path: str = PATH) -> str:
    """Return the address of the document and passage that *incoming* names, as text or on a *page*."""
    named = [(name, incoming.param(name)) for name in ("id", "index", "field", "start", "end", "ui")]
    given = [(name, value) for name, value in (*named, ("page", page)) if value is not None]
    return f"{path}?{urlencode(given, errors='replace')}"


def _html_page(turn: Turn, document: Document, span: Span) -> Response:
    incoming, reader = turn.incoming, reader_of(turn)
    where, number = _where(document, span), _number(incoming, "page")
    # Only a document that was made of a file can lack the picture of a page, and is said to.
    shown = None if document.file is None or number is None else _shown(turn, document, span, number)
    is_paged = document.file is not None and number is None and where is not None
    values = {
        "shown": shown,
        "is_missing": document.file is not None and number is not None and shown is None,
        "text_address": _address(incoming),
        "page_address": _address(incoming, where.number) if is_paged and where is not None else None,
        "title": title_of(document),
        "url": without_invisible(document.url or ""),
        "parts": parts_of(document.text, *(span or (0, 0))),
        "place": None if where is None else where.label(reader.language),
        "summary": _summary(document, reader),
        "date": (document.last_modified or "")[:10],
    }
    return page(turn, reader, "document.html", values)


def _shown(turn: Turn, document: Document, span: Span, number: int) -> Mapping[str, object] | None:
    """Return what the view of a page needs; None where it cannot be shown, and the text is."""
    try:
        drawn = _drawn(turn, document, span, TRIED_WIDTH)
    except (NotFound, Overloaded, TooManyRequests) as error:
        log.info("no page is shown: %s", error.log or error.label)
        return None
    incoming = turn.incoming
    return {
        "address": _address(incoming, number, PICTURE_PATH),
        "number": number,
        "pages": drawn.pages,
        "is_marked": drawn.is_marked,
        "previous": _address(incoming, number - 1) if number > 1 else None,
        "next": _address(incoming, number + 1) if number < drawn.pages else None,
    }


def _summary(document: Document, reader: PageReader) -> Mapping[str, object] | None:
    """Return what the script of the page needs to offer a summary, None where there is none to be had."""
    return {"id": document.id, **summary_words(reader.translate)} if document.text.strip() else None


DOCUMENTS = DialectRoute("documents", Questionless(failure), NDJSON, page=failure_page, work=opened)
PICTURES = DialectRoute("documents", Questionless(failure), NDJSON, work=picture)


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
    table = table_at(text, start) if "\n" not in text[start:end] else None
    if table is not None:
        line_end = text.find("\n", end)
        start, end = text.rfind("\n", 0, start) + 1, line_end if line_end >= 0 else len(text)
        kind, header = "row", table.rows[0] if table.rows[0][1] <= start else None
    first, last = header or (0, 0)
    parts = (
        TextPart(text[:first]),
        TextPart(text[first:last], "header"),
        TextPart(text[last:start]),
        TextPart(text[start:end], kind),
        TextPart(text[end:]),
    )
    return tuple(part for part in parts if part.text)
