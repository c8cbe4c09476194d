"""Type, source, language and days narrow an answer and its hits, with script and without."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Come
from tests.end_to_end.processes import Running, service, write_settings

SETTINGS = {"rag.api.endpoint": "builtin:extractive", "solr.url": "embedded:index", "security.identity": "header"}
ROWS = [
    ("old", "md", "wiki", "en", "2023-05-01", "The pump of the harbour was made in Lyon."),
    ("new", "pdf", "mail", "en", "2024-05-01", "The pump of the harbour was repaired in Turin."),
    ("neu", "pdf", "wiki", "de", "2024-12-31", "Die Pumpe des Hafens, pump of the harbour, wurde in Bonn gebaut."),
]


@pytest.fixture(scope="module")
def pumps(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("pumps")
    names = ("id", "extension", "source", "language", "last_modified", "content")
    rows = [dict(zip(names, row, strict=True)) for row in ROWS]
    (folder / "pumps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_settings(folder, SETTINGS)
    command = [sys.executable, "-m", "datafari_rag", "index", "pumps.jsonl", "--conf", "rag.properties"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with service(folder, SETTINGS) as found:
        yield found


def shows(page: Page, *names: str) -> None:
    """Wait until *names* alone are among the hits and the sources of the answer."""
    expect(page.locator(".hits h3 a")).to_have_count(len(names))
    assert sorted(page.locator(".hits h3 a").all_inner_texts()) == sorted(names)
    expect(page.locator(".sources > li")).to_have_count(len(names))


QUESTION = "/?q=pump+of+the+harbour"


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
def test_a_facet_and_days_narrow_the_answer_and_its_hits(come: Come, pumps: Running, has_script: bool) -> None:
    page = come(pumps.url, java_script_enabled=has_script).page
    page.goto(pumps.url + QUESTION)
    shows(page, "old", "new", "neu")
    page.locator(".facets a", has_text="pdf").click()
    shows(page, "new", "neu")
    page.get_by_label("To", exact=True).fill("2024-12-30")
    page.get_by_role("button", name="Narrow").click()
    shows(page, "new")
    wanted = parse_qs(urlsplit(page.url).query)
    assert wanted["fq"] == ['extension:"pdf"', "last_modified:[* TO 2024-12-30T23:59:59Z]"]
    assert not {"since", "until"} & wanted.keys()
    expect(page.get_by_label("To", exact=True)).to_have_value("2024-12-30")
    page.get_by_role("link", name="File type: pdf").click()
    shows(page, "new", "old")
    page.get_by_label("From", exact=True).fill("2023-05-01")
    page.get_by_label("To", exact=True).fill("2023-05-01")
    page.get_by_role("button", name="Narrow").click()
    shows(page, "old")
    page.get_by_label("From", exact=True).fill("")
    page.get_by_label("To", exact=True).fill("")
    page.get_by_role("button", name="Narrow").click()
    shows(page, "old", "new", "neu")


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
@pytest.mark.parametrize(("field", "value", "names"), [("source", "wiki", ["old", "neu"]), ("language", "de", ["neu"])])
def test_source_and_language_narrow_them_too(
    come: Come, pumps: Running, field: str, value: str, names: list[str], has_script: bool
) -> None:
    page = come(pumps.url, java_script_enabled=has_script).page
    page.goto(pumps.url + QUESTION)
    page.locator(f'.facets a[href*="{field}"]', has_text=value).first.click()
    shows(page, *names)


def test_a_question_asked_next_keeps_the_filters(come: Come, pumps: Running) -> None:
    page = come(pumps.url).page
    page.goto(f"{pumps.url}{QUESTION}&fq=last_modified:[2024-01-01T00:00:00Z TO *]")
    shows(page, "new", "neu")
    page.locator("#q").fill("harbour pump")
    page.locator("#q").press("Enter")
    shows(page, "new", "neu")


def test_filters_that_leave_nothing_can_be_removed(come: Come, pumps: Running) -> None:
    page = come(pumps.url, locale="fr-FR").page
    page.goto(f"{pumps.url}{QUESTION}&fq=last_modified:[2030-01-01T00:00:00Z TO *]")
    page.get_by_role("link", name="Date: 2030-01-01 – …").click()
    shows(page, "old", "new", "neu")
