"""
The last failure of each part that this service depends on, for readiness: its label and time, never a text.

Workers that share a folder share one record: the worker that saw a failure writes it there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from datafari_rag.core.errors import AuthorityError, ModelError, RagError, SearchError, leaves

Failure = Mapping[str, str]

PARTS: Mapping[str, type[RagError]] = {"search": SearchError, "rights": AuthorityError, "model": ModelError}
"""The parts that can fail by themselves, each with the root of its errors."""

WRITE_EVERY_S = 1.0
"""How often one and the same failure is written at most: a part that is down fails a thousand times a second."""


class LastFailures:
    """The last failure of each of `PARTS`; *now* gives seconds since the epoch."""

    def __init__(self, folder: Path | None = None, now: Callable[[], float] = time.time) -> None:
        """Know of none; *folder* None keeps them in this process alone."""
        self._folder, self._now = folder, now
        self._latest: dict[str, tuple[float, Failure]] = {}
        self._written: dict[str, tuple[float, str]] = {}

    def note(self, label: str) -> None:
        """Note that an answer ended with *label*; one that is no part's failure is nothing to note."""
        part = _PART_OF.get(label)
        if part is None:
            return
        now = self._now()
        self._latest[part] = now, {"label": label, "at": iso_time(now)}
        written_at, written = self._written.get(part, (-WRITE_EVERY_S, ""))
        # Another failure than the last one is news, however soon it comes.
        if self._folder is not None and (label != written or not 0 <= now - written_at < WRITE_EVERY_S):
            self._written[part] = now, label
            self._write(part, self._folder)

    def latest(self, part: str) -> Failure | None:
        """Return label and time (ISO 8601, UTC) of the last failure of *part* in any worker, None before the first."""
        mine_at, mine = self._latest.get(part, (0.0, None))
        if self._folder is None:
            return mine
        with suppress(OSError, ValueError):
            shared_at, shared = json.loads((self._folder / f"last-{part}.json").read_bytes())
            found: Failure = shared
            # Not by the reported seconds: two failures may have the same.
            return found if mine is None or shared_at > mine_at else mine
        return mine

    def _write(self, part: str, folder: Path) -> None:
        # A failure that cannot be written is still known to this worker; an answer never fails for it.
        with suppress(OSError):
            new = folder / f"last-{part}.{os.getpid()}"
            new.write_text(json.dumps(self._latest[part]), encoding="ascii")
            new.replace(folder / f"last-{part}.json")


def iso_time(at_s: float) -> str:
    """Return a time as people and programs read it: ISO 8601, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))


_PART_OF = {error.label: part for part, root in PARTS.items() for error in leaves(root)}
