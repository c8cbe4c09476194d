"""A folder with an embedding model of a few hundred bytes: real ONNX, real tokenizer, one vector for each word."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

WORDS = ("[UNK]", "pump", "leave", "parents", "holiday", "cat", "query:", "passage:")
VECTORS = (
    (0.1, 0.1, 0.1, 0.1),
    (1.0, 0.0, 0.0, 0.0),
    (0.0, 1.0, 0.0, 0.0),
    (0.0, 0.9, 0.1, 0.0),
    (0.0, 0.8, 0.2, 0.0),
    (0.0, 0.0, 0.0, 1.0),
    (0.0, 0.0, 0.0, 0.1),
    (0.0, 0.0, 0.1, 0.0),
)
FLOAT, INT64 = 1, 7


def tiny_model(folder: Path, *, vectors: Sequence[Sequence[float]] = VECTORS, **described: object) -> Path:
    """Write the model into *folder* and return it; *described* changes its `embedding.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_onnx(vectors))
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: n for n, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    told = {"name": "tiny", "dimensions": 4, "pooling": "mean", "max_tokens": 16, **described}
    (folder / "embedding.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def _onnx(vectors: Sequence[Sequence[float]]) -> bytes:
    """Return a model that looks up the vector of each token: the bytes that the protocol buffer of ONNX has."""
    flat = [value for vector in vectors for value in vector]
    table = _ints(1, [len(vectors), len(vectors[0])]) + _int(2, FLOAT) + _bytes(8, b"table")
    table += _bytes(9, struct.pack(f"<{len(flat)}f", *flat))
    node = _bytes(1, b"table") + _bytes(1, b"input_ids") + _bytes(2, b"last_hidden_state") + _bytes(4, b"Gather")
    graph = _bytes(1, node) + _bytes(2, b"tiny") + _bytes(5, table)
    graph += _bytes(11, _value(b"input_ids", INT64, 2)) + _bytes(11, _value(b"attention_mask", INT64, 2))
    graph += _bytes(12, _value(b"last_hidden_state", FLOAT, 3))
    return _int(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, b"") + _int(2, 13))


def _value(name: bytes, kind: int, rank: int) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, b"d%d" % n)) for n in range(rank))
    return _bytes(1, name) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, shape)))


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _ints(field: int, numbers: Sequence[int]) -> bytes:
    return b"".join(_int(field, number) for number in numbers)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
