"""
What the current request passes to search engine, model and authority: its id, and the caller's W3C trace context.

Held in a context variable, so that parallel requests are separate and a stream keeps its values to its end.
Without a trace from the caller none is created: it would decide for other services whether they record theirs.
Where spans of our own are made (`adapters/observability/tracing.py`), they are named in place of the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from werkzeug.datastructures import Headers

_IDS = "(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
# Version 00 is exactly these; a later one may have more behind them; ff is none (W3C Trace Context, 3.2.2).
_TRACEPARENT = re.compile(f"00-{_IDS}|(?!00|ff)[0-9a-f]{{2}}-{_IDS}(?:-[ -~]{{0,200}})?")
_TRACESTATE = re.compile(r"[ -~]{1,512}")


@dataclass(frozen=True, slots=True)
class CurrentRequest:
    """The request that is being answered here: its id, and its trace as it came, empty where it had none."""

    request_id: str = ""
    traceparent: str = ""
    tracestate: str = ""
    caller: str = ""
    """Who sent it, for what one caller may have at the same time; empty until it is known."""


NO_REQUEST = CurrentRequest()

_PRESENT: ContextVar[CurrentRequest] = ContextVar("datafari_rag_present", default=NO_REQUEST)


def begin(request_id: str, headers: Headers | Mapping[str, str]) -> None:
    """Say that the request *request_id* with *headers* is answered from here on, in this thread or greenlet."""
    parent, state = headers.get("traceparent", ""), headers.get("tracestate", "")
    if not _TRACEPARENT.fullmatch(parent):
        parent = ""
    if not parent or not _TRACESTATE.fullmatch(state):
        # The standard: a state without a trace that can be read means nothing.
        state = ""
    _PRESENT.set(CurrentRequest(request_id, parent, state, _PRESENT.get().caller))


def go_on_for(caller: str) -> None:
    """Say that *caller* sent the current request."""
    _PRESENT.set(replace(_PRESENT.get(), caller=caller))


def caller() -> str:
    """Return who sent the request that is being answered here, "" if there is none."""
    return _PRESENT.get().caller


def request_id() -> str:
    """Return the id of the request that is being answered here, "" if there is none."""
    return _PRESENT.get().request_id


@contextmanager
def carrying(traceparent: str, tracestate: str) -> Iterator[None]:
    """Send these along in the block in place of the caller's: they name a span of our own in the caller's trace."""
    before = _PRESENT.get()
    _PRESENT.set(replace(before, traceparent=traceparent, tracestate=tracestate))
    try:
        yield
    finally:
        _PRESENT.set(before)


def outgoing() -> Mapping[str, str]:
    """Return the headers to send along; none outside a request, and nothing that is not of the standard's form."""
    present = _PRESENT.get()
    headers = {
        "X-Request-ID": present.request_id,
        "traceparent": present.traceparent,
        "tracestate": present.tracestate,
    }
    return {name: value for name, value in headers.items() if value}
