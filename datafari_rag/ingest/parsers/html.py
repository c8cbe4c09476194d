"""
HTML pages: what a reader sees, block by block; no scripts, styles or hidden templates.

Books (EPUB) are such pages, packed: they come in the order in which they are read, and an encrypted book is reported as
such.
"""

from __future__ import annotations

import posixpath
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import BinaryIO
from urllib.parse import unquote

from bs4 import BeautifulSoup, Tag, XMLParsedAsHTMLWarning
from bs4.element import NavigableString, PageElement, PreformattedString
from lxml import etree

from datafari_rag.ingest.parsers.packed import read_entry, refuse_bombs
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, parsed, row_line
from datafari_rag.ingest.parsers.texts import decoded

_SPACES = re.compile(r"\s+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_LONE_MARKS = re.compile(r"^(?P<mark>-|#{1,6}|\d{1,5}\.)\n+(?=\S)", re.MULTILINE)
"""An item's number or a heading's mark with its words in a separate paragraph."""

_COMMENT = re.compile(r"/\*[^*]*\*/")
_NOTHING = re.compile(r"0+(?:\.0*)?(?:%|[a-z]{1,4})?|\.0+(?:%|[a-z]{1,4})?")
"""A length of zero, in whatever unit."""

MAX_STYLE_CHARS = 2000
"""A `style` is read so far; no page has a longer one."""

_NUMBER = re.compile(r"[0-9]{1,4}")
_UNSEEN = frozenset({"script", "style", "template", "noscript", "head", "title", "svg", "iframe", "object"})
_PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|body|dl|fieldset|figure|footer|form|h[1-6]|header|hr|main|nav|ol|p|pre|section|ul"
)
_LINES = re.compile("caption|dd|details|div|dt|figcaption|li|summary|tr")

_TABLE_PARTS = frozenset({"table", "tbody", "tfoot", "thead"})
_MARKS = {"li": "- ", **{f"h{level}": "#" * level + " " for level in range(1, 7)}}
_LEAST_CELLS = 2

MAX_ROW_CHARS = 4000
"""A row of a table with more characters than this is no row of data, but a page laid out in columns."""

MAX_PAGE_BYTES = 20_000_000
_CONTAINER, _LOCK = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with its `title`, else its first `h1`. Raises: OSError, Unreadable."""
    raw = file.read()
    with warnings.catch_warnings():
        # XHTML read as HTML is what browsers do as well.
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        # Python's own parser needs the square of the time for tags that do not end.
        names_its_code = b"charset" in raw[:4096].lower() or b"encoding=" in raw[:200].lower()
        soup = BeautifulSoup(raw if names_its_code else decoded(raw), "lxml")
    unseen = soup.find_all(_is_unseen)
    for tag in unseen:
        tag.extract()
    heading = soup.find("title") or soup.find("h1")
    text = "".join(_pieces(soup))
    first, *others = text.split("\n")
    lines = [first.rstrip(), *(_without_lone_space(line.rstrip()) for line in others)]
    text = _LONE_MARKS.sub(r"\g<mark> ", _EMPTY_LINES.sub("\n\n", "\n".join(lines)))
    result = parsed(text, heading.get_text(" ") if heading is not None else None)
    return replace(result, unseen=sum(bool(tag.get_text().strip()) for tag in unseen))


def _is_unseen(node: Tag) -> bool:
    """
    Say whether the element itself says that browsers do not show it: by `hidden`, or a declaration in its `style`.

    Style sheets and scripts are not read: what they hide is not known here.
    """
    if node.has_attr("hidden"):
        return True
    style = node.get("style")
    if not isinstance(style, str):
        return False
    declared: dict[str, str] = {}
    for declaration in _COMMENT.sub("", style[:MAX_STYLE_CHARS]).lower().split(";"):
        name, _, value = declaration.partition(":")
        declared[name.strip()] = value.replace("!important", "").strip()
    is_sized_away = _NOTHING.fullmatch(declared.get("font-size", "")) is not None
    return declared.get("display") == "none" or declared.get("visibility") in ("hidden", "collapse") or is_sized_away


def _pieces(soup: Tag) -> Iterator[str]:
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
    """Return the stack entries for *node*, last first."""
    if node.name in _UNSEEN:
        return []
    if node.name == "br":
        return ["\n"]
    if node.name in _TABLE_PARTS:
        return _opened_part(node)
    if node.name == "tr" and (cells := _cells(node)):
        return ["\n", row_line("".join(_pieces(cell)) for cell in cells)]
    if node.name in ("td", "th"):  # of a page laid out in columns, or never closed
        return [*reversed(node.contents), "\t"]
    edge = "\n\n" if _PARAGRAPHS.fullmatch(node.name) else "\n" if _LINES.fullmatch(node.name) else ""
    if node.name == "ol":
        return [edge, *reversed(_numbered(node)), edge]
    # The list has numbered it already.
    if node.name == "li" and node.parent is not None and node.parent.name == "ol":
        return [edge, *reversed(node.contents)]
    return [edge, *reversed(node.contents), _MARKS.get(node.name, ""), edge]


def _opened_part(part: Tag) -> list[PageElement | str]:
    """Return the text of a table or its head, without blanks between rows: as empty lines they would end it."""
    contents = [child for child in part.contents if isinstance(child, Tag) or str(child).strip()]
    edge = "\n\n" if part.name == "table" else ""
    return [edge, *reversed(contents), edge]


def _numbered(steps: Tag) -> list[PageElement | str]:
    """Return the contents of an ordered list, each item behind its number on a new line."""
    start = str(steps.get("start") or "1")
    number = int(start) if _NUMBER.fullmatch(start) else 1
    elements: list[PageElement | str] = []
    for child in steps.contents:
        if isinstance(child, Tag) and child.name == "li":
            elements.append(f"\n{number}. ")
            number += 1
        elements.append(child)
    return elements


def _cells(row: Tag) -> list[Tag]:
    """Return the cells of a row of data; none where a table only lays out a page: then its cells are blocks."""
    cells = [cell for cell in row.contents if isinstance(cell, Tag) and cell.name in ("td", "th")]
    if len(cells) < _LEAST_CELLS:
        return []
    size = 0
    for inner in row.descendants:
        size += len(inner) if isinstance(inner, NavigableString) else 0
        if size > MAX_ROW_CHARS or (isinstance(inner, Tag) and inner.name in ("table", "tr")):
            return []
    return cells


def _without_lone_space(line: str) -> str:
    """Return *line* without the one space that a line break of the source leaves; more spaces are an indentation."""
    return line[1:] if line.startswith(" ") and not line.startswith("  ") else line


def parse_book(file: BinaryIO) -> Parsed:
    """Return the text of the book *file* with its title. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "EPUB")
    try:
        with zipfile.ZipFile(file) as packed:
            place = _xml(packed, _CONTAINER).find(".//{*}rootfile").get("full-path")
            book = _xml(packed, place)
            if _LOCK in packed.namelist() and b"EncryptedKey" in read_entry(packed, _LOCK, MAX_PAGE_BYTES):
                raise Unreadable("This EPUB is locked by its publisher.")
            title = book.findtext(".//{http://purl.org/dc/elements/1.1/}title")
            return parsed("\n\n".join(_chapters(packed, posixpath.dirname(place), book)), title)
    except (LookupError, ValueError, AttributeError, TypeError, SyntaxError) as error:
        # lxml's errors are SyntaxErrors; a book without its parts raises the others.
        raise Unreadable("This EPUB is broken.") from error


def _chapters(packed: zipfile.ZipFile, folder: str, book: etree._Element) -> Iterator[str]:
    pages = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href"))))
        for item in book.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES
    }
    chars = 0
    for reference in dict.fromkeys(item.get("idref") for item in book.iterfind(".//{*}spine/{*}itemref")):
        if reference in pages:
            text = parse(BytesIO(read_entry(packed, pages[reference], MAX_PAGE_BYTES))).text
            yield text
            chars += len(text)
            if chars > MAX_CHARS:
                return


def _xml(packed: zipfile.ZipFile, name: str) -> etree._Element:
    # No entity is resolved, and nothing is fetched: neither belongs into a book.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    return etree.fromstring(read_entry(packed, name, MAX_PAGE_BYTES), parser)
