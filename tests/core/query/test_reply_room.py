"""How much of the long fields one plain search returns."""

from __future__ import annotations

import json
import random

from datafari_rag.core.query.plan import LONG_CHARS, MOST_BYTES, ReplyRoom


def size_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def test_short_fields_always_come_and_long_ones_while_there_is_room() -> None:
    room = ReplyRoom(size_of)
    text = "a" * 4_000_000
    rows = [room.fitted(str(number), {"id": str(number), "exactContent": [text]}) for number in range(4)]
    assert [list(row) for row in rows] == [["id", "exactContent"]] * 2 + [["id"]] * 2
    assert room.truncated == {"2": ["exactContent"], "3": ["exactContent"]}


def test_a_smaller_text_still_comes_after_one_that_was_too_large() -> None:
    room = ReplyRoom(size_of)
    assert room.fitted("a", {"exactContent": "x" * (MOST_BYTES + 1)}) == {}
    assert room.fitted("b", {"exactContent": "x" * LONG_CHARS}) != {}


def test_a_text_that_is_larger_than_the_room_is_not_measured() -> None:
    measured: list[object] = []
    ReplyRoom(lambda value: measured.append(value) or 0).fitted("a", {"exactContent": "x" * (MOST_BYTES + 1)})  # type: ignore[func-returns-value] # what is noted is what counts
    assert measured == []


def test_a_reply_is_never_larger_whatever_its_characters_are() -> None:
    chance = random.Random(7)
    for _ in range(20):
        room, text = ReplyRoom(size_of), chance.choice(["\\", '"', "\u0001", "é", "中", "😀", "a"])
        rows = [
            room.fitted(str(number), {"a": text * chance.randrange(3_000_000), "b": [text * 500] * chance.randrange(9)})
            for number in range(6)
        ]
        assert sum(size_of(value) for row in rows for value in row.values() if size_of(value) >= 10_000) <= MOST_BYTES
