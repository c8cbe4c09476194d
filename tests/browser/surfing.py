"""The real page in a real browser: Debian's Chromium, closed off from every network but this machine's own."""

from __future__ import annotations

from collections.abc import Iterator
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


@contextmanager
def browsing() -> Iterator[Browser]:
    """Run one browser; every context of it is a fresh reader."""
    path = program("chromium", "run make programs")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Surfer:
    """One reader with a page of his own; notes what the browser complains of and which hosts it asks."""

    page: Page
    home: str
    complaints: list[str] = field(default_factory=list)
    strange_requests: list[str] = field(default_factory=list)
    bytes_in: int = 0

    def watch(self) -> None:
        """Begin to note."""
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", self._note)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((f"{self.home}/", "data:", "blob:")):
            self.strange_requests.append(request.url)

    def open(self, path: str = "/") -> Page:
        """Open *path* of the service."""
        self.page.goto(self.home + path)
        return self.page

    def ask(self, question: str) -> Page:
        """Ask *question* from the first page and wait until its answer has ended, well or not."""
        if not self.page.url.startswith(self.home):
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
        self.page.locator(".dock button").click()
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
