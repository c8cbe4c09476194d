from __future__ import annotations

import math

import pytest

from datafari_rag.core.errors import EmbeddingsGarbled
from datafari_rag.core.vectors import MAX_DIMENSIONS, EmbeddingModel, unit_vector


def test_a_vector_has_length_one_and_keeps_its_direction() -> None:
    assert unit_vector([3, 0.0, -4.0]).tolist() == pytest.approx([0.6, 0.0, -0.8])


def test_a_vector_of_huge_numbers_has_length_one_too() -> None:
    assert unit_vector([1e300, 1e300]).tolist() == pytest.approx([math.sqrt(0.5)] * 2)


GARBAGE = {
    "a number that is none": [1.0, math.nan],
    "an infinite number": [1.0, math.inf],
    "nothing but zeros": [0.0, 0.0],
    "a text among the numbers": [1.0, "2"],
    "a list among the numbers": [1.0, [2.0]],
    "null among the numbers": [1.0, None],
    "an integer beyond all floats": [1.0, 10**400],
    "a text": "1.0,2.0",
    "base64 in place of a list": b"AACAPwAAAEA=",
    "a number": 1.0,
    "nothing": None,
    "an empty list": [],
    "more numbers than any model gives": [1.0] * (MAX_DIMENSIONS + 1),
}


@pytest.mark.parametrize("values", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_is_no_vector_is_refused(values: object) -> None:
    with pytest.raises(EmbeddingsGarbled):
        unit_vector(values)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_a_vector_of_another_size_is_refused_by_name(dimensions: int) -> None:
    with pytest.raises(EmbeddingsGarbled) as caught:
        unit_vector([1.0, 2.0], dimensions)
    assert caught.value.log == f"a vector has 2 numbers, {dimensions} were expected"


def test_a_model_without_languages_knows_all_and_another_its_own() -> None:
    assert EmbeddingModel("m", "k").knows("fr")
    assert [EmbeddingModel("m", "k", 4, frozenset({"en"})).knows(code) for code in ("en", "fr")] == [True, False]
