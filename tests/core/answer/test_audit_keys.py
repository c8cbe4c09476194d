"""A signed chain: without the key, write access to the files is not enough to add or change lines undetected."""

from __future__ import annotations

import pytest

from datafari_rag.core.answer.audit_record import (
    AuditKey,
    ChainHead,
    broken,
    chained,
    head_line,
    keys_by_id,
    read_head,
)

NEW, OLD, FOREIGN = (AuditKey(letter * 32) for letter in "nof")
KEYS = keys_by_id((NEW.secret, OLD.secret, ""))


def chain(key: AuditKey | None, length: int = 4, *, start: ChainHead | None = None) -> tuple[list[bytes], ChainHead]:
    head, lines = start or ChainHead(), []
    for number in range(length):
        line, head = chained({"id": f"r{number}"}, head, key)
        lines.append(line)
    return lines, head


LINES, HEAD = chain(NEW)
PLAIN, PLAIN_HEAD = chain(None)


@pytest.mark.parametrize("key", [NEW, OLD], ids=["the newest key", "an earlier one"])
def test_a_chain_of_a_known_key_is_whole(key: AuditKey) -> None:
    lines, head = chain(key)
    assert list(broken(lines, head, KEYS, needs_key=True)) == []
    assert read_head(head_line(head).rjust(96)) == ChainHead(4, head.last)


def forged() -> list[bytes]:
    """Return the chain with a line changed and every hash after it made again without the key."""
    head, lines = ChainHead(), list[bytes]()
    for number in range(4):
        line, head = chained({"id": "forged" if number == 1 else f"r{number}"}, head)
        lines.append(line)
    return lines


WRONG = {
    "written again without the key": (forged(), ChainHead(4, "0" * 64), 1),
    "the end written again without the key": (LINES[:2] + chain(None, 2, start=ChainHead(2, HEAD.last))[0], HEAD, 3),
    "signed with another key": (chain(FOREIGN)[0], chain(FOREIGN)[1], 1),
    "cut": (LINES[:3], HEAD, 4),
    "with a head that cannot be believed": (LINES, None, 4),
}


@pytest.mark.parametrize(("lines", "head", "where"), WRONG.values(), ids=WRONG.keys())
def test_what_was_written_without_the_key_is_found(lines: list[bytes], head: ChainHead | None, where: int) -> None:
    assert [number for number, _ in broken(lines, head, KEYS, needs_key=True)][:1] == [where]


def test_a_line_that_follows_signed_ones_is_signed() -> None:
    two, head = chain(NEW, 2)
    more, end = chain(None, 1, start=head)
    ((number, problem),) = broken([*two, *more], end, KEYS, needs_key=True)
    assert (number, problem) == (3, "This line is not signed, and those before it are.")


def test_a_chain_without_a_key_is_whole_and_with_a_key_each_line_is_wrong() -> None:
    assert list(broken(PLAIN, PLAIN_HEAD)) == []
    assert list(broken(PLAIN, PLAIN_HEAD, KEYS, needs_key=True)) == [(1, "This line is not signed.")]


def test_a_head_that_an_earlier_version_signed_is_read() -> None:
    signed = head_line(HEAD).strip() + b" " + NEW.id.encode() + b" " + b"f" * 64
    assert read_head(signed.rjust(192)) == ChainHead(4, HEAD.last)


def test_lines_that_were_cut_off_with_their_head_are_not_missed() -> None:
    """What only a copy elsewhere shows: docs/operating.md says so."""
    assert list(broken(LINES[:3], ChainHead(3, chain(NEW, 3)[1].last), KEYS, needs_key=True)) == []


def test_a_line_whose_key_is_no_text_is_wrong() -> None:
    changed = LINES[0].replace(f'"{NEW.id}"'.encode(), b"[1]")
    assert next(broken([changed], HEAD, KEYS, needs_key=True))[0] == 1


def test_a_key_is_never_shown() -> None:
    assert NEW.secret not in repr(NEW) + repr(KEYS) + NEW.id
    assert len(keys_by_id(("", ""))) == 0
