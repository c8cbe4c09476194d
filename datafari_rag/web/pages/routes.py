"""Which path shows which page, and what a page's forms and scripts send; everything for people is here."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response

from datafari_rag.web.admin import page
from datafari_rag.web.admin.costs import costs
from datafari_rag.web.admin.revoke import revoke
from datafari_rag.web.api.exchange import WorkerContext
from datafari_rag.web.api.titles import titles
from datafari_rag.web.pages.demo_folder import drop, progress
from datafari_rag.web.pages.demo_menu import choose
from datafari_rag.web.pages.feedback import give
from datafari_rag.web.pages.search import search_page, talk
from datafari_rag.web.pages.static_files import static_file, widget_setup


def add_pages(app: Flask, worker: WorkerContext) -> None:
    """Add the pages over *worker* to *app*."""
    for path, method, view in PAGES:
        app.add_url_rule(path, f"page:{method}:{path}", _bound(worker, view), methods=[method])
    app.add_url_rule("/static/<name>", "static", lambda name: static_file(worker, name), methods=["GET"])


def _bound(worker: WorkerContext, view: Callable[[WorkerContext], Response]) -> Callable[[], Response]:
    return lambda: view(worker)


PAGES: tuple[tuple[str, str, Callable[[WorkerContext], Response]], ...] = (
    ("/", "GET", search_page),
    ("/talk", "POST", talk),
    ("/demo/user", "POST", choose),
    ("/search/titles", "GET", titles),
    ("/demo/progress", "GET", progress),
    ("/demo/files", "POST", drop),
    ("/feedback", "POST", give),
    ("/widget.json", "GET", widget_setup),
    ("/admin", "GET", page.admin_page),
    ("/admin", "POST", page.save),
    ("/admin/now", "GET", page.now),
    ("/admin/costs", "GET", costs),
    ("/admin/check", "POST", page.check),
    ("/admin/try", "POST", page.attempt),
    ("/admin/probe", "POST", page.probe),
    ("/admin/revoke", "POST", revoke),
)
