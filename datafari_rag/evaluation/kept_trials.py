"""Trials in a file, a line each, so that a run that was stopped is continued: reading and writing, nothing more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from datafari_rag.evaluation.measures import Trial


def kept(path: Path, plan: str) -> list[Trial]:
    """Return the trials in the file *path* that a run of the same *plan* left; none when it was of another plan."""
    try:
        head, *lines = path.read_text(encoding="utf-8").split("\n")
    except OSError:
        return []
    # What follows the last line end was cut off while it was written.
    return [_trial(line) for line in lines[:-1]] if head == plan else []


def keeping(path: Path, plan: str, trials: Iterable[Trial], done: int) -> Iterator[Trial]:
    """Yield *trials*, each one written to the file *path* behind the *done* ones; with none it begins with *plan*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if done:
        _shorten(path, done)
    with path.open("a" if done else "w", encoding="utf-8") as file:
        if not done:
            file.write(f"{plan}\n")
        for trial in trials:
            file.write(json.dumps(asdict(trial)) + "\n")
            file.flush()
            yield trial


def _shorten(path: Path, done: int) -> None:
    """Drop what stands behind the head and *done* trials: half a line."""
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("".join(f"{line}\n" for line in lines[: done + 1]), encoding="utf-8")


def _trial(line: str) -> Trial:
    row = json.loads(line)
    return Trial(**{**row, "hits": {way: tuple(found) for way, found in row["hits"].items()}})
