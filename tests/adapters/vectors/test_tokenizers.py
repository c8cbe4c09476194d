"""The two kinds of tokenizers, each with a small file of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from datafari_rag.adapters.vectors.factory import embedder_for
from datafari_rag.adapters.vectors.onnx import tokenizer_from
from datafari_rag.core.errors import EmbeddingsUnavailable
from datafari_rag_trials.models.packed_model import packed_model, tokenizer_of
from tests.settings import settings_with
from tests.tiny_model import tiny_model
from tests.trials.models.test_packed_model import packed

Tokenize = Callable[[str], list[int]]


def of_sentencepiece(folder: Path, max_tokens: int) -> Tokenize:
    file = folder / "tokenizer.model"
    file.write_bytes(tokenizer_of(packed_model(packed())))
    return tokenizer_from(file, max_tokens)


def of_json(folder: Path, max_tokens: int) -> Tokenize:
    return tokenizer_from(tiny_model(folder) / "tokenizer.json", max_tokens)


def test_a_text_is_cut_after_the_models_tokens_and_keeps_its_marks(tmp_path: Path) -> None:
    assert of_sentencepiece(tmp_path, 4)("the fare x the") == [0, 4, 5, 2]
    assert of_sentencepiece(tmp_path, 2)("the fare x the") == [0, 2]
    assert of_json(tmp_path, 2)("pump leave cat") == [1, 2]


@pytest.mark.parametrize("kind", [of_sentencepiece, of_json])
@pytest.mark.parametrize("text", ["", "\x00", "x" * 100_000, "\u0301" * 9_000])
def test_any_text_has_tokens(tmp_path: Path, kind: Callable[[Path, int], Tokenize], text: str) -> None:
    assert len(kind(tmp_path, 16)(text)) <= 16


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\x0a\xff\xff\xff\xff\x0f", b"<html>"])
def test_a_file_that_holds_no_tokenizer_is_named_at_the_first_text(tmp_path: Path, name: str, content: bytes) -> None:
    (tiny_model(tmp_path) / "tokenizer.json").unlink()
    (tmp_path / name).write_bytes(content)
    embedder = embedder_for(settings_with(embeddings_endpoint=f"onnx:{tmp_path}"))
    assert embedder is not None
    with pytest.raises(EmbeddingsUnavailable, match="model or tokenizer that cannot be used"):
        embedder.embed(["pump"], "query")
