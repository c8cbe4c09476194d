"""Vectors that come with the package: used for the texts that they are of, and with their own model alone."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from importlib import resources

import pytest

from datafari_rag.adapters.vectors.factory import ShippedVectors, file_bytes, shipped
from datafari_rag.commands.demo.index import VECTORS
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector

MODEL = EmbeddingModel("small", "small|mean", 2)
FILE = file_bytes(MODEL, [("a pump", array("b", [127, 0]).tobytes()), ("a ferry", array("b", [-60, 80]).tobytes())])


class Asked:
    """Gives every text the same vector and remembers them."""

    def __init__(self, model: EmbeddingModel = MODEL) -> None:
        self.model, self.texts = model, list[str]()

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        self.texts += texts
        return [unit_vector([1.0, 1.0]) for _ in texts]


def test_known_passages_are_not_embedded_again_and_others_are() -> None:
    behind = Asked()
    found = shipped(FILE, behind).embed(["a ferry", "a cat", "a pump"], "passage")
    assert behind.texts == ["a cat"]
    assert [list(one) for one in found] == [
        pytest.approx([-0.6, 0.8]),
        pytest.approx([0.7071, 0.7071], abs=1e-4),
        pytest.approx([1.0, 0.0]),
    ]


def test_a_question_is_always_embedded() -> None:
    behind = Asked()
    shipped(FILE, behind).embed(["a pump"], "query")
    assert behind.texts == ["a pump"]


@pytest.mark.parametrize(
    ("raw", "model"),
    [
        pytest.param(FILE, EmbeddingModel("other", "other|mean", 2), id="of another model"),
        pytest.param(FILE[:-1], MODEL, id="cut"),
    ],
)
def test_vectors_that_do_not_fit_are_left_alone(raw: bytes, model: EmbeddingModel) -> None:
    behind = Asked(model)
    shipped(raw, behind).embed(["a pump"], "passage")
    assert behind.texts == ["a pump"]


def test_it_is_the_model_behind_it() -> None:
    assert ShippedVectors(Asked(), {}).model is MODEL


def test_the_package_has_the_vectors_of_thousands_of_passages_of_one_model() -> None:
    raw = (resources.files("datafari_rag.resources") / "demo" / VECTORS).read_bytes()
    told = json.loads(raw.partition(b"\n")[0])
    model = EmbeddingModel(told["name"], told["key"], told["dimensions"])
    assert told["rows"] == len(shipped(raw, Asked(model)).rows) > 5000
    assert told["name"].startswith("bge-small-en")
