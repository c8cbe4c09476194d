"""What is known of an embedding model: its name, its dimensions, the languages it knows. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Purpose = Literal["query", "passage"]
"""What a text is: models are trained with another prefix for the one than for the other."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """
    A model as its vectors show it.

    *name* is for people; *dimensions* is None until the first vector came; *languages* are two-letter codes, empty
    when the model knows any. *key* differs if vectors must not be compared. *spread* is by how much the
    cosines of a question with texts that do not answer it differ (`calibration`), None where that was not measured.
    """

    name: str
    key: str
    dimensions: int | None = None
    languages: frozenset[str] = frozenset()
    spread: float | None = None

    def knows(self, language: str) -> bool:
        """Say whether texts of *language* may be embedded: a model that does not know it makes the search worse."""
        return not self.languages or language in self.languages
