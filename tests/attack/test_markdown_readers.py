# ruff: noqa: E501  (the rows of the tables stay rows)
"""What the filter of links lets through, rendered by readers of Markdown that others wrote: no image, no other link."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import datafari_rag
from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.web.pages.results import PlacedCitations, html_of
from tests.attack.report import Record, judge
from tests.required import present, program

CLIENTS = Path(__file__).parents[1] / "clients"
READERS = Path(__file__).with_name("markdown_readers.mjs")
SEED = 20_261

OWN, EVIL = "http://x/doc", "http://evil.invalid/x"
SIGNS = "[ ] ( ) ! ![ ]( ]: < > </ a \\ ` `` ```\n * ** _ ~~ # | -|- \" ' = : $ { } % << >> 1 ^1 &lt; &#91; &#x5b; &#40; &lpar; &excl; &colon;"
BLANKS = [
    " ",
    "\n",
    "\n\n",
    "  \n",
    "\t",
    "    ",
    "\xa0",
    "\u200b",
    "\u202e",
    "\ufeff",
    "\x00",
    "\r",
    "\r\n",
    "\v",
    "\f",
    "\u2028",
    "\x85",
]
BLOCKS = [
    "> ",
    "- ",
    "1. ",
    "\n|",
    "+++",
    "---\n",
    "\n[a]:",
    f"\n> [a]: {EVIL}",
    f"\n- [a]: {EVIL}",
    f"\n1) [a]: {EVIL}",
    f"\n   [a]:\n{EVIL}",
]
ADDRESSES = [EVIL, "evil.invalid", "www.evil.invalid", "//evil.invalid", "javascript:alert(1)", "data:text/html,x", "mailto:a@evil.invalid",
             "a@evil.invalid", OWN, f"<{EVIL}>", f"<{EVIL}\xa0>", f"{OWN}#{EVIL}"]  # fmt: skip
MARKS = [
    "Public handbook",
    "[1]",
    "[^1]",
    "[^1]: ",
    "[a]",
    "[a]: ",
    "[a][b]",
    f"[b]: <{EVIL}>",
    f"[a\\]: {EVIL}",
    "![x][a]",
    "![\\[x]",
    "【",
    "】",
    "［",
    "］",
    "（",
    "）",
    "！",
]
LINKS = [f"[x]({EVIL})", f"[x](<{EVIL}>)", f'[x]({EVIL} "t")', f"[x](\n{EVIL})", f"[x]\n({EVIL})", f"[x] ({EVIL})", f"![x] ({EVIL})", f"![x]\t({EVIL})",
         f"!\\[x]({EVIL})", f"\\![x]({EVIL})", f"[![x]({EVIL})]({EVIL})", f"[x]({OWN})", f"[x](<{OWN}>)", f"![\\[x]({OWN})", f"![x] ({OWN})", f"]( {EVIL} )", f"] ({EVIL})",
         "x](", ")!["]  # fmt: skip
TAGS = [f'<a href="{EVIL}">', f"<a href='{EVIL}'>", f"<img src={EVIL}>", f"<IMG/SRC={EVIL}>", f"<img\nsrc={EVIL}>", "<svg onload=alert(1)>", f"<a\thref={EVIL}",
        "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<!x", "<a", "<im", "g ", "src=", "href", "style=", "onerror="]  # fmt: skip
TOKENS = [*SIGNS.split(" "), *BLANKS, *BLOCKS, *ADDRESSES, *MARKS, *LINKS, *TAGS]


def shown(text: str, chance: random.Random) -> str:
    """Return what the filter lets through; half of the texts come in pieces, which must change nothing."""
    whole = filtered([text])
    if chance.random() < 0.5:
        at, pieces = 0, []
        while at < len(text):
            size = chance.randint(1, 4)
            pieces.append(text[at : at + size])
            at += size
        assert filtered(pieces) == whole, text
    return whole


def filtered(pieces: list[str]) -> str:
    output = OutputFilter(wants_followups=False)
    return "".join([*map(output.feed, pieces), output.end()])


def answers(number: int, seed: int) -> Iterator[dict[str, str]]:
    chance = random.Random(seed)
    for _ in range(number):
        text = "".join(chance.choice(TOKENS) for _ in range(chance.randint(2, 14)))
        yield {"given": text, "shown": shown(text, chance)}


def rendered(texts: Iterator[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return for each reader what it made of the texts that it should not have."""
    node = program("node", ".ci/setup test")
    present(CLIENTS / "node_modules" / "showdown", ".ci/setup test")
    lines = "\n".join(map(json.dumps, texts))
    run = subprocess.run([node, str(READERS), str(CLIENTS)], input=lines, capture_output=True, text=True, check=True)
    holes: dict[str, list[dict[str, str]]] = json.loads(run.stdout)["holes"]
    return holes


