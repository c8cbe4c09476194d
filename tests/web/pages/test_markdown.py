"""The answer's Markdown as safe HTML."""

from __future__ import annotations

import re

import pytest

from datafari_rag.web.pages.messages import statuses
from datafari_rag.web.pages.results import SHAPES, PlacedCitations, address_of, html_of, marked_html
from tests.growth import too_fast

DOCUMENTS = [
    {"id": "a&b", "url": "https://x.example/a", "title": "First"},
    {"id": "c", "url": "https://x.example/c", "title": "Second"},
]


def citation(label: str, status: str, document_id: str | None, at: tuple[int, int] = (0, 0)) -> dict[str, object]:
    place = {"field": "exactContent", "start": 3, "end": 9} if status in ("verified", "quoted") else {}
    mark = {"answer_start": at[0], "answer_end": at[1], "claim": "a", "missing": [], "added": []}
    return {"label": label, "status": status, "document_id": document_id, **mark, **place}


def cited(text: str, mark: str, *, after: str = "") -> dict[str, object]:
    """Return a citation of the first document for the first *mark* of *text* behind *after*."""
    start = text.index(mark, text.index(after))
    return citation("First", "verified", "a&b", (start, start + len(mark)))


def html(text: str, *citations: dict[str, object]) -> str:
    return str(html_of(text, PlacedCitations(citations, DOCUMENTS, statuses(str))))


CASES = [
    pytest.param("one\ntwo", '<p dir="auto">one<br>two</p>', id="a line break"),
    pytest.param("one\n\ntwo", '<p dir="auto">one</p><p dir="auto">two</p>', id="two paragraphs"),
    pytest.param("- a\n- b", '<ul dir="auto"><li>a</li><li>b</li></ul>', id="bullets"),
    pytest.param("1. a\n2. b", '<ol dir="auto"><li>a</li><li>b</li></ol>', id="numbers"),
    pytest.param("# T\ntext", '<h4 dir="auto">T</h4><p dir="auto">text</p>', id="a heading"),
    pytest.param(
        "**b** *i* `c`", '<p dir="auto"><strong>b</strong> <em>i</em> <code dir="ltr">c</code></p>', id="inline"
    ),
    pytest.param("```py\na<b\n```", '<pre dir="ltr"><code>a&lt;b</code></pre>', id="a code block"),
    pytest.param(
        "| a | b |\n|---|:-:|\n| 1 | `x` |\n|  | 2",
        '<div class="wide"><table dir="auto"><tr><th>a</th><th>b</th></tr><tr><td>1</td>'
        '<td><code dir="ltr">x</code></td></tr><tr><td></td><td>2</td></tr></table></div>',
        id="a table",
    ),
    pytest.param(
        "| a | b |\n| c | d |",
        '<p dir="auto">| a | b |<br>| c | d |</p>',
        id="rows without names of columns",
    ),
    pytest.param("a | b", '<p dir="auto">a | b</p>', id="a bar in a sentence"),
    pytest.param("2 * 3 * 4", '<p dir="auto">2 * 3 * 4</p>', id="signs of arithmetic"),
    pytest.param("<script>", '<p dir="auto">&lt;script&gt;</p>', id="raw HTML"),
    pytest.param("![x](https://e/p)", '<p dir="auto">![x](https://e/p)</p>', id="an image is text"),
    pytest.param("[go](https://e/a)", '<p dir="auto">[go](https://e/a)</p>', id="a link is text"),
    pytest.param("list[int] [1]", '<p dir="auto">list[int] [1]</p>', id="brackets without citations"),
    pytest.param("• a", '<ul dir="auto"><li>a</li></ul>', id="a bullet"),
]


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_text_becomes(text: str, wanted: str) -> None:
    assert html(text) == wanted


def test_each_mark_becomes_its_own_badge() -> None:
    shown = html(
        "a [1], list[int], b [Second], c [1, 2], d [nowhere]",
        citation("First", "verified", "a&b", (2, 5)),
        citation("Second", "unsupported", "c", (20, 28)),
        citation("First", "quoted", "a&b", (32, 38)),
        citation("Second", "quoted", "c", (32, 38)),
        citation("nowhere", "unknown", None, (42, 51)),
    )
    assert shown.count("badge verified") == 1 and shown.count("badge quoted") == 2
    assert "list[int]" in shown
    assert 'href="/documents?id=a%26b&amp;field=exactContent&amp;start=3&amp;end=9#passage"' in shown
    assert '<span class="badge unknown" tabindex="0"><span aria-hidden="true" class="shape">?' in shown
    assert "First: word for word in the document" in shown and "Second: could not be checked" in shown


