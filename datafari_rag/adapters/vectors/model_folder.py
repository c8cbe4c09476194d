"""
The folder of a local embedding model: which file is the model, and what its other files say of it.

Two forms are read: `embedding.json`, which `datafari-rag model get` writes, and the files of Sentence Transformers
(`modules.json`, `1_Pooling/config.json`, `config_sentence_transformers.json`) as models are published with. What cannot
be derived from the files is rejected, never guessed: wrong pooling gives vectors that look right and find nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from datafari_rag.core.errors import EmbeddingsUnavailable
from datafari_rag.core.text.folding import encodable
from datafari_rag.core.vectors import MAX_DIMENSIONS, Purpose

DESCRIPTION_FILE = "embedding.json"
MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
"""Where the model may be, the first one found counts."""

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model")
"""The tokenizer as the library `tokenizers` reads it, or as SentencePiece does; the first one found counts."""

MAX_TOKENS = 512
MAX_JSON_BYTES = 1_000_000

Pooling = Literal["cls", "mean"]

CHARS_PER_TOKEN = 12
"""Far more than a token has on average: text beyond the model's limit need not be tokenized."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The numbers of a text's tokens, and of which of two texts each is."""

    ids: Sequence[int]
    types: Sequence[int]


Tokenize = Callable[[str], Tokens]
"""The tokens of a text, with the marks that the model wants around them."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A local model: its files, and how a vector is made of what it gives for each token."""

    name: str
    model_file: Path
    tokenizer_file: Path
    dimensions: int
    pooling: Pooling
    max_tokens: int = MAX_TOKENS
    prefixes: Mapping[Purpose, str] = field(default_factory=dict)
    languages: frozenset[str] = frozenset()


def folder_of(folder: Path) -> ModelFolder:
    """Return what *folder* holds. Raises: EmbeddingsUnavailable: a file is absent or cannot be used; it is named."""
    model_file = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    if model_file is None:
        raise unusable(folder, f"has no {MODEL_FILES[0]}: `datafari-rag model get NAME` makes one that has")
    tokenizer_file = next((folder / name for name in TOKENIZER_FILES if (folder / name).is_file()), None)
    if tokenizer_file is None:
        raise unusable(folder, f"has no {TOKENIZER_FILES[0]}")
    own = _json(folder / DESCRIPTION_FILE)
    described = _sentence_transformers(folder) if own is None else own
    try:
        return ModelFolder(
            name=str(described.get("name") or folder.name),
            model_file=model_file,
            tokenizer_file=tokenizer_file,
            dimensions=_within(described["dimensions"], MAX_DIMENSIONS),
            pooling=_pooling(described["pooling"]),
            max_tokens=_within(described.get("max_tokens", MAX_TOKENS), 8192),
            prefixes={
                "query": str(described.get("query_prefix") or ""),
                "passage": str(described.get("passage_prefix") or ""),
            },
            languages=frozenset(map(str, described.get("languages") or ())),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise unusable(folder, f"has a {DESCRIPTION_FILE} that cannot be used") from error


def unusable(folder: Path, why: str) -> EmbeddingsUnavailable:
    """Return the error that names the folder of a model and what is wrong with it."""
    return EmbeddingsUnavailable(f"The folder of the embedding model {why}.", log=str(folder))


def _sentence_transformers(folder: Path) -> Mapping[str, Any]:
    pooling = _json(folder / "1_Pooling" / "config.json")
    if pooling is None:
        raise unusable(folder, f"does not specify its pooling: neither {DESCRIPTION_FILE} nor 1_Pooling/config.json")
    ways = [way for way, key in _POOLINGS.items() if pooling.get(key) is True]
    others = [key for key, value in pooling.items() if key.startswith("pooling_mode_") and value is True]
    if len(ways) != 1 or len(others) != 1:
        raise unusable(folder, "requires a pooling other than cls and mean")
    prompts = (_json(folder / "config_sentence_transformers.json") or {}).get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    length = (_json(folder / "sentence_bert_config.json") or {}).get("max_seq_length")
    return {
        "dimensions": pooling.get("word_embedding_dimension"),
        "pooling": ways[0],
        "max_tokens": length or MAX_TOKENS,
        "query_prefix": prompts.get("query"),
        "passage_prefix": prompts.get("passage") or prompts.get("document"),
    }


_POOLINGS: Mapping[str, str] = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}


def _json(path: Path) -> dict[str, Any] | None:
    """Return the object in *path*, None when there is no such file. Raises: EmbeddingsUnavailable."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(MAX_JSON_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise unusable(path.parent, f"has a {path.name} that cannot be read") from error
    if not isinstance(value, dict):
        raise unusable(path.parent, f"has a {path.name} that is not an object")
    return value


def _within(value: object, most: int) -> int:
    if type(value) is not int or not 0 < value <= most:
        raise ValueError
    return value


def _pooling(value: object) -> Pooling:
    if value not in _POOLINGS:
        raise ValueError
    return cast(Pooling, value)


def bounded(text: str, max_tokens: int) -> str:
    """Return as much of *text* as *max_tokens* can stand for, without halves of characters."""
    return encodable(text[: max_tokens * CHARS_PER_TOKEN])


def unreadable(file: Path) -> EmbeddingsUnavailable:
    """Return the error for a *file* that holds no tokenizer."""
    return EmbeddingsUnavailable("The tokenizer of the embedding model cannot be read.", log=str(file))
