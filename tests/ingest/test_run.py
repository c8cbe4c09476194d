"""What a run writes, leaves and removes: a recording writer replaces the search engine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.core.documents import STAMP_FIELD
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.ingest.documents import Rights
from datafari_rag.ingest.run import FIRST_S, MAX_REPORTED_LINES, IndexOrder, IndexRun, RunOutcome
from datafari_rag.ingest.sandbox import MemoryExceeded, Sandbox, SandboxLimits, TimeExceeded
from datafari_rag.ingest.sandbox_child import Job
from tests.ingest.house import House, lines
from tests.ingest.parsers.written import zip_of


def test_a_first_run_takes_all_with_one_commit(house: House) -> None:
    house.write("a.txt", "one")
    house.write("deep/er/b.md", "# two")
    house.write("c.jsonl", lines("x", "y"))
    assert house.run() == RunOutcome(documents=4, read=3)
    assert house.names == ["a.txt", "b.md", "x", "y"]
    assert house.writer.commits == 1
    assert (house.heard.done_bytes, house.heard.documents) == (house.heard.total_bytes, 4)


def test_a_second_run_writes_nothing(house: House) -> None:
    house.write("a.txt", "one")
    house.write("c.jsonl", lines("x", "y"))
    house.run()
    assert house.run() == RunOutcome(unchanged=2)
    assert (house.writer.written, house.writer.commits) == ([], 1)
    assert house.heard.done_bytes == house.heard.total_bytes


def test_only_what_changed_is_written(house: House) -> None:
    house.write("a.txt", "one")
    house.write("b.txt", "two")
    house.write("c.jsonl", lines("x", "y"))
    house.run()
    house.write("b.txt", "changed")
    house.write("c.jsonl", [*lines("x"), {"id": "y", "content": "changed"}, *lines("z")])
    assert house.run() == RunOutcome(documents=3, unchanged=1, read=2)
    assert [name.rpartition("/")[2] for name in house.writer.written] == ["b.txt", "y", "z"]


def test_of_a_touched_jsonl_only_the_document_with_its_stamp_is_written(house: House) -> None:
    path = house.write("c.jsonl", lines("x", "y", "z"))
    house.run()
    os.utime(path, (1, 1))
    assert (house.run(), house.writer.written) == (RunOutcome(documents=1, read=1), ["z"])
    assert house.run() == RunOutcome(unchanged=1)


def test_what_is_gone_is_removed_and_nothing_else(house: House) -> None:
    house.writer.found["somebody else's"] = {}
    gone = house.write("a.txt", "one")
    house.write("b.txt", "two")
    house.write("c.jsonl", lines("x", "y"))
    house.run()
    gone.unlink()
    house.write("c.jsonl", lines("y"))
    assert house.run() == RunOutcome(documents=1, removed=2, unchanged=1, read=1)
    assert house.names == ["b.txt", "somebody else's", "y"]
    assert house.run() == RunOutcome(unchanged=2)


def test_another_path_is_left_alone(house: House) -> None:
    house.write("one/a.txt", "a")
    house.write("two/b.txt", "b")
    house.run(house.root / "one")
    house.run(house.root / "two")
    (house.root / "two" / "b.txt").unlink()
    assert house.run(house.root / "one") == RunOutcome(unchanged=1)
    assert house.names == ["a.txt", "b.txt"]
    house.run(house.root / "two")
    assert house.names == ["a.txt"]


def test_other_rights_write_everything_again(house: House) -> None:
    house.write("a.txt", "one")
    house.write("c.jsonl", lines("x"))
    house.run()
    assert house.run(rights=Rights(("hr",))) == RunOutcome(documents=2, read=2)
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
    assert house.run() == RunOutcome(documents=1, problems=1, read=2)
    assert house.heard.failures == [(f"{other}:1", f"id: {gone} has a document with this id.")]
    assert house.writer.found["x"]["exactContent"] == "of a"
    gone.unlink()
    assert house.run() == RunOutcome(documents=1, read=1)
    assert house.writer.found["x"]["exactContent"] == "of b"


def test_the_last_line_of_an_id_counts(house: House) -> None:
    house.write("a.jsonl", [*lines("x", content="first"), *lines("x", content="last")])
    house.run()
    assert house.writer.found["x"]["exactContent"] == "last"


def test_bad_lines_are_told_and_told_again_and_the_others_are_taken(house: House) -> None:
    path = house.write("a.jsonl", json.dumps({"id": "x", "content": "t"}) + "\nno\n{}\n")
    assert house.run() == RunOutcome(documents=1, problems=2, read=1)
    assert [where for where, _ in house.heard.failures] == [f"{path}:2", f"{path}:3"]
    assert house.run() == RunOutcome(problems=2, read=1)
    assert house.writer.written == []


def test_a_thousand_bad_lines_are_not_told_one_by_one(house: House) -> None:
    house.write("a.jsonl", "no\n" * 1000)
    assert house.run().problems == 1000
    assert len(house.heard.failures) == MAX_REPORTED_LINES + 1
    assert house.heard.failures[-1][1].startswith("980 more")


def test_a_line_that_went_bad_loses_its_document(house: House) -> None:
    house.write("a.jsonl", lines("x", "y"))
    house.run()
    house.write("a.jsonl", [*lines("x"), {"id": "y", "content": "t", "deny_token_share": 7}])
    assert house.run() == RunOutcome(removed=1, problems=1, read=1)
    assert house.names == ["x"]


def test_what_is_left_out_of_a_file_is_counted_and_named(house: House) -> None:
    zip_of(house.root / "a.zip", ("b.txt", b"words"), ("winmail.dat", b"x"), ("Thumbs.db", b"x"))
    outcome = house.run()
    assert outcome.left_out == {"file in it without a reader": 1}
    assert outcome.notes == [(str(house.root / "a.zip"), "left out: 1 × file in it without a reader (winmail.dat)")]


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
    assert house.run() == RunOutcome(unchanged=1, problems=1)
    assert house.names == ["a.txt", "b.txt"]


def test_a_file_over_the_limit_is_told(house: House) -> None:
    house.write("a.txt", "x" * 100)
    assert house.run(max_file_bytes=50).problems == 1
    assert house.names == []


def test_a_file_without_text_is_a_document_by_its_name(house: House) -> None:
    house.write("a.txt", " \n")
    assert house.run() == RunOutcome(documents=1, read=1)
    assert [(one["title"], one["exactContent"]) for one in house.writer.found.values()] == [("a.txt", "")]
    assert house.run() == RunOutcome(unchanged=1)


def test_hidden_files_programs_links_and_indexes_are_passed_over(house: House) -> None:
    for name in (".hidden.txt", ".git/a.txt", "index/datafari-rag.json", "index/a.txt", "seen.txt"):
        house.write(name, "text")
    house.write("program.exe", "MZ\0")
    (house.root / "loop").symlink_to(house.root)
    (house.root / "dangling.txt").symlink_to(house.root / "nowhere")
    outcome = house.run()
    assert (house.names, outcome.problems) == (["seen.txt"], 1)


def test_one_file_is_a_path_too_whatever_its_ending(house: House) -> None:
    path = house.write("NOTES", "text")
    assert house.run(path) == RunOutcome(documents=1, read=1)
    assert house.run(path) == RunOutcome(unchanged=1)


def test_a_long_run_commits_in_between(house: House) -> None:
    house.write("a.jsonl", lines(*(f"d{number:04}" for number in range(1000))))
    ticks = iter(range(10_000))
    order = IndexOrder(house.root, checkpoint_s=2.0, clock=lambda: float(next(ticks)))
    IndexRun(order, house.writer, house.heard, house.reader).go()
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
        assert house.run() == RunOutcome(unchanged=2)
        if not has_failed:
            return
    raise AssertionError("the run has more calls than this test knows")


def test_a_file_that_vanishes_after_a_crash_leaves_nothing_behind(house: House) -> None:
    """The engine took the batch before the crash: Solr commits in its own time."""
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


# What .jsonl files found in a folder may not do.

PUBLIC = {"allow_token_document": ["__nosecurity__"], "deny_token_document": ["__nosecurity__"]}


def text_of(house: House, document_id: str) -> object:
    return house.writer.found[document_id]["exactContent"]


@pytest.mark.parametrize("name", ["a.jsonl", "z.jsonl"], ids=["read before the file", "read after the file"])
@pytest.mark.parametrize("is_trusted", [False, True], ids=["not trusted", "trusted"])
def test_a_jsonl_in_a_folder_does_not_take_the_id_of_a_file(house: House, name: str, is_trusted: bool) -> None:
    file = house.write("m.txt", "the file's own")
    forged = house.write(name, [{"id": file.as_uri(), "content": "forged", **PUBLIC}, *lines("x")])
    outcome = house.run(rights=Rights(("hr",)), trusts_lines=is_trusted)
    assert text_of(house, file.as_uri()) == "the file's own"
    assert house.writer.found[file.as_uri()]["allow_token_document"] == ["hr"]
    assert outcome.problems == 1
    ((where, why),) = house.heard.failures
    assert where == f"{forged}:1"
    assert why.startswith(("id: it is ", "id: it belongs to "))
    assert house.run(rights=Rights(("hr",)), trusts_lines=is_trusted) == RunOutcome(unchanged=1, problems=1, read=1)
    assert text_of(house, file.as_uri()) == "the file's own"


@pytest.mark.parametrize("document_id", ["file:///etc/passwd", "FILE:///x", "file:x"])
def test_a_jsonl_in_a_folder_does_not_take_the_id_of_a_file_to_come(house: House, document_id: str) -> None:
    house.write("a.jsonl", lines(document_id))
    assert house.run().problems == 1
    assert house.writer.found == {}
    assert house.run(trusts_lines=True).problems == 0


def test_a_jsonl_named_itself_does_not_take_the_id_of_a_file_either(house: House) -> None:
    file = house.write("m.txt", "the file's own")
    named = house.write("a.jsonl", [{"id": file.as_uri(), "content": "forged"}, *lines("x", "file:///elsewhere")])
    house.run(file)
    assert house.run(named).problems == 1
    assert house.heard.failures == [(f"{named}:1", f"id: it belongs to the file {file}.")]
    assert text_of(house, file.as_uri()) == "the file's own"
    assert sorted(house.writer.found) == sorted([file.as_uri(), "x", "file:///elsewhere"])


def test_a_file_takes_its_id_back(house: House) -> None:
    file = house.write("m.txt", "the file's own")
    named = house.write("a.jsonl", [{"id": file.as_uri(), "content": "forged"}])
    house.run(named)
    assert text_of(house, file.as_uri()) == "forged"
    house.run(file)
    assert text_of(house, file.as_uri()) == "the file's own"
    assert house.run(named).problems == 1
    assert house.run(file) == RunOutcome(unchanged=1)
    assert text_of(house, file.as_uri()) == "the file's own"


def test_a_jsonl_in_a_folder_takes_no_document_of_another_path(house: House) -> None:
    first = house.write("one/a.jsonl", lines("x", content="first"))
    second = house.write("two/b.jsonl", lines("x", "y", content="second"))
    house.run(house.root / "one")
    for is_trusted in (False, True):
        outcome = house.run(house.root / "two", trusts_lines=is_trusted)
        assert (outcome.problems, house.heard.failures[0][0]) == (1, f"{second}:1")
        assert text_of(house, "x") == "first"
    house.run(second)
    assert text_of(house, "x") == "second", "its PATH was named"
    assert house.run(house.root / "one").problems == 1, "found in a folder, it does not take the document back"
    assert text_of(house, "x") == "second"
    assert house.run(first).problems == 0
    assert text_of(house, "x") == "first"


def test_a_jsonl_in_a_folder_replaces_what_it_wrote_itself(house: House) -> None:
    house.write("a.jsonl", lines("x", content="old"))
    house.run()
    house.write("a.jsonl", lines("x", content="new"))
    assert house.run() == RunOutcome(documents=1, read=1)
    assert text_of(house, "x") == "new"


def test_the_lines_of_a_renamed_jsonl_stay_found(house: House) -> None:
    house.write("b.jsonl", lines("x", "y")).rename(house.root / "a.jsonl")
    house.run()
    (house.root / "a.jsonl").rename(house.root / "c.jsonl")
    assert house.run().problems == 0
    assert house.names == ["x", "y"]
    (house.root / "c.jsonl").rename(house.root / "b.jsonl")
    assert house.run().problems == 0
    assert house.names == ["x", "y"]


def test_rights_of_a_jsonl_in_a_folder_narrow_those_of_the_run(house: House) -> None:
    named = house.write("a.jsonl", [{"id": "x", "content": "t", **PUBLIC}, {"id": "y", "content": "t"}])
    shares = {}
    for options in ({}, {"trusts_lines": True}, {"root": named}):
        house.run(rights=Rights(("hr",), ("out",)), **options)  # type: ignore[arg-type]
        document = house.writer.found["x"]
        shares[str(options)] = (document["allow_token_share"], document["allow_token_document"])
        assert house.writer.found["y"]["allow_token_document"] == ["hr"]
    open_now = (["__nosecurity__"], ["__nosecurity__"])
    assert [*shares.values()] == [(["hr"], ["__nosecurity__"]), open_now, open_now]


# What one file may need.


class Watched(Sandbox):
    """A reader to which files named so are too slow, or too large for the memory."""

    def __init__(self, limits: SandboxLimits) -> None:
        super().__init__(limits)
        self.asked: list[tuple[str, float]] = []
        self.patience_s = 10.0

    def _answers(self, job: Job, file: int) -> Iterator[dict[str, Any]]:
        self.asked.append((job.name, job.seconds))
        if "endless" in job.name or ("slow" in job.name and job.seconds < self.patience_s):
            raise TimeExceeded(f"Reading it took longer than {job.seconds:g} s.")
        if "large" in job.name:
            raise MemoryExceeded("Reading it needed more than 1,000 MB of memory.")
        yield from super()._answers(job, file)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[House, Watched]]:
    with Watched(SandboxLimits()) as reader:
        (tmp_path / "watched").mkdir()
        yield House(tmp_path / "watched", reader), reader


def test_a_slow_file_is_read_after_all_others_have_been_committed(watched: tuple[House, Watched]) -> None:
    house, reader = watched
    for name in ("a slow.txt", "b.txt", "c.txt"):
        house.write(name, name)
    assert house.run() == RunOutcome(documents=3, read=3)
    assert reader.asked == [("a slow.txt", FIRST_S), ("b.txt", FIRST_S), ("c.txt", FIRST_S), ("a slow.txt", 60.0)]
    assert house.writer.commits == 2


def test_what_needs_too_much_is_named_and_not_read_again_until_it_changes(watched: tuple[House, Watched]) -> None:
    house, reader = watched
    for name in ("endless.txt", "large.txt", "b.txt"):
        house.write(name, name)
    assert house.run() == RunOutcome(documents=1, problems=2, read=1, unreadable=2)
    assert [why for _, why in house.heard.failures] == [
        "Reading it needed more than 1,000 MB of memory.",
        "Reading it took longer than 60 s.",
    ]
    reader.asked.clear()
    assert house.run() == RunOutcome(unchanged=1, problems=2, unreadable=2)
    assert reader.asked == []
    assert house.heard.failures[1][1] == (
        "Reading it needed more than 1,000 MB of memory. It is not read again until it changes."
    )
    house.write("large.txt", "changed")
    house.run()
    assert reader.asked == [("large.txt", FIRST_S)]


def test_a_file_that_cannot_be_read_does_not_keep_the_rights_of_before(watched: tuple[House, Watched]) -> None:
    house, _ = watched
    house.write("a.txt", "text")
    house.write("b.txt", "text")
    house.run()
    house.write("a.txt", "\0 no text now")
    assert house.run() == RunOutcome(unchanged=1, problems=1, unreadable=1)
    assert house.names == ["a.txt", "b.txt"]
    assert house.run(rights=Rights(("hr",))) == RunOutcome(documents=1, removed=1, problems=1, read=1, unreadable=1)
    assert house.names == ["b.txt"]


def test_stamps_that_were_tampered_with_widen_no_rights_and_cost_a_run_at_most(house: House) -> None:
    path = house.write("a.txt", "text")
    for stamp in ("", "x", "a b c", " - - ", f"0 - - {path}", f"0 - -/1 {path}", "0 - - /etc/passwd", " " * 99):
        house.run(rights=Rights(("hr",)))
        house.writer.found = {key: {**one, STAMP_FIELD: stamp} for key, one in house.writer.found.items()}
        house.run(rights=Rights(("hr",)))
        assert [one["allow_token_document"] for one in house.writer.found.values()] == [["hr"]], stamp
        assert house.run(rights=Rights(("hr",))) == RunOutcome(unchanged=1)


def test_a_run_that_broke_off_leaves_no_rights_that_the_next_one_does_not_give(house: House) -> None:
    """The engine took a part of the file with other rights, and the file itself is the one of before."""
    house.write("a.jsonl", lines("x", "y"))
    house.run(rights=Rights(("hr",)))
    before = house.writer.found["y"]
    house.run()
    house.writer.found["y"] = before
    house.run(rights=Rights(("hr",)))
    assert [one["allow_token_document"] for one in house.writer.found.values()] == [["hr"], ["hr"]]


def test_documents_that_an_older_version_took_through_a_link_are_removed(house: House) -> None:
    house.write("a.txt", "text")
    house.run()
    (house.root / "a.txt").rename(house.root.parent / "a.txt")
    (house.root / "a.txt").symlink_to("../a.txt")
    assert house.run() == RunOutcome(removed=1, problems=1)
    assert house.writer.found == {}
