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
