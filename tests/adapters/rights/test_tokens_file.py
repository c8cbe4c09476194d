"""Tokens from a file: as it says now, and a failure when it says nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datafari_rag.adapters.rights import NoRights, RightsFile
from datafari_rag.core.errors import AuthorityUnavailable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a users file of one user."""
    path = tmp_path / "users.json"
    path.write_text(json.dumps({"ann": ["s1", 'a b,"{!'], "eve": []}))
    return path


def test_a_user_has_his_tokens_as_written(path: Path) -> None:
    assert list(RightsFile(path).tokens_of("ann", ())) == ["s1", 'a b,"{!']


@pytest.mark.parametrize("name", ["eve", "nobody", "Ann", ""])
def test_a_user_without_an_entry_has_no_tokens_and_claims_give_none(path: Path, name: str) -> None:
    assert list(RightsFile(path).tokens_of(name, ("s1",))) == []


def test_a_change_counts_at_once(path: Path) -> None:
    rights = RightsFile(path)
    for number in range(20):
        path.write_text(json.dumps({"ann": [f"t{number:02}"]}))
        assert list(rights.tokens_of("ann", ())) == [f"t{number:02}"]


BROKEN = {
    "no JSON": "{",
    "not an object": "[]",
    "tokens that are no list": '{"ann": "s1"}',
    "a token that is no text": '{"ann": [1]}',
    "too deep": "[" * 100_000,
    "not UTF-8": b"\xff\xfe{}\xff",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_file_that_cannot_be_understood_is_a_failure_even_after_a_good_one(path: Path, content: str | bytes) -> None:
    rights = RightsFile(path)
    rights.tokens_of("ann", ())
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(AuthorityUnavailable) as caught:
        rights.tokens_of("ann", ())
    assert "s1" not in f"{caught.value} {caught.value.log}"
    assert rights.probe() is not None


def test_an_absent_file_is_a_failure_and_heals(path: Path) -> None:
    rights = RightsFile(path)
    content = path.read_text()
    path.unlink()
    with pytest.raises(AuthorityUnavailable):
        rights.tokens_of("ann", ())
    path.write_text(content)
    assert rights.probe() is None
    assert list(rights.tokens_of("ann", ()))


def test_no_file_named_gives_nobody_anything() -> None:
    assert list(NoRights().tokens_of("ann", ("s1",))) == []
