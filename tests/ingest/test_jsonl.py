"""Lines of JSON, one by one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from datafari_rag.ingest import jsonl
from datafari_rag.ingest.jsonl import MAX_VALUES, JsonlLine
from datafari_rag.ingest.parsers.parsed import Unreadable

RAW = b'\xef\xbb\xbf{"id": "1"}\n\n[1]\nnot json\n{"id": "\\ud800"}\r\n' + b"[" * 100_000 + b'\n{"id": "3"}'


def lines(path: Path) -> list[JsonlLine]:
    with path.open("rb") as file:
        return list(jsonl.lines(file, path.name))


def test_objects_come_with_their_numbers_and_bad_lines_with_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(RAW)
    found = lines(path)
    assert [(line.number, line.fields) for line in found if line.fields is not None] == [
        (1, {"id": "1"}),
        (5, {"id": "\ud800"}),
        (7, {"id": "3"}),
    ]
    assert [(line.number, line.problem) for line in found if line.fields is None] == [
        (3, "The line is not a JSON object."),
        (4, "The line is not JSON."),
        (6, "The line is not JSON."),
    ]
    assert sum(line.size_bytes for line in found) == len(RAW) - 1


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(RAW))
    assert len(lines(path)) == 6


@pytest.mark.parametrize("raw", [b"not packed", gzip.compress(RAW)[:-9], b""], ids=["no gzip", "cut", "empty"])
def test_a_broken_packed_file_is_told(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(raw)
    if raw:
        with pytest.raises(Unreadable):
            lines(path)
    else:
        assert lines(path) == []


def test_a_line_over_the_limit_is_passed_over_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 20)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "' + b"x" * 100 + b'"}\n{"id": "2"}\n')
    found = lines(path)
    assert [line.fields for line in found] == [None, {"id": "2"}]
    assert sum(line.size_bytes for line in found) == path.stat().st_size


def test_only_known_names_with_flat_values_are_handed_on(tmp_path: Path) -> None:
    """What is nested may be small on disk and large in memory; False is what no field takes."""
    path = tmp_path / "a.jsonl"
    values = ["a", ["a", "b"], None, {"a": 1}, [[]], ["a", 7], ["t"] * (MAX_VALUES + 1), 7, True]
    path.write_text("".join(json.dumps({"id": "x", "unknown": [{}], "title": value}) + "\n" for value in values))
    found = [line.fields for line in lines(path)]
    assert found == [{"id": "x", "title": value} for value in (*values[:3], *[False] * 6)]


def test_a_packed_file_that_unpacks_without_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1000)
    path = tmp_path / "a.jsonl.gz"
    for raw in (b"0" * 200_000, b"\n" * 200_000, b"{}\n" * 100_000):
        path.write_bytes(gzip.compress(raw))
        with pytest.raises(Unreadable, match="unpacks to more than 200 times its size"):
            lines(path)


def test_a_file_that_grows_is_read_up_to_the_size_that_it_had(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a"}\n{"id": "b"}\n')
    with path.open("rb") as file, path.open("ab") as other:
        rows = jsonl.lines(file, path.name)
        assert next(rows).fields == {"id": "a"}
        other.write(b'{"id": "c"}\n' * 10_000)
        other.flush()
        assert [line.fields for line in rows] == [{"id": "b"}]
