"""What a reader does on the page, from the first look to the third question."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Come
from tests.browser.places import Zoo
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser

COPY = "How do I copy a file in Python?"


def test_the_first_page_says_what_this_is(demo_service: Running, come: Come) -> None:
    page = come(demo_service.url).open()

    assert page.get_by_role("heading", name="Ask your documents").is_visible()
    assert page.get_by_role("searchbox", name="Your question").evaluate("box => box === document.activeElement")
    assert page.locator(".examples a").count() == 3


def test_an_answer_grows_and_ends_with_its_proof(demo_service: Running, come: Come) -> None:
    page = come(demo_service.url).ask(COPY)

    assert page.locator(".prose").inner_text()
    assert "documents used" in page.locator(".counts").inner_text()
    assert page.locator(".prose .badge").first.inner_text()[0] in "123"
    assert "word for word" in page.locator(".proof .status").first.inner_text()
    assert page.locator(".hits li").count() > 1
    assert page.locator("#state").inner_text().startswith("Answer complete")


def test_words_come_one_by_one_and_stop_keeps_them(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("words-400-gap-30ms")
    reader = come(zoo_service.url)
    page = reader.open()
    page.fill("#q", "giraffe fence")
    page.press("#q", "Enter")
    expect(page.locator(".prose")).to_contain_text("word10")
    assert page.locator(".busy .phase").inner_text() == "Writing the answer…"
    page.get_by_role("button", name="Stop").click()
    reader.ended()
    kept = page.locator(".prose").inner_text()

    assert "word10" in kept
    assert "word400" not in kept
    assert "Stopped" in page.locator(".phase").inner_text()
    assert page.locator("#q").input_value() == "giraffe fence"
    zoo_service.behave("cite")
    page.get_by_role("button", name="Ask again").click()
    page.wait_for_selector(".counts")
    assert "word10" not in page.locator(".prose").inner_text()


def test_who_waits_for_the_model_is_told_so(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("first-60000ms")
    reader = come(zoo_service.url)
    page = reader.open()
    page.fill("#q", "giraffe fence")
    page.press("#q", "Enter")
    expect(page.locator(".busy .phase")).to_have_text("Documents found. Waiting for the language model…")
    page.get_by_role("button", name="Stop").click()
    reader.ended()
    zoo_service.behave("status-429-retry-20", llm__limits__retries="1")
    page.get_by_role("button", name="Ask again").click()
    expect(page.locator(".busy .phase")).to_have_text(
        re.compile("Waiting for the language model, next try in 1[5-9] s…")
    )
    page.get_by_role("button", name="Stop").click()
    reader.ended()
    zoo_service.behave("cite")


def test_a_badge_opens_the_passage_with_the_quote_marked(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("quote")
    page = come(zoo_service.url).ask("giraffe fence metres")
    badge = page.locator(".prose .badge").first
    address = parse_qs(urlsplit(badge.get_attribute("href") or "").query)
    badge.click()
    page.wait_for_selector("#passage-mark")
    marked = page.locator("#passage-mark").inner_text()

    assert marked in page.locator(".proof q").first.inner_text()
    assert page.locator("#passage-mark").evaluate("mark => mark === document.activeElement")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert badge.evaluate("badge => badge === document.activeElement")
    page.goto(f"{zoo_service.url}/documents?id=plain&start={address['start'][0]}&end={address['end'][0]}#passage")
    assert page.locator("mark#passage").inner_text() == marked


def test_a_conversation_goes_on_survives_a_reload_and_is_cleared(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("followups")
    reader = come(zoo_service.url)
    page = reader.ask("giraffe fence")
    page.get_by_role("textbox", name="Ask a follow-up question").fill("giraffe keeper")
    page.get_by_role("textbox", name="Ask a follow-up question").press("Enter")
    expect(page.locator(".turn .counts")).to_have_count(2)

    assert page.locator(".asked").inner_text() == "You asked giraffe keeper"
    page.get_by_role("button", name="Who decides?").click()
    expect(page.locator(".turn")).to_have_count(3)
    reader.ended()
    before = page.locator("#answers").inner_text()
    page.reload()
    page.wait_for_selector(".again")
    assert page.locator("#answers .turn").count() == 3
    assert page.locator(".prose").first.inner_text() in before
    page.get_by_role("button", name="Start a new conversation").click()
    assert page.locator("#answers .turn").count() == 0
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('conversation'))") == []
    page.get_by_role("button", name="Delete my question history").click()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_follow_up_keeps_format_and_filters_and_links_every_document(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = reader.ask("copy a file")
    page.locator(".facets a", has_text="python").first.click()
    reader.ended()
    page.select_option("#format", "bulletpoint")
    reader.ended()
    page.get_by_role("textbox", name="Ask a follow-up question").fill("How do I delete a file?")
    with page.expect_request("**/talk?*") as sent:
        page.get_by_role("textbox", name="Ask a follow-up question").press("Enter")
    expect(page.locator(".turn .counts")).to_have_count(2)
    asked = parse_qs(urlsplit(sent.value.url).query)
    last = page.locator(".turn").last

    assert asked == {"format": ["bulletpoint"], "fq": ['source:"python"']}
    assert [one["role"] for one in sent.value.post_data_json["messages"]] == ["user", "assistant", "user"]
    assert last.locator(".sources > li").count() >= 2
    assert last.locator(".sources > li").count() == last.locator(".sources > li > a").count()
    assert last.locator(".prose li").count() > 0
    assert last.get_by_text("How this answer was made").count() == 1


def test_the_effort_is_sent_and_its_steps_are_shown(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = reader.ask(COPY)
    assert page.locator(".made .spent").count() == 0
    with page.expect_request("**/talk?effort=minimal"):
        page.select_option("#effort", "minimal")
    reader.ended()
    page.locator(".made > summary").click()

    assert "effort=minimal" in page.url
    assert page.locator(".made .spent").inner_text().startswith("Searches: ")


def test_everything_can_be_done_by_keyboard(zoo_service: Zoo, come: Come) -> None:
    zoo_service.behave("cite")
    reader = come(zoo_service.url)
    page = reader.open()
    page.keyboard.type("giraffe fence")
    page.keyboard.press("Enter")
    page.wait_for_selector(".counts")
    assert page.locator("#q").evaluate("box => box === document.activeElement")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('badge')"):
            break
    page.keyboard.press("Enter")

    page.wait_for_selector("#passage-mark")


@pytest.mark.parametrize("question", [COPY, ""], ids=["with a question", "without one"])
def test_the_page_works_without_script(demo_service: Running, come: Come, question: str) -> None:
    page = come(demo_service.url, java_script_enabled=False).open()
    page.fill("#q", question)
    page.click("button.main")

    if not question:
        assert page.get_by_role("heading", name="Ask your documents").is_visible()
        return
    assert page.locator(".answer .prose").inner_text()
    assert "documents used" in page.locator(".counts").inner_text()
    assert page.locator(".hits li").count() > 1
    page.locator(".prose .badge").first.click()
    assert page.locator("mark#passage").inner_text()


def test_how_it_was_made_shows_more_to_administrators(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = reader.ask(COPY)
    page.get_by_text("How this answer was made").click()
    assert page.locator(".made .bars").count() == 2
    assert page.get_by_text("What was sent to the model").count() == 0
    reader.be("admin")
    reader.ended()
    page.get_by_text("How this answer was made").click()

    assert page.get_by_text("What was sent to the model").count() == 1
    assert page.locator(".made .track i").count() > 5
