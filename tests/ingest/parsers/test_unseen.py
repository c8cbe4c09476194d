"""Text that no reader of a file sees is not taken from it, and is counted."""

from __future__ import annotations

import io
import random

import docx
import pytest
from docx.oxml.ns import qn

from datafari_rag.ingest.parsers import docx as word
from datafari_rag.ingest.parsers import html

ATTRIBUTES = [
    "hidden",
    'hidden=""',
    'hidden="until-found"',
    'style="display:none"',
    'style="color:red; DISPLAY : None !important"',
    'style="display:/* not */none"',
    'style="visibility:hidden"',
    'style="visibility: collapse;"',
    'style="font-size:0"',
    'style="font-size:0.0px"',
    'style="font-size:.0em"',
    'style="font-size:0%"',
]

SEEN = [
    "",
    'style="display:block"',
    'style="display:none;display:block"',
    'style="font-size:10px"',
    'style="font-size:0.5em"',
    'style="visibility:visible"',
    'style="color:hidden"',
    'class="hidden"',
    'aria-hidden="true"',
    'data-style="display:none"',
]


def text_of(page: str) -> tuple[str, int]:
    found = html.parse(io.BytesIO(page.encode()))
    return found.text, found.left_out.get("hidden text", 0)


@pytest.mark.parametrize(
    ("tag", "attribute"),
    [*(("p", one) for one in ATTRIBUTES), *((tag, "hidden") for tag in ("span", "li", "table", "h1", "td", "tr"))],
)
def test_what_says_itself_that_it_is_not_shown_is_left_out(tag: str, attribute: str) -> None:
    inner = f"<{tag} {attribute}><b>canary</b></{tag}>"
    if tag in ("td", "tr"):
        rows = f"<td>a</td>{inner}" if tag == "td" else f"<td>a</td><td>b</td></tr>{inner}"
        inner = f"<table><tr>{rows}</tr></table>"
    text, unseen = text_of(f"<p>before</p>{inner}<p>after</p>")
    assert "canary" not in text and "before" in text and "after" in text
    assert unseen == 1 or tag == "tr"


@pytest.mark.parametrize("attribute", SEEN)
def test_what_is_shown_stays(attribute: str) -> None:
    assert text_of(f"<div {attribute}>canary</div>") == ("canary", 0)


def test_nothing_of_what_is_hidden_comes_out_of_any_nesting() -> None:
    chance = random.Random(33)
    for _ in range(300):
        page, open_tags, hidden_at, words = [], list[str](), None, 0
        for _ in range(chance.randrange(2, 40)):
            if open_tags and chance.random() < 0.4:
                page.append(f"</{open_tags.pop()}>")
                hidden_at = None if hidden_at is not None and len(open_tags) <= hidden_at else hidden_at
            elif chance.random() < 0.5:
                tag = chance.choice(["div", "span", "b", "section"])
                hides = chance.random() < 0.3
                if hides and hidden_at is None:
                    hidden_at = len(open_tags)
                page.append(f"<{tag} {chance.choice(ATTRIBUTES if hides else SEEN)}>")
                open_tags.append(tag)
            else:
                words += hidden_at is None
                page.append(f" {'canary' if hidden_at is not None else 'shown'} ")
        page += [f"</{tag}>" for tag in reversed(open_tags)]
        text, _ = text_of("<body>" + "".join(page))
        assert "canary" not in text and text.count("shown") == words, "".join(page)


def test_a_hidden_heading_is_no_title() -> None:
    found = html.parse(io.BytesIO(b"<h1 hidden>canary</h1><h1>Ferry</h1>"))
    assert found.title == "Ferry"


@pytest.mark.parametrize(("value", "is_left_out"), [(None, True), ("true", True), ("0", False), ("false", False)])
def test_hidden_text_of_word_is_left_out(value: str | None, is_left_out: bool) -> None:
    document, file = docx.Document(), io.BytesIO()
    paragraph = document.add_paragraph("before ")
    run = paragraph.add_run("canary")
    run.font.hidden = True
    if value is not None:
        run._r.find(".//" + qn("w:vanish")).set(qn("w:val"), value)
    paragraph.add_run(" after")
    document.save(file)
    file.seek(0)
    found = word.parse(file)
    assert ("canary" not in found.text, found.left_out.get("hidden text", 0)) == (is_left_out, int(is_left_out))
    assert "before" in found.text and "after" in found.text
