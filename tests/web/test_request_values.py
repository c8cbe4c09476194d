"""What a JSON body may be before any protocol reads it."""

from __future__ import annotations

import json

import pytest
from flask import Flask, request

from datafari_rag.core.errors import BadRequest
from datafari_rag.web.request_values import MAX_LEVELS, incoming_from


def body_of(text: str) -> object:
    with Flask(__name__).test_request_context("/chat", method="POST", data=text, content_type="application/json"):
        return incoming_from(request, takes=frozenset({"json"}), now_s=0.0).body


@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ('{"a":', "}")])
def test_a_body_may_have_so_many_levels(opener: str, closer: str) -> None:
    inner = MAX_LEVELS - 1
    assert body_of(f"[{opener * inner}1{closer * inner}]") is not None
    with pytest.raises(BadRequest, match="nested too deeply"):
        body_of(f"[{opener * MAX_LEVELS}1{closer * MAX_LEVELS}]")


def test_brackets_in_texts_and_beside_each_other_are_no_levels() -> None:
    for body in ({"a": "[{" * 5000}, [[{}]] * 5000):
        assert body_of(json.dumps(body)) == body
