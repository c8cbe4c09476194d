"""Counts tokens without a vocabulary: `core.tokens.estimate` behind the port."""

from __future__ import annotations

from datafari_rag.core.text.token_estimate import estimate


class EstimatedTokens:
    """Never too low on the measured languages; offline always."""

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of *text*; 0 for the empty string."""
        return estimate(text)
