"""Thoughts never reach an answer, however a reply is cut; and what only looks like one is text."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from datafari_rag.core.model.streams import MARKS, ThinkingFilter

THOUGHT = "Let me see. The city [1] is `nice.\nSo:"
ANSWER = "Paris is nice [1]."

HARMONY = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}"

MARKED = {
    "think": f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
    "thinking": f"<thinking>{THOUGHT}</thinking>{ANSWER}",
    "after white space": f"\n <think>{THOUGHT}</think>\n{ANSWER}",
    "two blocks": f"<think>{THOUGHT}</think>\n<think>{THOUGHT}</think>{ANSWER}",
    "an empty block": f"<think>\n\n</think>\n\n{ANSWER}",
    "mistral's": f"[THINK]{THOUGHT}[/THINK]{ANSWER}",
    "harmony": HARMONY.format(THOUGHT, ANSWER),
    "harmony with its start": "<|start|>assistant" + HARMONY.format(THOUGHT, ANSWER),
    "harmony without a thought": f"<|channel|>final<|message|>{ANSWER}",
    "marks of another kind in the thought": f"<think><thinking>{THOUGHT}</thinking></think>{ANSWER}",
}
ALOUD = {
    "without a beginning": f"{THOUGHT}\n</think>\n\n{ANSWER}",
    "without a beginning, in its line": f"{THOUGHT} done.</think>{ANSWER}",
    "without a beginning, in an open fence": f"```\n{THOUGHT}\n</think>\n{ANSWER}",
    "without a beginning, and marks inside": f"{THOUGHT} I must write <think>.\n</think>\n\n{ANSWER}",
}
PLAIN = {
    "an answer": ANSWER,
    "a mark in the middle": f"{ANSWER} It writes <think>a</think> first.",
    "marks in code": f"{ANSWER} End with `</think>`.",
    "marks in a fence": f"{ANSWER}\n```xml\n<p></think></p>\n```\n",
    "a block in a fence": f"{ANSWER}\n```\n<think>\na\n</think>\n```\n",
    "what only begins like a mark": "<thin air> is nice.",
    "a bracket": "[THIN] is nice.",
    "a mark that never ends": f"{ANSWER} <think> is how it begins.",
    "the beginning of a mark": "<thi",
}


def cuts(text: str) -> Iterator[list[str]]:
    """Yield *text* whole, in single characters, cut once at each place, and cut at random."""
    yield [text]
    yield list(text)
    yield from ([text[:at], text[at:]] for at in range(1, len(text)))
    chance = random.Random(7)  # nosec B311
    for _ in range(20):
        places = sorted(chance.sample(range(len(text) + 1), min(5, len(text))))
        yield [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def shown(pieces: list[str], thinking: ThinkingFilter, *, is_cut: bool = False) -> str:
    return "".join([*map(thinking.feed, pieces), thinking.end(is_cut=is_cut)])


@pytest.mark.parametrize("is_held", [False, True], ids=["streamed", "whole"])
@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED.keys())
def test_a_marked_thought_is_left_out_wherever_it_is_cut(text: str, is_held: bool) -> None:
    for pieces in cuts(text):
        thinking = ThinkingFilter(is_held=is_held)
        assert shown(pieces, thinking) == ANSWER
        assert (thinking.thought_chars > 0) == (THOUGHT in text or "\n\n<" in text)
        assert not thinking.is_late


@pytest.mark.parametrize("text", ALOUD.values(), ids=ALOUD.keys())
def test_a_thought_without_a_beginning_is_left_out_where_the_model_is_known_for_it(text: str) -> None:
    for pieces in cuts(text):
        thinking = ThinkingFilter(is_held=True, thinks_aloud=True)
        assert shown(pieces, thinking) == ANSWER
        assert (thinking.is_without_beginning, thinking.is_late) == (True, False)
        assert thinking.thought_chars >= len(THOUGHT)


@pytest.mark.parametrize("name", [name for name in ALOUD if "inside" not in name])
def test_a_thought_without_a_beginning_is_left_out_of_every_whole_reply(name: str) -> None:
    for pieces in cuts(ALOUD[name]):
        thinking = ThinkingFilter(is_held=True)
        assert shown(pieces, thinking) == ANSWER
        assert thinking.is_without_beginning


@pytest.mark.parametrize("name", [name for name in ALOUD if "inside" not in name])
def test_a_stream_of_an_unknown_model_says_when_thoughts_were_passed_on(name: str) -> None:
    for pieces in cuts(ALOUD[name]):
        thinking = ThinkingFilter(is_held=False)
        shown(pieces, thinking)
        assert thinking.is_late


@pytest.mark.parametrize("is_held", [False, True], ids=["streamed", "whole"])
@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN.keys())
def test_what_only_looks_like_a_thought_is_text(text: str, is_held: bool) -> None:
    for pieces in cuts(text):
        thinking = ThinkingFilter(is_held=is_held)
        assert shown(pieces, thinking) == text
        assert (thinking.thought_chars, thinking.is_late) == (0, False)


@pytest.mark.parametrize("mark", [mark for mark, end in MARKS.items() if end])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_thought_that_never_ends_is_no_answer(mark: str, is_cut: bool) -> None:
    for pieces in cuts(mark + THOUGHT):
        thinking = ThinkingFilter(is_held=False)
        assert shown(pieces, thinking, is_cut=is_cut) == ""
        assert thinking.thought_chars == len(THOUGHT)


def test_a_model_that_thinks_aloud_and_was_cut_has_no_answer_and_one_that_ended_did_not_think() -> None:
    cut, ended = (ThinkingFilter(is_held=True, thinks_aloud=True) for _ in range(2))
    assert shown(list(THOUGHT), cut, is_cut=True) == ""
    assert shown(list(ANSWER), ended, is_cut=False) == ANSWER
    assert (cut.thought_chars, ended.thought_chars) == (len(THOUGHT), 0)


def test_after_a_thought_in_its_own_field_text_is_the_answer_immediately() -> None:
    thinking = ThinkingFilter(is_held=True, thinks_aloud=True)
    thinking.apart(9)
    assert [thinking.feed(letter) for letter in "Nice"] == list("Nice")
    assert thinking.thought_chars == 9


def test_an_answer_streams_on_after_its_thought() -> None:
    thinking = ThinkingFilter(is_held=True, thinks_aloud=True)
    assert thinking.feed(THOUGHT) == ""
    assert thinking.feed("</think>\n\nPa") == "Pa"
    assert thinking.feed("ris") == "ris"


def test_white_space_before_an_answer_is_the_answers_and_before_a_thought_is_not() -> None:
    assert shown([" ", "\n", "a"], ThinkingFilter(is_held=False)) == " \na"
    assert shown([" ", "\n"], ThinkingFilter(is_held=True)) == " \n"
    assert shown([" ", "<think>", " </think>", "\n", "a"], ThinkingFilter(is_held=False)) == "a"


def test_nothing_apart_and_text_that_waits_change_nothing() -> None:
    thinking = ThinkingFilter(is_held=True, thinks_aloud=True)
    thinking.apart(0)
    assert thinking.feed("<thi") == ""
    thinking.apart(3)
    assert thinking.feed("s is it.") == ""
    assert thinking.end(is_cut=False) == "<this is it."
