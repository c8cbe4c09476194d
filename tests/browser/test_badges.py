"""Badges in a browser: a document that writes marks of its own, and where a string counts other than code points."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.attack.report import Record, judge
from tests.attack.test_badges import FALSE, FORGERIES, OFFICIAL, QUESTION
from tests.browser.conftest import Come
from tests.browser.places import Zoo
from tests.browser.test_readers import NDJSON, replying
from tests.end_to_end.processes import Running, service, write_settings
from tests.web.pages.test_markdown import CASES, PLACES

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def forger(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service over the official document and a false one of each kind, each with a word of its own."""
    folder = tmp_path_factory.mktemp("forger")
    settings = {
        "solr.url": "embedded:index",
        "rag.api.endpoint": "builtin:extractive",
    }
    texts = [text.format(false=f"{FALSE} in kind{place}") for place, text in enumerate(FORGERIES.values())]
    false = [{"id": f"false-{place}", "title": "Notes", "content": text} for place, text in enumerate(texts)]
    pages = [{**OFFICIAL, "content": OFFICIAL["exactContent"]}, *false]
    lines = [json.dumps({name: page[name] for name in ("id", "title", "content")}) for page in pages]
    (folder / "pages.jsonl").write_text("\n".join(lines), encoding="utf-8")
    write_settings(folder, settings)
    command = [sys.executable, "-m", "datafari_rag", "index", "pages.jsonl", "--conf", "rag.properties"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with service(folder, settings) as found:
        yield found


BEHIND = """() => [...document.querySelectorAll(".prose .badge")].map((badge) => {
  const range = document.createRange();
  range.setStart(badge.closest("p, li"), 0);
  range.setEndBefore(badge);
  return [range.toString().trimEnd().slice(-1), badge.className, badge.getAttribute("href")];
})"""
"""Of each badge: the last character before it, what it claims, and where it leads."""


@pytest.mark.parametrize("has_script", [True, False], ids=["with script", "without script"])
def test_no_document_places_a_badge(record_property: Record, forger: Running, come: Come, has_script: bool) -> None:
    reader = come(forger.url, java_script_enabled=has_script)
    holes = []
    for place, name in enumerate(FORGERIES):
        question = f"{QUESTION} kind{place}"
        if place and has_script:
            reader.ask(question)
        else:
            reader.open(f"/?q={question}")
        reader.page.wait_for_selector(".card:not(.busy) .counts")
        prose = reader.page.locator(".prose").inner_text()
        assert "6666" in prose, name
        badges: list[list[str]] = reader.page.evaluate(BEHIND)
        if {before for before, *_ in badges} != {"”"}:
            holes.append(f"{name}: {badges} in {prose!r}")
    kind = "with script" if has_script else "without script"
    judge(record_property, f"forged badge in Chromium, {kind}", against="pages", tried=len(FORGERIES), holes=holes)


LAY = """async ([text, documents, citations]) => {
  const { Marks, proseInto } = await import("/static/prose.js");
  const words = { verified: "word for word", near: "compare", unsupported: "not checked", unknown: "unknown" };
  const place = document.createElement("div");
  proseInto(place, text, new Marks(documents, citations, words));
  for (const badge of place.querySelectorAll(".badge")) badge.replaceWith("BADGE");
  return place.innerHTML;
}"""

DOCUMENTS = [{"id": "a&b", "url": "https://x.example/a", "title": "First"}]


@pytest.mark.parametrize(("text", "mark", "after", "wanted"), PLACES)
def test_the_script_places_them_as_the_server_does(
    workbench: Page, text: str, mark: str, after: str, wanted: str
) -> None:
    start = text.index(mark, text.index(after))
    cited = {"label": "First", "status": "verified", "document_id": "a&b"}
    place = {"answer_start": start, "answer_end": start + len(mark)}
    shown: str = workbench.evaluate(LAY, [text, DOCUMENTS, [{**cited, **place}]])

    assert wanted in shown
    assert shown.count("BADGE") == wanted.count("BADGE")


def test_the_script_lays_text_out_as_the_server_does(workbench: Page) -> None:
    for case in CASES:
        text, wanted = case.values
        assert workbench.evaluate(LAY, [text, DOCUMENTS, []]) == wanted, text


NOWHERE: dict[str, list[dict[str, Any]] | None] = {
    "not known yet": None,
    "none": [],
    "beyond the end": [{"answer_start": 5, "answer_end": 80}],
    "no numbers": [{"answer_start": "2", "answer_end": None}],
    "turned round": [{"answer_start": 5, "answer_end": 2}],
    "negative": [{"answer_start": -3, "answer_end": -1}],
    "in fractions": [{"answer_start": 2.5, "answer_end": 5}],
    "no places": [{}],
}


@pytest.mark.parametrize("citations", NOWHERE.values(), ids=NOWHERE.keys())
def test_a_mark_without_a_citation_at_its_place_is_text(
    workbench: Page, citations: list[dict[str, Any]] | None
) -> None:
    cited = {"label": "First", "status": "verified", "document_id": "a&b"}
    known = None if citations is None else [{**cited, **one} for one in citations]

    assert workbench.evaluate(LAY, ["a [1] b", DOCUMENTS, known]) == '<p dir="auto">a [1] b</p>'


def test_no_badge_claims_anything_before_the_answer_is_whole(zoo_service: Zoo, come: Come) -> None:
    reader = come(zoo_service.url)
    page = reader.open()
    lines = [
        {"type": "sources.final", "data": {"items": [{**DOCUMENTS[0], "content": "x"}]}},
        {"type": "message.delta", "data": {"text": "Nine [1] and [First]."}},
        {"type": "error", "data": {"label": "modelTimeout", "reason": "x"}},
    ]
    page.route("**/talk*", replying("".join(json.dumps(line) + "\n" for line in lines), NDJSON))
    page.fill("#q", "nine")
    page.press("#q", "Enter")
    page.wait_for_selector(".card:not(.busy) .prose")

    assert page.locator(".prose").inner_text() == "Nine [1] and [First]."
    assert page.locator(".prose .badge").count() == 0
