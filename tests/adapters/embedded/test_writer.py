"""One writer, many readers, whole states: what a writer does to the index and to those who read it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tantivy import Document

from datafari_rag.adapters.embedded.passage_texts import PassageTexts
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.schema import VERSION_FILE, created
from datafari_rag.adapters.embedded.writer import EmbeddedWriter, Rebuilt, _stored, live_blocks
from datafari_rag.core.access import ACL_FIELDS, ANONYMOUS, User, filter_for
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.search_request import Browse
from tests.adapters.embedded.test_passages import random_acl
from tests.security.corpora import TOKENS

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


def test_what_is_not_committed_is_given_up(tmp_path: Path) -> None:
    reader = filled(tmp_path, "a")
    with closing(EmbeddedWriter(tmp_path)) as writer:
        writer.add([{"id": "b", "exactContent": "x"}])
        writer.delete(["a"])
    assert ids(reader) == ["a"]


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
    reader = filled(tmp_path, "a")
    assert ids(reader) == ["a"]
    shutil.rmtree(tmp_path)
    assert "no search index yet" in (reader.probe() or "")
    filled(tmp_path, "b")
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


Doc = Mapping[str, object]


def written_earlier(directory: Path, documents: Sequence[Doc]) -> None:
    """Write *documents* as a version did that made no passages: no document has a block."""
    writer = created(directory).writer(30_000_000, 1)
    for one in documents:
        writer.add_document(_stored(one))
    writer.commit()
    writer.wait_merging_threads()


def library(rng: random.Random) -> list[Doc]:
    return [
        {
            "id": f"d{number}",
            "exactContent": "The ferry leaves at nine. " * rng.choice((0, 1, 90)),
            "title": f"Title {number}",
            "url": f"https://example.test/a%20b/{number}",
            "language": rng.choice(("en", "fr", "zh", "")),
            "last_modified": rng.choice(("2024-03-01T10:00:00.123Z", "")),
            "preview_content": rng.choice(("", "a preview")),
            "source": "files",
            **random_acl(rng),
        }
        for number in range(rng.randint(1, 30))
    ]


def shown(directory: Path, tokens: Sequence[str], text: str | None = None) -> list[Doc]:
    """Return all that a user with *tokens* is shown; what is equally good has no order."""
    user = User("u", frozenset(tokens)) if tokens else ANONYMOUS
    access = filter_for(user, mode="tokens", anonymous="public")
    response = EmbeddedRetriever(directory).browse(Browse(text, rows=100), access)["response"]
    assert isinstance(response, dict)
    return sorted(response["docs"], key=lambda row: str(row["id"]))


@pytest.mark.parametrize("corpora", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_a_rebuilt_index_is_what_it_would_be_had_this_version_written_it(tmp_path: Path, corpora: int) -> None:
    """Half of it may be of this version already; rights, texts and all that is shown are what they were."""
    for corpus in range(corpora):
        rng = random.Random(corpus)
        documents, old, new = library(rng), tmp_path / f"old{corpus}", tmp_path / f"new{corpus}"
        half = rng.randint(0, len(documents))
        written_earlier(old, documents[half:])
        reader = EmbeddedRetriever(old)
        assert {*ids(reader)} <= {str(one["id"]) for one in documents[half:]}
        for place, own in ((old, documents[:half]), (new, documents)):
            with closing(EmbeddedWriter(place)) as writer:
                writer.add(own)
                writer.commit()
        with closing(EmbeddedWriter(old)) as writer:
            done = writer.rebuild()
        assert done == Rebuilt(sum(bool(one["exactContent"]) for one in documents[half:]))
        for _ in range(8):
            tokens, text = rng.sample(TOKENS, rng.randint(0, 6)), rng.choice((None, "ferry", "example"))
            assert shown(old, tokens, text) == shown(new, tokens, text)
        blocks = live_blocks(created(old))
        assert (
            len(blocks) == len(PassageTexts(old).cards(blocks)) == sum(bool(one["exactContent"]) for one in documents)
        )


def test_a_document_without_readable_rights_is_not_rebuilt_and_stays_hidden(tmp_path: Path) -> None:
    """An absent field would be written as open to everybody."""
    written_earlier(tmp_path, [{"id": "a", "exactContent": "The ferry."}])
    writer = created(tmp_path).writer(30_000_000, 1)
    odd = Document()
    for name, value in (("id", "b"), ("exactContent", "The ferry."), *((name, "x") for name in ACL_FIELDS[1:])):
        odd.add_text(name, value)
    writer.add_document(odd)
    writer.commit()
    writer.wait_merging_threads()
    with closing(EmbeddedWriter(tmp_path)) as rebuilding:
        assert rebuilding.rebuild() == Rebuilt(documents=1, rest=1)
    assert ids(EmbeddedRetriever(tmp_path)) == ["a"]


def test_a_rebuild_that_ends_early_leaves_the_old_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written_earlier(tmp_path, [{"id": f"d{number}", "exactContent": f"ferry {number}"} for number in range(5)])
    before = shown(tmp_path, [])
    with closing(EmbeddedWriter(tmp_path)) as writer:
        monkeypatch.setattr(writer, "commit", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            writer.rebuild()
    assert shown(tmp_path, []) == before
    assert live_blocks(created(tmp_path)) == []
