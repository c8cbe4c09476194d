"""
Where a link may lead, and where the reader of a citation is sent: the place that proves it, marked where it can be.

A public web page marks words itself (text fragments of the URL); for any other document this service's own page does.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urlencode, urlsplit

from datafari_rag.core.documents import Citation, Document
from datafari_rag.core.text.cleaning import unescaped

SCHEMES = frozenset(("http", "https", "file", "smb", "ftp", "ftps", "sftp", "nfs", "dav", "davs", "cifs"))

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_IGNORED = re.compile(r"[\x00-\x20\x7f-\xa0]+")
"""What browsers drop before they look for a scheme, and somewhat more."""

PRIVATE_ENDINGS = (".local", ".localdomain", ".internal", ".intranet", ".lan", ".home", ".corp", ".private", ".test")

WHOLE_WORDS = 8
"""A quotation of up to this many words is searched as a whole, a longer one by its first and last words."""

EDGE_WORDS = 4


def target_of(document: Document, root: str = "") -> str:
    """Return the document's URL, else its id, when a link may lead there; else the path of its page below *root*."""
    named = (text for text in (document.url, document.id) if text and is_target(text))
    return next(named, _page(root, id=document.id))


def is_target(address: str) -> bool:
    """Say whether a link may lead to *address*: it has no scheme, that of a drive, or one that only fetches."""
    schemes = [_SCHEME.match(_IGNORED.sub("", spelling)) for spelling in (address, unescaped(address))]
    return all(one is None or len(one[1]) < 2 or one[1].lower() in SCHEMES for one in schemes)


def is_public(address: str | None) -> bool:
    """Say whether *address* is a web page outside of any organisation's own network, by its name alone."""
    try:
        parts = urlsplit(address or "")
        host = (parts.hostname or "").lower()
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or ("." not in host.strip(".") and ":" not in host):
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return not host.endswith(PRIVATE_ENDINGS)


def passage_link(citation: Citation, base: str) -> str | None:
    """
    Return the address of the place that *citation* refers to; None if it names no document.

    *base* is this service's own address, without a slash at its end; empty gives a path alone.
    """
    if citation.document_id is None:
        return None
    if citation.url is not None and is_public(citation.url):
        is_paged = "#" not in citation.url and urlsplit(citation.url).path.lower().endswith(".pdf")
        # The page that a browser's reader of PDF files opens.
        page = f"#page={citation.page}" if is_paged and citation.page is not None else ""
        return marked(f"{citation.url}{page}", citation.quote)
    place: dict[str, object] = {"id": citation.document_id, "index": citation.index}
    if citation.start is not None:
        place |= {"field": citation.field, "start": citation.start, "end": citation.end}
    return _page(base, **place, page=citation.page)


def document_link(document: Document, base: str) -> str:
    """Return the public address of *document*, else that of its page here."""
    address = target_of(document)
    return address if is_public(address) else _page(base, id=document.id, index=document.index)


def marked(address: str, quotation: str | None) -> str:
    """Return *address* with the words of *quotation* marked in the page; as it is where there are none."""
    words = (quotation or "").split()
    edges = [words] if len(words) <= WHOLE_WORDS else [words[:EDGE_WORDS], words[-EDGE_WORDS:]]
    # A hyphen is a sign of the fragment's own grammar, and `quote` leaves it.
    text = ",".join(quote(" ".join(edge), safe="", errors="replace").replace("-", "%2D") for edge in edges)
    return f"{address}{'' if '#' in address else '#'}:~:text={text}" if words else address


def _page(base: str, **named: object) -> str:
    """Return the address of the page of a document that is *named*, in this order, without what is None."""
    known = {name: value for name, value in named.items() if value is not None}
    return f"{base}/documents?{urlencode(known, errors='replace')}"
