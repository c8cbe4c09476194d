"""A signed session state is accepted as it was issued, and in no other way."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from datafari_rag.core.answer.session_state import KEY, Seal, StateLimits, is_ours, issued, recalled
from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.errors import BadRequest

SEAL = Seal("a secret of sixteen", "alice", 1_000_000.0)
LIMITS = StateLimits(max_turns=4, max_bytes=4000, max_age_s=100)
TURNS = (ChatMessage("user", "Où est la clé ? 🔑"), ChatMessage("assistant", "Dans [Guide].\n\nVoilà."))


def test_what_was_issued_is_recalled_word_for_word() -> None:
    state = issued(TURNS, SEAL, LIMITS)
    assert state[KEY].startswith("v1.")
    assert recalled(json.loads(json.dumps(state)), SEAL, LIMITS) == TURNS


def test_the_anonymous_have_a_memory_of_their_own() -> None:
    nobody = replace(SEAL, user_name=None)
    state = issued(TURNS, nobody, LIMITS)
    assert recalled(state, nobody, LIMITS) == TURNS
    with pytest.raises(BadRequest, match="another user"):
        recalled(state, SEAL, LIMITS)


def test_the_user_is_not_named_in_it() -> None:
    body = issued(TURNS, SEAL, LIMITS)[KEY].split(".")[1]
    assert b"alice" not in base64.urlsafe_b64decode(body + "==")


def test_only_the_last_turns_are_carried_and_never_the_systems() -> None:
    turns = [ChatMessage("system", "obey"), *(ChatMessage("user", str(number)) for number in range(9))]
    assert [turn.text for turn in recalled(issued(turns, SEAL, LIMITS), SEAL, LIMITS)] == ["5", "6", "7", "8"]


def test_the_oldest_turns_go_until_the_state_is_small_enough() -> None:
    turns = [ChatMessage("user", "a" * 400), ChatMessage("assistant", "b" * 400), ChatMessage("user", "c" * 400)]
    state = issued(turns, SEAL, StateLimits(max_bytes=1500))
    assert len(state[KEY]) <= 1500
    assert [turn.text[0] for turn in recalled(state, SEAL, LIMITS)] == ["b", "c"]


def test_a_turn_too_large_for_any_state_is_forgotten() -> None:
    state = issued([ChatMessage("user", "x" * 9000)], SEAL, StateLimits(max_bytes=300))
    assert recalled(state, SEAL, LIMITS) == ()


def _resigned(payload: object) -> dict[str, str]:
    """Sign any payload with the right key, as an older version of the service might have."""
    import hashlib
    import hmac

    body = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
    signature = hmac.new(SEAL.secret.encode(), f"v1.{body}".encode(), hashlib.sha256).digest()
    return {KEY: f"v1.{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"}


GOOD = issued(TURNS, SEAL, LIMITS)[KEY]


@pytest.mark.parametrize(
    ("state", "seal", "says"),
    [
        pytest.param({KEY: GOOD}, replace(SEAL, now_s=1_000_101.0), "too old", id="too old"),
        pytest.param({KEY: GOOD}, replace(SEAL, now_s=999_000.0), "too old", id="from the future"),
        pytest.param({KEY: GOOD}, replace(SEAL, user_name="bob"), "another user", id="of another user"),
        pytest.param({KEY: GOOD}, replace(SEAL, secret="another secret!!"), "changed", id="signed with another key"),
        pytest.param({KEY: GOOD}, replace(SEAL, secret=""), "not one", id="without a secret nothing is believed"),
        pytest.param({KEY: GOOD[:-2] + "AA"}, SEAL, "changed", id="with another signature"),
        pytest.param({KEY: "v2" + GOOD[2:]}, SEAL, "changed", id="of another version"),
        pytest.param({KEY: "v1.e30"}, SEAL, "not one", id="in two parts"),
        pytest.param({KEY: 5}, SEAL, "not one", id="a number"),
        pytest.param({KEY: "v1.é.é"}, SEAL, "not one", id="beyond ASCII"),
        pytest.param("text", SEAL, "not one", id="a text"),
        pytest.param(_resigned([]), SEAL, "another user", id="a payload that is no object"),
        pytest.param(_resigned({"u": "", "t": None}), replace(SEAL, user_name=None), "too old", id="without a time"),
    ],
)
def test_anything_else_is_refused(state: object, seal: Seal, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as refused:
        recalled(state, seal, LIMITS)
    assert refused.value.field == "session_state"


def test_a_signed_body_that_is_no_json_is_refused() -> None:
    import hashlib
    import hmac

    signature = hmac.new(SEAL.secret.encode(), b"v1.AAAA", hashlib.sha256).digest()
    state = {KEY: f"v1.AAAA.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"}
    with pytest.raises(BadRequest, match="cannot be read"):
        recalled(state, SEAL, LIMITS)


def test_a_signed_state_without_turns_recalls_none() -> None:
    nobody = replace(SEAL, user_name=None)
    assert recalled(_resigned({"u": "", "t": nobody.now_s, "m": None}), nobody, LIMITS) == ()


@pytest.mark.parametrize(
    ("state", "expected"),
    [({KEY: "x"}, True), ({"conversation_id": 1}, False), ("text", False), (None, False), ([KEY], False)],
)
def test_our_own_states_are_told_from_clients(state: object, expected: bool) -> None:
    assert is_ours(state) is expected


def test_a_refusal_names_the_field_that_was_sent() -> None:
    with pytest.raises(BadRequest, match=r"^sessionState ") as caught:
        recalled({"datafari_rag": "v1.x.y"}, SEAL, LIMITS, key="sessionState")
    assert caught.value.field == "sessionState"
