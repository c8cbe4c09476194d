"""
Where the address of a document may lead: what a client may make a link of, and this service's own page for the rest.

The source of a document writes its address. One that would run in the page of a client, or open a
program, is never returned; the schemes below only fetch.
"""

from __future__ import annotations

import re
from urllib.parse import urlencode

from datafari_rag.core.documents import Document
from datafari_rag.core.text.cleaning import unescaped

SCHEMES = frozenset(("http", "https", "file", "smb", "ftp", "ftps", "sftp", "nfs", "dav", "davs", "cifs"))

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_IGNORED = re.compile(r"[\x00-\x20\x7f-\xa0]+")
"""What browsers drop before they look for a scheme, and somewhat more."""


def target_of(document: Document) -> str:
    """Return the document's URL, else its id, when a link may lead there; else the path of its page here."""
    return next(
        (text for text in (document.url, document.id) if text and is_target(text)), f"/documents?{_query(document.id)}"
    )


def is_target(address: str) -> bool:
    """Say whether a link may lead to *address*: it has no scheme, that of a drive, or one that only fetches."""
    for spelling in (address, unescaped(address)):
        scheme = _SCHEME.match(_IGNORED.sub("", spelling))
        if scheme is not None and len(scheme[1]) > 1 and scheme[1].lower() not in SCHEMES:
            return False
    return True


def _query(document_id: str) -> str:
    return urlencode({"id": document_id}, errors="replace")
