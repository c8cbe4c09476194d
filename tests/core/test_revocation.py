from __future__ import annotations

import pytest

from datafari_rag.core.access import NEVER, Revocation, line_of, read_line, same_user


@pytest.mark.parametrize(
    ("issued_at_s", "is_void"),
    [(None, True), (99.0, True), (100.0, True), (130.0, True), (130.5, False)],
    ids=["no time", "before", "the very second", "within the clocks' difference", "after"],
)
def test_claims_from_before_a_revocation_are_void(issued_at_s: float | None, is_void: bool) -> None:
    assert Revocation((0, 1), 100.0).voids(issued_at_s, 30.0) is is_void
    assert NEVER.voids(issued_at_s, 30.0) is False


def test_who_was_never_revoked_stands_before_the_first_line() -> None:
    assert (NEVER.serial, NEVER.at_s) == ((0, 0), None)


def test_a_line_is_read_as_it_was_written() -> None:
    assert read_line(line_of("zoé\n", at_s=1.5, by="root")) == ("zoé\n", 1.5)
    assert read_line(line_of(None, at_s=2.0, by="root")) == (None, 2.0)
    assert line_of("zoé\n", at_s=1.5, by="root").count(b"\n") == 1


BAD = [b"", b"[]", b"{}", b'{"user":1,"at":1}', b'{"user":" ","at":1}', b'{"user":"a"}', b'{"user":"a","at":true}',
       b'{"user":"a","at":"1"}', b"{", b"\xff"]  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_another_line_is_none(line: bytes) -> None:
    with pytest.raises(ValueError):
        read_line(line)


def test_one_user_is_compared_without_case() -> None:
    assert same_user(" Alice@Corp ") == same_user("alice@CORP")
