"""Books (EPUB): the pages in the order in which they are read. An encrypted book is reported as such."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO
from urllib.parse import unquote

from lxml import etree

from datafari_rag.ingest.parsers import html
from datafari_rag.ingest.parsers.containers.packed import read_entry, refuse_bombs
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, parsed

MAX_PAGE_BYTES = 20_000_000
_CONTAINER, _LOCK = "META-INF/container.xml", "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html")


def parse(file: BinaryIO) -> Parsed:
    """Return the text of the book *file* with its title. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "EPUB")
    try:
        with zipfile.ZipFile(file) as packed:
            place = _xml(packed, _CONTAINER).find(".//{*}rootfile").get("full-path")
            book = _xml(packed, place)
            if _LOCK in packed.namelist() and b"EncryptedKey" in read_entry(packed, _LOCK, MAX_PAGE_BYTES):
                raise Unreadable("This EPUB is locked by its publisher.")
            title = book.findtext(".//{http://purl.org/dc/elements/1.1/}title")
            return parsed("\n\n".join(_texts(packed, posixpath.dirname(place), book)), title)
    except (LookupError, ValueError, AttributeError, TypeError, SyntaxError) as error:
        # lxml's errors are SyntaxErrors; a book without its parts raises the others.
        raise Unreadable("This EPUB is broken.") from error


def _texts(packed: zipfile.ZipFile, folder: str, book: etree._Element) -> Iterator[str]:
    pages = {
        item.get("id"): posixpath.normpath(posixpath.join(folder, unquote(item.get("href"))))
        for item in book.iterfind(".//{*}manifest/{*}item")
        if item.get("media-type") in _PAGES
    }
    chars = 0
    for reference in dict.fromkeys(item.get("idref") for item in book.iterfind(".//{*}spine/{*}itemref")):
        if reference in pages:
            text = html.parse(BytesIO(read_entry(packed, pages[reference], MAX_PAGE_BYTES))).text
            yield text
            chars += len(text)
            if chars > MAX_CHARS:
                return


def _xml(packed: zipfile.ZipFile, name: str) -> etree._Element:
    # No entity is resolved, and nothing is fetched: neither belongs into a book.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    return etree.fromstring(read_entry(packed, name, MAX_PAGE_BYTES), parser)
