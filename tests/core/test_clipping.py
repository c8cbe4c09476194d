from __future__ import annotations

import pytest

from datafari_rag.core.clipping import clipped
from datafari_rag.core.cues import cue_of
from datafari_rag.core.evidence import terms_of

LONG = (
    "After many years of planning and a long dispute, the council opened the new bridge over the river in 1932, "
    "and the old ferry, which had carried goods since the middle ages, was sold to a neighbouring town."
)


def part(question: str, room: int, text: str = LONG) -> str:
    start, end = clipped(text, room, terms=terms_of(question, "en"), cue=cue_of(question), language="en")
    return text[start:end]


@pytest.mark.parametrize(
    ("question", "room", "wanted"),
    [
        pytest.param("When was the bridge opened?", 500, LONG, id="all of it when it fits"),
        pytest.param(
            "What carried goods?", 60, "and the old ferry, which had carried goods since the middle", id="words"
        ),
        pytest.param("What carried goods?", 3, "the", id="hardly any room"),
        pytest.param("Who?", 0, "", id="no room"),
    ],
)
def test_the_part_with_the_questions_words_is_kept(question: str, room: int, wanted: str) -> None:
    assert part(question, room) == wanted


def test_the_kind_of_thing_asked_for_is_kept() -> None:
    assert "1932" in part("When was the bridge opened?", 60)


def test_a_script_without_spaces_is_cut_between_characters() -> None:
    text = "这座桥有很长的历史，" * 6 + "大桥于1932年开放" + "，人们非常喜欢它" * 6
    said = part("大桥何时开放？", 30, text)
    assert "大桥于1932年开放" in said
    assert len(said) <= 30


def test_a_word_longer_than_the_room_is_not_cut() -> None:
    assert part("What?", 5, "a" * 40) == ""