def test_a_mark_in_a_cell_is_its_badge() -> None:
    text = "| Stove | 11 May [1] |\n| Roof | June | [1]"
    first, last = text.index("[1]"), text.rindex("[1]")
    marks = [citation("First", "verified", "a&b", (at, at + 3)) for at in (first, last)]

    assert html(text, *marks).count("badge verified") == 2
    assert "[1]" not in html(text, *marks)


def test_what_is_near_says_how_it_differs_and_what_states_nothing_has_no_status() -> None:
    near = citation("First", "near", "a&b", (2, 5)) | {"missing": ["old"], "added": ["new", "red"]}
    shown = html("a [1] b [1]", near, citation("First", "unsupported", "a&b", (8, 11)) | {"claim": ""})
    assert 'class="badge near"' in shown and "Not in the document: old. Only in the document: new, red" in shown
    assert 'class="badge plain"' in shown and "could not be checked" not in shown
    assert set(SHAPES) == set(statuses(str)) - {"missing", "added"}


PLACES = [
    pytest.param(
        "| a | b |\n|---|:-:|\n| x [1] |  |",
        "[1]",
        "x",
        "<tr><th>a</th><th>b</th></tr><tr><td>x BADGE</td><td></td></tr>",
        id="in a cell of a table",
    ),
    pytest.param(
        "“6666 [1] [First]” [1]", "[1]", "”", "“6666 [1] [First]” BADGE", id="a document's own marks before it"
    ),
    pytest.param("\n\n- 🦒🦒 a\n- b [1]", "[1]", "b", "<li>🦒🦒 a</li><li>b BADGE</li>", id="in a list, behind emoji"),
    pytest.param(
        "  # a **b *c [1]* [1]**", "[1]", "*c", "a <strong>b <em>c BADGE</em> [1]</strong>", id="in a heading"
    ),
    pytest.param("a [1][1] b", "[1]", "a", "a BADGE[1] b", id="beside another one"),
    pytest.param("a [1][1] b", "[1]", "1]", "a [1]BADGE b", id="behind another one"),
    pytest.param("[go [1]](https://x.example/a)", "[1]", "go", "[go BADGE](https://x.example/a)", id="in a link"),
    pytest.param("`a [1]` [1]", "[1]", "` ", '<code dir="ltr">a [1]</code> BADGE', id="behind one in code"),
    pytest.param("`a [1]` [1]", "[1]", "a", '<code dir="ltr">a [1]</code> [1]', id="in code is none"),
    pytest.param("```\na [1]\n```\n[1]", "[1]", "a", "a [1]</code></pre>", id="in a block of code is none"),
    pytest.param(
        "a [First](https://x.example/c) b", "[First](https://x.example/c)", "a", "a BADGE b", id="with a target"
    ),
    pytest.param("**a [1** b]", "[1** b]", "a", "**a BADGE", id="over a sign of Markdown"),
    pytest.param("a \ufffc [1]", "[1]", "a", "a \ufffc BADGE", id="behind the sign that hides marks"),
    pytest.param("a \u202e[1]\u2066 b", "[1]", "a", "a BADGE b", id="turned round by controls"),
]


@pytest.mark.parametrize(("text", "mark", "after", "wanted"), PLACES)
def test_a_badge_stands_where_its_citation_says(text: str, mark: str, after: str, wanted: str) -> None:
    shown = re.sub('<a class="badge.*?</a>', "BADGE", html(text, cited(text, mark, after=after)))
    assert wanted in shown
    assert shown.count("BADGE") == wanted.count("BADGE")


@pytest.mark.parametrize("unit", ["**a ", "*a ", "`a", "[a](", "[", "** **", "**a*", " ", "# ", "\n- "])
def test_long_answers_are_read_in_steps_that_grow_with_them(unit: str) -> None:
    assert too_fast(html, lambda chars: unit * (chars // len(unit)), 16_000) == ""


def test_an_address_without_a_place_opens_the_document() -> None:
    assert address_of({"document_id": "a b"}) == "/documents?id=a+b"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param('a <span class="em">b</span> &lt;c', "a <mark>b</mark> &lt;c", id="an escaped stretch"),
        pytest.param("a <em>b</em> <script>", "a <mark>b</mark> &lt;script&gt;", id="a stretch that was not escaped"),
        pytest.param("<em>a <b>b", "<mark>a b</mark>", id="tags that are not closed"),
        pytest.param("a</em>", "a", id="a tag that was not opened"),
        pytest.param("a &#x202e;b\u2066", "a b", id="controls that turn round what follows, escaped or not"),
        pytest.param(f"a &#{'9' * 5000}; b", "a \ufffd b", id="a number that Python does not read"),
    ],
)
def test_only_marks_come_out_of_a_highlighted_stretch(text: str, wanted: str) -> None:
    assert str(marked_html(text)) == wanted
