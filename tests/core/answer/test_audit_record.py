"""What the trail says of an answer, and that no line of a chain can be changed, moved or taken out unseen."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.answer.audit_record import (
    GENESIS,
    AuditEvent,
    ChainHead,
    broken,
    chained,
    head_line,
    keyed,
    read_head,
    record_of,
)
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.events import Support

EXTRACT = Extract(
    1, "Secret label", Document("d1", "secret text", title="Secret title", url="http://x/", version="17"),
    (Passage(0, 6), Passage(7, 11)), "secret … text",
)  # fmt: skip
OK = AuditEvent(
    1_700_000_000.25, "r1", "ragapi", "ok", user="ann", extracts=(EXTRACT,), model="m",
    tokens=7, support=Support(4, 3, policy="drop", dropped=1),
)  # fmt: skip


def test_a_record_says_who_when_what_and_how_it_went_and_nothing_of_the_content() -> None:
    record = record_of(OK)
    assert record == {
        "kind": "answer",
        "at": "2023-11-14T22:13:20.250+00:00",
        "id": "r1",
        "who": "ann",
        "dialect": "ragapi",
        "question_hmac": None,
        "documents": [{"id": "d1", "version": "17", "field": "exactContent", "passages": [[0, 6], [7, 11]]}],
        "decision": {"mode": "tokens", "access": "filtered"},
        "model": "m",
        "tokens": 7,
        "support": {
            "score": 0.75,
            "checked": 4,
            "verified": 3,
            "quoted": 0,
            "near": 0,
            "policy": "drop",
            "dropped": 1,
            "replaced": None,
        },
        "outcome": "ok",
    }
    assert "ecret" not in json.dumps(record)


def test_a_question_is_known_by_its_hash_to_whoever_has_the_key_alone() -> None:
    question = "common report"
    assert keyed(question, b"k" * 32) == keyed(question, b"k" * 32) != keyed(question, b"l" * 32)
    assert keyed(question, b"k" * 32) != hashlib.sha256(question.encode()).hexdigest()
    assert len(keyed("\ud800", b"k")) == 64


@pytest.mark.parametrize("outcome", ["notAuthenticated", "authorityTimeout", "tooManyRequests"])
def test_an_outcome_in_which_nothing_was_searched_says_so(outcome: str) -> None:
    record = record_of(AuditEvent(0.0, "r", "chat", outcome))
    assert record["decision"] == {"mode": "tokens", "access": "refused"}
    assert record["who"] is None


def chain(count: int) -> tuple[list[bytes], ChainHead]:
    lines, head = [], ChainHead()
    for number in range(count):
        line, head = chained({"id": f"r{number}", "text": 'é"\\\n'}, head)
        lines.append(line)
    return lines, head


def test_a_line_is_one_line_of_ascii_json_that_names_the_one_before() -> None:
    lines, head = chain(2)
    first, second = (json.loads(line) for line in lines)
    assert (first["n"], first["before"]) == (0, GENESIS)
    assert (second["n"], second["before"], second["hash"]) == (1, first["hash"], head.last)
    assert all(line.isascii() and line.count(b"\n") == 1 for line in lines)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_whole_chain_has_nothing_wrong(count: int) -> None:
    lines, head = chain(count)
    assert list(broken(lines, head)) == []


def test_lines_written_just_before_the_end_are_no_fault() -> None:
    lines, _ = chain(4)
    assert list(broken(lines, chain(3)[1])) == []


LINES, HEAD = chain(5)
DAMAGES = {
    "a changed value": ([*LINES[:2], LINES[2].replace(b"r2", b"r7"), *LINES[3:]], HEAD, 3),
    "a changed last line": ([*LINES[:4], LINES[4].replace(b"r4", b"r7")], HEAD, 5),
    "a line taken out": ([*LINES[:2], *LINES[3:]], HEAD, 3),
    "the first line taken out": (LINES[1:], HEAD, 1),
    "the last line taken out": (LINES[:4], HEAD, 5),
    "all lines taken out": ([], HEAD, 1),
    "two lines changed about": ([LINES[0], LINES[2], LINES[1], *LINES[3:]], HEAD, 2),
    "a line twice": ([*LINES[:2], LINES[1], *LINES[2:]], HEAD, 3),
    "a line of another chain": ([*LINES[:4], chained({"id": "x"}, ChainHead(4, "1" * 64))[0]], HEAD, 5),
    "a line that is no JSON": ([*LINES[:4], b"{\n"], HEAD, 5),
    "a line that is no object": ([*LINES[:4], b"[]\n"], HEAD, 5),
    "a line without a hash": ([*LINES[:4], b'{"n": 4}\n'], HEAD, 5),
    "a key more, its hash as it was": ([LINES[0][:-2] + b',"x":1}\n', *LINES[1:]], HEAD, 1),
    "a space more": ([LINES[0].replace(b":", b": ", 1), *LINES[1:]], HEAD, 1),
    "a cut last line": ([*LINES[:4], LINES[4][:20]], HEAD, 5),
    "no head": (LINES, None, 5),
    "a head of another chain": (LINES, ChainHead(5, "1" * 64), 5),
    "a line changed and everything after it computed again": (
        [*LINES[:4], chained({"id": "forged"}, read_head(head_line(chain(4)[1])) or ChainHead())[0]], HEAD, 5),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "head", "where"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damage_is_found_where_it_is(lines: list[bytes], head: ChainHead | None, where: int) -> None:
    assert [number for number, _ in broken(lines, head)] == [where]


@given(st.integers(0, 4), st.data())
def test_any_changed_byte_is_found(which: int, data: st.DataObject) -> None:
    line = bytearray(LINES[which])
    at = data.draw(st.integers(0, len(line) - 2))
    line[at] ^= data.draw(st.integers(1, 127))
    assert list(broken([*LINES[:which], bytes(line), *LINES[which + 1 :]], HEAD))


@pytest.mark.parametrize("data", [b"", b"x", b"-1 " + b"0" * 64, b"3 abc", b"\xff", "٣ ".encode() + b"0" * 64])
def test_a_head_that_is_none_is_none(data: bytes) -> None:
    assert read_head(data) is None


def test_a_head_is_read_as_written() -> None:
    assert read_head(head_line(HEAD).rjust(96)) == HEAD
