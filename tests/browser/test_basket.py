"""The basket: asked alone, summarised and compared, by keyboard, for one visit and one user."""

from __future__ import annotations

from typing import Any

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


def test_the_basket_stays_for_the_visit_and_one_click_empties_it(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = found(reader)
    first = page.locator(".hits h3 a").first.inner_text()
    put(page, first)
    page.goto(f"{demo_service.url}/?q=sorting")
    reader.ended()
    second = page.locator(".hits h3 a").first.inner_text()
    put(page, second)
    count = page.locator(".dock summary")
    expect(count).to_have_text("2 documents in the basket")
    count.press("Enter")
    assert page.locator(".dock li").all_inner_texts() == [first, second]
    page.locator(".dock li input").first.uncheck()
    expect(count).to_have_text("1 document in the basket")
    page.locator(".dock li input").first.check()
    page.get_by_role("button", name="Ask these").click()
    reader.ended()
    page.reload()
    reader.ended()
    expect(page.locator(".turn > .fine")).to_have_text("Only the 2 documents in the basket were searched.")

    page.get_by_role("button", name="Empty the basket").click()
    expect(page.locator("#state")).to_have_text("The basket is empty")
    expect(page.locator(".dock")).to_be_hidden()
    expect(page.get_by_label("Only the basket")).to_be_hidden()
    assert page.locator(f"{BOXES}:checked").count() == 0
    assert "basket=" not in page.url
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('basket'))") == []


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


def test_more_than_can_be_compared_are_kept_and_said(demo_service: Running, come: Come) -> None:
    page = found(come(demo_service.url))
    boxes = page.locator(BOXES)
    for place in range(6):
        boxes.nth(place).check()

    said = "6 documents in the basket; at most 5 at a time can be summarised or compared."
    expect(page.locator(".dock summary")).to_have_text(said)
    expect(page.locator("#state")).to_have_text(said)
    for name in ("Compare", "Summarise"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    boxes.first.uncheck()
    expect(page.get_by_role("button", name="Compare", exact=True)).to_be_enabled()


def test_a_full_basket_takes_no_more(demo_service: Running, come: Come) -> None:
    page = come(demo_service.url).open()
    full = "JSON.stringify(Array.from({length: 900}, (_, place) => [`absent ${place}`, `Title ${place}`]))"
    page.evaluate(f"sessionStorage.setItem('datafari_rag basket of ', {full})")
    page.reload()
    page = found(Surfer(page, demo_service.url))
    expect(page.locator(".dock summary")).to_have_text("900 documents in the basket: there is no room for more.")
    assert page.locator(f"{BOXES}:disabled").count() == page.locator(BOXES).count()
    page.get_by_role("button", name="Ask these").click()
    Surfer(page, demo_service.url).ended()

    expect(page.locator(".turn .notice h2")).to_have_text("No document answers this question")
    page.get_by_role("link", name="Ask all documents").click()
    Surfer(page, demo_service.url).ended()
    assert page.locator(".hits li").count() > 1


def test_another_user_finds_no_basket(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    reader.open()
    reader.be("alice")
    page = found(reader)
    page.locator(BOXES).first.check()
    page = reader.be("bob")
    expect(page.locator(".dock")).to_be_hidden()
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('basket'))") == []


@pytest.mark.parametrize("kept", ['"x"', "{}", "[1, null, [2]]", "[", '[["a\\u0000b", {"x": 1}]]'])
def test_what_is_kept_may_be_anything(demo_service: Running, come: Come, kept: str) -> None:
    reader = come(demo_service.url)
    page = reader.open()
    page.evaluate("kept => sessionStorage.setItem('datafari_rag basket of ', kept)", kept)
    page.goto(f"{demo_service.url}/?q=sorting&basket=1")
    reader.ended()
    assert page.locator("#found h2").count() == 1


@pytest.mark.parametrize(
    "options",
    [{"viewport": {"width": 360, "height": 700}}, {"color_scheme": "dark"}, {"locale": "fr-FR"}],
    ids=["phone", "dark", "French"],
)
def test_no_sentence_shows_a_placeholder_and_nothing_is_cut_off(
    demo_service: Running, come: Come, options: dict[str, Any]
) -> None:
    page = found(come(demo_service.url, **options))
    dock = page.locator(".dock")
    for place in range(6):
        page.locator(BOXES).nth(place).check()
        assert "{" not in dock.inner_text() + (page.locator("#state").text_content() or "")
    assert "{" not in page.locator(BOXES).first.evaluate("box => box.ariaLabel")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    edges = dock.locator("button").evaluate_all("all => all.map((one) => one.getBoundingClientRect().right)")
    assert max(edges) <= page.evaluate("innerWidth")


def test_a_document_that_the_reader_may_no_longer_see_is_left_out_by_name(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    reader.open()
    reader.be("alice")
    page = found(reader, "functional programming")
    public, hidden = "Programming FAQ", "Functional Programming HOWTO"
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
    card.get_by_role("button", name="Ask again").click()
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
