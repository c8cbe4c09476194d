"""A packed model of the test's own, as small as one can be: what is made of it computes what its numbers say."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datafari_rag.adapters.vectors.onnx import OnnxEmbedder, tokenizer_from
from datafari_rag_trials.models.packed_model import graph_of, packed_model, tokenizer_of

HIDDEN, INNER, HEADS = 32, 64, 2
PIECES = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
PIECES += [("▁the", -1.0), ("▁fare", -2.0), ("▁f", -3.0), ("are", -3.5), ("▁", -4.0), ("fi", -5.0), ("x", -6.0)]
REPLACED = {"\t": " ", "\x01": "", "ﬁ": "fi", "Ａ": "A"}
SIZES = {"q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN)}
SIZES |= {"fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}

Rows = np.ndarray[Any, np.dtype[np.float32]]


def blocks(chosen: np.random.Generator, rows: int, wide: int) -> tuple[bytes, Rows]:
    """Return weights as the file packs them, and what they are."""
    numbers = chosen.integers(0, 16, (rows, wide // 32, 32)).astype(np.uint8)
    scales = chosen.uniform(0.01, 0.1, (rows, wide // 32, 1)).astype("<f2")
    halves = numbers[:, :, :16] | numbers[:, :, 16:] << 4
    raw = np.concatenate([scales.view(np.uint8), halves], axis=2).tobytes()
    return raw, ((numbers.astype(np.float32) - 8) * scales.astype(np.float32)).reshape(rows, wide)


def floats(chosen: np.random.Generator, size: int) -> tuple[bytes, Rows]:
    values = chosen.normal(0, 0.2, size).astype("<f4")
    return values.tobytes(), values


def made() -> tuple[dict[str, bytes], dict[str, Rows]]:
    """Return the tensors of the model as bytes and as numbers."""
    chosen = np.random.default_rng(5)
    found = {"emb.word": blocks(chosen, len(PIECES), HIDDEN)}
    found |= {name: floats(chosen, rows * HIDDEN) for name, rows in (("emb.pos", 16), ("emb.type", 2))}
    found |= {name: floats(chosen, HIDDEN) for name in ("emb.ln.w", "emb.ln.b")}
    for name, (out, wide) in SIZES.items():
        found |= {f"l0.{name}.w": blocks(chosen, out, wide), f"l0.{name}.b": floats(chosen, out)}
    found |= {f"l0.{name}": floats(chosen, HIDDEN) for name in ("aln.w", "aln.b", "oln.w", "oln.b")}
    return {name: raw for name, (raw, _) in found.items()}, {name: values for name, (_, values) in found.items()}


def packed() -> bytes:
    """Return the file."""
    tensors = made()[0]
    words = [piece.encode() for piece, _ in PIECES]
    offsets = np.cumsum([0, *map(len, words)])
    replaced = b"".join(
        struct.pack("<IB", ord(old), len(new)) + b"".join(struct.pack("<I", ord(one)) for one in new)
        for old, new in REPLACED.items()
    )
    head = b"E5S1" + struct.pack("<I", 1) + struct.pack("<7ifi", HIDDEN, 1, HEADS, INNER, 11, 16, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, offsets[-1])
    head += struct.pack(f"<{len(offsets)}I", *offsets) + struct.pack(f"<{len(PIECES)}f", *(s for _, s in PIECES))
    head += b"".join(words) + struct.pack("<iI", len(REPLACED), len(replaced)) + replaced
    at = len(head) + 4 + sum(2 + len(name) + 21 for name in tensors)
    listed = struct.pack("<i", len(tensors))
    for name, raw in tensors.items():
        listed += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, 0, at, len(raw))
        at += len(raw)
    return head + listed + b"".join(tensors.values())


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedder:
    folder = tmp_path_factory.mktemp("packed")
    model = packed_model(packed())
    (folder / "model.onnx").write_bytes(graph_of(model).encoded())
    (folder / "tokenizer.model").write_bytes(tokenizer_of(model))
    facts = {"name": "small", "dimensions": HIDDEN, "pooling": "mean"}
    (folder / "embedding.json").write_text(json.dumps(facts), encoding="utf-8")
    return OnnxEmbedder(folder)


def computed(ids: list[int]) -> list[float]:
    """Return the vector of *ids*, computed by numpy as the paper of BERT has it."""
    known = made()[1]

    def normed(values: Rows, name: str) -> Rows:
        spread = (values - values.mean(1, keepdims=True)) / np.sqrt(values.var(1, keepdims=True))
        result: Rows = spread * known[f"{name}.w"] + known[f"{name}.b"]
        return result

    def product(values: Rows, name: str) -> Rows:
        result: Rows = values @ known[f"l0.{name}.w"].T + known[f"l0.{name}.b"]
        return result

    places = known["emb.pos"].reshape(-1, HIDDEN)[: len(ids)] + known["emb.type"][:HIDDEN]
    x = normed(known["emb.word"][ids] + places, "emb.ln")
    q, k, v = (product(x, name).reshape(len(ids), HEADS, -1).swapaxes(0, 1) for name in "qkv")
    scores = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(HIDDEN / HEADS))
    seen = (scores / scores.sum(2, keepdims=True) @ v).swapaxes(0, 1).reshape(len(ids), HIDDEN)
    x = normed(x + product(seen, "ao"), "l0.aln")
    inner = product(x, "fi")
    inner = inner * (1 + np.vectorize(math.erf)(inner / np.sqrt(2))) / 2
    mean = normed(x + product(inner, "fo"), "l0.oln").mean(0)
    return [float(value) for value in mean / np.linalg.norm(mean)]


def test_the_graph_computes_what_the_numbers_of_the_file_say(embedder: OnnxEmbedder) -> None:
    vector = embedder.embed(["the fare x"], "query")[0]
    wanted = computed([0, 4, 5, 8, 10, 2])
    # Inside, whole numbers of eight bits are computed with.
    assert sum(a * b for a, b in zip(vector, wanted, strict=True)) > 0.999


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="packed"):
        packed_model(b"E5S2" + bytes(100))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the fare", ["▁the", "▁fare"]),
        ("the\tfa\x01re", ["▁the", "▁fare"]),
        ("the  fare", ["▁the", "▁fare"]),
        ("ﬁ", ["▁", "fi"]),
        ("Ａ", ["▁", "<unk>"]),
        ("the</s> ", ["▁the", "<unk>"]),
    ],
)
def test_a_text_is_cut_into_the_likeliest_pieces_after_its_letters_were_replaced(
    text: str, pieces: list[str], tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.model").write_bytes(tokenizer_of(packed_model(packed())))
    tokens_of = tokenizer_from(tmp_path / "tokenizer.model", 16)
    names = [PIECES[number][0] for number in tokens_of(text)]
    assert names == ["<s>", *pieces, "</s>"]
