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


def test_a_misspelt_word_is_proposed_as_it_stands_in_the_documents(three: Running, come: Come) -> None:
    reader = come(three.url)
    page = reader.ask("hotle Berlin")

    expect(page.locator(".relaxed")).to_contain_text("No document contains the word hotle.")
    page.locator("ul.instead a", has_text="hotel Berlin").click()
    reader.ended()
    assert page.locator("#q").input_value() == "hotel Berlin"
    assert page.locator(".relaxed").count() == 0
    expect(page.locator(".proof.verified q").first).to_have_text("Berlin | 150 EUR")


def test_the_same_is_said_without_script(three: Running, come: Come) -> None:
    page = come(three.url, java_script_enabled=False).open("/?q=hotle+Berlin")

    assert "No document contains the word hotle." in page.locator(".relaxed").inner_text()
    page.locator("ul.instead a", has_text="hotel Berlin").click()
    assert page.locator(".relaxed").count() == 0
    page = come(three.url, java_script_enabled=False).open("/?q=carry+holidays")
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
        page = come(running.url).open()
        page.get_by_role("heading", name="There is nothing to ask about yet").wait_for()
        assert str(tmp_path / "files") in page.locator("#progress").inner_text()
        (tmp_path / "files" / "zebra.md").write_text("# Zebra rules\n\n## Stripes\n\nTwelve.\n", encoding="utf-8")

        page.locator(".examples a", has_text="Stripes").wait_for()
        assert page.get_by_role("heading", name="There is nothing to ask about yet").count() == 0
        # It goes on looking, and the service ends.
        page.goto("about:blank")


def test_titles_are_suggested_while_somebody_types(three: Running, come: Come) -> None:
    page = come(three.url).open()
    page.locator("#q").press_sequentially("trav pol")

    expect(page.locator("#titles option")).to_have_attribute("value", "Travel policy")
    page.fill("#q", "zz")
    expect(page.locator("#titles option")).to_have_count(0)
