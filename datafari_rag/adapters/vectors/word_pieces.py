"""The tokens of a text as a local model wants them, by the tokenizer in its folder; nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from datafari_rag.core.errors import EmbeddingsUnavailable
from datafari_rag.core.text.cleaning import encodable

CHARS_PER_TOKEN = 12
"""Far more than a token has on average: text beyond the model's limit need not be tokenized."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The numbers of a text's tokens, and of which of two texts each is."""

    ids: Sequence[int]
    types: Sequence[int]


class WordPieces:
    """The tokenizer of one model; texts are cut after *max_tokens*."""

    def __init__(self, file: Path, max_tokens: int) -> None:
        """Read the tokenizer. Raises: EmbeddingsUnavailable: it cannot be used."""
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exceptions
            if type(error) is not Exception:
                raise
            raise EmbeddingsUnavailable(
                "The tokenizer of the embedding model cannot be read.", log=str(file)
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._max_chars = max_tokens * CHARS_PER_TOKEN

    def of(self, text: str) -> Tokens:
        """Return the tokens of *text*, with the marks that the model wants around them."""
        found = self._tokenizer.encode(encodable(text[: self._max_chars]))
        return Tokens(found.ids, found.type_ids)
