"""HTML pages: what a reader sees, block by block; no scripts, styles or hidden templates."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import BinaryIO

from bs4 import BeautifulSoup, Tag, XMLParsedAsHTMLWarning
from bs4.element import NavigableString, PageElement, PreformattedString

from datafari_rag.ingest.parsers.parsed import Parsed, parsed
from datafari_rag.ingest.parsers.plain_text import decoded

_SPACES = re.compile(r"\s+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_UNSEEN = frozenset({"script", "style", "template", "noscript", "head", "title", "svg", "iframe", "object"})
_PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|body|dl|fieldset|figure|footer|form|h[1-6]|header|hr|main|nav|ol|p|pre|section|table|ul"
)
_LINES = re.compile("dd|details|div|dt|figcaption|li|summary|tbody|tfoot|thead|tr")


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with its `title`, else its first `h1`. Raises: OSError, Unreadable."""
    raw = file.read()
    with warnings.catch_warnings():
        # XHTML read as HTML is what browsers do as well.
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        # Python's own parser needs the square of the time for tags that do not end.
        soup = BeautifulSoup(raw if _names_its_code(raw) else decoded(raw), "lxml")
    heading = soup.find("title") or soup.find("h1")
    text = "".join(_pieces(soup))
    return parsed(_squeezed(text), heading.get_text(" ") if heading is not None else None)


def _names_its_code(raw: bytes) -> bool:
    return b"charset" in raw[:4096].lower() or b"encoding=" in raw[:200].lower()


def _pieces(soup: BeautifulSoup) -> Iterator[str]:
    """Walk the tree without recursion, since pages nest deeper than Python's stack; the flag says "inside a `pre`"."""
    open_nodes: list[tuple[PageElement | str, bool]] = [(soup, False)]
    while open_nodes:
        node, is_pre = open_nodes.pop()
        if isinstance(node, Tag):
            open_nodes += [(child, is_pre or node.name == "pre") for child in _opened(node)]
        elif isinstance(node, NavigableString) and not isinstance(node, PreformattedString):
            yield str(node) if is_pre else _SPACES.sub(" ", node)
        elif type(node) is str:
            yield node


def _opened(node: Tag) -> list[PageElement | str]:
    """Return what stands for *node* on the stack, last first."""
    if node.name in _UNSEEN:
        return []
    if node.name == "br":
        return ["\n"]
    children = [*reversed(node.contents)]
    if node.name in ("td", "th"):
        return ["\t", *children]
    edge = "\n\n" if _PARAGRAPHS.fullmatch(node.name) else "\n" if _LINES.fullmatch(node.name) else ""
    return [edge, *children, edge]


def _squeezed(text: str) -> str:
    """Return *text* without white space at the ends of lines and with at most one empty line at a time."""
    first, *others = text.split("\n")
    lines = [first.rstrip(), *(_without_lone_space(line.rstrip()) for line in others)]
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines))


def _without_lone_space(line: str) -> str:
    """Return *line* without the one space that a line break of the source leaves; more spaces are an indentation."""
    return line[1:] if line.startswith(" ") and not line.startswith("  ") else line
