"""The first ten minutes of a newcomer with three files of his own: a policy, a guide, a text on leave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Come
from tests.browser.places import folder_demo, three_files
from tests.end_to_end.processes import Running
from tests.waiting import until

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


def dropped_on(page: Page, *files: Path) -> None:
    """Do what the browser does when files are dragged onto the page from outside, and dropped."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in files], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 300, "data": data})
    session.detach()


def test_a_file_dropped_on_the_page_is_read_and_can_be_asked_about(
    browser: Browser, tmp_path: Path, come: Come
) -> None:
    (tmp_path / "files").mkdir()
    with folder_demo(tmp_path) as running:
        reader = come(running.url, alone=True)
        page = reader.open()
        page.get_by_role("heading", name="There is nothing to ask about yet").wait_for()
        hostile = tmp_path / "zebra <img src=x onerror=alert(1)>.md"
        hostile.write_text("# Zebra rules\n\n## Stripes\n\nA zebra has twelve stripes.\n", encoding="utf-8")
        dropped_on(page, hostile)
        page.locator(".examples a", has_text="Stripes").click()
        reader.ended()
        expect(page.locator(".proof.verified q").first).to_have_text("A zebra has twelve stripes.")

        # On the page of an answer it works as well; one that cannot be read is named, and the others go on.
        others = {"run.exe": b"MZ", "broken.docx": b"PK no zip", "lion.txt": b"A lion sleeps twenty hours."}
        for name, content in others.items():
            (tmp_path / name).write_bytes(content)
        dropped_on(page, *(tmp_path / name for name in others))
        said = page.locator("#dropped li")
        expect(said.filter(has_text="run.exe")).to_contain_text("Files of this type, or")
        expect(said.filter(has_text="lion.txt")).to_contain_text("It is being read")
        page.goto(running.url)
        expect(page.locator("#unread li")).to_contain_text("broken.docx")
        until(lambda: "lion.txt" in running.get("/search/select?q=lion&fl=id").text)
        # By its address: the first page is read again whenever something was read, also while a test types.
        page = reader.open("/?q=How+long+does+a+lion+sleep%3F")
        reader.ended()
        assert "twenty hours" in page.locator(".prose").inner_text()
        assert list((tmp_path / "files").iterdir()) == []
        kept = next((tmp_path / "home" / "folders").glob("*/dropped"))
        assert (kept.stat().st_mode & 0o777) == 0o700
        assert [one for one in reader.complaints if "415" not in one] == []
        reader.complaints.clear()
        page.goto("about:blank")


def test_what_was_refused_stays_when_the_page_is_read_again(browser: Browser, tmp_path: Path, come: Come) -> None:
    (tmp_path / "files").mkdir()
    for name, data in {"README": b"The club.", "empty.txt": b"", "lion.txt": b"A lion sleeps twenty hours."}.items():
        (tmp_path / name).write_bytes(data)
    with folder_demo(tmp_path) as running:
        reader = come(running.url, alone=True)
        page = reader.open()
        page.get_by_role("heading", name="There is nothing to ask about yet").wait_for()
        dropped_on(page, *(tmp_path / name for name in ("README", "empty.txt", "lion.txt")))
        page.locator(".examples a").first.wait_for()

        said = page.locator("#dropped li")
        expect(said).to_have_count(2)
        expect(said.filter(has_text="README")).to_contain_text("without an ending, cannot be read")
        expect(said.filter(has_text="empty.txt")).to_contain_text("This file is empty.")
        reader.complaints.clear()
        page.goto("about:blank")


EVIL = """async (address) => {
    const file = () => {
        const data = new FormData();
        data.append("file", new File(["# Evil page"], "evil.md"));
        return { method: "POST", credentials: "include", body: data };
    };
    await fetch(address, { ...file(), mode: "no-cors" }).catch(() => null);
    await fetch(address, { ...file(), headers: { "X-CSRF-Token": "forged" } }).catch(() => null);
    const form = document.createElement("form");
    Object.assign(form, { action: address, method: "post", enctype: "multipart/form-data" });
    form.innerHTML = '<input type="file" name="file">';
    const held = new DataTransfer();
    held.items.add(file().body.get("file"));
    form.elements.file.files = held.files;
    document.body.append(form);
    form.submit();
}"""
"""All that a page of another site can do: a script without a preflight, one with it, and a form."""


def test_files_are_chosen_with_the_keyboard_too(three: Running, come: Come) -> None:
    page = come(three.url).open()
    page.get_by_label("Drag files onto this page, or choose some:").set_input_files(
        [{"name": name, "mimeType": "text/plain", "buffer": b"Lunch is at noon."} for name in ("noon.txt", "lunch.txt")]
    )
    expect(page.locator("#dropped li", has_text="It is being read")).to_have_count(2)

    without = come(three.url, java_script_enabled=False).open()
    without.set_input_files("#file", {"name": "tea.txt", "mimeType": "text/plain", "buffer": b"Tea is at four."})
    without.get_by_role("button", name="Send").click()
    without.get_by_role("heading", name="Ask your documents").wait_for()
    kept = {path.name for path in three.log.parent.glob("home/folders/*/dropped/[!.]*")}
    assert kept == {"noon.txt", "lunch.txt", "tea.txt"}


def test_a_page_of_another_site_cannot_send_files(three: Running, browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.route("**/evil", lambda route: route.fulfill(body="<!doctype html><p>evil", content_type="text/html"))
    page.goto("http://localhost:9/evil")
    statuses: list[tuple[str, int]] = []
    page.on("response", lambda one: statuses.append((one.request.method, one.status)))
    with page.expect_navigation():
        page.evaluate(EVIL, f"{three.url}/demo/files")
    expect(page.locator("body")).to_contain_text("You do not have access")
    page.context.close()

    assert {status for method, status in statuses if method == "POST"} == {403}
    assert [path.name for path in three.log.parent.glob("home/folders/*/dropped/evil*")] == []
