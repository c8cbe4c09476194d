"""The answer's Markdown as safe HTML."""

from __future__ import annotations

import pytest

from datafari_rag.web.pages.markdown import Marks, address_of, html_of
from datafari_rag.web.pages.messages import statuses
from datafari_rag.web.pages.results import marked_html

DOCUMENTS = [
    {"id": "a&b", "url": "https://x.example/a", "title": "First"},
    {"id": "c", "url": "https://x.example/c", "title": "Second"},
]


def citation(label: str, status: str, document_id: str | None) -> dict[str, object]:
    place = {"field": "exactContent", "start": 3, "end": 9} if status in ("verified", "supported") else {}
    return {"label": label, "status": status, "document_id": document_id, **place}


def html(text: str, *citations: dict[str, object]) -> str:
    return str(html_of(text, Marks(citations, DOCUMENTS, statuses(str))))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("one\ntwo", '<p dir="auto">one<br>two</p>', id="a line break"),
        pytest.param("one\n\ntwo", '<p dir="auto">one</p><p dir="auto">two</p>', id="two paragraphs"),
        pytest.param("- a\n* b", '<ul dir="auto"><li>a</li><li>b</li></ul>', id="bullets"),
        pytest.param("1. a\n2) b", '<ol dir="auto"><li>a</li><li>b</li></ol>', id="numbers"),
        pytest.param("# T\ntext", '<h4 dir="auto">T</h4><p dir="auto">text</p>', id="a heading"),
        pytest.param(
            "**b** *i* `c`", '<p dir="auto"><strong>b</strong> <em>i</em> <code dir="ltr">c</code></p>', id="inline"
        ),
        pytest.param("```py\na<b\n```", '<pre dir="ltr"><code>a&lt;b</code></pre>', id="a code block"),
        pytest.param("2 * 3 * 4", '<p dir="auto">2 * 3 * 4</p>', id="signs of arithmetic"),
        pytest.param("<script>", '<p dir="auto">&lt;script&gt;</p>', id="raw HTML"),
        pytest.param("![x](https://e.invalid/p)", '<p dir="auto">!x</p>', id="an image elsewhere"),
        pytest.param("[go](javascript:alert)", '<p dir="auto">go</p>', id="a link that runs"),
        pytest.param(
            "[go](https://x.example/a)", '<p dir="auto"><a href="/documents?id=a%26b">go</a></p>', id="a document"
        ),
        pytest.param("list[int] [1]", '<p dir="auto">list[int] [1]</p>', id="brackets without citations"),
    ],
)
def test_text_becomes(text: str, wanted: str) -> None:
    assert html(text) == wanted


def test_each_mark_becomes_its_own_badge_in_order() -> None:
    shown = html(
        "a [1], list[int], b [Second], c [1, 2], d [nowhere]",
        citation("First", "verified", "a&b"),
        citation("Second", "unsupported", "c"),
        citation("First", "supported", "a&b"),
        citation("Second", "supported", "c"),
        citation("nowhere", "unknown", None),
    )
    assert shown.count("badge verified") == 1 and shown.count("badge supported") == 2
    assert "list[int]" in shown
    assert 'href="/documents?id=a%26b&amp;field=exactContent&amp;start=3&amp;end=9#passage"' in shown
    assert '<span class="badge unknown" title="nowhere"><span aria-hidden="true" class="shape">?' in shown
    assert "verified quote" in shown and "not supported" in shown


def test_an_address_without_a_place_opens_the_document() -> None:
    assert address_of({"document_id": "a b"}) == "/documents?id=a+b"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param('a <span class="em">b</span> &lt;c', "a <mark>b</mark> &lt;c", id="an escaped stretch"),
        pytest.param("a <em>b</em> <script>", "a <mark>b</mark> &lt;script&gt;", id="a stretch that was not escaped"),
        pytest.param("<em>a <b>b", "<mark>a b</mark>", id="tags that are not closed"),
        pytest.param("a</em>", "a", id="a tag that was not opened"),
    ],
)
def test_only_marks_come_out_of_a_highlighted_stretch(text: str, wanted: str) -> None:
    assert str(marked_html(text)) == wanted
