"""
Takes the pictures of `docs/images`: `python -m tests.browser.screenshots`. Not a test; run it when the page changes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from tests.browser.places import demo, zoo
from tests.browser.surfing import MISSING, Surfer, browsing, chromium

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COPY = "How do I copy a file in Python?"
DESK = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
DARK = {"color_scheme": "dark"}

Shot = tuple[str, dict[str, Any], Callable[[Surfer], None]]


def first(reader: Surfer) -> None:
    reader.open()


def answer(reader: Surfer) -> None:
    reader.open()
    reader.be("alice")
    reader.ask(COPY)


def passage(reader: Surfer) -> None:
    reader.ask(COPY)
    reader.page.locator(".prose .badge").first.click()
    reader.page.wait_for_selector("#passage-mark")


def made(reader: Surfer) -> None:
    reader.open()
    reader.be("admin")
    reader.ask(COPY)
    reader.page.get_by_text("How this answer was made").click()
    reader.page.locator("details.made").scroll_into_view_if_needed()


def settings(reader: Surfer) -> None:
    reader.open()
    reader.be("admin")
    for question in (COPY, "copy a file"):
        reader.ask(question)
    reader.open("/admin")
    reader.page.wait_for_selector("#find:not([hidden])")


def bad_value(reader: Surfer) -> None:
    settings(reader)
    reader.page.get_by_label("Find a setting").fill("rag.temp")
    reader.page.get_by_label("rag.temperature", exact=True).fill("9")
    reader.page.wait_for_selector(".problem:not(:empty)")
    reader.page.locator(".groups").scroll_into_view_if_needed()


def failing(reader: Surfer) -> None:
    reader.ask("giraffe fence")


OF_DEMO: tuple[Shot, ...] = (
    ("first", DESK, first),
    ("answer", DESK, answer),
    ("answer-dark", DESK | DARK, answer),
    ("answer-phone", PHONE, answer),
    ("passage", DESK, passage),
    ("how-made", DESK, made),
    ("settings", DESK, settings),
    ("settings-bad-value", DESK, bad_value),
)
OF_ZOO: tuple[Shot, ...] = (("model-busy", DESK, failing),)


def take(browser: Browser, home: str, shots: tuple[Shot, ...]) -> None:
    """Take *shots* of the service at *home*."""
    for name, options, go in shots:
        context = browser.new_context(reduced_motion="reduce", locale="en-GB", **options)
        reader = Surfer(context.new_page(), home)
        go(reader)
        reader.page.screenshot(path=IMAGES / f"{name}.png")
        context.close()


def main() -> None:
    """Write every picture anew."""
    if chromium() is None:
        raise SystemExit(MISSING)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        places = [Path(folder) / name for name in ("demo", "zoo")]
        for place in places:
            place.mkdir()
        with demo(places[0]) as service:
            take(browser, service.url, OF_DEMO)
        with zoo(places[1]) as beasts:
            beasts.behave("status-429")
            take(browser, beasts.url, OF_ZOO)


if __name__ == "__main__":
    main()
