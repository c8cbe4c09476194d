"""The two kinds of tokenizers, each with a small file of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from datafari_rag.adapters.vectors.model_folder import Tokenize
from datafari_rag.adapters.vectors.onnx import tokenizer_from
from datafari_rag.commands.packed_model import packed_model, tokenizer_of
from datafari_rag.core.errors import EmbeddingsUnavailable
from tests.commands.model.test_packed_model import packed
from tests.tiny_model import tiny_model


def of_sentencepiece(folder: Path, max_tokens: int) -> Tokenize:
    file = folder / "tokenizer.model"
    file.write_bytes(tokenizer_of(packed_model(packed())))
    return tokenizer_from(file, max_tokens)


def of_json(folder: Path, max_tokens: int) -> Tokenize:
    return tokenizer_from(tiny_model(folder) / "tokenizer.json", max_tokens)


def test_a_text_is_cut_after_the_models_tokens_and_keeps_its_marks(tmp_path: Path) -> None:
    assert of_sentencepiece(tmp_path, 4)("the fare x the").ids == [0, 4, 5, 2]
    assert of_sentencepiece(tmp_path, 1)("the fare x the").ids == [0, 2]
    assert of_json(tmp_path, 2)("pump leave cat").ids == [1, 2]


@pytest.mark.parametrize("mark", ["bos", "eos"])
def test_a_tokenizer_without_the_marks_of_a_text_is_named(tmp_path: Path, mark: str) -> None:
    packed_one = packed_model(packed())
    without = replace(packed_one, marks={**packed_one.marks, mark: -1})
    file = tmp_path / "tokenizer.model"
    file.write_bytes(tokenizer_of(without))
    with pytest.raises(EmbeddingsUnavailable, match="tokenizer"):
        tokenizer_from(file, 16)


@pytest.mark.parametrize("kind", [of_sentencepiece, of_json])
@pytest.mark.parametrize("text", ["", "\x00", "half \ud800 a character", "x" * 100_000, "\u0301" * 9_000])
def test_any_text_has_tokens(tmp_path: Path, kind: type[Tokenize], text: str) -> None:
    tokens = kind(tmp_path, 16)(text)  # type: ignore[call-arg]
    assert len(tokens.ids) == len(tokens.types) <= 16 and not any(tokens.types)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model"])
@pytest.mark.parametrize("content", [b"", b"{}", b"\x0a\xff\xff\xff\xff\x0f", b"<html>"])
def test_a_file_that_holds_no_tokenizer_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EmbeddingsUnavailable, match="tokenizer") as caught:
        tokenizer_from(tmp_path / name, 16)
    assert name in str(caught.value.log)
