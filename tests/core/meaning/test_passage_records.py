from __future__ import annotations

from itertools import pairwise

import pytest

from datafari_rag.core.meaning.near_search import cuts_of, is_complete, lists_of, model_mark, stamp_of
from datafari_rag.core.vectors import EmbeddingModel

MODEL = EmbeddingModel("test", "key", 2, frozenset({"en"}))
SENTENCE = "The ferry leaves the harbour of the island at half past nine. "


def test_passages_that_follow_each_other_are_the_text_itself() -> None:
    text = "  " + SENTENCE * 40 + "\n\n" + SENTENCE * 20
    cuts = cuts_of(text, "Ferries", "key")

    assert len(cuts) > 3
    assert all(text[cut.start : cut.start + len(cut.content)] == cut.content for cut in cuts)
    assert all(one.start + len(one.content) == next_.start for one, next_ in pairwise(cuts))
    assert all(cut.context.startswith("Ferries\n") for cut in cuts)


def test_passages_with_much_white_space_between_are_apart() -> None:
    first, second = cuts_of(f"{SENTENCE * 6}{' ' * 500}{SENTENCE * 6}".strip(), "", "key")[:2]

    assert first.start + len(first.content) <= second.start and len(first.content) < 500


def test_a_text_without_words_has_one_empty_passage() -> None:
    assert [(cut.start, cut.content, cut.context) for cut in cuts_of(" \n ", "Title", "key")] == [(0, "", "")]


def test_a_digest_is_of_the_model_and_of_what_it_is_given() -> None:
    digests = {cuts_of(text, title, key)[0].digest for text in "ab" for title in ("", "t") for key in ("x", "y")}

    assert len(digests) == 8


@pytest.mark.parametrize(
    ("version", "model"),
    [
        ("2", MODEL),
        ("1", EmbeddingModel("test", "other", 2, frozenset({"en"}))),
        ("1", EmbeddingModel("test", "key", 2)),
    ],
    ids=["another version", "another model", "other languages"],
)
def test_a_stamp_changes_with_all_that_passages_depend_on(version: str, model: EmbeddingModel) -> None:
    assert stamp_of("1", MODEL) == stamp_of("1", MODEL) != stamp_of(version, model)


def test_marks_of_models_are_short_and_their_own() -> None:
    assert model_mark("a") != model_mark("b") and len(model_mark("a" * 1000)) == 16


@pytest.mark.parametrize(
    ("number", "wanted", "places", "expected"),
    [(3, 3, 3.0, True), (3, 3.0, 3, True), (2, 3, 3.0, False), (3, 3, 4.0, False), (0, None, None, False)],
    ids=["whole", "whole, as floats", "one is missing", "one is there twice", "none"],
)
def test_passages_are_complete_when_each_place_is_there_once(
    number: int, wanted: object, places: object, expected: bool
) -> None:
    assert is_complete(number, count=wanted, places=places) is expected


def test_vectors_are_written_with_seven_digits() -> None:
    assert lists_of([0.123456789, -1.0]) == [0.1234568, -1.0]
