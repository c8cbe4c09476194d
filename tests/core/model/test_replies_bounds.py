"""How long the reply to a request may be."""

from __future__ import annotations

import pytest

from datafari_rag.core.model.replies import MAX_REPLY_BYTES, REPLY_BYTES, TOKEN_BYTES, most_bytes

BODIES = {
    "without a limit of its own it has ours": ({}, MAX_REPLY_BYTES),
    "a limit that is none counts for nothing": ({"max_tokens": "9", "max_completion_tokens": 0}, MAX_REPLY_BYTES),
    "tokens have a wide margin": ({"max_tokens": 250}, REPLY_BYTES + 250 * TOKEN_BYTES),
    "the newer name counts as well": ({"max_completion_tokens": 10}, REPLY_BYTES + 10 * TOKEN_BYTES),
    "each of several answers has its own": ({"max_tokens": 10, "n": 3}, REPLY_BYTES + 30 * TOKEN_BYTES),
    "an invalid number of answers counts as one": ({"max_tokens": 10, "n": -3}, REPLY_BYTES + 10 * TOKEN_BYTES),
    "no request has more than the most": ({"max_tokens": 10**9}, MAX_REPLY_BYTES),
}


@pytest.mark.parametrize(("body", "wanted"), BODIES.values(), ids=BODIES.keys())
def test_a_reply_is_as_long_as_its_tokens_allow(body: dict[str, object], wanted: int) -> None:
    assert most_bytes(body) == wanted
