"""
Counts tokens exactly as OpenAI's models do, with a vocabulary that is already on disk (extra `tokens`).

Offline always: tiktoken would fetch a missing vocabulary from its vendor at the first count; here that is refused.
"""

from __future__ import annotations

import logging

from datafari_rag.adapters.estimate import EstimatedTokens
from datafari_rag.ports import TokenCounter

log = logging.getLogger(__name__)

PREFIX = "tiktoken:"
"""What `token.counter` begins with when it names an encoding."""


class NoVocabulary(Exception):
    """The library, the encoding, or its vocabulary is not on this machine."""


class TiktokenCounter:
    """The tokens of one *encoding*, such as o200k_base."""

    def __init__(self, encoding: str) -> None:
        """
        Load the vocabulary from `TIKTOKEN_CACHE_DIR`; takes a quarter of a second.

        Raises:
            NoVocabulary: it is not there.
        """
        try:
            import tiktoken.load
        except ImportError as error:
            raise NoVocabulary("tiktoken is not installed: pip install 'datafari-rag[tokens]'") from error
        fetch = tiktoken.load.read_file
        tiktoken.load.read_file = _refuse  # the library has no switch for this; put back below
        try:
            self._encoding = tiktoken.get_encoding(encoding)
        except (ValueError, OSError) as error:
            raise NoVocabulary(f"no vocabulary of {encoding} on disk: see TIKTOKEN_CACHE_DIR") from error
        finally:
            tiktoken.load.read_file = fetch

    def count(self, text: str) -> int:
        """Return the number of tokens of *text*; 0 for the empty string."""
        return len(self._encoding.encode_ordinary(text))


def counter_named(name: str) -> TokenCounter:
    """Return what `token.counter` names; the estimate, with a warning, where the vocabulary is not at hand."""
    if not name.startswith(PREFIX):
        return EstimatedTokens()
    try:
        return TiktokenCounter(name.removeprefix(PREFIX))
    except NoVocabulary as missing:
        log.warning("token.counter=%s cannot be used, tokens are estimated: %s", name, missing)
        return EstimatedTokens()


def _refuse(blobpath: str) -> bytes:
    raise OSError("vocabularies are never fetched")
