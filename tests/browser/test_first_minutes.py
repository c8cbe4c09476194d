"""The first ten minutes of a newcomer with three files of his own: a policy, a guide, a text on leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Come
from tests.browser.places import folder_demo, three_files
from tests.end_to_end.processes import Running

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def three(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with three_files(tmp_path_factory.mktemp("three")) as found:
        yield found


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("How much can I spend on a hotel in Berlin?", "Berlin | 150 EUR"),
        ("What is the gateway for Asia?", "Asia | sg.vpn.example.org"),
    ],
)
def test_a_row_of_a_table_is_quoted_and_marked_as_a_row(three: Running, come: Come, question: str, row: str) -> None:
    page = come(three.url).ask(question)

    expect(page.locator(".proof.verified q").first).to_have_text(row)
    page.locator(".prose .badge").first.click()
    expect(page.locator("#passage-mark")).to_have_text(row)
    assert page.locator(".hits li").count() >= 1
    assert "No documents" not in page.locator("#found").inner_text()


def test_a_question_that_no_document_answers_is_no_dead_end(three: Running, come: Come) -> None:
    page = come(three.url).ask("until when can I carry over holidays?")
    found = page.locator("#found")

    expect(found.locator(".relaxed")).to_have_text("No document contains the words carry, holidays.")
    assert found.locator("ul.instead a").count() == 3
    found.locator("ul.instead a", has_text="leave").click()
    expect(page.locator("main")).to_contain_text("31 March")


def test_a_word_that_no_document_has_is_named(three: Running, come: Come) -> None:
    page = come(three.url).ask("hotle Berlin")

    expect(page.locator(".relaxed")).to_contain_text("No document contains the word hotle.")
    assert page.locator("ul.instead").count() == 0


def test_the_same_is_said_without_script(three: Running, come: Come) -> None:
    reader = come(three.url, java_script_enabled=False)
    page = reader.open("/?q=hotle+Berlin")

    assert "No document contains the word hotle." in page.locator(".relaxed").inner_text()
    reader.open("/?q=carry+holidays")
    assert page.locator("ul.instead a").count() == 3


def test_the_questions_to_try_are_of_the_folder_and_nobody_else_is_offered(three: Running, come: Come) -> None:
    reader = come(three.url)
    page = reader.open()
    tried = page.locator(".examples a").all_inner_texts()

    assert "What does “Travel policy” say about “Hotels”?" in tried
    assert len(tried) == 3
    assert page.locator("#user").count() == 0
    assert not {"alice", "bob"} & set(page.locator("body").inner_text().split())
    page.locator(".examples a", has_text="Hotels").click()
    reader.ended()
    assert "hotel" in page.locator(".prose").inner_text()


def test_an_empty_folder_says_what_to_do_and_takes_up_what_is_put_into_it(
    browser: Browser, tmp_path: Path, come: Come
) -> None:
    (tmp_path / "files").mkdir()
    with folder_demo(tmp_path) as running:
        page = come(running.url, alone=True).open()
        page.get_by_role("heading", name="There is nothing to ask about yet").wait_for()
        assert str(tmp_path / "files") in page.locator("#progress").inner_text()
        (tmp_path / "files" / "zebra.md").write_text("# Zebra rules\n\n## Stripes\n\nTwelve.\n", encoding="utf-8")

        page.locator(".examples a", has_text="Stripes").wait_for()
        assert page.get_by_role("heading", name="There is nothing to ask about yet").count() == 0
        # It goes on looking, and the service ends.
        page.goto("about:blank")


def test_earlier_questions_are_suggested_until_they_are_forgotten(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = reader.open()
    suggested = page.locator("#earlier option")
    forget = page.get_by_role("button", name="Delete my question history")
    reader.be("alice")
    assert not forget.is_visible()
    reader.ask("copy a file")
    page.get_by_role("textbox", name="Ask a follow-up question").fill("copy an object")
    page.get_by_role("textbox", name="Ask a follow-up question").press("Enter")
    reader.ended()

    # Also in another tab, and from the first letter.
    other = page.context.new_page()
    other.goto(demo_service.url)
    other.locator("#q").press_sequentially("fi co")
    expect(other.locator("#earlier option").first).to_have_attribute("value", "copy a file")
    other.close()
    page.fill("#q", "c")
    expect(suggested).to_have_count(2)
    assert [one.get_attribute("value") for one in suggested.all()] == ["copy an object", "copy a file"]
    forget.click()
    assert not forget.is_visible()
    page.fill("#q", "co")
    expect(suggested).to_have_count(0)


def test_earlier_questions_are_nothing_for_the_next_reader(demo_service: Running, come: Come) -> None:
    reader = come(demo_service.url)
    page = reader.open()
    everything = "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])"
    reader.be("alice")
    reader.ask("secret plan of alice")
    assert "secret plan" in page.evaluate(everything)
    # The menu keeps a question that is in the address; the next reader begins with the first page.
    reader.open()
    reader.be("bob")
    assert "secret plan" not in page.evaluate(everything)
    assert not page.get_by_role("button", name="Delete my question history").is_visible()

    # Nobody by name: with the tab it ends. The address of a link is not what this reader typed.
    reader.be("")
    reader.open()
    reader.ask("of nobody")
    assert "of nobody" not in page.evaluate("JSON.stringify(Object.entries(localStorage))")
    assert "of nobody" in page.evaluate("JSON.stringify(Object.keys(sessionStorage).map((key) => sessionStorage[key]))")
    reader.open("/?q=of+a+link")
    reader.ended()
    kept = page.evaluate("JSON.stringify(sessionStorage['datafari_rag earlier questions of '])")
    assert "of nobody" in kept and "of a link" not in kept
