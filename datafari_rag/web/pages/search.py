"""
`/`: the question box, the answer with its proof, and the plain results below; all of it also without script.

With a running script (shown by its cookie) only the frame is sent, and each question of the script comes to `/talk`.
Without one the answer is made here, by the same line, before the page goes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson
from flask import Response, request

from datafari_rag.core.ask import ANSWER_FORMATS, EFFORTS
from datafari_rag.core.errors import NotAllowed, RagError
from datafari_rag.core.events import Finished
from datafari_rag.core.model.replies import header_value
from datafari_rag.core.proof.labels import file_name
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.text.cleaning import without_invisible
from datafari_rag.protocols.request import Incoming, PassThrough
from datafari_rag.web.api.answers import context_of, parsed, whole_answer
from datafari_rag.web.api.search import SELECT, hits_for
from datafari_rag.web.pages import search_dialect
from datafari_rag.web.pages.demo import QUESTIONS, folder_values
from datafari_rag.web.pages.messages import (
    badge_counts,
    field_names,
    legend,
    other_language,
    relaxed_words,
    replaced,
    script_words,
    statuses,
    title_and_hint,
)
from datafari_rag.web.pages.rendering import PageReader, failure_page, page, reader_of
from datafari_rag.web.pages.results import (
    ROWS,
    SHAPES,
    PlacedCitations,
    active_filters,
    address_of,
    address_with,
    choices_of,
    dated,
    days_of,
    hits_of,
    html_of,
    notes_of,
    parameters_for,
    quote_of,
    states,
)
from datafari_rag.web.responses import NDJSON, plain
from datafari_rag.web.turn import DialectRoute, Turn
from datafari_rag.whole_documents import TOGETHER

PAGE = DialectRoute("page", search_dialect, NDJSON, begins_at_once=True, reports_waiting=True)

SCRIPT_COOKIE = "datafari_rag_script"
"""Set by our script: its browser needs no answer in the page."""

Arguments = Mapping[str, Sequence[str]]


def search_page(turn: Turn) -> Response:
    """
    Return the page for the question in the address, the first page when there is none. Raises: RagError.

    The days of the form of results become a filter of the address, which scripts and links know.
    """
    reader, arguments = reader_of(turn), _arguments(turn)
    if (address := dated(turn.incoming.query)) is not None:
        return Response(status=303, headers={"Location": request.script_root + address})
    question = arguments.get("q", [""])[0]
    is_scripted = SCRIPT_COOKIE in request.cookies and request.args.get("answer") != "page"
    content = {} if not question or is_scripted else _answer_and_hits(turn, reader, arguments)
    of_folder = {} if question else folder_values(turn, reader.translate)
    return page(turn, reader, "search.html", {**_frame(turn, reader, arguments), **of_folder, **content})


def found_part(turn: Turn) -> Response:
    """Return the results alone, of the documents that the form names where it names any. Raises: RagError."""
    arguments, reader = _arguments(turn), reader_of(turn)
    chosen = tuple(turn.incoming.form.get("documents", ()))
    content = _hits(turn, reader, arguments, {"documents": chosen} if chosen else {})
    return page(turn, reader, "found.html", {"field_names": field_names(reader.translate), **content})


FOUND_PAGE = replace(SELECT, work=found_part, page=failure_page)


def _arguments(turn: Turn) -> Arguments:
    return {name: values for name, values in turn.incoming.query.items() if any(value.strip() for value in values)}


def _frame(turn: Turn, reader: PageReader, arguments: Arguments) -> dict[str, object]:
    """Return what the page has with and without an answer."""
    settings = turn.settings
    setup = {
        "words": script_words(reader.translate),
        "user": reader.name or "",
        "token": turn.worker.signer.form_token(reader.name or ""),
        "hasFeedback": bool(settings.feedback.file),
        "most": TOGETHER,
    }
    return {
        "question": arguments.get("q", [""])[0],
        "tab_title": without_invisible(arguments.get("q", [""])[0]),
        "filters": arguments.get("fq", []),
        "wanted_format": arguments.get("format", ["default"])[0].lower(),
        "formats": ANSWER_FORMATS,
        "wanted_effort": arguments.get("effort", [""])[0].lower(),
        "efforts": EFFORTS,
        "field_names": field_names(reader.translate),
        "examples": QUESTIONS if settings.security.identity == "demo" else (),
        "has_feedback": bool(settings.feedback.file),
        "legend": legend(reader.translate),
        "shapes": SHAPES,
        "setup": orjson.dumps(setup).decode(),
    }


def _answer_and_hits(turn: Turn, reader: PageReader, arguments: Arguments) -> dict[str, object]:
    """Return the answer with the plain results below it; of a failure of both, what the answer says is enough."""
    hits: Mapping[str, object] = {}
    with suppress(RagError):
        hits = _hits(turn, reader, arguments, {})
    parameters = {name: tuple(arguments[name]) for name in ("q", "fq", "format", "effort", "lang") if name in arguments}
    turn.incoming = replace(turn.incoming, query=parameters)
    try:
        turn.take(PAGE)
        ask = parsed(turn)
        if isinstance(ask, PassThrough):
            raise NotAllowed
        whole = whole_answer(turn, ask)
    except RagError as error:
        turn.finish(error)
        title, hint = title_and_hint(error.label, reader.translate)
        failure = {"label": error.label, "title": title, "hint": hint, "reason": error.reason}
        said = orjson.dumps(search_dialect.failure(error, turn.settings.rag)[1]).decode()
        return {**hits, "failure": failure, "answer_json": said}
    return {**hits, **_answer(turn, search_dialect.content_of(whole, context_of(turn, ask)), whole.finished, reader)}


def _answer(turn: Turn, content: Mapping[str, Any], finished: Finished, reader: PageReader) -> dict[str, object]:
    marks = PlacedCitations(content["citations"], content["documents"], statuses(reader.translate), request.script_root)
    model, citations = header_value(finished.facts), content["citations"]
    return {
        "answer": html_of(content["message"], marks),
        "sources": _sources(content, marks),
        "counts": {
            "used": len(content["documents"]),
            "cited": len({citation["document_id"] for citation in citations if citation["document_id"] is not None}),
        },
        "badges": _counted(citations, badge_counts(reader.translate)),
        "request_id": turn.id,
        "is_extractive": model.startswith(BUILTIN_MODEL),
        "has_few_words": content.get("few_words", False),
        "other_language": other_language(reader.translate) if content.get("other_language") else "",
        "is_partial": content.get("partial_results", False),
        "support": content.get("support"),
        "replaced": replaced(reader.translate),
        "answer_json": plain({"content": content, "model": model, "id": turn.id}).decode(),
    }


def _counted(citations: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> list[str]:
    """Return how many badges of each shape an answer has, in words; what states nothing has none."""
    shapes = Counter(SHAPES[citation["status"]] for citation in citations if states(citation))
    return [told.format(number=shapes[shape]) for shape, told in words.items() if shapes[shape]]


def _sources(content: Mapping[str, Any], marks: PlacedCitations) -> list[dict[str, object]]:
    """Return each document with what the answer cites of it, the same place once."""
    sources = []
    for number, document in enumerate(content["documents"], 1):
        mine = [citation for citation in content["citations"] if citation["document_id"] == document["id"]]
        once = {(citation["start"], citation["end"], citation["status"]): citation for citation in mine}
        cited = [
            {
                **citation,
                "states": states(citation),
                "said": marks.said(citation),
                "marked": quote_of(citation),
                "address": address_of(citation),
            }
            for citation in once.values()
        ]
        address = address_of({"document_id": document["id"]})
        name, title = file_name(document.get("url") or ""), document["title"]
        details = {
            "title": title,
            # A part without an ending is an address of the web, and no name.
            "file": name if "." in name and name != title else "",
            "date": str(document.get("last_modified") or "")[:10],
        }
        sources.append({"id": document["id"], "number": number, **details, "address": address, "cited": cited})
    return sources


def _hits(
    turn: Turn, reader: PageReader, arguments: Arguments, more: Mapping[str, tuple[str, ...]]
) -> dict[str, object]:
    """Return the plain results for *arguments*, with *more* parameters of the search. Raises: RagError."""
    facets = turn.settings.solr.facets
    reply = hits_for(turn, Incoming("/", {**parameters_for(arguments, facets), **more}, headers=turn.incoming.headers))
    total, start = int(reply["response"]["numFound"]), int(reply["response"]["start"])
    return {
        "hits": hits_of(reply),
        "choices": choices_of(reply, arguments),
        "active": active_filters(arguments, field_names(reader.translate)),
        "days": days_of(arguments) if "last_modified" in facets else None,
        "kept": [(name, one) for name, values in arguments.items() if name != "start" for one in values],
        "total": total,
        "notes": notes_of(reply, relaxed_words(reader.translate)),
        "previous": address_with(arguments, start=[str(max(0, start - ROWS))]) if start else None,
        "following": address_with(arguments, start=[str(start + ROWS)]) if start + ROWS < total else None,
    }
