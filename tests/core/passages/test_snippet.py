from __future__ import annotations

import pytest

from datafari_rag.core.passages.extracts import AskedWords, clipped
from datafari_rag.core.passages.term_matching import cue_of, terms_of
from datafari_rag.core.text.language import spoken

LONG = (
    "After many years of work and a long dispute, the council opened the new bridge over the river in 1932, "
    "and the old ferry, which had carried goods since the middle ages, was sold to a neighbouring town."
)


def part(question: str, room: int, text: str = LONG, language: str = "en") -> str:
    wanted = AskedWords(terms_of(question, language), cue_of(question), language)
    start, end = clipped(text, room, words=wanted, language=spoken(language))
    return text[start:end]


@pytest.mark.parametrize(
    ("question", "room", "wanted"),
    [
        pytest.param("When was the bridge opened?", 500, LONG, id="all of it when it fits"),
        pytest.param("What carried goods?", 50, "which had carried goods since the middle ages", id="a clause"),
        pytest.param("Who was it sold to?", 50, "was sold to a neighbouring town", id="the last clause"),
        pytest.param("What carried goods?", 12, "", id="hardly any room"),
        pytest.param("Who?", 0, "", id="no room"),
    ],
)
def test_the_part_with_the_questions_words_is_kept(question: str, room: int, wanted: str) -> None:
    assert part(question, room) == wanted


def test_the_kind_of_thing_asked_for_is_kept() -> None:
    assert "1932" in part("When was the bridge opened?", 65)


def test_a_sentence_that_fits_is_kept_whole() -> None:
    text = f"Cats sleep all day. {LONG} The bridge is open, and free, for dogs."
    assert part("Is the bridge free for dogs?", 60, text) == "The bridge is open, and free, for dogs."


def test_a_language_without_words_of_its_own_is_not_cut_inside_of_a_sentence() -> None:
    text = "这座桥有很长的历史，" * 6 + "大桥于1932年开放" + "，人们非常喜欢它" * 6
    assert part("大桥何时开放？", 30, text, "zh") == ""


def test_a_word_longer_than_the_room_is_not_cut() -> None:
    assert part("What?", 5, "a" * 40) == ""


@pytest.mark.parametrize(
    ("text", "question", "room"),
    [
        pytest.param(
            "You can't access public groups via the website with your office email and only there.",
            "How do I access groups via the website with my office email?",
            55,
            id="before the words asked for",
        ),
        pytest.param(
            "The reduced fare on the northern line applies to children, pupils and pensioners not",
            "What reduced fare applies on the northern line?",
            50,
            id="at the end",
        ),
    ],
)
def test_no_clause_loses_its_negation(text: str, question: str, room: int) -> None:
    said = part(question, room, text)
    denied = "can't" if "can't" in text else " not"
    clause = next(clause for clause in text.split(", ") if denied in clause)
    assert denied in said or not any(word in said.split() for word in clause.split())


def test_a_sentence_that_denies_elsewhere_is_not_cut() -> None:
    text = "Nobody knows when the old ferry was not in use any more, but the bridge was opened in the year 1932."
    assert part("When was the bridge opened?", 45, text) == ""
    assert part("When was the bridge opened?", 100, text) == text
