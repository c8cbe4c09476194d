"""Exact counts where a vocabulary is on disk; the estimate, said in the log, where it is not; never the network."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
import tiktoken
from tiktoken_ext import openai_public

from datafari_rag.adapters.token_counters import (
    VOCABULARIES,
    EstimatedTokens,
    NoVocabulary,
    TiktokenCounter,
    counter_named,
)


def test_without_a_vocabulary_tokens_are_estimated_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert isinstance(counter_named("tiktoken:p50k_base"), EstimatedTokens)
    assert "tokens are estimated: no vocabulary of p50k_base on disk" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_an_encoding_that_does_not_exist_is_no_vocabulary() -> None:
    with pytest.raises(NoVocabulary, match="no vocabulary of klingon"):
        TiktokenCounter("klingon")


def test_without_the_library_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(NoVocabulary, match="not installed"):
        TiktokenCounter("o200k_base")


def test_the_default_is_the_estimate() -> None:
    assert isinstance(counter_named("estimate"), EstimatedTokens)


def test_a_vocabulary_on_disk_counts_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small vocabulary of our own, registered as the library's plug-ins are: all bytes, and one merged pair."""
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    made = tiktoken.Encoding("bytes_base", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 257})
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "bytes_base", made)
    vocabulary = b"whole"
    address, content = "vocabulary.tiktoken", hashlib.sha256(vocabulary).hexdigest()
    monkeypatch.setitem(VOCABULARIES, "bytes_base", (address, content))  # type: ignore[arg-type] # a dict
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    path = tmp_path / hashlib.sha1(address.encode()).hexdigest()
    path.write_bytes(b"damaged")
    assert isinstance(counter_named("tiktoken:bytes_base"), EstimatedTokens)
    path.write_bytes(vocabulary)
    counter = counter_named("tiktoken:bytes_base")
    assert counter.count("") == 0
    assert counter.count("ab c") == 3
    assert counter.count("é") == 2
    assert counter.count("<|end|>") == 7


@pytest.mark.parametrize("encoding", VOCABULARIES)
def test_a_vocabulary_is_looked_for_where_the_library_looks(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the library would fetch what we found."""
    asked: list[tuple[str, str]] = []

    def load(address: str, expected_hash: str) -> dict[bytes, int]:
        asked.append((address, expected_hash))
        return {bytes([byte]): byte for byte in range(256)}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    openai_public.ENCODING_CONSTRUCTORS[encoding]()
    assert asked == [VOCABULARIES[encoding]]
