"""The file of stored conversations: what is kept, for whom, how long, and every way in which the file can be wrong."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from datafari_rag.adapters.conversation_file import FILE, ConversationFile
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.sqlite_file import WAIT_S
from datafari_rag.core.answer.conversations import (
    MAX_ANSWER_CHARS,
    MAX_CONVERSATIONS,
    MAX_TURNS,
    NEW_TITLE,
    ConversationLimits,
    StoredTurn,
)
from datafari_rag.core.errors import ConversationsUnavailable
from tests.support.clock import Clock

LIMITS = ConversationLimits(max_age_s=1000.0, max_user_bytes=1_000_000, max_bytes=50_000_000)
TURN = StoredTurn("Who ate?", "The rabbit [1].", 100.0, ("doc-1",), ("doc-0",))


def machine_of(clock: Clock) -> Machine:
    return replace(MACHINE, wall=clock, monotonic=clock, sleep=clock.sleep)


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[ConversationFile]:
    with closing(ConversationFile(tmp_path / "chats", LIMITS, machine_of(clock))) as found:
        yield found


def kept(store: ConversationFile, user: str = "ann", conversation_id: str = "", turn: StoredTurn = TURN) -> str:
    found = store.add(user, conversation_id, turn)
    assert found is not None
    return found.id


def test_a_conversation_is_begun_continued_listed_and_opened(store: ConversationFile) -> None:
    own_id = kept(store)
    later = replace(TURN, question="And when?", at_s=120.0)
    assert kept(store, conversation_id=own_id, turn=later) == own_id
    (listed,) = store.conversations("ann")
    assert (listed.id, listed.title, listed.began_s, listed.changed_s) == (own_id, "Who ate?", 100.0, 120.0)
    assert store.turns("ann", own_id) == (TURN, later)
    other = kept(store, turn=replace(TURN, at_s=110.0))
    assert [one.id for one in store.conversations("ann")] == [own_id, other]


def test_an_empty_conversation_takes_its_title_from_the_first_question(store: ConversationFile) -> None:
    own_id = store.begin("ann")
    assert [one.title for one in store.conversations("ann")] == [NEW_TITLE]
    assert store.turns("ann", own_id) == ()
    kept(store, conversation_id=own_id)
    assert [one.title for one in store.conversations("ann")] == ["Who ate?"]
    assert store.rename("ann", own_id, "Rabbits")
    kept(store, conversation_id=own_id)
    assert [one.title for one in store.conversations("ann")] == ["Rabbits"]


HOSTILE_IDS = ["", "nobody", "' OR '1'='1", "x'; DROP TABLE turns; --", "../../etc/passwd", "\x00", "%", "a" * 100_000]


@pytest.mark.parametrize("name", ["bob", "ANN", "ann ", "", "' OR '1'='1", "\ud800", "ann\x00"])
def test_another_user_finds_changes_and_deletes_nothing(store: ConversationFile, name: str) -> None:
    own_id = kept(store)
    assert store.conversations(name) == ()
    assert store.turns(name, own_id) is None
    assert store.add(name, own_id, TURN) is None
    assert not store.rename(name, own_id, "mine")
    assert not store.delete(name, own_id)
    assert store.delete_all(name) == 0
    assert store.turns("ann", own_id) == (TURN,)


@pytest.mark.parametrize("own_id", HOSTILE_IDS[1:])
def test_an_id_that_is_a_path_or_sql_is_an_id_of_nothing(store: ConversationFile, own_id: str) -> None:
    first = kept(store)
    assert store.turns("ann", own_id) is None
    assert store.add("ann", own_id, TURN) is None
    assert not store.rename("ann", own_id, "x")
    assert not store.delete("ann", own_id)
    assert store.turns("ann", first) == (TURN,)


def test_names_that_differ_in_half_a_character_are_two_users(store: ConversationFile) -> None:
    own_id = kept(store, user="\ud800")
    assert store.turns("\ud801", own_id) is None
    assert store.turns("\ud800", own_id) == (TURN,)


def test_texts_of_any_characters_come_back(store: ConversationFile) -> None:
    hostile = StoredTurn("\x00'\"; DROP TABLE turns; --", "é😀\ud800\u2028", 100.0, ("a\x00b", "\ud800"))
    assert store.turns("ann", kept(store, turn=hostile)) == (replace(hostile, answer="é😀?\u2028"),)


def test_what_is_deleted_is_gone_from_the_disk(store: ConversationFile, tmp_path: Path) -> None:
    secret = replace(TURN, answer="zxcanary " * 50)
    own_id, _, others = kept(store, turn=secret), kept(store, turn=secret), kept(store, user="bob")
    assert store.delete("ann", own_id)
    assert not store.delete("ann", own_id)
    assert store.turns("ann", own_id) is None
    assert store.delete_all("ann") == 1
    assert store.conversations("ann") == ()
    assert store.turns("bob", others) == (TURN,)
    on_disk = b"".join(path.read_bytes() for path in (tmp_path / "chats").iterdir())
    assert b"zxcanary" not in on_disk
    assert b"The rabbit" in on_disk, "the conversation of the other user"


@pytest.mark.parametrize("then", ["readiness", "another answer"])
def test_what_is_deleted_while_another_program_reads_is_gone_from_the_disk_after_it(
    store: ConversationFile, tmp_path: Path, then: str
) -> None:
    def remains() -> bool:
        return any(b"zxcanary" in path.read_bytes() for path in (tmp_path / "chats").iterdir())

    own_id, other_id = kept(store, turn=replace(TURN, answer="zxcanary " * 50)), kept(store, user="bob")
    with closing(sqlite3.connect(tmp_path / "chats" / FILE, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert len(reader.execute("SELECT * FROM turns").fetchall()) == 2
        assert store.delete("ann", own_id)
        assert remains(), "the reader still sees it"
        reader.execute("COMMIT")
        if then == "readiness":
            assert store.problem() is None
        else:
            kept(store, "bob", other_id)
        assert not remains()


def test_a_reader_that_ends_soon_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "chats" / FILE
    readers: list[sqlite3.Connection] = []

    def end_reading(seconds: float) -> None:
        readers.pop().close()

    machine = replace(MACHINE, wall=lambda: 100.0, sleep=end_reading)
    with closing(ConversationFile(tmp_path / "chats", LIMITS, machine)) as store:
        own_id = kept(store, turn=replace(TURN, answer="zxcanary " * 50))
        readers.append(sqlite3.connect(path, isolation_level=None))
        readers[0].execute("BEGIN")
        readers[0].execute("SELECT * FROM turns").fetchall()
        assert store.delete("ann", own_id)
        assert readers == []
        assert not any(b"zxcanary" in file.read_bytes() for file in path.parent.iterdir())


def test_a_conversation_that_is_too_old_is_not_shown_and_deleted_with_the_next_one(
    store: ConversationFile, clock: Clock
) -> None:
    old = kept(store)
    clock.now += LIMITS.max_age_s + 1
    assert store.conversations("ann") == ()
    assert store.turns("ann", old) is None
    assert store.add("ann", old, TURN) is None
    assert store.count() == 0, "the attempt to go on has deleted it"
    kept(store, user="bob", turn=replace(TURN, at_s=clock.now))
    assert store.count() == 1


def test_one_users_conversations_are_bounded_in_bytes_and_the_oldest_go(store: ConversationFile) -> None:
    large = replace(TURN, answer="a" * 90_000)
    theirs = kept(store, user="bob")
    ids = [kept(store, turn=replace(large, at_s=100.0 + n)) for n in range(14)]
    assert [one.id for one in store.conversations("ann")] == ids[:2:-1]
    assert store.turns("bob", theirs) == (TURN,)


def test_one_conversation_is_bounded_in_turns_and_bytes(store: ConversationFile) -> None:
    own_id = kept(store)
    for n in range(MAX_TURNS + 5):
        kept(store, conversation_id=own_id, turn=replace(TURN, question=str(n)))
    found = store.turns("ann", own_id)
    assert found is not None
    assert (len(found), found[0].question, found[-1].question) == (MAX_TURNS, "5", str(MAX_TURNS + 4))
    for n in range(20):
        kept(store, conversation_id=own_id, turn=replace(TURN, question=str(n), answer="x" * 10_000_000))
    found = store.turns("ann", own_id)
    assert found is not None
    assert [one.question for one in found] == [str(n) for n in range(11, 20)]
    assert {len(one.answer) for one in found} == {MAX_ANSWER_CHARS}


def test_of_more_conversations_than_a_user_may_have_the_oldest_go(tmp_path: Path, clock: Clock) -> None:
    limits = replace(LIMITS, max_user_bytes=10**9)
    with closing(ConversationFile(tmp_path, limits, machine_of(clock))) as store:
        theirs = kept(store, user="bob")
        first = store.begin("ann")
        for _ in range(MAX_CONVERSATIONS):
            store.begin("ann")
        assert store.turns("ann", first) is None
        assert len(store.conversations("ann")) == MAX_CONVERSATIONS
        assert store.turns("bob", theirs) == (TURN,)


def test_nobody_else_can_read_the_file(store: ConversationFile, tmp_path: Path) -> None:
    kept(store)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "chats").iterdir()}
    assert set(modes) == {FILE, f"{FILE}-wal", f"{FILE}-shm"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "chats").stat().st_mode) == 0o700
    store.close()
    (tmp_path / "chats" / FILE).chmod(0o666)
    kept(store)
    assert stat.S_IMODE((tmp_path / "chats" / FILE).stat().st_mode) == 0o600


def test_a_name_does_not_stand_in_the_file(store: ConversationFile, tmp_path: Path) -> None:
    kept(store, user="ann.zxcanary@example.org")
    assert b"zxcanary" not in b"".join(path.read_bytes() for path in (tmp_path / "chats").iterdir())


def test_a_full_file_fails_by_name_and_what_is_there_can_be_read_and_deleted(tmp_path: Path, clock: Clock) -> None:
    limits = replace(LIMITS, max_bytes=300_000)
    with closing(ConversationFile(tmp_path, limits, machine_of(clock))) as store:
        first = kept(store)
        with pytest.raises(ConversationsUnavailable) as caught:
            for _ in range(10):
                kept(store, user="bob", turn=replace(TURN, answer="x" * 90_000))
        assert caught.value.log == "file of conversations: SQLITE_FULL"
        assert store.problem() == "Conversations cannot be stored in chat.store.folder."
        assert store.turns("ann", first) == (TURN,)
        assert store.delete_all("bob") == 3
        assert store.problem() is None
        kept(store, user="bob")


def test_a_file_that_another_process_writes_is_waited_for_and_then_fails_by_name(
    store: ConversationFile, tmp_path: Path, clock: Clock
) -> None:
    own_id = kept(store)
    with closing(sqlite3.connect(tmp_path / "chats" / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = clock.now
        with pytest.raises(ConversationsUnavailable) as caught:
            store.add("ann", own_id, TURN)
        assert clock.now - began >= WAIT_S
        assert caught.value.log == "file of conversations: SQLITE_BUSY"
        assert store.turns("ann", own_id) == (TURN,), "reading goes on"
        other.execute("ROLLBACK")
    kept(store, conversation_id=own_id)


def _is_text(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)


def _is_cut(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(path, path.stat().st_size // 2)


def _is_foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (x)")


def _is_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 2")


def _is_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _has_other_ids(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE turns SET sources = '{}'")
        other.commit()


@pytest.mark.parametrize("broken", [_is_text, _is_cut, _is_foreign, _is_newer, _is_folder, _has_other_ids])
def test_a_broken_file_fails_by_name_and_is_left_as_it_is(
    store: ConversationFile, tmp_path: Path, broken: object
) -> None:
    own_id = kept(store)
    store.close()
    path = tmp_path / "chats" / FILE
    for beside in ("-wal", "-shm"):
        path.with_name(FILE + beside).unlink(missing_ok=True)
    assert callable(broken)
    broken(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(ConversationsUnavailable) as caught:
        store.turns("ann", own_id)
    assert "rabbit" not in caught.value.log
    assert store.problem() is not None
    assert before == (path.read_bytes() if path.is_file() else b"")


def test_a_file_that_was_removed_is_made_again(store: ConversationFile, tmp_path: Path) -> None:
    own_id = kept(store)
    for path in (tmp_path / "chats").iterdir():
        path.unlink()
    assert store.turns("ann", own_id) is None
    kept(store)
    assert (tmp_path / "chats" / FILE).exists()


def test_a_folder_that_cannot_be_made_fails_by_name(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "file").write_text("")
    store = ConversationFile(tmp_path / "file" / "chats", LIMITS, machine_of(clock))
    with pytest.raises(ConversationsUnavailable) as caught:
        store.begin("ann")
    assert caught.value.log == "file of conversations: Not a directory"
    assert not store.is_there


def _many(folder: str, name: str) -> None:
    store = ConversationFile(Path(folder), LIMITS)
    for _ in range(30):
        assert store.add(name, "", replace(TURN, at_s=MACHINE.wall())) is not None


def test_several_processes_write_at_the_same_time_and_lose_nothing(tmp_path: Path) -> None:
    processes = [get_context("fork").Process(target=_many, args=(str(tmp_path), name)) for name in ("ann", "bob")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    with closing(ConversationFile(tmp_path, LIMITS)) as store:
        assert (len(store.conversations("ann")), len(store.conversations("bob"))) == (30, 30)


def test_a_process_that_was_forked_opens_a_connection_of_its_own(tmp_path: Path) -> None:
    with closing(ConversationFile(tmp_path, LIMITS)) as store:
        own_id = kept(store, turn=replace(TURN, at_s=MACHINE.wall()))
        child = os.fork()
        if not child:
            os._exit(0 if store.turns("ann", own_id) and store.delete("ann", own_id) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert store.turns("ann", own_id) is None
