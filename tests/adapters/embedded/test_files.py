"""The checksums of an index's files are compared once, and again for every file that is new or changed."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded import schema
from datafari_rag.adapters.embedded.schema import CHECKED_FILE, are_whole, write_whole
from datafari_rag.adapters.embedded.writer import EmbeddedWriter


def add(folder: Path, name: str) -> None:
    with closing(EmbeddedWriter(folder)) as writer:
        writer.add([{"id": name, "exactContent": name}])
        writer.commit()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    add(tmp_path, "a")
    assert are_whole(tmp_path)
    return tmp_path


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read for their checksum."""
    names: list[str] = []
    checksum = schema._is_whole
    monkeypatch.setattr(schema, "_is_whole", lambda path: (names.append(path.name), checksum(path))[1])
    return names


def test_a_file_is_read_for_its_checksum_once(index: Path, read_files: list[str]) -> None:
    assert are_whole(index)
    assert read_files == []


def test_a_file_that_was_touched_is_read_again(index: Path, read_files: list[str]) -> None:
    store = next(index.glob("*.store"))
    os.utime(store, ns=(1, 1))
    assert are_whole(index)
    assert read_files == [store.name]


@pytest.mark.parametrize(
    "note",
    [
        lambda path: path.unlink(),
        lambda path: path.write_text("not json"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text('{"x.store": "whole"}'),
    ],
    ids=["removed", "unreadable", "of another shape", "about other files"],
)
def test_without_a_good_note_every_file_is_read(
    index: Path, read_files: list[str], note: Callable[[Path], object]
) -> None:
    note(index / CHECKED_FILE)
    assert are_whole(index)
    assert len(read_files) == 6


def test_a_note_that_cannot_be_written_is_done_without(index: Path) -> None:
    (index / CHECKED_FILE).unlink()
    (index / CHECKED_FILE).mkdir()
    assert are_whole(index)


def test_a_file_is_replaced_whole_and_no_draft_is_left(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json", "1")
    write_whole(tmp_path / "a.json", "2")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.json", "2")]
