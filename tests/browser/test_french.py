"""Nothing that a reader sees stays English on the French page, but names, keys and the documents' own words."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Come
from tests.browser.surfing import Surfer
from tests.browser.test_access import STATES
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

SEEN = """() => {
  const own = "code, pre, time, [dir], h1 > .fine, .by, .brand, #user, option, .shape";
  const said = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (node.parentElement && !node.parentElement.closest(own)) said.add(node.textContent.trim());
  }
  for (const option of document.querySelectorAll("#format option")) said.add(option.textContent.trim());
  for (const name of ["aria-label", "placeholder", "title", "alt"]) {
    // The placeholder of a setting is its default, the title of a badge that of a document.
    const isOwn = (place) => place.matches(".setting input, .badge");
    const places = [...document.querySelectorAll(`[${name}]`)].filter((place) => !isOwn(place));
    for (const place of places) said.add(place.getAttribute(name));
  }
  return [...said].filter((text) => /\\p{L}{2}/u.test(text));
}"""
"""Texts and spoken names of a page without those of a user or document: what has a direction of its own is a
document's or a reader's word."""

ALIKE = re.compile(
    r"[a-z]+\.[\w.]+|tls"  # keys
    r"|datafari|_rag|Datafari|Français|English|alice|bob|admin"
    r"|Site|Date|Sources?|(\d+ )?[Dd]ocuments?|Audit|Score|ragapi|select|page|builtin:extractive.*"
    r"|https?://\S+|[\d.,/ –-]*(ms|s)?|\W*"
)
"""What is the same word in both, a key, a name of the wire or a number."""


def texts(page: Page) -> set[str]:
    return set(page.evaluate(SEEN))


def thumbs(reader: Surfer) -> None:
    STATES["an answer with how it was made"](reader)
    reader.page.locator(".thumbs button").nth(1).click()


PLACES: dict[str, Callable[[Surfer], None]] = {
    **{name: go for name, go in STATES.items() if name not in ("an answer with how it was made", "the settings")},
    "an answer with how it was made": thumbs,
}


@pytest.mark.parametrize("state", PLACES)
def test_no_words_of_ours_stay_english_on(demo_service: Running, come: Come, state: str) -> None:
    found = []
    for locale in ("en-GB", "fr-FR"):
        reader = come(demo_service.url, locale=locale)
        PLACES[state](reader)
        found.append(texts(reader.page))
        reader.page.evaluate("document.querySelectorAll('.touched').forEach((row) => row.classList.remove('touched'))")
    english, french = found

    assert len(english) > 5
    assert sorted(text for text in english & french if not ALIKE.fullmatch(text)) == []


def test_a_word_that_stayed_english_is_found(demo_service: Running, come: Come) -> None:
    """Else their absence would mean nothing."""
    page = come(demo_service.url, locale="fr-FR").open()
    page.evaluate("document.querySelector('.lead').textContent = 'Left in English'")
    page.evaluate("document.querySelector('#q').setAttribute('placeholder', 'As this is')")

    assert {"Left in English", "As this is"} <= {text for text in texts(page) if not ALIKE.fullmatch(text)}
