"""One writer, many readers, whole states: what a writer does to the index and to those who read it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.schema import VERSION_FILE
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.search_request import Browse

ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")


def ids(retriever: EmbeddedRetriever, text: str | None = None) -> list[str]:
    response = retriever.browse(Browse(text, rows=100), ANYBODY)["response"]
    assert isinstance(response, dict)
    return sorted(row["id"] for row in response["docs"])


def filled(directory: Path, *names: str) -> EmbeddedRetriever:
    with closing(EmbeddedWriter(directory)) as writer:
        writer.add([{"id": name, "exactContent": f"word {name}"} for name in names])
        writer.commit()
    return EmbeddedRetriever(directory)


def test_a_reader_that_is_open_sees_each_commit_at_once(tmp_path: Path) -> None:
    reader = filled(tmp_path, "a")
    assert ids(reader) == ["a"]
    with closing(EmbeddedWriter(tmp_path)) as writer:
        for number in range(5):
            writer.add([{"id": f"n{number}", "exactContent": "x"}])
            assert f"n{number}" not in ids(reader)
            writer.commit()
            assert f"n{number}" in ids(reader)


def test_a_document_with_a_known_id_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    reader = filled(tmp_path, "a", "b")
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": "a", "exactContent": "changed"}, {"id": "a", "exactContent": "twice"}])
        writer.commit()
    assert (ids(reader), ids(reader, "twice"), ids(reader, "changed")) == (["a", "b"], ["a"], [])


def test_deleting_takes_exactly_those_ids(tmp_path: Path) -> None:
    reader = filled(tmp_path, "a", "ab", "b*", "b")
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.delete(["a", "b*", "absent", "\ud800"])
        writer.commit()
    assert ids(reader) == ["ab", "b"]


def test_stamps_are_those_of_the_last_commit(tmp_path: Path) -> None:
    filled(tmp_path, "a")
    with closing(EmbeddedWriter(tmp_path)) as writer:
        assert writer.stamps() == {}
        writer.add([{"id": "b", "exactContent": "", "index_stamp": "s 1"}, {"id": "c", "index_stamp": "s 2"}])
        assert writer.stamps() == {}
        writer.commit()
        writer.delete(["c"])
        assert writer.stamps() == {"b": "s 1", "c": "s 2"}
        writer.commit()
        assert writer.stamps() == {"b": "s 1"}


def test_what_is_not_committed_is_given_up(tmp_path: Path) -> None:
    reader = filled(tmp_path, "a")
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": "b", "exactContent": "x"}])
        writer.delete(["a"])
    assert ids(reader) == ["a"]


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path: Path) -> None:
    """The next writer gives its file of removed documents the same name, if it takes as many steps."""
    reader = filled(tmp_path, "a", "b")
    meta = json.loads((tmp_path / "meta.json").read_text())
    segment = meta["segments"][0]["segment_id"].replace("-", "")
    left = [f"{segment}.{meta['opstamp'] + step}.del" for step in range(1, 50)]
    managed = tmp_path / ".managed.json"
    managed.write_text(json.dumps([*json.loads(managed.read_text()), *left]))
    for name in left:
        (tmp_path / name).write_bytes(b"half a file")
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": "a", "exactContent": "changed"}])
        writer.commit()
    assert (ids(reader), ids(reader, "changed")) == (["a", "b"], ["a"])


def test_a_second_writer_is_told_of_the_first(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path)), pytest.raises(SearchUnavailable, match="Another program is writing"):
        EmbeddedWriter(tmp_path)
    EmbeddedWriter(tmp_path).close()


def test_a_closed_writer_refuses(tmp_path: Path) -> None:
    writer = EmbeddedWriter(tmp_path)
    writer.close()
    writer.close()
    with pytest.raises(SearchUnavailable, match="not open for writing"):
        writer.commit()


def test_no_index_yet_is_said_and_then_found(tmp_path: Path) -> None:
    reader = EmbeddedRetriever(tmp_path / "new")
    assert "no search index yet" in (reader.probe() or "")
    with pytest.raises(SearchUnavailable, match="no search index yet"):
        ids(reader)
    filled(tmp_path / "new", "a")
    assert (reader.probe(), ids(reader)) == (None, ["a"])


def test_an_index_made_again_in_the_same_folder_is_taken_up(tmp_path: Path) -> None:
    place = tmp_path / "index"
    reader = filled(place, "a")
    assert ids(reader) == ["a"]
    # In one step: a reader that looks for changes takes a lock in the folder at any moment.
    place.rename(tmp_path / "gone")
    assert "no search index yet" in (reader.probe() or "")
    filled(place, "b")
    assert ids(reader) == ["b"]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def changed(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 0xFF
    path.write_bytes(raw)


DAMAGES: dict[str, Callable[[Path], None]] = {"cut": cut, "changed": changed, "removed": Path.unlink}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("ending", ["store", "term", "idx", "pos", "fast", "fieldnorm", "del", "meta.json"])
def test_a_damaged_file_is_noticed_by_reader_and_writer(tmp_path: Path, ending: str, damage: str) -> None:
    filled(tmp_path, *(f"d{number}" for number in range(50)))
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.delete(["d7"])
        writer.commit()
    DAMAGES[damage](next(path for path in tmp_path.iterdir() if path.name.endswith(ending)))
    assert "damaged" in (EmbeddedRetriever(tmp_path).probe() or "")
    with pytest.raises(SearchUnavailable, match="damaged"):
        EmbeddedWriter(tmp_path)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [('{"schema": 0, "tantivy": "0.1"}', "another version"), ("not json", "damaged"), (None, "damaged")],
    ids=["made by another version", "an unreadable version file", "no version file"],
)
def test_an_index_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, text: str | None, wanted: str) -> None:
    filled(tmp_path, "a")
    before = sorted(path.name for path in tmp_path.iterdir())
    (tmp_path / VERSION_FILE).unlink()
    if text is not None:
        (tmp_path / VERSION_FILE).write_text(text)
    assert wanted in (EmbeddedRetriever(tmp_path).probe() or "")
    with pytest.raises(SearchUnavailable, match=wanted):
        EmbeddedWriter(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {name for name in before if name != VERSION_FILE}


def test_a_folder_that_cannot_be_made_is_a_failure_of_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SearchUnavailable, match="disk"):
        EmbeddedWriter(tmp_path / "file" / "index")


def test_texts_that_no_index_takes_are_mended(tmp_path: Path) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": "a", "title": ["One", "Two"], "exactContent": "bro\ud800ken", "last_modified": "never"}])
        writer.commit()
    response = EmbeddedRetriever(tmp_path).browse(Browse(None), ANYBODY)["response"]
    assert isinstance(response, dict)
    assert response["docs"] == [{"id": "a", "title": ["One\nTwo"], "exactContent": ["bro\ufffdken"]}]


@pytest.mark.parametrize("document_id", ["", None, "x" * 5000], ids=["empty", "absent", "too long"])
def test_a_document_that_could_never_be_removed_again_is_refused(tmp_path: Path, document_id: str | None) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer, pytest.raises(SearchUnavailable, match="An id has"):
        writer.add([{"id": document_id, "exactContent": "x"}])


@pytest.mark.parametrize("commits", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_readers_that_open_while_a_writer_commits_see_whole_states(tmp_path: Path, commits: int) -> None:
    filled(tmp_path, "a0", "b0")

    def write() -> None:
        with closing(EmbeddedWriter(tmp_path)) as writer:
            for number in range(1, commits):
                writer.add([{"id": f"{side}{number}", "exactContent": "x"} for side in "ab"])
                writer.delete([f"{side}{number - 3}" for side in "ab"])
                writer.commit()

    kept, seen = EmbeddedRetriever(tmp_path), set()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(write)
        is_over = False
        while not is_over:
            is_over = running.done()
            for reader in (kept, EmbeddedRetriever(tmp_path)):
                found = ids(reader)
                assert [name[1:] for name in found if name[0] == "a"] == [name[1:] for name in found if name[0] == "b"]
                seen.add(tuple(found))
        running.result()
    assert len(ids(kept)) == 6
    assert seen
