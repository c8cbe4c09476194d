"""A signed chain: without the key, write access to the files is not enough to add, change or cut lines undetected."""

from __future__ import annotations

import pytest

from datafari_rag.core.answer.audit_record import (
    AuditKey,
    ChainHead,
    ChainProofs,
    broken,
    chained,
    head_line,
    keys_by_id,
    read_head,
    started_record,
    vouched_in,
)

NEW, OLD, FOREIGN = (AuditKey(letter * 32) for letter in "nof")
KEYS = keys_by_id((NEW.secret, OLD.secret, ""))
SIGNED = ChainProofs(KEYS, needs_signature=True)


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
    assert list(broken(lines, head, SIGNED)) == []
    assert read_head(head_line(head, key).rjust(192), KEYS) == head


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
    "cut, with an unsigned head": (LINES[:3], ChainHead(3, chain(NEW, 3)[1].last), 3),
    "cut": (LINES[:3], HEAD, 4),
    "with a head that cannot be believed": (LINES, None, 4),
}


@pytest.mark.parametrize(("lines", "head", "where"), WRONG.values(), ids=WRONG.keys())
def test_what_was_written_without_the_key_is_found(lines: list[bytes], head: ChainHead | None, where: int) -> None:
    assert [number for number, _ in broken(lines, head, SIGNED)][:1] == [where]


def test_a_line_that_follows_signed_ones_is_signed() -> None:
    two, head = chain(NEW, 2)
    more, end = chain(None, 1, start=head)
    ((number, problem),) = broken([*two, *more], end, SIGNED)
    assert (number, problem) == (3, "This line is not signed, and those before it are.")


@pytest.mark.parametrize(
    "line",
    [head_line(HEAD, FOREIGN), head_line(HEAD, NEW).replace(b"4 ", b"3 ", 1), head_line(HEAD, NEW).strip()[:-1],
     head_line(HEAD, NEW) + b" x", b"9" * 30 + b" " + b"0" * 64],
    ids=["of another key", "changed", "cut", "longer", "a number without end"],
)  # fmt: skip
def test_a_head_without_a_good_signature_is_none(line: bytes) -> None:
    assert read_head(line, KEYS) is None


def test_a_head_signed_by_a_key_that_is_not_given_is_none() -> None:
    assert read_head(head_line(HEAD, NEW)) is None


def test_an_old_chain_still_verifies_and_with_a_key_where_a_signed_chain_vouches_for_it() -> None:
    assert list(broken(PLAIN, PLAIN_HEAD)) == []
    assert [number for number, _ in broken(PLAIN, PLAIN_HEAD, SIGNED)] == [1]
    line, _ = chained(started_record([("audit-1", PLAIN_HEAD)], at_s=0.0), ChainHead(), NEW)
    ((name, head),) = vouched_in(line)
    assert (name, head) == ("audit-1", PLAIN_HEAD)
    proofs = ChainProofs(KEYS, (head,), needs_signature=True)
    assert list(broken(PLAIN, PLAIN_HEAD, proofs)) == []
    later, end = chain(None, 1, start=PLAIN_HEAD)
    assert [number for number, _ in broken([*PLAIN, *later], end, proofs)] == [5]
    assert [number for number, _ in broken(forged(), ChainHead(4, "0" * 64), proofs)] == [4, 4]
    assert [number for number, _ in broken(PLAIN[:2], ChainHead(2, chain(None, 2)[1].last), proofs)] == [3]


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{}", b'{"kind":"chains","chains":[]}', b'{"kind":"chains","key":"k","chains":[1]}',
             b'{"kind":"answer","key":"k"}', b'{"kind":"chains","key":"k","chains":[["a","b","c"]]}']
)  # fmt: skip
def test_another_first_line_vouches_for_nothing(line: bytes) -> None:
    assert vouched_in(line) == []


def test_a_line_whose_key_is_no_text_is_wrong() -> None:
    changed = LINES[0].replace(f'"{NEW.id}"'.encode(), b"[1]")
    assert next(broken([changed], HEAD, SIGNED))[0] == 1


def test_a_key_is_never_shown() -> None:
    assert NEW.secret not in repr(NEW) + repr(KEYS) + NEW.id
    assert len(keys_by_id(("", ""))) == 0
