"""Chosen results compared: by keyboard, as many as the service takes, with proofs, with what was left out and why."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Come
from tests.browser.places import ATTACK, Zoo
from tests.browser.surfing import Surfer
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

COPY = "How do I copy a file?"
BOXES = ".hits input[type=checkbox]"
CARD = ".comparison .card"


def found(reader: Surfer, question: str = COPY) -> Page:
    reader.ask(question)
    reader.page.locator(BOXES).first.wait_for()
    return reader.page


def ended(page: Page) -> None:
    page.wait_for_selector(f"{CARD}:not(.busy)")


def test_two_results_are_compared_by_keyboard_and_each_badge_opens_its_proof(demo_service: Running, come: Come) -> None:
    page = found(come(demo_service.url))
    titles = page.locator(".hits h3 a").all_inner_texts()[:2]
    compare = page.get_by_role("button", name="Compare", exact=True)
    page.get_by_role("checkbox", name=f"Choose “{titles[0]}” to compare").focus()
    page.keyboard.press("Space")
    expect(compare).to_be_disabled()
    expect(page.locator("#state")).to_have_text("Choose at least two documents to compare.")
    page.keyboard.press("Tab")  # the title of the first
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator("#state")).to_have_text("2 documents chosen, of at most 5")
    while page.evaluate("document.activeElement.closest('.hits') !== null"):
        page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.closest('.dock') === null"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    ended(page)

    card = page.locator(CARD)
    assert card.locator(".sources > li > a").all_inner_texts() == titles
    expect(card.locator(".note")).to_contain_text("the documents' own words")
    assert {one[0] for one in card.locator(".prose .badge").all_inner_texts()} == {"1", "2"}
    assert card.locator(".proof.verified").count() >= 2
    expect(page.get_by_role("button", name="Compare again")).to_be_focused()
    quote = card.locator(".proof.verified q").first.inner_text()
    card.locator(".prose .badge").first.click()
    expect(page.locator("#passage-mark")).to_have_text(quote)


def test_no_more_can_be_chosen_than_the_service_takes(demo_service: Running, come: Come) -> None:
    page = found(come(demo_service.url))
    boxes = page.locator(BOXES)
    for place in range(5):
        boxes.nth(place).check()

    assert page.locator(f"{BOXES}:disabled").count() == boxes.count() - 5 > 0
    said = "5 documents chosen: more cannot be compared at a time."
    expect(page.locator(".dock p")).to_have_text(said)
    expect(page.locator("#state")).to_have_text(said)
    boxes.first.uncheck()
    assert page.locator(f"{BOXES}:disabled").count() == 0
    for place in range(1, 5):
        boxes.nth(place).uncheck()
    assert not page.locator(".dock").is_visible()


def test_a_document_that_the_reader_may_no_longer_see_is_left_out_by_name(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    reader.open()
    reader.be("alice")
    page = found(reader, "functional programming")
    public, hidden = "Programming FAQ", "Functional Programming HOWTO"
    for title in (public, hidden):
        page.get_by_role("checkbox", name=f"Choose “{title}” to compare").check()
    other = Surfer(page.context.new_page(), demo_service.url)
    other.open()
    other.be("bob")
    other.page.close()
    page.get_by_role("button", name="Compare", exact=True).click()
    ended(page)

    gone = f"Left out: {hidden}. It does not exist, or you do not have access to it."
    expect(page.locator(f"{CARD} .warn")).to_have_text(gone)
    assert page.locator(f"{CARD} .sources > li > a").all_inner_texts() == [public]


def test_hostile_titles_stay_text_while_they_are_chosen_and_compared(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    page = found(come(zoo_service.url), "zebra giraffe")
    names = page.locator(BOXES).evaluate_all("all => all.map((box) => box.ariaLabel)")
    assert f"Choose “Zebra {ATTACK}” to compare" in names
    for box in page.locator(BOXES).all():
        box.check()
    page.get_by_role("button", name="Compare", exact=True).click()
    ended(page)

    card = page.locator(CARD)
    assert sorted(card.locator(".sources > li > a").all_inner_texts()) == ["Giraffe handbook", f"Zebra {ATTACK}"]
    assert card.locator(".prose .badge").count() >= 1
    assert page.locator("main img, main script, iframe").count() == 0
    links = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
    assert [link for link in links if not link.startswith(zoo_service.url)] == []


def test_a_comparison_can_be_stopped_and_keeps_its_words(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    page = found(come(zoo_service.url), "zebra giraffe")
    zoo_service.behave("words-400-gap-30ms")
    for box in page.locator(BOXES).all():
        box.check()
    page.get_by_role("button", name="Compare", exact=True).click()
    card = page.locator(CARD)
    expect(card.locator(".prose")).to_contain_text("word10")
    page.keyboard.press("Escape")
    ended(page)

    expect(card.locator(".phase")).to_contain_text("Stopped")
    assert "word10" in card.locator(".prose").inner_text()
    assert "word400" not in card.locator(".prose").inner_text()
    zoo_service.behave("cite")
    page.get_by_role("button", name="Compare again").click()
    card.locator(".counts").wait_for()
    assert "word10" not in card.locator(".prose").inner_text()


@pytest.mark.parametrize(
    ("locale", "compare", "title"),
    [
        ("en-GB", "Compare", "The language model is busy"),
        ("fr-FR", "Comparer", "Le modèle de langage est occupé"),
    ],
)
def test_a_failure_is_told_in_the_reader_s_language(
    zoo_service: Zoo, come: Come, locale: str, compare: str, title: str
) -> None:
    zoo_service.behave("cite")
    page = found(come(zoo_service.url, locale=locale), "zebra giraffe")
    zoo_service.behave("status-429")
    for box in page.locator(BOXES).all():
        box.check()
    page.get_by_role("button", name=compare, exact=True).click()
    ended(page)

    expect(page.locator(f"{CARD} h2")).to_have_text(title)
    assert page.locator(BOXES).count() == page.locator(f"{BOXES}:checked").count()


def test_without_script_nothing_is_offered_for_choice(demo_service: Running, come: Come) -> None:
    page = come(demo_service.url, java_script_enabled=False).open(f"/?q={COPY}")

    assert page.locator(".hits li").count() > 1
    assert page.locator(BOXES).count() == 0
