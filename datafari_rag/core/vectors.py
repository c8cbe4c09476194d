"""
Vectors of texts as values: four-byte floats of length one, checked when they are made.

Pure. A vector of the wrong size, with a value that is no number, or without any direction is refused by name: one such
vector in an index would spoil every search in it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from datafari_rag.core.errors import EmbeddingsGarbled

Vector: TypeAlias = "array[float]"
"""Four-byte floats (typecode f), of length one: the cosine of two is their scalar product."""

MAX_DIMENSIONS = 8192
"""More than any published model has; a longer vector is treated as garbage."""


def unit_vector(values: object, dimensions: int | None = None) -> Vector:
    """
    Return the vector of *values* scaled to length one.

    Raises:
        EmbeddingsGarbled: not a list of finite numbers, all of them zero, or not *dimensions* of them (None: any).
    """
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise EmbeddingsGarbled(log="a vector is not a list of numbers")
    try:
        raw = array("d", values)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbeddingsGarbled(log="a vector is not a list of numbers") from error
    require_size(len(raw), dimensions)
    length = math.hypot(*raw)
    if not math.isfinite(length) or length == 0.0:
        raise EmbeddingsGarbled(log="a vector has a value that is not a finite number, or nothing but zeros")
    return array("f", (value / length for value in raw))


def require_size(size: int, dimensions: int | None) -> None:
    """Raise `EmbeddingsGarbled` when a vector of *size* numbers is not one of *dimensions* (None: any)."""
    if not 0 < size <= MAX_DIMENSIONS:
        raise EmbeddingsGarbled(log=f"a vector has {size} numbers")
    if dimensions is not None and size != dimensions:
        raise EmbeddingsGarbled(log=f"a vector has {size} numbers, {dimensions} were expected")


Purpose = Literal["query", "passage"]
"""What a text is: models are trained with another prefix for the one than for the other."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """
    A model as its vectors show it.

    *name* is for people; *dimensions* is None until the first vector came; *languages* are two-letter codes, empty
    when the model knows any. *key* differs if vectors must not be compared. *spread* is by how much the
    cosines of a question with texts that do not answer it differ, None where that was not measured.
    """

    name: str
    key: str
    dimensions: int | None = None
    languages: frozenset[str] = frozenset()
    spread: float | None = None

    def knows(self, language: str) -> bool:
        """Say whether texts of *language* may be embedded: a model that does not know it makes the search worse."""
        return not self.languages or language in self.languages
