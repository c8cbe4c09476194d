"""A tokenizer in the form of the library `tokenizers`, with which most models are published."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from datafari_rag.adapters.vectors.model_folder import Tokenize, Tokens, bounded, unreadable


def tokenizer(file: Path, max_tokens: int) -> Tokenize:
    """Return the tokenizer in *file*. Raises: EmbeddingsUnavailable: it holds none."""
    try:
        encoder = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exceptions
        if type(error) is not Exception:
            raise
        raise unreadable(file) from error
    encoder.no_padding()
    encoder.enable_truncation(max_tokens)

    def tokenize(text: str) -> Tokens:
        encoded = encoder.encode(bounded(text, max_tokens))
        return Tokens(encoded.ids, encoded.type_ids)

    return tokenize
