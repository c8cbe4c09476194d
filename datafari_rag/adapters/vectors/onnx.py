"""
Vectors from an ONNX model in a folder of this machine, by onnxruntime on the processor.

The model is loaded at the first text, once for a process, and never fetched. Texts go through it one by one: a
quantised model takes its scales from all texts of a batch together, so that a text would have another vector beside
other texts; on one thread a batch is hardly faster.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import onnxruntime

from datafari_rag.adapters.vectors.model_folder import ModelFolder, Tokenize, Tokens, folder_of, unusable
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsUnavailable
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, require_size

Floats = np.ndarray[Any, np.dtype[np.float64]]

_QUIET = 4
"""onnxruntime's level of logs at which only its own end is worth a line."""


@dataclass(frozen=True, slots=True)
class OnnxOptions:
    """The settings of a local model; its folder has the others."""

    dimensions: int | None = None
    prefixes: Mapping[Purpose, str] = field(default_factory=dict)
    languages: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: Any
    inputs: frozenset[str]
    tokenize: Tokenize


class OnnxEmbedder:
    """A `ports.Embedder` over the model in a folder."""

    def __init__(self, folder: Path, options: OnnxOptions) -> None:
        """
        Read what the folder says; the model itself is loaded at the first text.

        Raises:
            EmbeddingsUnavailable: a file is absent or cannot be used.
            EmbeddingsGarbled: the model has other dimensions than the settings want.
        """
        self._folder, self._options = folder, options
        self._described: ModelFolder = folder_of(folder)
        require_size(self._described.dimensions, options.dimensions)
        self._loaded: _Loaded | None = None
        self._lock = Lock()

    @property
    def model(self) -> EmbeddingModel:
        """What the folder says of the model."""
        described = self._described
        languages = self._options.languages or described.languages
        key = "|".join((described.name, described.pooling, str(described.max_tokens), self._prefix("passage")))
        return EmbeddingModel(described.name, key, described.dimensions, languages)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return one vector for each of *texts*. Raises: EmbeddingsUnavailable, EmbeddingsGarbled."""
        loaded = self._ready()
        prefix = self._prefix(purpose)
        return [self._pooled(self._states(loaded, loaded.tokenize(prefix + text))) for text in texts]

    def _prefix(self, purpose: Purpose) -> str:
        return self._options.prefixes.get(purpose) or self._described.prefixes.get(purpose, "")

    def _ready(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = _loaded(self._described)
            return self._loaded

    def _states(self, loaded: _Loaded, tokens: Tokens) -> Floats:
        ids = np.array([tokens.ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if "token_type_ids" in loaded.inputs:
            inputs["token_type_ids"] = np.array([tokens.types], dtype=np.int64)
        try:
            states = loaded.session.run(None, inputs)[0]
        except Exception as error:  # the library has a class of its own for each failure, and no common one
            if not type(error).__module__.startswith("onnxruntime"):
                raise
            raise EmbeddingsUnavailable(log=f"onnxruntime: {type(error).__name__}") from error
        numbers = np.asarray(states, dtype=np.float64)
        if numbers.ndim != 3 or not numbers.shape[1]:
            raise EmbeddingsGarbled(log=f"the model gives an array of shape {numbers.shape}")
        return numbers

    def _pooled(self, states: Floats) -> Vector:
        pooled = states[0, 0] if self._described.pooling == "cls" else states[0].mean(axis=0)
        require_size(len(pooled), self._described.dimensions)
        length = float(np.sqrt((pooled * pooled).sum()))
        if not np.isfinite(length) or length == 0.0:
            raise EmbeddingsGarbled(log="a vector has a value that is not a finite number, or nothing but zeros")
        return array("f", (pooled / length).astype(np.float32).tobytes())


def _loaded(described: ModelFolder) -> _Loaded:
    options = onnxruntime.SessionOptions()
    # One thread: the processes of the service share the cores already.
    options.intra_op_num_threads, options.inter_op_num_threads = 1, 1
    options.log_severity_level = _QUIET
    # Spinning threads burn a core while they wait, and the arena keeps what the longest text needed.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_cpu_mem_arena = False
    try:
        session = onnxruntime.InferenceSession(
            str(described.model_file), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # as above
        if not type(error).__module__.startswith("onnxruntime"):
            raise
        raise unusable(described.model_file.parent, "has a model that onnxruntime cannot load") from error
    tokenize = tokenizer_from(described.tokenizer_file, described.max_tokens)
    return _Loaded(session, frozenset(tensor.name for tensor in session.get_inputs()), tokenize)


def tokenizer_from(file: Path, max_tokens: int) -> Tokenize:
    """
    Return the tokenizer in *file*; texts are cut after *max_tokens*. Raises: EmbeddingsUnavailable: there is none.

    Of the two libraries only the one that is wanted is loaded.
    """
    if file.suffix == ".model":
        from datafari_rag.adapters.vectors.sentence_pieces import tokenizer
    else:
        from datafari_rag.adapters.vectors.word_pieces import tokenizer
    return tokenizer(file, max_tokens)