def tried(record: Record, number: int, seed: int) -> None:
    found = rendered(answers(number, seed))
    assert len(found) == 7
    holes = [f"{name}: {one}" for name, ones in found.items() for one in ones]
    judge(
        record, "links and images in Markdown", against="7 readers of Markdown", tried=number * len(found), holes=holes
    )


def test_no_reader_makes_an_image_or_another_link(record_property: Record) -> None:
    tried(record_property, 800, SEED)


MANY = [1_500, pytest.param(40_000, marks=pytest.mark.slow)]
WORDS = {
    "p",
    "br",
    "ul",
    "ol",
    "li",
    "h4",
    "pre",
    "code",
    "strong",
    "em",
    "div",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
ATTRIBUTES = ("", ' dir="auto"', ' dir="ltr"', ' class="wide"')
"""What the page makes of words that no citation belongs to."""


@pytest.mark.parametrize("number", MANY)
def test_markdown_it_makes_no_link_image_or_tag(record_property: Record, number: int) -> None:
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    holes = []
    for one in answers(number, SEED):
        made = {each.type for block in reader.parse(one["shown"]) for each in (block, *(block.children or ()))}
        holes += [f"{one} is {made}"] * bool(made & {"link_open", "image", "html_inline", "html_block", "s_open"})
    judge(record_property, "links, images and tags", against="markdown-it-py", tried=number, holes=holes)


@pytest.mark.parametrize("number", MANY)
def test_the_page_makes_no_link_image_or_tag(record_property: Record, number: int) -> None:
    holes = []
    for one in answers(number, SEED):
        html = html_of(one["shown"], PlacedCitations([], [], {}))
        tags = re.findall(r"</?([^\s<>]*)([^<>]*)>", html)
        holes += [f"{one} is {html}" for name, more in tags if name not in WORDS or more not in ATTRIBUTES]
    judge(record_property, "links, images and tags", against="the page", tried=number, holes=holes)


@pytest.mark.parametrize("number", MANY)
def test_the_script_of_the_page_makes_no_link_image_or_tag(record_property: Record, number: int) -> None:
    script = Path(datafari_rag.__file__).parent / "resources" / "static" / "prose.js"
    command = [program("node", ".ci/setup test"), str(Path(__file__).with_name("prose_elements.mjs")), str(script)]
    lines = "\n".join(map(json.dumps, answers(number, SEED)))
    names = json.loads(subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout)
    allowed = {*WORDS, *(f"{name} {what}" for name in WORDS for what in ("dir", "class", "className", "textContent"))}
    holes = sorted(set(names) - allowed)
    judge(record_property, "links, images and tags", against="the page's script", tried=number, holes=holes)


@pytest.mark.trials
def test_no_reader_does_of_many_texts(record_property: Record) -> None:
    for part in range(6):
        tried(record_property, 50_000, SEED + 1 + part)


def test_what_is_not_filtered_is_found() -> None:
    """Else the silence of the readers would mean nothing."""
    texts = [f"![x] ({EVIL})", f"![\\[x]({OWN})", f"[x]({EVIL})", f"<img src={EVIL}>"]
    found = rendered(iter([{"given": text, "shown": text} for text in texts]))
    assert len(found["showdown"]) == 4
    assert all(len(holes) >= 2 for holes in found.values())
