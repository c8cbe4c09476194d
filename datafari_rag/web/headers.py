"""
Headers that keep a browser from doing harm with what it is sent; the same for every answer of a kind.

No page of ours has a script or a style in its own text, so no policy here has 'unsafe-inline'.
"""

from __future__ import annotations

from typing import Protocol

API_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""For JSON, streams and text: nothing in them is ever run or shown as a page."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""For pages: our own files alone. An image from elsewhere cannot be loaded, so no answer can call home by one."""

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

HSTS = "max-age=31536000"


class Headers(Protocol):
    """Headers of a response, as Flask and plain dicts have them."""

    def setdefault(self, key: str, value: str, /) -> object:
        """Set *key* unless it is there."""
        ...


def secure(headers: Headers, *, is_page: bool, is_encrypted: bool) -> None:
    """
    Add what is missing of the security headers to *headers*; what a view has set itself stays.

    *is_encrypted*: the request came over TLS, so that the browser may be told to keep to it.
    """
    for name, value in ALWAYS.items():
        headers.setdefault(name, value)
    headers.setdefault("Content-Security-Policy", PAGE_POLICY if is_page else API_POLICY)
    # An answer is one user's: no proxy and no browser may keep it for the next.
    headers.setdefault("Cache-Control", "no-store")
    if is_encrypted:
        headers.setdefault("Strict-Transport-Security", HSTS)
