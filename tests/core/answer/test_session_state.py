"""A signed session state is accepted as it was issued, and in no other way."""

from __future__ import annotations

import json

import pytest

from datafari_rag.core.answer.conversations import KEY, NoSigning, StateLimits, is_ours, issued, recalled
from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.errors import BadRequest
from tests.fakes import FakeSigning

NOW_S = 1_000_000.0
LIMITS = StateLimits(max_turns=4, max_bytes=4000, max_age_s=100)
TURNS = (ChatMessage("user", "Où est la clé ? 🔑"), ChatMessage("assistant", "Dans [Guide].\n\nVoilà."))


def test_what_was_issued_is_recalled_word_for_word() -> None:
    state = issued(TURNS, FakeSigning(), now_s=NOW_S, limits=LIMITS)
    assert recalled(json.loads(json.dumps(state)), FakeSigning(), now_s=NOW_S + 100, limits=LIMITS) == TURNS


def test_only_the_last_turns_are_carried_and_never_the_systems() -> None:
    turns = [ChatMessage("system", "obey"), *(ChatMessage("user", str(number)) for number in range(9))]
    state = issued(turns, FakeSigning(), now_s=NOW_S, limits=LIMITS)
    assert [turn.text for turn in recalled(state, FakeSigning(), now_s=NOW_S, limits=LIMITS)] == ["5", "6", "7", "8"]


def test_the_oldest_turns_go_until_the_state_is_small_enough() -> None:
    turns = [ChatMessage("user", "a" * 400), ChatMessage("assistant", "b" * 400), ChatMessage("user", "c" * 400)]
    state = issued(turns, FakeSigning(), now_s=NOW_S, limits=StateLimits(max_bytes=1000))
    assert len(state[KEY]) <= 1000
    assert [turn.text[0] for turn in recalled(state, FakeSigning(), now_s=NOW_S, limits=LIMITS)] == ["b", "c"]


def test_a_turn_too_large_for_any_state_is_forgotten() -> None:
    state = issued([ChatMessage("user", "x" * 9000)], FakeSigning(), now_s=NOW_S, limits=StateLimits(max_bytes=300))
    assert recalled(state, FakeSigning(), now_s=NOW_S, limits=LIMITS) == ()


GOOD = issued(TURNS, FakeSigning(), now_s=NOW_S, limits=LIMITS)


@pytest.mark.parametrize(
    ("state", "word", "now_s", "says"),
    [
        pytest.param(GOOD, "alice", NOW_S + 101, "too old", id="too old"),
        pytest.param(GOOD, "alice", NOW_S - 100, "too old", id="from the future"),
        pytest.param(GOOD, "bob", NOW_S, "not valid", id="not signed for this user"),
        pytest.param({KEY: 5}, "alice", NOW_S, "not valid", id="a number"),
        pytest.param("text", "alice", NOW_S, "not valid", id="a text"),
    ],
)
def test_anything_else_is_refused(state: object, word: str, now_s: float, says: str) -> None:
    with pytest.raises(BadRequest, match=says) as refused:
        recalled(state, FakeSigning(word), now_s=now_s, limits=LIMITS)
    assert refused.value.field == "session_state"


def test_without_signing_nothing_is_believed() -> None:
    state = issued(TURNS, NoSigning(), now_s=NOW_S, limits=LIMITS)
    with pytest.raises(BadRequest, match="not valid"):
        recalled(state, NoSigning(), now_s=NOW_S, limits=LIMITS)


@pytest.mark.parametrize(
    ("state", "expected"),
    [({KEY: "x"}, True), ({"conversation_id": 1}, False), ("text", False), (None, False), ([KEY], False)],
)
def test_our_own_states_are_told_from_clients(state: object, expected: bool) -> None:
    assert is_ours(state) is expected


def test_a_refusal_names_the_field_that_was_sent() -> None:
    with pytest.raises(BadRequest, match=r"^sessionState ") as caught:
        recalled({"datafari_rag": "v1.x.y"}, NoSigning(), now_s=NOW_S, limits=LIMITS, key="sessionState")
    assert caught.value.field == "sessionState"
