from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from datafari_rag.web.ops.request_context import begin, outgoing, request_id

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def within(headers: Mapping[str, str], name: str = "r1") -> Mapping[str, str]:
    """Return what goes on from a request with *headers*, in a thread of its own, so that nothing of it stays here."""

    def answer() -> Mapping[str, str]:
        begin(name, headers)
        return outgoing()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(answer).result()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"traceparent": PARENT}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": "a=b"}, {"traceparent": PARENT, "tracestate": "a=b"}),
        ({"tracestate": "a=b"}, {}),
        ({"traceparent": "00-zz", "tracestate": "a=b"}, {}),
        ({"traceparent": PARENT + "-more"}, {}),
        ({"traceparent": "01" + PARENT[2:] + "-more"}, {"traceparent": "01" + PARENT[2:] + "-more"}),
        ({"traceparent": "ff" + PARENT[2:]}, {}),
        ({"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"}, {}),
        ({"traceparent": f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01"}, {}),
        ({"traceparent": PARENT, "tracestate": "x" * 600}, {"traceparent": PARENT}),
        ({"Authorization": "Bearer x", "Cookie": "a=b", "X-Remote-User": "ann"}, {}),
    ],
    ids=[
        "nothing",
        "a trace",
        "with its state",
        "a state alone",
        "garbage",
        "version 00 with more behind it",
        "a later version with more behind it",
        "version ff",
        "a trace of zeros",
        "a parent of zeros",
        "a state too long",
        "nothing else",
    ],
)
def test_the_trace_goes_on_and_nothing_else(given: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    assert within(given) == {"X-Request-ID": "r1", **wanted}


def test_two_requests_at_once_do_not_see_each_others() -> None:
    begin("mine", {})
    assert within({"traceparent": PARENT}, "other")["X-Request-ID"] == "other"
    assert request_id() == "mine"
    begin("", {})


def test_outside_a_request_nothing_goes_on() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(outgoing).result() == {}
