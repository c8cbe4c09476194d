"""
The watcher of `datafari-rag demo FOLDER`: reads the folder, then takes up what changes in it, until its parent ends.

A separate process: the server's first page does not wait for it. The system tells of changes where it can; of network
drives it cannot, and WATCHFILES_FORCE_POLLING=true has the folder looked at instead.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import watchfiles

from datafari_rag.adapters.embedded.schema import write_whole
from datafari_rag.commands.index import indexed, settings_for, summary_of
from datafari_rag.commands.terminal import ProblemListener
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.addresses import PROGRESS
from datafari_rag.ingest.documents import Rights
from datafari_rag.ingest.run import RunOutcome
from datafari_rag.ingest.sandbox import Sandbox

EVERY_S = 1.0
SETTLED_MS = 1000
"""Changes that follow each other faster are one: programs write a file in several steps."""

TOLD_EVERY_S = 0.2
NICE = 5
MAX_PROBLEMS, MAX_NOTES = 5, 20
"""Latest files that could not be read, and files that were not taken as a whole, for the page; stderr has all."""


class ProgressFile(ProblemListener):
    """Writes how far a run is, and what could not be read, into a file for the page; problems go to stderr as well."""

    def __init__(self, path: Path, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Say nothing yet. *clock* gives seconds."""
        super().__init__()
        self._path, self._folder, self._clock = path, folder, clock
        self._runs, self._told_s = 0, 0.0
        self._problems: list[dict[str, str]] = []
        self._failures: frozenset[tuple[str, str]] = frozenset()
        self._said_before = self._failures
        self._files: dict[str, object] = {}

    def show(self) -> None:
        """Write what is read, but not more often than the page looks."""
        if self._clock() - self._told_s >= TOLD_EVERY_S:
            self._write_state(f"{self.name[:190]}{self.part}", is_reading=True)

    def started(self, total: int) -> None:
        """Begin a new run."""
        self.name = self.part = ""
        super().started(total)
        self._write_state("", is_reading=True)

    def failed(self, where: str, why: str) -> None:
        """Print one line, unless the run before printed it, and keep the latest for the page, each once."""
        self._failures |= {(where, why)}
        if (where, why) not in self._said_before:
            super().failed(where, why)
        problem = {"name": where.rpartition("/")[2][:200], "why": why[:300]}
        self._problems = [*(other for other in self._problems if other != problem), problem][-MAX_PROBLEMS:]

    def began(self) -> None:
        """Forget the problems of the run before."""
        self._problems = []
        self._said_before, self._failures = self._failures, frozenset()

    def ended(self, outcome: RunOutcome) -> None:
        """Say that all files are read, how many, and which were not taken."""
        self._runs += 1
        counts = {
            "read": outcome.read + outcome.unchanged,
            "unreadable": outcome.unreadable,
            "passed": outcome.passed_over.total(),
        }
        notes = [
            {"name": where.rpartition("/")[2][:200], "why": what[:300]} for where, what in outcome.notes[:MAX_NOTES]
        ]
        self._files = {**counts, "notes": notes}
        self._write_state("", is_reading=False)

    def _write_state(self, name: str, *, is_reading: bool) -> None:
        self._told_s = self._clock()
        percent = min(100, 100 * self.done // self.total) if self.total else 0
        fields = {"folder": str(self._folder), "isReading": is_reading, "reading": name[:200], "percent": percent}
        state = {**fields, "runs": self._runs, "problems": self._problems, "files": self._files}
        write_whole(self._path, json.dumps(state))


@click.command(hidden=True)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--conf", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--parent", required=True, type=int, help="Process whose end ends this one.")
def demo_watch(folder: Path, conf: Path, parent: int) -> None:
    """Read FOLDER, again whenever it changes; `demo FOLDER` starts this."""
    # Users wait for the server that runs beside this process.
    os.nice(NICE)
    progress = conf.parent / PROGRESS
    listener, is_done = ProgressFile(progress, folder), False
    if os.getppid() != parent:
        return
    # A shell starts what runs in the background with this signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    # Of all runs: what needs too much is read again only when it has changed.
    reader = Sandbox()
    try:
        for changes in _changes(folder):
            if changes or not is_done:
                is_done = _index_folder(folder, conf, listener, reader)
    except KeyboardInterrupt:
        return
    finally:
        # A service over the same index that nobody watches has no progress to show.
        progress.unlink(missing_ok=True)


def _end_with(parent: int) -> None:
    """Interrupt this process when *parent* has ended, also while it reads or sleeps: another demo may begin."""
    while os.getppid() == parent:
        time.sleep(EVERY_S / 2)
    os.kill(os.getpid(), signal.SIGINT)


def _changes(folder: Path) -> Iterator[bool]:
    """Yield whether something in *folder* has changed, each time that it has and about each `EVERY_S`."""
    how: dict[str, Any] = {
        "watch_filter": None,
        "debounce": SETTLED_MS,
        "rust_timeout": round(1000 * EVERY_S),
        "yield_on_timeout": True,
        "raise_interrupt": True,
        "ignore_permission_denied": True,
    }
    try:
        for changes in watchfiles.watch(folder, **how):
            yield bool(changes)
    except OSError:
        # The system watches no more folders.
        for changes in watchfiles.watch(folder, **how, force_polling=True, poll_delay_ms=round(1000 * EVERY_S)):
            yield bool(changes)


def _index_folder(folder: Path, conf: Path, listener: ProgressFile, reader: Sandbox) -> bool:
    """Index *folder*, reporting the progress; return whether that succeeded."""
    listener.began()
    try:
        settings = settings_for(conf)
        outcome = indexed((folder,), settings=settings, rights=Rights(), listener=listener, reader=reader)
    except RagError as error:
        listener.failed(str(folder), str(error))
        return False
    click.echo(f"{folder}: {summary_of(outcome)}", err=True)
    listener.ended(outcome)
    return True
