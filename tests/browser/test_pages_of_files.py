"""A reader follows a citation to the page of its PDF file, with and without script, and where there is no picture."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Come
from tests.end_to_end.processes import Running, service, write_settings
from tests.ingest import paged

SETTINGS = {
    "rag.api.endpoint": "builtin:extractive",
    "solr.url": "embedded:index",
    "security.identity": "header",
    "security.anonymous": "public",
}
FILES = {
    "halls": paged.two_columns, "rates": paged.table, "turned": paged.rotated, "scan": paged.scanned,
    "commented": paged.commented, "replaced": paged.two_columns, "broken": paged.two_columns,
}  # fmt: skip


@pytest.fixture(scope="module")
def halls(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("halls")
    files = folder / "files"
    files.mkdir()
    for name, write in FILES.items():
        write(files / f"{name}.pdf")
    write_settings(folder, SETTINGS)
    command = [sys.executable, "-m", "datafari_rag", "index", str(files), "--conf", "rag.properties"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    paged.locked(files / "replaced.pdf")
    (files / "broken.pdf").write_bytes(b"%PDF-1.4\nno more")
    with service(folder, SETTINGS) as found:
        yield found, files


def address(files: Path, name: str, running: Running, words: str = "", **more: object) -> str:
    where: dict[str, object] = {"id": (files / f"{name}.pdf").as_uri()}
    text = running.get(f"/documents?{urlencode(where)}", Accept="application/json").json()["text"]
    if words:
        where |= {"start": text.index(words), "end": text.index(words) + len(words)}
    return f"/documents?{urlencode(where | more)}"


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
def test_a_citation_opens_its_page(come: Come, halls: tuple[Running, Path], has_script: bool) -> None:
    surfer = come(halls[0].url, java_script_enabled=has_script)
    page = surfer.page
    page.goto(f"{halls[0].url}/?{urlencode({'q': 'Which minutes has the inspector Grace Hopper in the south hall?'})}")
    link = page.locator('a.badge[href*="/documents?"]').first
    href = link.get_attribute("href") or ""
    assert "page=1" in href
    page.goto(halls[0].url + href)
    picture = page.locator(".leaf img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1600 if has_script else True


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("halls", 2, paged.LEFT[0]),
        ("rates", 1, "Grace Hopper"),
        ("turned", 1, paged.LEFT[0]),
        ("scan", 1, paged.LEFT[0]),
    ],
)
def test_the_words_are_marked_in_the_picture(
    come: Come, halls: tuple[Running, Path], name: str, number: int, words: str
) -> None:
    running, files = halls
    page = come(running.url).page
    page.goto(running.url + address(files, name, running, words, page=number))
    expect(page.locator(".leaf img")).to_be_visible()
    expect(page.get_by_text("was not found")).to_have_count(0)
    assert paged.yellow(page.locator(".leaf img").screenshot()) is not None


def test_one_steps_through_the_pages_and_to_the_text_and_back(come: Come, halls: tuple[Running, Path]) -> None:
    running, files = halls
    page = come(running.url).page
    page.goto(running.url + address(files, "halls", running, paged.LEFT[0], page=2))
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_text("Page 3 of 3")).to_be_visible()
    expect(page.get_by_role("link", name="Next page")).to_have_count(0)
    page.get_by_role("link", name="Previous page").click()
    page.get_by_role("link", name="Text of the document").click()
    expect(page.locator("mark#passage")).to_have_text(re.compile("The pump of the north hall is"))
    page.get_by_role("link", name="Page as it looks").click()
    expect(page.get_by_text("Page 2 of 3")).to_be_visible()


@pytest.mark.parametrize("name", ["replaced", "broken"])
def test_a_locked_and_a_broken_file_are_shown_as_the_text_that_was_indexed(
    come: Come, halls: tuple[Running, Path], name: str
) -> None:
    running, files = halls
    page = come(running.url).page
    page.goto(running.url + address(files, name, running, paged.LEFT[0], page=2))
    expect(page.get_by_role("status")).to_have_text(re.compile("The page cannot be shown as it looks"))
    expect(page.locator("mark#passage")).to_be_visible()


def test_a_passage_without_letters_on_the_page_is_said_to_have_no_mark(come: Come, halls: tuple[Running, Path]) -> None:
    running, files = halls
    page = come(running.url, locale="fr-FR").page
    page.goto(running.url + address(files, "commented", running, paged.COMMENT, page=2))
    expect(page.get_by_role("status")).to_have_text(re.compile("n’a pas été retrouvé"))
    expect(page.locator(".leaf img")).to_be_visible()
