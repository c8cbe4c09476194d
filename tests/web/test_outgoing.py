from __future__ import annotations

from collections.abc import Mapping

import pytest
from flask import Flask, g

from datafari_rag.web.outgoing import outgoing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"traceparent": PARENT}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": "a=b"}, {"traceparent": PARENT, "tracestate": "a=b"}),
        ({"tracestate": "a=b"}, {}),
        ({"traceparent": "00-zz"}, {}),
        ({"traceparent": PARENT, "tracestate": "x" * 600}, {"traceparent": PARENT}),
        ({"Authorization": "Bearer x", "Cookie": "a=b", "X-Remote-User": "ann"}, {}),
    ],
    ids=["nothing", "a trace", "with its state", "a state alone", "garbage", "a state too long", "nothing else"],
)
def test_the_trace_goes_on_and_nothing_else(given: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    with Flask("x").test_request_context(headers=given):
        g.request_id = "r1"
        assert outgoing() == {"X-Request-ID": "r1", **wanted}


def test_a_request_without_an_id_sends_none() -> None:
    with Flask("x").test_request_context():
        assert outgoing() == {}


def test_outside_a_request_nothing_goes_on() -> None:
    assert outgoing() == {}
