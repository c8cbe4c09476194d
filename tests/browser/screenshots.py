"""
Takes the README's pictures: `python -m tests.browser.screenshots`. Not a test; run it when the page changes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser

from tests.browser.places import demo, folder_demo, zoo
from tests.browser.surfing import Surfer, browsing
from tests.ingest.paged import table
from tests.support.waiting import until

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COPY = "How do I copy a file in Python?"
DESK = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
DARK = {"color_scheme": "dark"}

PATIENCE_MS = 120_000

Shot = tuple[str, dict[str, Any], Callable[[Surfer], None]]


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


def failing(reader: Surfer) -> None:
    reader.ask("giraffe fence")


def page_of_a_file(browser: Browser, folder: Path) -> None:
    """Take the page of a PDF file without the folder that it lies in."""
    (folder / "files").mkdir(parents=True)
    table(folder / "files/rates.pdf")
    with folder_demo(folder) as service:
        until(lambda: service.get("/demo/progress").json()["runs"], service.logged)
        page = browser.new_page(viewport={"width": 900, "height": 1200}, locale="en-GB")
        address = {"id": (folder / "files/rates.pdf").as_uri()}
        text = service.get(f"/documents?{urlencode(address)}", Accept="application/json").json()["text"]
        start = text.index("Grace Hopper")
        page.goto(f"{service.url}/documents?{urlencode({**address, 'start': start, 'end': start + 12, 'page': 1})}")
        page.wait_for_load_state("networkidle")
        above, below = page.locator(".leaves").bounding_box(), page.locator(".leaf").bounding_box()
        assert above is not None and below is not None
        clip = {"x": 0, "y": above["y"] - 10, "width": 900, "height": below["y"] - above["y"] + 560}
        page.screenshot(path=IMAGES / "page.png", clip=clip)  # type: ignore[arg-type] # a `FloatRect`
        make_small(IMAGES / "page.png")


OF_DEMO: tuple[Shot, ...] = (
    ("answer", DESK, answer),
    ("answer-dark", DESK | DARK, answer),
    ("answer-phone", PHONE, answer),
    ("passage", DESK, passage),
    ("how-made", DESK, made),
)
OF_BUSY: tuple[Shot, ...] = (("model-busy", DESK, failing),)
"""What is shown of a model that has too much to do."""


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
    """Take every picture again."""
    if shutil.which("chromium") is None:
        raise SystemExit("chromium is missing: run .ci/setup test")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browsing() as browser:
        places = [Path(folder) / name for name in ("demo", "zoo")]
        for place in places:
            place.mkdir()
        with demo(places[0]) as service:
            take(browser, service.url, OF_DEMO)
        with zoo(places[1]) as beasts:
            beasts.behave("status-429")
            take(browser, beasts.url, OF_BUSY)
        page_of_a_file(browser, Path(folder) / "files of a folder")


if __name__ == "__main__":
    main()
