"""The page for everybody: what axe finds, and widths, zooms, colours, directions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import Come
from tests.browser.places import Zoo
from tests.browser.surfing import Surfer
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "datafari_rag" / "resources" / "static"
COPY = "How do I copy a file in Python?"


def first(reader: Surfer) -> None:
    reader.open()


def answer(reader: Surfer) -> None:
    reader.ask(COPY)
    reader.page.locator(".made > summary").click()


def passage(reader: Surfer) -> None:
    reader.ask(COPY)
    reader.page.locator(".prose .badge").first.click()
    reader.page.wait_for_selector("#passage-mark")


def nothing(reader: Surfer) -> None:
    reader.ask("xylophone quarantine")


def document(reader: Surfer) -> None:
    reader.open("/documents?id=py-faq-library&start=10&end=90")


def settings(reader: Surfer) -> None:
    reader.open()
    reader.be("admin")
    reader.open("/admin")


STATES: dict[str, Callable[[Surfer], None]] = {
    "the first page": first,
    "an answer with how it was made": answer,
    "an open passage": passage,
    "nothing found": nothing,
    "a comparison of chosen results": lambda reader: reader.compare(COPY),
    "a document": document,
    "the settings": settings,
}


OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe that look at colours."""


def violations(page: Page, rules: list[str] | None = None) -> list[str]:
    """Return what axe finds, by all of its *rules* or some; its half megabyte stays in the page for the next time."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    found: Any = page.evaluate(
        "(more) => axe.run({ resultTypes: ['violations'], ...more })", {"runOnly": rules} if rules else {}
    )["violations"]
    return [f"{one['id']}: {node['target']} {node['failureSummary'][:200]}" for one in found for node in one["nodes"]]


WIDTHS = {"400 % zoom of 1280": 320, "a phone": 390, "a desk": 1280}
TOO_WIDE = "document.documentElement.scrollWidth - innerWidth"


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_wider_than_the_window_and_axe_finds_nothing_on(
    demo_service: Running, come: Come, state: str
) -> None:
    reader = come(demo_service.url)
    STATES[state](reader)
    for name, width in WIDTHS.items():
        reader.page.set_viewport_size({"width": width, "height": 700})

        assert reader.page.evaluate(TOO_WIDE) <= 0, name

    reader.page.emulate_media(color_scheme="light")
    assert violations(reader.page) == []
    reader.page.emulate_media(color_scheme="dark")
    assert violations(reader.page, OF_COLOURS) == []


def test_the_dark_scheme_changes_nothing_but_colours() -> None:
    """Else axe would have to try all of its rules in it."""
    css = (STATIC / "page.css").read_text("utf-8")
    (dark,) = re.findall(r"\(prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}\s*\}", css, re.DOTALL)

    assert css.count("prefers-color-scheme") == 1
    assert [one for one in dark.split(";") if not re.fullmatch(r"\s*(--[a-z-]+: (#[0-9a-f]{6}|none))?\s*", one)] == []


def test_axe_finds_a_fault_that_is_there(demo_service: Running, come: Come) -> None:
    """Else its silence would mean nothing."""
    page = come(demo_service.url).open()
    page.evaluate("document.querySelector('.brand img').removeAttribute('alt')")
    page.evaluate("document.querySelector('label[for=format]').style.color = '#e0e0e0'")
    found = " ".join(violations(page))

    assert "image-alt" in found and "color-contrast" in found
    of_colours = violations(page, OF_COLOURS)
    assert of_colours and all("color-contrast" in one for one in of_colours)


def test_a_page_that_is_too_wide_is_found(demo_service: Running, come: Come) -> None:
    page = come(demo_service.url).open()
    page.evaluate("document.querySelector('.lead').style.minWidth = '3000px'")

    assert page.evaluate(TOO_WIDE) > 0


def test_a_text_that_runs_from_right_to_left_does_so(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    page = come(zoo_service.url).ask("حديقة الحيوان")

    assert page.locator(".prose p").first.evaluate("place => getComputedStyle(place).direction") == "rtl"
    assert page.locator(".hits a").first.evaluate("place => getComputedStyle(place).direction") == "rtl"
    assert page.locator("#q").evaluate("place => getComputedStyle(place).direction") == "rtl"


def test_who_wants_no_motion_sees_none(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("words-200-gap-50ms")
    reader = come(zoo_service.url, reduced_motion="reduce")
    page = reader.open()
    page.fill("#q", "giraffe fence")
    page.press("#q", "Enter")
    page.wait_for_selector(".busy .phase")
    style = "getComputedStyle(document.querySelector('.phase'), '::before').animationName"

    assert page.evaluate(style) == "none"
    page.get_by_role("button", name="Stop").click()
    reader.ended()


LISTEN = """() => {
  window.told = [];
  const listener = new MutationObserver((all) => all.forEach((one) => one.addedNodes.forEach((node) => window.told.push(
    { text: node.textContent, isBusy: Boolean(document.querySelector(".card.busy")) }))));
  listener.observe(document.querySelector("[role=log]"), { childList: true });
}"""


def listened(zoo_service: Zoo, come: Come, question: str) -> tuple[list[dict[str, Any]], Page]:
    """Return the announcements of a screen reader for an answer that repeats *question* word by word, and the page."""
    zoo_service.behave("echo-gap-10ms")
    reader = come(zoo_service.url)
    page = reader.open()
    page.evaluate(LISTEN)
    reader.ask(question)
    told: list[dict[str, Any]] = page.evaluate("window.told")
    return told, page


def test_those_who_listen_are_told_sentence_by_sentence(zoo_service: Zoo, come: Come) -> None:
    sentences = ["Is the giraffe tall?", "It needs a fence.", "The fence costs forty crowns.", "A keeper looks at it"]
    told, page = listened(zoo_service, come, " ".join(sentences))

    assert page.locator("[role=log]").get_attribute("aria-live") == "polite"
    assert [one["text"] for one in told] == sentences
    assert told[0]["isBusy"] and told[1]["isBusy"]
    assert page.locator("#state").inner_text().startswith("Answer complete")


def test_a_sentence_without_end_is_told_in_pieces_of_whole_words(zoo_service: Zoo, come: Come) -> None:
    question = " ".join(["giraffe fence"] * 60)
    told, _ = listened(zoo_service, come, question)

    assert 3 <= len(told) <= 6
    assert " ".join(one["text"] for one in told) == question
    assert all(one["text"].split()[-1] in ("giraffe", "fence") for one in told)


def test_a_follow_up_is_told_without_what_was_told_before(zoo_service: Zoo, come: Come) -> None:
    _, page = listened(zoo_service, come, "The first giraffe. It is tall.")
    page.get_by_role("textbox", name="Ask a follow-up question").fill("The second giraffe. It is small.")
    page.evaluate("window.told = []")
    page.keyboard.press("Enter")
    page.wait_for_selector(".turn:nth-child(2) .counts")

    assert [one["text"] for one in page.evaluate("window.told")] == ["The second giraffe.", "It is small."]
