"""The checksums of an index's files are noted once, and compared for every file that was touched since."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded import schema
from datafari_rag.adapters.embedded.schema import SUMS_FILE, are_whole, seal, write_whole
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
    checksum = schema._sum_of
    monkeypatch.setattr(schema, "_sum_of", lambda path: (names.append(path.name), checksum(path))[1])
    return names


def test_a_file_is_read_for_its_checksum_once(index: Path, read_files: list[str]) -> None:
    seal(index)
    assert are_whole(index)
    assert read_files == []


def test_a_file_that_was_touched_is_read_again(index: Path, read_files: list[str]) -> None:
    store = next(index.glob("*.store"))
    os.utime(store, ns=(1, 1))
    assert are_whole(index)
    assert read_files == [store.name]


def test_every_file_of_a_segment_has_a_checksum(index: Path) -> None:
    (index / SUMS_FILE).unlink()
    assert are_whole(index), "a crash came before the sums"
    seal(index)
    for file in index.glob("*.*"):
        if len(file.stem) == 32:
            was = file.read_bytes()
            file.write_bytes(was[:-1] + bytes([was[-1] ^ 1]))
            assert not are_whole(index), file.name
            file.write_bytes(was)
    assert are_whole(index)


def test_a_file_that_is_not_committed_has_no_checksum(index: Path, read_files: list[str]) -> None:
    (index / f"{'0' * 32}.store").write_bytes(b"half of what a merge writes")
    seal(index)
    assert read_files == []


def test_a_file_is_replaced_whole_and_no_draft_is_left(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json", "1")
    write_whole(tmp_path / "a.json", "2")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.json", "2")]
