"""
Takes the pictures of `docs/images`: `python -m tests.browser.screenshots`. Not a test; run it when the page changes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser

from tests.browser.places import demo, three_files, zoo
from tests.browser.surfing import Surfer, browsing

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COPY = "How do I copy a file in Python?"
DESK = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
DARK = {"color_scheme": "dark"}

PATIENCE_MS = 120_000

Shot = tuple[str, dict[str, Any], Callable[[Surfer], None]]


def first(reader: Surfer) -> None:
    reader.open()


def own_files(reader: Surfer) -> None:
    """The demo over one's own files."""
    reader.open().wait_for_selector(".examples")


def answer(reader: Surfer) -> None:
    reader.open()
    reader.be("alice")
    reader.ask(COPY)
    reader.page.wait_for_selector(".proposals")


def passage(reader: Surfer) -> None:
    reader.ask(COPY)
    reader.page.locator(".prose .badge").first.click()
    reader.page.wait_for_selector("#passage-mark")


def comparison(reader: Surfer) -> None:
    reader.compare(COPY)
    reader.page.locator(".found > h2").evaluate("title => title.scrollIntoView()")


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


def failing(reader: Surfer) -> None:
    reader.ask("giraffe fence")


def right_to_left(reader: Surfer) -> None:
    reader.ask("حديقة الحيوان")


OF_DEMO: tuple[Shot, ...] = (
    ("first", DESK, first),
    ("answer", DESK, answer),
    ("answer-dark", DESK | DARK, answer),
    ("answer-phone", PHONE, answer),
    ("passage", DESK, passage),
    ("comparison", DESK, comparison),
    ("how-made", DESK, made),
    ("first-phone", PHONE, first),
    ("settings", DESK, settings),
    ("settings-dark", DESK | DARK | {"locale": "fr-FR"}, settings),
)
OF_ZOO: tuple[tuple[str, tuple[Shot, ...]], ...] = (
    ("status-429", (("model-busy", DESK, failing),)),
    ("miscite", (("not-supported", DESK, failing),)),
    ("cite", (("right-to-left", DESK, right_to_left),)),
)
"""What is shown of a model that behaves so."""


def take(browser: Browser, home: str, shots: tuple[Shot, ...]) -> None:
    """Take *shots* of the service at *home*."""
    for name, options, go in shots:
        context = browser.new_context(**{"reduced_motion": "reduce", "locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE_MS)
        reader = Surfer(context.new_page(), home)
        go(reader)
        reader.page.screenshot(path=IMAGES / f"{name}.png")
        make_small(IMAGES / f"{name}.png")
        context.close()


def make_small(picture: Path) -> None:
    """Keep the 256 colours that say most of *picture*: a third of the bytes, and no difference to be seen."""
    with Image.open(picture) as whole:
        whole.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> None:
    """Write every picture again."""
    if shutil.which("chromium") is None:
        raise SystemExit("chromium is missing: run .ci/setup test")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        places = [Path(folder) / name for name in ("demo", "zoo", "Documents")]
        for place in places:
            place.mkdir()
        with demo(places[0]) as service:
            take(browser, service.url, OF_DEMO)
        with three_files(places[2]) as own:
            take(browser, own.url, (("folder", DESK, own_files),))
        with zoo(places[1]) as beasts:
            for model, shots in OF_ZOO:
                beasts.behave(model)
                take(browser, beasts.url, shots)


if __name__ == "__main__":
    main()
