"""
Where the reader of a citation is sent: the place that proves it, marked, wherever that can be.

A public web page marks words itself (text fragments of the URL); for any other document this service's own page does.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import quote, urlencode, urlsplit

from datafari_rag.core.answer.output_filter import target_of
from datafari_rag.core.documents import Citation, Document

PRIVATE_ENDINGS = (".local", ".localdomain", ".internal", ".intranet", ".lan", ".home", ".corp", ".private", ".test")

WHOLE_WORDS = 8
"""A quotation of up to this many words is searched as a whole, a longer one by its first and last words."""

EDGE_WORDS = 4


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
        return marked(citation.url, citation.quote)
    place: dict[str, object] = {"id": citation.document_id}
    if citation.start is not None:
        place |= {"field": citation.field, "start": citation.start, "end": citation.end}
    return f"{base}/documents?{urlencode(place, errors='replace')}"


def document_link(document: Document, base: str) -> str:
    """Return the public address of *document*, else that of its page here."""
    address = target_of(document)
    return address if is_public(address) else f"{base}/documents?{urlencode({'id': document.id}, errors='replace')}"


def marked(address: str, quotation: str | None) -> str:
    """Return *address* with the words of *quotation* marked in the page; as it is where there are none."""
    words = (quotation or "").split()
    if not words:
        return address
    if len(words) <= WHOLE_WORDS:
        text = _fragment(words)
    else:
        text = f"{_fragment(words[:EDGE_WORDS])},{_fragment(words[-EDGE_WORDS:])}"
    return f"{address}{'' if '#' in address else '#'}:~:text={text}"


def _fragment(words: list[str]) -> str:
    # A hyphen is a sign of the fragment's own grammar, and `quote` leaves it.
    return quote(" ".join(words), safe="", errors="replace").replace("-", "%2D")
