"""What goes on from the present request to the search engine: its id, and the caller's trace (W3C trace context)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flask import g, has_request_context, request

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]{0,200})?")
_TRACESTATE = re.compile(r"[ -~]{1,512}")


def outgoing() -> Mapping[str, str]:
    """Return the headers to send along; none outside a request, and nothing that is not of the standard's form."""
    if not has_request_context():
        return {}
    found = {"X-Request-ID": str(g.get("request_id", ""))}
    parent, state = request.headers.get("traceparent", ""), request.headers.get("tracestate", "")
    if _TRACEPARENT.fullmatch(parent):
        found["traceparent"] = parent
        if _TRACESTATE.fullmatch(state):
            found["tracestate"] = state
    return {name: value for name, value in found.items() if value}
