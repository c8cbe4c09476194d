"""The basket: asked alone, summarised and compared, by keyboard, for one visit and one user."""

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


def put(page: Page, *titles: str) -> None:
    """Put the results with *titles* into the basket."""
    for title in titles:
        page.get_by_role("checkbox", name=f"Put “{title}” into the basket").check()


def test_two_results_are_compared_by_keyboard_and_each_badge_opens_its_proof(demo_service: Running, come: Come) -> None:
    page = found(come(demo_service.url))
    titles = page.locator(".hits h3 a").all_inner_texts()[:2]
    compare = page.get_by_role("button", name="Compare", exact=True)
    page.get_by_role("checkbox", name=f"Put “{titles[0]}” into the basket").focus()
    page.keyboard.press("Space")
    expect(compare).to_be_disabled()
    expect(page.locator("#state")).to_have_text("1 document in the basket")
    page.keyboard.press("Tab")  # the title of the first
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator("#state")).to_have_text("2 documents in the basket")
    while page.evaluate("document.activeElement.closest('.hits') !== null"):
        page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.innerText !== 'Compare'"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    ended(page)

    card = page.locator(CARD)
    assert card.locator(".sources > li > a").all_inner_texts() == titles
    expect(card.locator(".note")).to_contain_text("the documents' own words")
    assert {one[0] for one in card.locator(".prose .badge").all_inner_texts()} == {"1", "2"}
    assert card.locator(".proof.verified").count() >= 2
    expect(card.get_by_role("button", name="Ask again")).to_be_focused()
    quote = card.locator(".proof.verified q").first.inner_text()
    card.locator(".prose .badge").first.click()
    expect(page.locator("#passage-mark")).to_have_text(quote)


def test_the_basket_is_asked_alone_with_filters_and_in_what_follows(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = found(reader)
    titles = page.locator(".hits h3 a").all_inner_texts()[1:3]
    put(page, *titles)
    page.get_by_role("button", name="Ask these").click()
    reader.ended()

    assert sorted(page.locator(".hits h3 a").all_inner_texts()) == sorted(titles)
    assert set(page.locator(".turn .sources > li > a").all_inner_texts()) <= set(titles)
    expect(page.locator(".turn > .fine")).to_have_text("Only the 2 documents in the basket were searched.")
    expect(page.get_by_label("Only the basket")).to_be_checked()
    page.locator(".facets a").first.click()
    reader.ended()
    assert "fq=" in page.url and "basket=1" in page.url
    assert set(page.locator(".hits h3 a").all_inner_texts()) <= set(titles)
    with page.expect_request("**/talk?**") as asked:
        page.get_by_label("Ask a follow-up question").fill("And how is one renamed?")
        page.keyboard.press("Enter")
    assert len(asked.value.post_data_json["context"]["overrides"]["documents"]) == 2
    reader.ended()
    page.get_by_label("Only the basket").uncheck()
    reader.ended()
    assert page.locator(".hits li").count() > 2
    assert page.locator(".turn > .fine").count() == 0


def test_a_summary_of_one_document_and_of_several(demo_service: Running, come: Come) -> None:
    page = found(come(demo_service.url))
    titles = page.locator(".hits h3 a").all_inner_texts()[:2]
    summarise = page.get_by_role("button", name="Summarise")
    for place, title in enumerate(titles, 1):
        put(page, title)
        summarise.click()
        ended(page)
        expect(page.locator(f"{CARD} h2")).to_have_text("Summary")
        assert page.locator(f"{CARD} .sources > li > a").all_inner_texts() == titles[:place]
        assert page.locator(f"{CARD} .prose .badge").count() >= place


def test_another_user_finds_no_basket(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    reader.open()
    reader.be("alice")
    page = found(reader)
    page.locator(BOXES).first.check()
    page = reader.be("bob")
    expect(page.locator(".dock")).to_be_hidden()
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('basket'))") == []


def test_a_document_that_the_reader_may_no_longer_see_is_left_out_by_name(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    reader.open()
    reader.be("alice")
    page = found(reader, "floating point")
    public, hidden = "Programming FAQ", "cmath — Mathematical functions for complex numbers"
    put(page, public, hidden)
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
    assert f"Put “Zebra {ATTACK}” into the basket" in names
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
