"""
One page for many readers, one after another: each finds it as a new one is.

A new page has a new renderer process, which costs more CPU than all that most tests do on it. What a page and its
context cannot give up (scripts of `add_init_script`, functions of `expose_function`, an installed clock) is for a page
of its own: `come(url, alone=True)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Browser, Page

from tests.browser.surfing import Surfer, new_page

IDLE = "/health/live"
"""What is open between two readers: a page of the same site, for about:blank costs a new renderer as well."""


@dataclass
class SharedPage:
    """A page for readers with the same *options* of a browser's context."""

    browser: Browser
    options: dict[str, Any]
    page: Page | None = None
    is_taken: bool = False

    def take(self, home: str) -> Surfer:
        """Return the next reader of *home*."""
        if self.page is None:
            self.page = new_page(self.browser, self.options)
        self.is_taken = True
        return Surfer(self.page, home)

    def give_back(self, surfer: Surfer) -> None:
        """Remove everything that *surfer* left; where that fails, the next reader gets a new page."""
        page, self.page, self.is_taken = surfer.page, None, False
        surfer.stop_listening()
        leave(page, surfer.home)
        clear(page, surfer.home)
        self.page = page


def leave(page: Page, home: str) -> None:
    """Close what *page* opened and stop what runs on it."""
    for one in page.context.pages:
        if one is not page:
            one.close()
    page.unroute_all(behavior="ignoreErrors")
    page.context.unroute_all(behavior="ignoreErrors")
    page.goto(home + IDLE)


def clear(page: Page, home: str) -> None:
    """Forget what is kept of *home*, and what was set for *page* and its context."""
    page.evaluate("window.name = ''")
    page.context.clear_cookies()
    page.context.clear_permissions()
    page.emulate_media(
        media="null", color_scheme="null", reduced_motion="reduce", forced_colors="null", contrast="null"
    )
    page.set_viewport_size({"width": 1280, "height": 720})
    wire = page.context.new_cdp_session(page)
    wire.send("Storage.clearDataForOrigin", {"origin": home, "storageTypes": "all"})
    wire.send("Page.resetNavigationHistory")
    wire.detach()
