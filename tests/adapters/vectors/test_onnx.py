"""A local model, with a real model of a few hundred bytes; the published ones are tried where they were fetched."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from datafari_rag.adapters.vectors.factory import embedder_for
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsUnavailable
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import Vector
from datafari_rag.ports import Embedder
from tests.required import library
from tests.settings import settings_with
from tests.tiny_model import VECTORS, tiny_model

library("onnxruntime", "make .venv/.dev")
library("tokenizers", "make .venv/.dev")


def settings_for(folder: Path) -> Settings:
    return settings_with(embeddings_endpoint=f"onnx:{folder}")


def local(folder: Path, **changes: object) -> Embedder:
    found = embedder_for(settings_with(settings_for(folder), **changes))
    assert found is not None
    return found


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_near_in_meaning_is_near_in_direction(tmp_path: Path) -> None:
    leave, parents, pump = local(tiny_model(tmp_path)).embed(["leave", "Parents", "pump"], "passage")
    assert cosine(leave, parents) > 0.95 and cosine(leave, pump) == 0.0
    assert cosine(leave, leave) == pytest.approx(1.0)


def test_a_text_has_the_same_vector_alone_and_among_others(tmp_path: Path) -> None:
    own = local(tiny_model(tmp_path))
    alone = own.embed(["leave pump"], "passage")[0]
    assert own.embed(["cat", "leave pump", "pump " * 99], "passage")[1] == alone
    assert local(tmp_path).embed(["leave pump"], "passage")[0] == alone


def test_mean_and_first_token_are_pooled_as_the_folder_says(tmp_path: Path) -> None:
    mean = local(tiny_model(tmp_path / "mean", pooling="mean")).embed(["pump leave"], "passage")[0]
    first = local(tiny_model(tmp_path / "cls", pooling="cls")).embed(["pump leave"], "passage")[0]
    assert mean.tolist() == pytest.approx([0.5**0.5, 0.5**0.5, 0, 0])
    assert first.tolist() == [1, 0, 0, 0]


def test_prefixes_are_those_of_the_folder(tmp_path: Path) -> None:
    own = local(tiny_model(tmp_path, query_prefix="query: ", passage_prefix="passage: "))
    query, passage = own.embed(["pump"], "query")[0], own.embed(["pump"], "passage")[0]
    assert query[3] > 0 and passage[2] > 0


def test_what_the_model_cannot_take_is_left_out(tmp_path: Path) -> None:
    own = local(tiny_model(tmp_path, max_tokens=2))
    assert own.embed(["pump pump leave leave"], "passage")[0].tolist() == [1, 0, 0, 0]
    assert own.embed(["pump " * 3_000_000], "passage")[0].tolist() == [1, 0, 0, 0]


def test_half_a_character_is_taken_as_an_unknown_one(tmp_path: Path) -> None:
    assert local(tiny_model(tmp_path)).embed(["\ud800"], "query")[0].tolist() == pytest.approx([0.5] * 4)


def test_the_folder_names_the_model_its_dimensions_and_its_languages(tmp_path: Path) -> None:
    model = local(tiny_model(tmp_path, languages=["en"])).model
    assert (model.name, model.dimensions, model.languages) == ("tiny", 4, {"en"})


def test_models_whose_vectors_cannot_be_compared_have_different_keys(tmp_path: Path) -> None:
    keys = {
        local(tiny_model(tmp_path / "a")).model.key,
        local(tiny_model(tmp_path / "b", pooling="cls")).model.key,
        local(tiny_model(tmp_path / "c", passage_prefix="passage: ")).model.key,
        local(tiny_model(tmp_path / "d", name="other")).model.key,
    }
    assert len(keys) == 4 and local(tmp_path / "a").model.key in keys


def published(folder: Path, **pooling: object) -> Path:
    """Turn the folder into one as Sentence Transformers writes it."""
    (folder / "embedding.json").unlink()
    (folder / "1_Pooling").mkdir()
    told = {"word_embedding_dimension": 4, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, **pooling}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(told))
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    return folder


def test_a_folder_as_its_makers_publish_it_says_its_pooling(tmp_path: Path) -> None:
    own = local(published(tiny_model(tmp_path / "tiny-e5-small")))
    assert (own.model.name, own.model.dimensions) == ("tiny-e5-small", 4)
    assert own.embed(["pump leave"], "query")[0].tolist() == [0, 0, 0, 1]  # of the prefix, as the first token is pooled
    assert own.embed(["pump"], "passage")[0].tolist() == [0, 0, 1, 0]  # the first token is the prefix


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no model": (lambda folder: (folder / "model.onnx").unlink(), "has no model.onnx"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
    "no word of its pooling": (lambda folder: (folder / "embedding.json").unlink(), "has no 1_Pooling/config.json"),
    "a description that is no JSON": (
        lambda folder: (folder / "embedding.json").write_text("{"),
        "embedding.json that cannot be used",
    ),
    "a description that is no object": (
        lambda folder: (folder / "embedding.json").write_text("[]"),
        "embedding.json that cannot be used",
    ),
    "no dimensions": (lambda folder: tiny_model(folder, dimensions=None), "embedding.json that cannot be used"),
    "dimensions that are text": (lambda folder: tiny_model(folder, dimensions="4"), "embedding.json that cannot be"),
    "an unknown pooling": (lambda folder: tiny_model(folder, pooling="max"), "embedding.json that cannot be used"),
    "another pooling of Sentence Transformers": (
        lambda folder: published(folder, pooling_mode_max_tokens=True),
        "pooling must be cls or mean",
    ),
}


@pytest.mark.parametrize(("break_it", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, break_it: Callable[[Path], object], told: str) -> None:
    break_it(tiny_model(tmp_path))
    with pytest.raises(EmbeddingsUnavailable) as caught:
        local(tmp_path)
    assert told in caught.value.reason


DAMAGED: dict[str, Callable[[Path], object]] = {
    "a model that is cut": lambda folder: (folder / "model.onnx").write_bytes(b"\x08\x08:"),
    "a model that is none": lambda folder: (folder / "model.onnx").write_bytes(b"<html>"),
    "a tokenizer that is none": lambda folder: (folder / "tokenizer.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_model_is_named_at_the_first_text(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    damage(tiny_model(tmp_path))
    with pytest.raises(EmbeddingsUnavailable):
        local(tmp_path).embed(["pump"], "query")


def test_a_model_that_gives_no_number_is_named(tmp_path: Path) -> None:
    nothing = [(float("nan"),) * 4, (0.0,) * 4, *VECTORS[2:]]
    own = local(tiny_model(tmp_path, vectors=nothing))
    for text in ("unheard", "pump"):
        with pytest.raises(EmbeddingsGarbled):
            own.embed([text], "query")


def test_a_model_with_other_dimensions_than_its_description_is_named(tmp_path: Path) -> None:
    own = local(tiny_model(tmp_path, dimensions=5))
    with pytest.raises(EmbeddingsGarbled):
        own.embed(["pump"], "query")


def test_without_its_libraries_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datafari_rag.adapters.vectors.onnx", None)
    with pytest.raises(EmbeddingsUnavailable) as caught:
        embedder_for(settings_for(tiny_model(tmp_path)))
    assert "datafari-rag[vectors]" in caught.value.reason
