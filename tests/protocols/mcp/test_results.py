"""What the tools return: it fits the schema that is listed, and the room that there is, and leads back to the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.events import Finished, Sources
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.protocols.mcp.messages import json_text
from datafari_rag.protocols.mcp.replies import Room, address_of, answer_result, fetched, search_result
from tests.protocols.values import CITATION, SOURCES

TEXT = "".join(f"Sentence number {number} of this text. " for number in range(200))
LONG = Document("long", TEXT, title="Long", url="https://x.example/long", last_modified="2024-05-01", language="en")


def room(tokens: int = 2000) -> Room:
    return Room(tokens, lambda text: -(-len(text) // 4), "https://us.example")


def extract_of(document: Document, *places: tuple[int, int]) -> Extract:
    return extracts_for([(document, tuple(Passage(*place) for place in places))], is_cleaned=True)[0]


def size(result: Any) -> int:
    return -(-len(json_text(result)) // 4)


def test_a_document_that_is_dated_says_so_and_a_missing_shard_is_told() -> None:
    result: Any = search_result(Sources((extract_of(LONG, (0, 40)),), is_partial=True), room())
    assert (result["results"][0]["last_modified"], result["partial_results"]) == ("2024-05-01", True)


def test_each_document_keeps_a_passage_before_any_keeps_two() -> None:
    places = [(start, start + 400) for start in range(0, 4000, 800)]
    extracts = tuple(extract_of(replace(LONG, id=name), *places) for name in ("a", "b", "c"))
    whole: Any = search_result(Sources(extracts), room(10_000))
    small: Any = search_result(Sources(extracts), room(600))
    uneven: Any = search_result(Sources((extracts[0], extract_of(LONG, (0, 30)))), room(10_000))
    assert [len(one["passages"]) for one in whole["results"]] == [5, 5, 5]
    assert [len(one["passages"]) for one in uneven["results"]] == [5, 1]
    assert not whole["truncated"]
    assert all(one["passages"] for one in small["results"])
    assert small["truncated"]
    assert size(small) <= 600


def test_a_long_document_comes_in_parts_that_are_the_whole() -> None:
    parts, start = [], 0
    while True:
        result: Any = fetched(LONG, (start, 10**9), room(300))
        assert size(result) <= 300
        parts.append(result["text"])
        if not result["truncated"]:
            break
        assert result["next_start"] > start
        start = result["next_start"]
    assert "".join(parts) == TEXT
    assert len(parts) > 3
    assert all(part.rstrip().endswith(".") for part in parts)


@pytest.mark.parametrize("span", [(10**9, 10**9), (50, 10), (len(TEXT), 10**9)])
def test_a_place_behind_the_end_is_the_end(span: tuple[int, int]) -> None:
    result: Any = fetched(LONG, span, room())
    assert (result["text"], result["truncated"]) == ("", False)


def test_even_without_room_a_document_goes_on() -> None:
    result: Any = fetched(LONG, (0, 10**9), room(1))
    assert (0 < len(result["text"]) < 10, result["truncated"]) == (True, True)


def test_an_answer_that_is_too_large_loses_its_last_citations() -> None:
    finished = Finished("It slept [1].", citations=(CITATION,) * 60)
    result: Any = answer_result(SOURCES, finished, room(400))
    assert 0 < len(result["citations"]) < 60
    assert result["truncated"]
    assert size(result) <= 400


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://x.example/a b?c=1#d", "https://x.example/a%20b?c=1#d"),
        ("file://server/Café.pdf", "file://server/Caf%C3%A9.pdf"),
        ("javascript:alert(1)", "https://us.example/documents?id=d+1"),
        ("handbook/leave.md", "https://us.example/documents?id=d+1"),
        ("https://x.example:99999/", "https://us.example/documents?id=d+1"),
        ("https://x.example:0/", "https://us.example/documents?id=d+1"),
        ("https://user@x.example/", "https://us.example/documents?id=d+1"),
        ("https://x.example/#a#b", "https://us.example/documents?id=d+1"),
        ("http://\u202e.example/", "https://us.example/documents?id=d+1"),
        ("https:///nowhere", "https://us.example/documents?id=d+1"),
        (None, "https://us.example/documents?id=d+1"),
    ],
)
def test_an_address_is_one_that_every_client_takes_for_one(url: str | None, address: str) -> None:
    assert address_of(Document("d 1", "", url=url), "https://us.example") == address
