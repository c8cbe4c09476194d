"""The tokens of a text as a local model wants them, by the tokenizer in its folder; nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from datafari_rag.core.errors import EmbeddingsUnavailable
from datafari_rag.core.text.cleaning import encodable

CHARS_PER_TOKEN = 12
"""Far more than a token has on average: text beyond the model's limit need not be tokenized."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The numbers of a text's tokens, and of which of two texts each is."""

    ids: Sequence[int]
    types: Sequence[int]


Tokenize = Callable[[str], Tokens]
"""The tokens of a text, with the marks that the model wants around them."""


def tokenizer_from(file: Path, max_tokens: int) -> Tokenize:
    """Return the tokenizer in *file*; texts are cut after *max_tokens*. Raises: EmbeddingsUnavailable: no tokenizer."""
    if file.suffix == ".model":
        from datafari_rag.adapters.vectors.sentence_pieces import tokenizer
    else:
        from datafari_rag.adapters.vectors.word_pieces import tokenizer
    tokenize, most = tokenizer(file, max_tokens), max_tokens * CHARS_PER_TOKEN
    return lambda text: tokenize(encodable(text[:most]))


def unreadable(file: Path) -> EmbeddingsUnavailable:
    """Return the error for a *file* that holds no tokenizer."""
    return EmbeddingsUnavailable("The tokenizer of the embedding model cannot be read.", log=str(file))
