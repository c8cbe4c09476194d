"""
Vectors from an ONNX model in a folder of this machine, by onnxruntime on the processor.

The folder is as Hugging Face has it: the model, `tokenizer.json`, and `1_Pooling/config.json`, which says how a vector
is made. What `datafari-rag model get` packed has that in `embedding.json`, and may have a SentencePiece tokenizer.
Nothing is guessed: wrong pooling gives vectors that look right and find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import onnxruntime

from datafari_rag.core.errors import EmbeddingError, EmbeddingsGarbled, EmbeddingsUnavailable
from datafari_rag.core.text.cleaning import encodable
from datafari_rag.core.vectors import MAX_DIMENSIONS, EmbeddingModel, Purpose, Vector, unit_vector


class Description(msgspec.Struct, frozen=True):
    """What a folder says of its model, as `embedding.json` has it."""

    dimensions: Annotated[int, msgspec.Meta(gt=0, le=MAX_DIMENSIONS)]
    pooling: Literal["cls", "mean"]
    name: str = ""
    max_tokens: Annotated[int, msgspec.Meta(gt=0, le=8192)] = 512
    query_prefix: str = ""
    passage_prefix: str = ""
    languages: frozenset[str] = frozenset()


class OnnxEmbedder:
    """A `ports.Embedder` over the model in a folder, which is loaded at the first text, once for a process."""

    def __init__(
        self, folder: Path, prefixes: Mapping[Purpose, str] | None = None, languages: frozenset[str] = frozenset()
    ) -> None:
        """Read *folder*; *prefixes* and *languages* count where it names none. Raises: EmbeddingsUnavailable."""
        self._file = _one_of(folder, "model.onnx", "onnx/model.onnx")
        self._tokenizer_file = _one_of(folder, "tokenizer.json", "tokenizer.model")
        self._own = own = description_of(folder)
        known = prefixes or {}
        self._prefixes = {
            "query": own.query_prefix or known.get("query", ""),
            "passage": own.passage_prefix or known.get("passage", ""),
        }
        key = "|".join((own.name or folder.name, own.pooling, str(own.max_tokens), self._prefixes["passage"]))
        self.model = EmbeddingModel(own.name or folder.name, key, own.dimensions, own.languages or languages)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return one vector for each of *texts*. Raises: EmbeddingsUnavailable, EmbeddingsGarbled."""
        try:
            # One by one: a quantised model takes its scales from all of a batch, so texts would change one another.
            return [self._vector_of(self._prefixes[purpose] + text) for text in texts]
        except Exception as error:  # neither library has a class of its own for its failures
            if isinstance(error, EmbeddingError | MemoryError):
                raise
            raise _unusable(self._file.parent, "has a model or tokenizer that cannot be used") from error

    @cached_property
    def _vector_of(self) -> Callable[[str], Vector]:
        options = onnxruntime.SessionOptions()
        # The processes of the service share the cores already, and the arena keeps what the longest text needed.
        options.intra_op_num_threads, options.enable_cpu_mem_arena = 1, False
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])
        own, tokens_of = self._own, tokenizer_from(self._tokenizer_file, self._own.max_tokens)

        def vector_of(text: str) -> Vector:
            # A token has far less than 12 characters on average: what is behind need not be tokenized.
            ids = np.array([tokens_of(encodable(text[: own.max_tokens * 12]))], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
            states = session.run(None, {one.name: inputs[one.name] for one in session.get_inputs()})[0]
            if states.ndim != 3 or not states.shape[1]:
                raise EmbeddingsGarbled(log=f"the model gives an array of shape {states.shape}")
            pooled = states[0, 0] if own.pooling == "cls" else states[0].mean(axis=0, dtype=float)
            return unit_vector(pooled, own.dimensions)

        return vector_of


def description_of(folder: Path) -> Description:
    """Return how a vector is made with the model in *folder*. Raises: EmbeddingsUnavailable."""
    file = _one_of(folder, "1_Pooling/config.json", "embedding.json")
    try:
        if file.name == "embedding.json":
            return msgspec.json.decode(file.read_bytes(), type=Description)
        published = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        modes = [key for key, is_on in published.items() if key.startswith("pooling_mode_") and is_on is True]
        pooling = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}["+".join(modes)]
        return msgspec.convert({"dimensions": published["word_embedding_dimension"], "pooling": pooling}, Description)
    except (OSError, KeyError, ValueError, RecursionError) as error:
        raise _unusable(folder, f"has a {file.name} that cannot be used: pooling must be cls or mean") from error


def tokenizer_from(file: Path, max_tokens: int) -> Callable[[str], list[int]]:
    """Return what makes the tokens of a text, cut after *max_tokens*. Raises whatever its library does."""
    if file.suffix == ".model":
        from sentencepiece import SentencePieceProcessor

        pieces: Any = SentencePieceProcessor(model_file=str(file))
        return lambda text: [pieces.bos_id(), *pieces.encode(text)[: max_tokens - 2], pieces.eos_id()]
    from tokenizers import Tokenizer

    encoder = Tokenizer.from_file(str(file))
    encoder.no_padding()
    encoder.enable_truncation(max_tokens)
    return lambda text: encoder.encode(text).ids


def _one_of(folder: Path, *names: str) -> Path:
    file = next((folder / name for name in names if (folder / name).is_file()), None)
    if file is None:
        raise _unusable(folder, f"has no {names[0]}: docs/embeddings.md says which files it needs")
    return file


def _unusable(folder: Path, why: str) -> EmbeddingsUnavailable:
    return EmbeddingsUnavailable(f"The folder of the embedding model {why}.", log=str(folder))
