"""
HTML: what a reader sees, block by block; no scripts, styles or hidden templates.

Mails and the HTML in Markdown are read here, too. Books (EPUB) are such pages, packed: they come in the order in which
they are read, and an encrypted book is reported as such.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO
from urllib.parse import unquote

from lxml import etree

from datafari_rag.ingest.parsers.blocks import EMBEDDED, HIDDEN, MAX_COLUMNS, Blocks, Cell, nothing, taken, walk
from datafari_rag.ingest.parsers.packed import read_entry, refuse_bombs
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.texts import decoded

_SPACES = re.compile(r"\s+")
_CODE = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_COMMENT = re.compile(r"/\*[^*]*\*/")
_NOTHING = re.compile(r"0+(?:\.0*)?(?:%|[a-z]{1,4})?|\.0+(?:%|[a-z]{1,4})?")
"""A length of zero, in whatever unit."""

MAX_STYLE_CHARS = 2000
"""A `style` is read so far; no page has a longer one."""

_NUMBER = re.compile(r"[0-9]{1,4}")
_UNSEEN = frozenset(
    {"script", "style", "template", "noscript", "head", "title", "datalist", "defs", "desc", "rt", "rp"}
)
_FOREIGN = frozenset({"iframe", "object", "embed", "video", "audio", "canvas"})
_BLOCKS = re.compile(
    "address|article|aside|blockquote|body|caption|dd|details|dialog|div|dl|dt|fieldset|figure|figcaption|footer|form|h[1-6]"
    "|header|hr|legend|li|main|nav|ol|p|pre|section|summary|td|text|th|tr|ul"
)
_HEADING = re.compile("h([1-6])")
_FIELDS = frozenset({"text", "email", "tel", "url", "number", "date", "search", "submit", "button", ""})
"""Kinds of `input` whose value a reader sees."""

MAX_PAGE_BYTES = 20_000_000
_CONTAINER, _LOCK = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with its `title`, else its first heading. Raises: OSError, Unreadable."""
    page = page_of(text_of(file.read()))
    title = None if page is None else page.findtext(".//title")
    return taken(lambda blocks: read(page, blocks)).parsed(title)


def text_of(raw: bytes) -> str:
    """Return the page *raw* as text, in the code that it names itself. Raises: Unreadable: it is no text."""
    named = _CODE.search(raw[:4096])
    code = None if named is None else named[1].decode("ascii", "replace").lower()
    # A page that says it is UTF-16, in letters of one byte, is not.
    return decoded(raw, None if code is None or code.startswith("utf-16") else code)


def page_of(text: str) -> Any:
    """Return the tree of a page, None for one without anything. Raises: Unreadable: it is nested too deeply."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True)
    page = etree.fromstring(text.encode("utf-8", "replace"), parser) if text.strip() else None
    if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
        raise Unreadable("This page is nested too deeply.")
    return page


def read(page: Any, blocks: Blocks) -> None:
    """Put what a reader sees of the tree *page* (None: nothing) into *blocks*."""
    if page is not None:
        reader = _Page(blocks)
        walk(page, reader.enter, reader.words)
        blocks.end()


class _Page:
    """One page: which elements are blocks, and what is not shown."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._pre = 0
        self._numbers: list[int] = []

    def words(self, text: str) -> None:
        """Add a text of the page, whose white space is one blank outside of a `pre`."""
        if not self._pre:
            text = _SPACES.sub(" ", text)
            text = text.lstrip(" ") if self._blocks.last in ("", " ", "\n") else text
        self._blocks.add(text)

    def enter(self, node: Any) -> Callable[[], None] | None:
        """Begin the element *node*, unless nobody sees it."""
        blocks, tag = self._blocks, node.tag
        if tag in _UNSEEN:
            return None
        if tag in _FOREIGN:
            blocks.left_out[EMBEDDED] += 1
            return None
        if is_unseen(node):
            if any(text.strip() for text in node.itertext()):
                blocks.left_out[HIDDEN] += 1
            return None
        if tag == "br":
            blocks.add("\n")
        elif tag == "img":
            self.words(node.get("alt") or "")
        elif tag == "input":
            kind = (node.get("type") or "").lower()
            if kind in _FIELDS:
                self.words(f" {node.get('value') or ''} ")
            elif kind in ("checkbox", "radio"):
                self.words(" ☒ " if "checked" in node.attrib else " ☐ ")
        elif tag == "option":
            self.words(" ")
        elif tag == "table":
            blocks.table()
            return blocks.end_table
        elif tag == "tr" and blocks.is_in_table:
            blocks.row()
        elif tag in ("td", "th") and blocks.is_in_table:
            width = min(_span(node, "colspan"), MAX_COLUMNS)
            blocks.cell(Cell(_span(node, "rowspan"), width, tag == "th" or _is_in_head(node)))
            return blocks.end_cell
        elif tag in ("ol", "ul"):
            blocks.begin()
            self._numbers.append(_span(node, "start") if tag == "ol" else 0)
            return self._end_list
        elif _BLOCKS.fullmatch(tag):
            return self._begin(node)
        return nothing

    def _begin(self, node: Any) -> Callable[[], None]:
        heading = _HEADING.fullmatch(node.tag)
        mark = ""
        if node.tag == "li":
            number = self._numbers[-1] if self._numbers else 0
            mark = f"{number}. " if number else "- "
            if number:
                self._numbers[-1] += 1
        self._blocks.begin(mark, int(heading[1]) if heading is not None else 0)
        if node.tag != "pre":
            return self._blocks.end
        self._pre += 1
        return self._end_pre

    def _end_pre(self) -> None:
        self._pre -= 1
        self._blocks.end()

    def _end_list(self) -> None:
        self._numbers.pop()
        self._blocks.end()


