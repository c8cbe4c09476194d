"""What a run writes, leaves and removes: a writer that remembers stands for the search engine."""

from __future__ import annotations

import json
import os
from contextlib import closing, suppress
from pathlib import Path

import pytest

from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.ingest.documents import Rights
from datafari_rag.ingest.manifest import Manifest, ManifestError
from datafari_rag.ingest.run import MAX_TOLD_LINES, Order, Outcome, Run
from datafari_rag.ingest.sandbox import Sandbox
from tests.ingest.house import House, lines


def test_a_first_run_takes_all_with_one_commit(house: House) -> None:
    house.write("a.txt", "one")
    house.write("deep/er/b.md", "# two")
    house.write("c.jsonl", lines("x", "y"))
    assert house.run() == Outcome(written=4)
    assert house.names == ["a.txt", "b.md", "x", "y"]
    assert house.writer.commits == 1
    assert (house.heard.done_bytes, house.heard.documents) == (house.heard.total_bytes, 4)


def test_a_second_run_writes_nothing(house: House) -> None:
    house.write("a.txt", "one")
    house.write("c.jsonl", lines("x", "y"))
    house.run()
    assert house.run() == Outcome(unchanged=2)
    assert (house.writer.written, house.writer.commits) == ([], 1)
    assert house.heard.done_bytes == house.heard.total_bytes


def test_only_what_changed_is_written(house: House) -> None:
    house.write("a.txt", "one")
    house.write("b.txt", "two")
    house.write("c.jsonl", lines("x", "y"))
    house.run()
    house.write("b.txt", "changed")
    house.write("c.jsonl", [*lines("x"), {"id": "y", "content": "changed"}, *lines("z")])
    assert house.run() == Outcome(written=3, unchanged=1)
    assert [name.rpartition("/")[2] for name in house.writer.written] == ["b.txt", "y", "z"]


def test_a_touched_file_with_the_same_text_is_written_for_its_date_and_jsonl_is_not(house: House) -> None:
    for name, content in (("a.txt", "one"), ("c.jsonl", lines("x"))):
        house.write(name, content)  # type: ignore[arg-type]
    house.run()
    for path in house.root.iterdir():
        os.utime(path, (1, 1))
    assert house.run() == Outcome(written=1)


def test_what_is_gone_is_removed_and_nothing_else(house: House) -> None:
    house.writer.found["somebody else's"] = {}
    gone = house.write("a.txt", "one")
    house.write("b.txt", "two")
    house.write("c.jsonl", lines("x", "y"))
    house.run()
    gone.unlink()
    house.write("c.jsonl", lines("y"))
    assert house.run() == Outcome(removed=2, unchanged=1)
    assert house.names == ["b.txt", "somebody else's", "y"]
    assert house.run() == Outcome(unchanged=2)


def test_another_path_is_left_alone(house: House) -> None:
    house.write("one/a.txt", "a")
    house.write("two/b.txt", "b")
    house.run(house.root / "one")
    house.run(house.root / "two")
    (house.root / "two" / "b.txt").unlink()
    assert house.run(house.root / "one") == Outcome(unchanged=1)
    assert house.names == ["a.txt", "b.txt"]
    house.run(house.root / "two")
    assert house.names == ["a.txt"]


def test_other_rights_write_everything_again(house: House) -> None:
    house.write("a.txt", "one")
    house.write("c.jsonl", lines("x"))
    house.run()
    assert house.run(rights=Rights(("hr",))) == Outcome(written=2)
    rights = {key.rpartition("/")[2]: document["allow_token_document"] for key, document in house.writer.found.items()}
    assert rights == {"a.txt": ["hr"], "x": ["hr"]}


def test_an_id_that_moves_to_another_file_stays_found(house: House) -> None:
    house.write("a.jsonl", lines("x", "y"))
    house.write("b.jsonl", lines("z"))
    house.run()
    house.write("a.jsonl", lines("y"))
    house.write("b.jsonl", lines("z", "x"))
    house.run()
    assert house.names == ["x", "y", "z"]
    house.write("b.jsonl", lines("z"))
    house.write("a.jsonl", lines("y", "x"))
    house.run()
    assert house.names == ["x", "y", "z"]


def test_an_id_of_two_files_belongs_to_the_first_until_that_is_gone(house: House) -> None:
    gone = house.write("a.jsonl", lines("x", content="of a"))
    other = house.write("b.jsonl", lines("x", content="of b"))
    assert house.run() == Outcome(written=1, problems=1)
    assert house.heard.failures == [(f"{other}:1", f"id: {gone} has a document with this id.")]
    assert house.writer.found["x"]["exactContent"] == "of a"
    gone.unlink()
    assert house.run() == Outcome(written=1, removed=1)
    assert house.writer.found["x"]["exactContent"] == "of b"


def test_the_last_line_of_an_id_counts(house: House) -> None:
    house.write("a.jsonl", [*lines("x", content="first"), *lines("x", content="last")])
    house.run()
    assert house.writer.found["x"]["exactContent"] == "last"


def test_bad_lines_are_told_and_told_again_and_the_others_are_taken(house: House) -> None:
    path = house.write("a.jsonl", json.dumps({"id": "x", "content": "t"}) + "\nno\n{}\n")
    assert house.run() == Outcome(written=1, problems=2)
    assert [where for where, _ in house.heard.failures] == [f"{path}:2", f"{path}:3"]
    assert house.run() == Outcome(problems=2)
    assert house.writer.written == []


