"""Which path shows which page, and what a page's forms and scripts send; everything for people is here."""

from __future__ import annotations

from collections.abc import Callable

from flask import Response, current_app, request

from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.admin import page
from datafari_rag.web.admin.revoke import revoke
from datafari_rag.web.admin.usage import costs, evaluation_file, questions
from datafari_rag.web.api.exchange import SITE, DialectRoute, Exchange
from datafari_rag.web.api.openapi import openapi_page
from datafari_rag.web.api.search import TITLES
from datafari_rag.web.pages.demo import choose, drop, is_of_script, progress
from datafari_rag.web.pages.feedback import give
from datafari_rag.web.pages.rendering import failure_page, widget_setup
from datafari_rag.web.pages.search import FOUND, PAGE, TALK_TAKES, search_page
from datafari_rag.web.responses import NDJSON, failure
from datafari_rag.web.routes import Route

_QUESTIONLESS = Questionless(failure)


def _row(
    work: Callable[[Exchange], Response],
    accepts: Callable[[Incoming], bool] | None = None,
    *,
    is_shown: bool = True,
) -> DialectRoute:
    page_of = failure_page if is_shown else None
    return DialectRoute(SITE, _QUESTIONLESS, NDJSON, accepts, work=work, is_question=False, page=page_of)


def _route(path: str, method: str, *rows: DialectRoute, takes: frozenset[str] = frozenset()) -> Route:
    return Route(f"page:{method}", (path,), (method,), takes, rows)


PAGES = (
    _route("/", "GET", _row(search_page)),
    _route("/found", "POST", FOUND),
    _route("/talk", "POST", PAGE, takes=TALK_TAKES),
    _route("/demo/user", "POST", _row(choose)),
    _route("/search/titles", "GET", TITLES),
    _route("/demo/progress", "GET", _row(progress, is_shown=False)),
    _route("/demo/files", "POST", _row(drop, lambda _: is_of_script(), is_shown=False), _row(drop)),
    _route(
        "/feedback", "POST", _row(give, lambda _: request.mimetype == "application/json", is_shown=False), _row(give)
    ),
    _route("/widget.json", "GET", _row(widget_setup, is_shown=False)),
    _route("/docs", "GET", _row(lambda exchange: openapi_page(exchange.worker, current_app.url_map))),
    _route("/admin", "GET", _row(page.admin_page)),
    _route("/admin", "POST", _row(page.save)),
    _route("/admin/now", "GET", _row(page.now, is_shown=False)),
    _route("/admin/costs", "GET", _row(costs)),
    _route("/admin/questions", "GET", _row(questions)),
    _route("/admin/questions.jsonl", "GET", _row(evaluation_file)),
    _route("/admin/check", "POST", _row(page.check, is_shown=False)),
    _route("/admin/try", "POST", _row(page.attempt, is_shown=False)),
    _route("/admin/probe", "POST", _row(page.probe, is_shown=False)),
    _route("/admin/revoke", "POST", _row(revoke, is_shown=False)),
)
"""Its rows read what their forms send themselves; a failure for a script is JSON, any other one a page."""
