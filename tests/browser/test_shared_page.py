"""The next reader of a shared page finds it as a reader with a new context does."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.shared_page import IDLE, SharedPage
from tests.browser.surfing import Surfer, new_page
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

LEFT = """async () => {
  localStorage.setItem("left", "1");
  sessionStorage.setItem("left", "1");
  document.cookie = "left=1";
  window.name = "left";
  window.left = 1;
  history.pushState({}, "", "/?q=left");
  addEventListener("beforeunload", (event) => event.preventDefault());
  await caches.open("left");
  await new Promise((done) => { indexedDB.open("left").onsuccess = ({ target }) => done(target.result.close()); });
}"""

SEEN = """async () => ({
  local: Object.keys(localStorage), session: Object.keys(sessionStorage), name: window.name, own: window.left ?? null,
  databases: (await indexedDB.databases()).map((one) => one.name), caches: await caches.keys(),
  size: [innerWidth, innerHeight], focused: document.activeElement.id, language: navigator.language,
  media: ["print", "(prefers-color-scheme: dark)", "(prefers-reduced-motion)", "(forced-colors: active)"].map(
    (query) => matchMedia(query).matches),
  permissions: (await navigator.permissions.query({ name: "geolocation" })).state,
})"""


def seen(page: Page) -> dict[str, Any]:
    """Return what a reader can see of the one before."""
    found: dict[str, Any] = page.evaluate(SEEN)
    cookies = sorted(str(cookie.get("name")) for cookie in page.context.cookies())
    return {**found, "cookies": cookies, "tabs": len(page.context.pages)}


def leave_everything(reader: Surfer, heard: list[str]) -> None:
    """Do on the page of *reader* whatever can outlive him."""
    page, context = reader.open(), reader.page.context
    page.evaluate(LEFT)
    page.click("#q")  # else the browser leaves a page without its question
    for place in (reader.home, "https://elsewhere.invalid"):
        context.add_cookies([{"name": "hidden", "value": "1", "url": place, "httpOnly": True}])
    context.grant_permissions(["geolocation"])
    page.set_viewport_size({"width": 320, "height": 300})
    page.emulate_media(media="print", color_scheme="dark", reduced_motion="no-preference", forced_colors="active")
    page.route("**/health", lambda route: route.abort())
    context.route("**/documents**", lambda route: route.abort())
    reader.listen("request", lambda request: heard.append(request.url))
    context.new_page().goto(reader.home)


def test_the_next_reader_finds_nothing_of_the_one_before(browser: Browser, demo_service: Running) -> None:
    new = new_page(browser, {})
    new.goto(demo_service.url)
    shared = SharedPage(browser, {})
    heard: list[str] = []
    reader = shared.take(demo_service.url)
    reader.watch()
    leave_everything(reader, heard)
    changed = seen(reader.page)
    assert {name for name, value in seen(new).items() if changed[name] == value} == {"language"}

    shared.give_back(reader)
    heard.clear()
    following = shared.take(demo_service.url)
    assert following.page is reader.page
    page = following.open()

    assert seen(page) == seen(new)
    paths = ("/health", "/documents?id=py-faq-library")
    for path in paths:
        following.open(path)
    assert (heard, reader.complaints) == ([], [])
    history = page.context.new_cdp_session(page).send("Page.getNavigationHistory")["entries"]
    assert [one["url"] for one in history] == [demo_service.url + path for path in (IDLE, "/", *paths)]
    for context in (new.context, page.context):
        context.close()


def test_a_page_that_cannot_be_cleared_is_not_given_to_the_next(browser: Browser, demo_service: Running) -> None:
    shared = SharedPage(browser, {})
    reader = shared.take(demo_service.url)
    reader.page.close()
    with pytest.raises(Exception, match="closed"):
        shared.give_back(reader)

    following = shared.take(demo_service.url)
    assert following.page is not reader.page and following.open().title()
    for context in (reader.page.context, following.page.context):
        context.close()
