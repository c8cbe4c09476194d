"""What the two kinds of tokenizers have in common: the tokens of a text as a local model wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from datafari_rag.core.errors import EmbeddingsUnavailable
from datafari_rag.core.text.folding import encodable

CHARS_PER_TOKEN = 12
"""Far more than a token has on average: text beyond the model's limit need not be tokenized."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The numbers of a text's tokens, and of which of two texts each is."""

    ids: Sequence[int]
    types: Sequence[int]


Tokenize = Callable[[str], Tokens]
"""The tokens of a text, with the marks that the model wants around them."""


def bounded(text: str, max_tokens: int) -> str:
    """Return as much of *text* as *max_tokens* can stand for, without halves of characters."""
    return encodable(text[: max_tokens * CHARS_PER_TOKEN])


def unreadable(file: Path) -> EmbeddingsUnavailable:
    """Return the error for a *file* that holds no tokenizer."""
    return EmbeddingsUnavailable("The tokenizer of the embedding model cannot be read.", log=str(file))
