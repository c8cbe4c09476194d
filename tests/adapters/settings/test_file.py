"""The file under watch: taken up when it changes, never a bad one for a good one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from datafari_rag.adapters.settings.file import LOOK_EVERY_S, SettingsFile
from tests.support.clock import Clock

LONG_AGO_S = 1_000_000_000.0


class FileClock(Clock):
    """Files written through it have its time stamps."""

    def write(self, path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        os.utime(path, (self.now, self.now))


@pytest.fixture
def clock() -> FileClock:
    return FileClock(LONG_AGO_S)


@pytest.fixture
def path(tmp_path: Path, clock: FileClock) -> Path:
    path = tmp_path / "rag.properties"
    clock.write(path, "# mine\nrag.maxFiles=3\n")
    return path


@pytest.fixture
def file(path: Path, clock: FileClock) -> SettingsFile:
    return SettingsFile(path, environ={}, clock=clock, wall=clock)


def test_a_changed_file_is_taken_up_within_two_seconds(path: Path, file: SettingsFile, clock: FileClock) -> None:
    before = file.snapshot()
    clock.write(path, "rag.maxFiles=44\n")
    clock.now += 2
    assert file.snapshot().settings.rag.max_files == 44
    assert before.settings.rag.max_files == 3


def test_the_file_is_looked_at_once_a_second_at_most(path: Path, file: SettingsFile, clock: FileClock) -> None:
    clock.write(path, "rag.maxFiles=44\n")
    clock.now += LOOK_EVERY_S * 0.9
    assert file.snapshot().settings.rag.max_files == 3


def test_an_unchanged_file_keeps_its_snapshot(file: SettingsFile, clock: FileClock) -> None:
    before = file.snapshot()
    clock.now += 60
    assert file.snapshot() is before


def test_a_file_that_is_just_being_written_is_left_for_a_moment(
    path: Path, file: SettingsFile, clock: FileClock
) -> None:
    clock.now += 5
    clock.write(path, "")
    assert file.snapshot().settings.rag.max_files == 3
    clock.write(path, "rag.maxFiles=44\n")
    clock.now += 0.3
    assert file.snapshot().settings.rag.max_files == 44


def test_a_time_stamp_of_the_future_does_not_hold_a_file_back(path: Path, file: SettingsFile, clock: FileClock) -> None:
    clock.now += 3600
    clock.write(path, "rag.maxFiles=44\n")
    clock.now -= 3590
    assert file.snapshot().settings.rag.max_files == 44


BAD = [
    pytest.param("rag.maxFiles=x\n", "rag.properties:1: Invalid value for rag.maxFiles property. An", id="a bad value"),
    pytest.param("security.mode=x\n", "Invalid value for security.mode property.", id="bad security"),
    pytest.param(None, "there is no such file", id="no file any more"),
]


@pytest.mark.parametrize(("text", "told"), BAD)
def test_a_bad_file_never_replaces_a_good_one(
    path: Path, file: SettingsFile, clock: FileClock, text: str | None, told: str
) -> None:
    before = file.snapshot()
    if text is None:
        path.unlink()
    else:
        clock.write(path, text)
    clock.now += 2
    assert file.snapshot() is before
    assert told in (file.rejected or "")
    assert file.problem() is None
    clock.write(path, "rag.maxFiles=4\n")
    clock.now += 2
    assert file.snapshot().settings.rag.max_files == 4
    assert file.rejected is None


def test_a_bad_start_is_mended_by_a_better_file(tmp_path: Path, clock: FileClock) -> None:
    path = tmp_path / "rag.properties"
    clock.write(path, "rag.maxFiles=x\nrag.operator=x\n")
    file = SettingsFile(path, environ={}, clock=clock, wall=clock)
    assert file.snapshot().bad_setting is not None and "rag.maxFiles" in (file.problem() or "")
    clock.write(path, "rag.operator=x\n")
    clock.now += 2
    file.snapshot()
    assert "rag.operator" in (file.problem() or "")
    clock.write(path, "security.mode=x\n")
    clock.now += 2
    assert file.snapshot().settings.security.mode == "tokens" and "security.mode" in (file.rejected or "")
    clock.write(path, "rag.maxFiles=2\n")
    clock.now += 2
    assert (file.snapshot().bad_setting, file.problem(), file.rejected) == (None, None, None)


def test_instructions_and_secrets_are_watched_too(path: Path, tmp_path: Path, clock: FileClock) -> None:
    clock.write(tmp_path / "token", "one")
    clock.write(path, "rag.api.token=file:token\n")
    file = SettingsFile(path, environ={}, clock=clock, wall=clock)
    clock.now += 5
    clock.write(tmp_path / "token", "second")
    clock.write(tmp_path / "rag-instructions.txt", "New.")
    clock.now += 2
    assert (file.snapshot().settings.rag.api_token, file.snapshot().instructions) == ("second", "New.")


def test_a_secret_that_mends_a_rejected_file_is_noticed(
    path: Path, tmp_path: Path, file: SettingsFile, clock: FileClock
) -> None:
    clock.write(path, "rag.api.token=file:token\n")
    clock.now += 2
    assert file.snapshot().settings.rag.api_token == "" and file.rejected
    clock.write(tmp_path / "token", "one")
    clock.now += 2
    assert (file.snapshot().settings.rag.api_token, file.rejected) == ("one", None)


def test_reload_does_not_wait(path: Path, file: SettingsFile, clock: FileClock) -> None:
    clock.write(path, "rag.maxFiles=44\n")
    assert file.reload().settings.rag.max_files == 44


def test_while_one_reads_the_others_go_on_with_what_was(path: Path, clock: FileClock) -> None:
    held, go_on = threading.Event(), threading.Event()

    def slow_wall() -> float:
        held.set()
        go_on.wait(10)
        return clock()

    file = SettingsFile(path, environ={}, clock=clock, wall=slow_wall)
    clock.write(path, "rag.maxFiles=44\n")
    clock.now += 2
    reader = threading.Thread(target=file.snapshot)
    reader.start()
    assert held.wait(10)
    assert file.snapshot().settings.rag.max_files == 3
    go_on.set()
    reader.join(10)
    assert file.snapshot().settings.rag.max_files == 44


def test_a_problem_that_stays_is_logged_once_and_a_new_one_when_it_comes(
    path: Path, clock: FileClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.write(path, "rag.nonsense=1\n")
    file = SettingsFile(path, environ={}, clock=clock, wall=clock)
    for text in ("rag.nonsense=1\nrag.maxFiles=4\n", "rag.nonsense=1\nrag.maxFiles=5\nrag.other.nonsense=1\n"):
        clock.now += 2
        clock.write(path, text)
        clock.now += 2
        file.snapshot()

    assert file.snapshot().settings.rag.max_files == 5
    assert caplog.text.count("Unknown key rag.nonsense") == 1
    assert caplog.text.count("Unknown key rag.other.nonsense") == 1
