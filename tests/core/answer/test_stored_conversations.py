"""Stored conversations as values."""

from __future__ import annotations

import pytest

from datafari_rag.core.answer.conversations import (
    MAX_TITLE_CHARS,
    StoredTurn,
    documents_behind,
    is_conversation_id,
    readable_turns,
    title_from,
)
from datafari_rag.core.ask import ChatMessage

FIRST = StoredTurn("Who?", "Ann [1].", 1.0, ("a",))
SECOND = StoredTurn("When?", "At nine [1].", 2.0, ("b", "a"), ("a", "c"))


def test_documents_behind_a_turn_are_its_own_and_those_of_the_answers_before_it() -> None:
    assert SECOND.documents == ("b", "a", "c")
    assert documents_behind([FIRST, SECOND]) == ("a", "b", "c")
    assert documents_behind([]) == ()


@pytest.mark.parametrize(
    ("readable", "left"),
    [
        pytest.param({"a", "b", "c"}, (FIRST, SECOND), id="all are readable"),
        pytest.param({"a", "b"}, (FIRST,), id="one behind an earlier answer is not"),
        pytest.param({"b", "c"}, (), id="one that both are made from is not"),
        pytest.param(set(), (), id="none is"),
    ],
)
def test_a_turn_is_shown_while_every_document_behind_it_is_readable(
    readable: set[str], left: tuple[StoredTurn, ...]
) -> None:
    assert readable_turns((FIRST, SECOND), readable) == left


def test_a_turn_is_two_messages() -> None:
    assert FIRST.messages == (ChatMessage("user", "Who?"), ChatMessage("assistant", "Ann [1]."))


def test_a_title_is_the_beginning_of_the_question_on_one_line() -> None:
    assert title_from("Who \n is   it?") == "Who is it?"
    assert len(title_from("x" * 4000)) == MAX_TITLE_CHARS


@pytest.mark.parametrize("text", ["", "a" * 31, "a" * 33, "A" * 32, "../" * 10 + "aa", "' OR 1=1 --" * 3, "٣" * 32])
def test_other_texts_are_no_ids(text: str) -> None:
    assert is_conversation_id("0123456789abcdef" * 2)
    assert not is_conversation_id(text)
    assert not is_conversation_id("a" * 32 + "\n")
