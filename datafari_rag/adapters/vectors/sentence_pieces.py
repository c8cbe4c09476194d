"""
A tokenizer in the form of SentencePiece.

For the 250,000 pieces of a multilingual model it takes a fifth of the memory of the library `tokenizers`, and a quarter
of the time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from datafari_rag.adapters.vectors.model_folder import Tokenize, Tokens, bounded, unreadable


def tokenizer(file: Path, max_tokens: int) -> Tokenize:
    """Return the tokenizer in *file*. Raises: EmbeddingsUnavailable: it holds none, or one without marks."""
    try:
        processor: Any = SentencePieceProcessor(model_file=str(file))
    except (OSError, RuntimeError) as error:
        raise unreadable(file) from error
    first, last = processor.bos_id(), processor.eos_id()
    if min(first, last) < 0:
        raise unreadable(file)

    def tokenize(text: str) -> Tokens:
        ids = [first, *processor.encode(bounded(text, max_tokens))[: max(0, max_tokens - 2)], last]
        return Tokens(ids, [0] * len(ids))

    return tokenize
