"""
Headers that keep a browser from doing harm with what it is sent; the same for every answer of a kind.

No page of this service has an inline script or style, so no policy here has 'unsafe-inline'.
"""

from __future__ import annotations

from collections.abc import Iterable

API_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""For JSON, streams and text: nothing in them is ever run or shown as a page."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""For pages: only files of this service. No other image can be loaded, so no answer can send data with one."""

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # An answer is one user's: no proxy and no browser may keep it for the next.
    "Cache-Control": "no-store",
}

HSTS = "max-age=31536000"


def missing(present: Iterable[str], *, is_page: bool, is_encrypted: bool) -> list[tuple[str, str]]:
    """
    Return the security headers that are not among *present*: what a view has set itself stays.

    *is_encrypted*: the request came over TLS, so that the browser may be required to use it.
    """
    there = {name.lower() for name in present}
    wanted = {**ALWAYS, "Content-Security-Policy": PAGE_POLICY if is_page else API_POLICY}
    if is_encrypted:
        wanted["Strict-Transport-Security"] = HSTS
    return [(name, value) for name, value in wanted.items() if name.lower() not in there]
