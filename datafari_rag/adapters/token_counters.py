"""
Counts tokens: as an estimate, or exactly as OpenAI's models do, with a vocabulary on disk (extra `tokens`).

Offline always: tiktoken fetches a vocabulary that is missing or damaged, so it is only asked for one that is whole.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from datafari_rag.core.text.sizes import estimate
from datafari_rag.extras import command_for
from datafari_rag.ports import TokenCounter

log = logging.getLogger(__name__)

PREFIX = "tiktoken:"
"""What `token.counter` begins with when it names an encoding."""


class NoVocabulary(Exception):
    """The library, the encoding, or its vocabulary is not on this machine."""


class EstimatedTokens:
    """Never too low on the measured languages."""

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of *text*; 0 for the empty string."""
        return estimate(text)


class TiktokenCounter:
    """The tokens of one *encoding*, such as o200k_base."""

    def __init__(self, encoding: str) -> None:
        """
        Load the vocabulary from `TIKTOKEN_CACHE_DIR`; takes a quarter of a second.

        Raises:
            NoVocabulary: it is not there.
        """
        try:
            import tiktoken
        except ImportError as error:
            raise NoVocabulary(f"tiktoken is not installed: {command_for('tokens')}") from error
        if not _is_on_disk(encoding):
            raise NoVocabulary(f"no vocabulary of {encoding} on disk: see TIKTOKEN_CACHE_DIR")
        self._encoding = tiktoken.get_encoding(encoding)

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


def _is_on_disk(encoding: str) -> bool:
    """Say whether the file is where tiktoken looks for it, under the hash of its address, and has its content."""
    address, content = VOCABULARIES.get(encoding, ("", ""))
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", "")
    name = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()  # the name that tiktoken gives it
    path = Path(folder) / name
    return bool(folder and content) and path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == content


_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/"
VOCABULARIES: Mapping[str, tuple[str, str]] = {
    "r50k_base": (_ADDRESS + "r50k_base.tiktoken", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"),
    "p50k_base": (_ADDRESS + "p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "p50k_edit": (_ADDRESS + "p50k_base.tiktoken", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "cl100k_base": (
        _ADDRESS + "cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        _ADDRESS + "o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "o200k_harmony": (
        _ADDRESS + "o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""Encoding → address of its vocabulary and SHA-256 of the content, as tiktoken has them."""
