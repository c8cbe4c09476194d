"""Which path shows which page, and what a page's forms and scripts send; everything for people stands here."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response

from datafari_rag.web import adminpage
from datafari_rag.web.answering import Desk
from datafari_rag.web.demo_menu import choose
from datafari_rag.web.feedback import give
from datafari_rag.web.searchpage import search_page
from datafari_rag.web.static_files import static_file
from datafari_rag.web.talking import talk
from datafari_rag.web.widget import widget_setup


def add_pages(app: Flask, desk: Desk) -> None:
    """Add the pages over *desk* to *app*."""
    for path, method, view in PAGES:
        app.add_url_rule(path, f"page:{method}:{path}", _bound(desk, view), methods=[method])
    app.add_url_rule("/static/<name>", "static", lambda name: static_file(desk, name), methods=["GET"])


def _bound(desk: Desk, view: Callable[[Desk], Response]) -> Callable[[], Response]:
    return lambda: view(desk)


PAGES: tuple[tuple[str, str, Callable[[Desk], Response]], ...] = (
    ("/", "GET", search_page),
    ("/talk", "POST", talk),
    ("/demo/user", "POST", choose),
    ("/feedback", "POST", give),
    ("/widget.json", "GET", widget_setup),
    ("/admin", "GET", adminpage.admin_page),
    ("/admin", "POST", adminpage.save),
    ("/admin/now", "GET", adminpage.now),
    ("/admin/check", "POST", adminpage.check),
    ("/admin/try", "POST", adminpage.attempt),
    ("/admin/probe", "POST", adminpage.probe),
)