def test_a_thousand_bad_lines_are_not_told_one_by_one(house: House) -> None:
    house.write("a.jsonl", "no\n" * 1000)
    assert house.run().problems == 1000
    assert len(house.heard.failures) == MAX_TOLD_LINES + 1
    assert house.heard.failures[-1][1].startswith("980 more")


def test_a_line_that_went_bad_loses_its_document(house: House) -> None:
    house.write("a.jsonl", lines("x", "y"))
    house.run()
    house.write("a.jsonl", [*lines("x"), {"id": "y", "content": "t", "deny_token_share": 7}])
    assert house.run() == Outcome(removed=1, problems=1)
    assert house.names == ["x"]


def test_an_unreadable_file_is_told_and_what_was_taken_from_it_stays(house: House) -> None:
    house.write("a.pdf", "no PDF at all")
    house.write("b.txt", "fine")
    house.run()
    assert [name.rpartition("/")[2] for name in house.writer.written] == ["b.txt"]
    house.write("b.txt", "\0 binary now")
    assert house.run().problems == 2
    assert house.names == ["b.txt"]


def test_a_folder_that_cannot_be_opened_is_told_and_its_documents_stay(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write("in/a.txt", "one")
    house.write("b.txt", "two")
    house.run()
    scandir = os.scandir

    def refusing(number: int) -> object:
        if os.path.samestat(os.fstat(number), (house.root / "in").stat()):
            raise PermissionError(13, "Permission denied")
        return scandir(number)

    # The superuser, under whom tests may run, cannot be kept out of a folder.
    monkeypatch.setattr(os, "scandir", refusing)
    assert house.run() == Outcome(unchanged=1, problems=1)
    assert house.names == ["a.txt", "b.txt"]


def test_a_file_over_the_limit_is_told(house: House) -> None:
    house.write("a.txt", "x" * 100)
    assert house.run(max_file_bytes=50).problems == 1
    assert house.names == []


def test_an_empty_file_makes_no_document_and_no_problem(house: House) -> None:
    house.write("a.txt", " \n")
    assert house.run() == Outcome()
    assert house.run() == Outcome(unchanged=1)


def test_hidden_files_unknown_endings_links_and_indexes_are_passed_over(house: House) -> None:
    for name in (".hidden.txt", ".git/a.txt", "program.exe", "index/datafari-rag.json", "index/a.txt", "seen.txt"):
        house.write(name, "text")
    (house.root / "loop").symlink_to(house.root)
    (house.root / "dangling.txt").symlink_to(house.root / "nowhere")
    outcome = house.run()
    assert (house.names, outcome.problems) == (["seen.txt"], 1)


def test_one_file_is_a_path_too_whatever_its_ending(house: House) -> None:
    path = house.write("NOTES", "text")
    assert house.run(path) == Outcome(written=1)
    assert house.run(path) == Outcome(unchanged=1)


def test_a_long_run_commits_in_between(house: House) -> None:
    house.write("a.jsonl", lines(*(f"d{number:04}" for number in range(1000))))
    ticks = iter(range(10_000))
    order = Order(house.root, checkpoint_s=2.0, clock=lambda: float(next(ticks)))
    with closing(Manifest(house.manifest, str(house.root))) as manifest:
        Run(order, house.writer, manifest, house.heard, house.reader).go()
    assert house.writer.commits > 2
    assert len(house.writer.found) == 1000


def test_a_run_that_breaks_off_at_any_call_leaves_old_or_new_and_the_next_one_mends_it(
    tmp_path: Path, reader: Sandbox
) -> None:
    for fails_at in range(1, 30):
        (tmp_path / str(fails_at)).mkdir()
        house = House(tmp_path / str(fails_at), reader)
        gone = house.write("gone.txt", "old")
        house.write("kept.txt", "old")
        house.write("a.jsonl", lines("x", "y"))
        house.run()
        old = dict(house.writer.found)
        gone.unlink()
        house.write("kept.txt", "new text")
        house.write("a.jsonl", lines("y", *(f"n{number}" for number in range(500))))
        house.writer.calls, house.writer.fails_at = 0, fails_at
        with suppress(SearchUnavailable):
            house.run()
        has_failed = house.writer.calls == fails_at
        assert not has_failed or house.writer.found == old
        house.writer.fails_at, house.writer.coming = None, {}
        house.run()
        assert house.names == sorted(["kept.txt", "y", *(f"n{number}" for number in range(500))])
        assert house.run() == Outcome(unchanged=2)
        if not has_failed:
            return
    raise AssertionError("the run has more calls than this test knows")


def test_a_file_that_vanishes_after_a_crash_leaves_nothing_behind(house: House) -> None:
    """The engine took the batch before the crash (Solr commits in its own time); the manifest knew of it before."""
    path = house.write("a.txt", "text")
    house.writer.fails_at = 2
    with pytest.raises(SearchUnavailable):
        house.run()
    house.writer.fails_at = None
    house.writer.commit()
    assert house.names == ["a.txt"]
    path.unlink()
    house.run()
    assert house.names == []


def test_a_damaged_manifest_is_named(house: House) -> None:
    house.write("a.txt", "text")
    house.manifest.parent.mkdir()
    house.manifest.write_bytes(b"no database" * 1000)
    with pytest.raises(ManifestError, match=r"manifest\.sqlite: the list of what was indexed is damaged"):
        house.run()


def test_a_manifest_that_cannot_be_made_is_named(house: House) -> None:
    house.manifest.parent.write_text("a file where the folder should be")
    with pytest.raises(ManifestError, match="cannot be written"):
        house.run()
