"""Where questions are kept: for so many days and no longer, people as hashes, and never in the way of an answer."""

from __future__ import annotations

import json
import logging
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.question_file import FILE, KEY, MOST_KEPT, MOST_READ, QuestionFile
from datafari_rag.core.answer.question_report import MAX_ID_CHARS, MAX_IDS, KeptQuestion
from datafari_rag.core.errors import Overloaded

DAY_S = 86_400
NOON = 20_000 * 30 * DAY_S + 10 * DAY_S + 0.5
TEXT = "zxcanary rules"
ASKED = KeptQuestion("request-1", NOON, "ann", TEXT, "en", "ok", ("d1", "d2"), ("d1",), 3, 2, True)


class Clock:
    def __init__(self) -> None:
        self.now_s = NOON

    def wall(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[QuestionFile]:
    with closing(QuestionFile(tmp_path, 30, replace(MACHINE, wall=clock.wall))) as found:
        yield found


def test_what_is_kept_comes_back_with_hashes_for_who_and_which(store: QuestionFile, tmp_path: Path) -> None:
    store.keep(ASKED)
    (found,) = store.since(0)
    assert replace(found, id="", person="") == replace(ASKED, id="", person="", at_s=NOON - 0.5)
    key, _, person = found.person.partition(":")
    assert len(key) == 8 and len(person) == 32
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ann" not in written and b"request-1" not in written


def test_the_same_person_is_the_same_hash_and_those_not_signed_in_are_none(store: QuestionFile) -> None:
    for person in ("ann", "ann", "bob", ""):
        store.keep(replace(ASKED, person=person))
    ann, again, bob, nobody = (one.person for one in store.since(0))
    assert ann == again != bob and nobody == ""


def test_the_folder_is_for_this_account_alone(store: QuestionFile, tmp_path: Path) -> None:
    store.keep(ASKED)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_in_the_next_period_the_key_is_another_and_old_questions_are_gone(
    store: QuestionFile, clock: Clock, tmp_path: Path
) -> None:
    store.keep(ASKED)
    first = (tmp_path / KEY).read_bytes()
    clock.now_s += 29 * DAY_S
    store.keep(replace(ASKED, at_s=clock.now_s))
    assert (tmp_path / KEY).read_bytes() != first
    assert len({one.person for one in store.since(0)}) == 2
    clock.now_s += 2 * DAY_S
    assert len(store.since(0)) == 1
    clock.now_s += 30 * DAY_S
    assert store.since(0) == []
    assert TEXT.encode() not in (tmp_path / FILE).read_bytes()


def test_a_clock_that_goes_back_keeps_nothing_longer(store: QuestionFile, clock: Clock) -> None:
    clock.now_s += 1_000 * DAY_S
    store.keep(replace(ASKED, at_s=clock.now_s))
    clock.now_s = NOON
    assert [one.at_s for one in store.since(0)] == [NOON - 0.5]
    clock.now_s += 31 * DAY_S
    assert store.since(0) == []


def test_a_thumb_goes_to_its_question(store: QuestionFile) -> None:
    store.keep(ASKED)
    store.keep(replace(ASKED, id="request-2"))
    store.rate("request-2", is_disliked=True)
    assert [one.is_disliked for one in store.since(0)] == [False, True]
    store.rate("request-2", is_disliked=False)
    store.rate("unknown' OR 1=1 --", is_disliked=True)
    assert [one.is_disliked for one in store.since(0)] == [False, False]


def test_a_question_is_kept_within_bounds(store: QuestionFile) -> None:
    ids = tuple(map(str, range(2 * MAX_IDS)))
    store.keep(replace(ASKED, text="x" * 9_000, sources=("y" * (MAX_ID_CHARS + 1), *ids), cited=("\ud800",)))
    (found,) = store.since(0)
    assert (len(found.text), found.sources, found.cited) == (1_000, ids[:MAX_IDS], ("\ud800",))


def test_a_hundred_thousand_questions_are_the_most(store: QuestionFile, tmp_path: Path) -> None:
    store.keep(ASKED)
    row = ("i", int(NOON), "", TEXT, "en", "ok", json.dumps(["d1"]), "[]", 0, 0, 0, 0)
    with closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        marks = ", ".join("?" * len(row))
        file.executemany(f"INSERT INTO questions VALUES (NULL, {marks})", [row] * (MOST_KEPT + 5))
    store.keep(replace(ASKED, text="the last"))
    with closing(sqlite3.connect(tmp_path / FILE)) as file:
        assert file.execute("SELECT count(*) FROM questions").fetchone() == (MOST_KEPT,)
    found = store.since(0)
    assert (len(found), found[-1].text) == (MOST_READ, "the last")


def broken_open(path: Path) -> None:
    path.write_bytes(b"no database" * 999)


def broken_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [broken_open, broken_folder])
def test_a_file_that_is_broken_fails_no_answer_and_no_text_is_logged(
    store: QuestionFile, tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: object
) -> None:
    store.keep(ASKED)
    store.close()
    for rest in tmp_path.glob(f"{FILE}-*"):
        rest.unlink()
    harm(tmp_path / FILE)  # type: ignore[operator]
    with caplog.at_level(logging.DEBUG):
        store.keep(ASKED)
        store.rate("request-1", is_disliked=True)
    assert caplog.text.count("a question is not in the report") == 2 and "zxcanary" not in caplog.text
    assert store.problem() == "Questions cannot be kept in report.store."
    with pytest.raises(Overloaded):
        store.since(0)


def test_a_file_that_stays_locked_fails_no_answer(store: QuestionFile, tmp_path: Path) -> None:
    store.keep(ASKED)
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.keep(ASKED)
        other.execute("ROLLBACK")
    store.keep(ASKED)
    assert len(store.since(0)) == 2


def test_a_file_that_is_full_fails_no_answer_and_can_be_read(store: QuestionFile) -> None:
    store.keep(ASKED)
    pages = store._file.read(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    store._file.read(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    for _ in range(20):
        store.keep(replace(ASKED, text="x" * 900))
    assert 1 <= len(store.since(0)) < 21


def test_files_that_are_deleted_while_serving_are_made_again(store: QuestionFile, tmp_path: Path) -> None:
    store.keep(ASKED)
    for path in tmp_path.iterdir():
        path.unlink()
    store.keep(ASKED)
    assert len(store.since(0)) == 1 and store.problem() is None


def test_a_key_that_cannot_be_read_is_made_again(store: QuestionFile, tmp_path: Path) -> None:
    store.keep(ASKED)
    (tmp_path / KEY).write_text("ゐ", "utf-8")
    store.keep(ASKED)
    assert len({one.person for one in store.since(0)}) == 2


def _keep_some(folder: Path) -> None:
    with closing(QuestionFile(folder, 30)) as store:
        for number in range(20):
            store.keep(replace(ASKED, id=str(number), at_s=MACHINE.wall()))


def test_two_services_on_one_file_lose_nothing_and_share_the_key(tmp_path: Path) -> None:
    others = [get_context("spawn").Process(target=_keep_some, args=(tmp_path,)) for _ in range(2)]
    for one in others:
        one.start()
    for one in others:
        one.join(60)
    with closing(QuestionFile(tmp_path, 30)) as store:
        found = store.since(0)
    assert len(found) == 40 and len({one.person for one in found}) == 1
