"""
Fewer bytes on the wire for what holds no secret beside a stranger's words: our own files, and the settings page.

Pages with a question in them are never compressed: their length would tell something of what stands beside it (BREACH).
"""

from __future__ import annotations

import gzip

from flask import Response, request

LEVEL = 6
_TOO_SMALL_BYTES = 600


def compressed(response: Response) -> Response:
    """Return *response* with a body of fewer bytes, where its reader takes gzip and it is worth it."""
    response.vary.add("Accept-Encoding")
    body = response.get_data()
    if request.accept_encodings["gzip"] <= 0 or len(body) < _TOO_SMALL_BYTES or response.status_code == 304:
        return response
    # No time in it: the same file is the same bytes each time.
    response.set_data(gzip.compress(body, LEVEL, mtime=0))
    response.headers["Content-Encoding"] = "gzip"
    return response