def is_unseen(node: Any) -> bool:
    """
    Say whether the element itself says that browsers do not show it: by `hidden`, or a declaration in its `style`.

    Style sheets and scripts are not read: what they hide is not known here.
    """
    if "hidden" in node.attrib or (node.tag == "dialog" and "open" not in node.attrib):
        return True
    style = node.get("style")
    if not style:
        return False
    declared: dict[str, str] = {}
    for declaration in _COMMENT.sub("", style[:MAX_STYLE_CHARS]).lower().split(";"):
        name, _, value = declaration.partition(":")
        declared[name.strip()] = value.replace("!important", "").strip()
    ground = declared.get("background-color") or declared.get("background")
    return (
        declared.get("display") == "none"
        or declared.get("visibility") in ("hidden", "collapse")
        or declared.get("mso-hide") == "all"
        or _NOTHING.fullmatch(declared.get("font-size", "")) is not None
        or _NOTHING.fullmatch(declared.get("opacity", "")) is not None
        or (ground is not None and ground == declared.get("color"))
    )


def _span(node: Any, name: str) -> int:
    value = (node.get(name) or "").strip()
    return int(value) if _NUMBER.fullmatch(value) else 1


def _is_in_head(cell: Any) -> bool:
    row = cell.getparent()
    part = None if row is None else row.getparent()
    return part is not None and part.tag == "thead"


def parse_book(file: BinaryIO) -> Parsed:
    """Return the text of the book *file* with its title. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "EPUB")
    try:
        with zipfile.ZipFile(file) as packed:
            place = xml_of(packed, _CONTAINER).find(".//{*}rootfile").get("full-path")
            book = xml_of(packed, place)
            if _LOCK in packed.namelist() and b"EncryptedKey" in read_entry(packed, _LOCK, MAX_PAGE_BYTES):
                raise Unreadable("This EPUB is locked by its publisher.")
            title = book.findtext(".//{http://purl.org/dc/elements/1.1/}title")

            def pages(blocks: Blocks) -> None:
                for page in _pages(packed, posixpath.dirname(place), book):
                    read(page, blocks)

            return taken(pages).parsed(title)
    except (LookupError, ValueError, AttributeError, TypeError, SyntaxError) as error:
        # lxml's errors are SyntaxErrors; a book without its parts raises the others.
        raise Unreadable("This EPUB is broken.") from error


def _pages(packed: zipfile.ZipFile, folder: str, book: Any) -> Iterator[Any]:
    pages = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href"))))
        for item in book.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES
    }
    for reference in dict.fromkeys(item.get("idref") for item in book.iterfind(".//{*}spine/{*}itemref")):
        if reference in pages:
            yield page_of(text_of(read_entry(packed, pages[reference], MAX_PAGE_BYTES)))


def xml_of(packed: zipfile.ZipFile, name: str) -> Any:
    """
    Return the tree of the XML file *name* in *packed*; no entity is resolved, and nothing is fetched.

    Raises:
        Unreadable: it cannot be unpacked.
        KeyError: there is none.
        SyntaxError: it is no XML.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    return etree.fromstring(read_entry(packed, name, MAX_PAGE_BYTES), parser)
