"""
Writes an ONNX model: what a graph of named operators and tensors looks like as a file, and nothing more.

The format is Protocol Buffers, of which a writer needs numbers of fields and lengths. The library `onnx` would be 20 MB
for this. Numbers are those of `onnx.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
        parts += [_text(4, self.kind), *(_bytes(5, _attribute(*one)) for one in self.attributes.items())]
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
        parts = [_bytes(1, one.encoded()) for one in self.operators] + [_text(2, "model")]
        parts += [_bytes(5, one.encoded()) for one in self.tensors]
        parts += [_bytes(11, one.encoded()) for one in self.inputs] + [_bytes(12, self.output.encoded())]
        versions = (_text(1, "") + _number(2, STANDARD), _text(1, OPERATORS) + _number(2, 1))
        imports = b"".join(_bytes(8, one) for one in versions)
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
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
