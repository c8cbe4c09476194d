"""What readiness found, held for a moment: a thousand readings send Solr and the authority one request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

HELD_S = 1.0
"""How long what was found holds."""

Problems = Mapping[str, str | None]
"""Part → its problem, None where it has none."""


class Probes:
    """The last result of *probe*; one request at a time runs it, and parallel requests wait for it."""

    def __init__(self, probe: Callable[[], Problems], clock: Callable[[], float]) -> None:
        """Look at nothing yet. *clock* gives seconds."""
        self._probe, self._clock = probe, clock
        self._looking = threading.Lock()
        self._found: tuple[float, Problems] | None = None

    def problems(self) -> Problems:
        """Return what is wrong, as it was at most `HELD_S` ago."""
        with self._looking:
            if self._found is None or not 0 <= self._clock() - self._found[0] < HELD_S:
                found = self._probe()
                self._found = self._clock(), found
            return self._found[1]
