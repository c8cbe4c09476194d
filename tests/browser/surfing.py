"""The real page in a real browser: Debian's Chromium, closed off from every network but this machine's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.required import program

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


PATIENCE_MS = 45_000
"""Far more than a page takes: a busy machine is no fault of it."""


@contextmanager
def browsing() -> Iterator[Browser]:
    """Run one browser; every context of it is a fresh reader."""
    path = program("chromium", ".ci/setup test")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def new_page(browser: Browser, options: dict[str, Any]) -> Page:
    """Return a page in a new context with *options*, which is patient and moves nothing."""
    context = browser.new_context(**{"reduced_motion": "reduce", "locale": "en-GB", **options})
    context.set_default_timeout(PATIENCE_MS)
    return context.new_page()


@dataclass
class Surfer:
    """One reader with a page; notes what the browser complains of and which hosts it asks."""

    page: Page
    home: str
    complaints: list[str] = field(default_factory=list)
    strange_requests: list[str] = field(default_factory=list)
    listeners: list[tuple[Any, Callable[[Any], Any]]] = field(default_factory=list)
    bytes_in: int = 0

    def watch(self) -> None:
        """Begin to note."""
        self.listen("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.listen("pageerror", lambda error: self.complaints.append(str(error)))
        self.listen("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.listen("request", self._note)

    def listen(self, event: Any, listener: Callable[[Any], Any]) -> None:
        """Call *listener* at each *event* of the page, until `stop_listening`."""
        self.page.on(event, listener)
        self.listeners.append((event, listener))

    def stop_listening(self) -> None:
        """Remove every listener: the page may be another reader's next."""
        for event, listener in self.listeners:
            self.page.remove_listener(event, listener)
        self.listeners.clear()

    def _note(self, request: Any) -> None:
        if not request.url.startswith((f"{self.home}/", "data:", "blob:")):
            self.strange_requests.append(request.url)

    def open(self, path: str = "/") -> Page:
        """Open *path* of the service."""
        self.page.goto(self.home + path)
        return self.page

    def ask(self, question: str) -> Page:
        """Ask *question* from the first page and wait until its answer has ended, well or not."""
        if not self.page.locator("#q").count():
            self.open()
        self.page.fill("#q", question)
        self.page.press("#q", "Enter")
        self.ended()
        return self.page

    def ended(self) -> None:
        """Wait until no answer is being written and the results below are there."""
        self.page.wait_for_selector(".turn .card:not(.busy)")
        self.page.wait_for_selector(".card.busy", state="detached")
        self.page.wait_for_selector("#found:not([aria-busy])", state="attached")

    def compare(self, question: str) -> None:
        """Compare the first two documents found for *question*."""
        self.ask(question)
        for place in range(2):
            self.page.locator(".hits input").nth(place).check()
        self.page.locator(".dock .compare").click()
        self.page.wait_for_selector(".comparison .counts")

    def be(self, user: str) -> Page:
        """Choose *user* in the demo's menu."""
        # The page's script hides the button, and sends the form itself. Afterwards this may be the next page already.
        has_button = self.page.locator("#switch").is_visible()
        with self.page.expect_navigation():
            self.page.select_option("#user", user)
            if has_button:
                self.page.click("#switch")
        return self.page
