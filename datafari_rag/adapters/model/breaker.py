"""
A circuit breaker: after several failures in a row an endpoint is left alone for a while, then tried with one request.

Our own, because the known libraries have had no release for a year or more and each of them is larger than what is
needed here: a counter, a time and a lock. The clock comes in as an argument. No I/O, no log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerVerdict:
    """Whether a request may pass: now (*wait_s* is 0), or after so many seconds; *probe* numbers a probe, 0 is none."""

    wait_s: float = 0.0
    probe: int = 0


class Breaker:
    """
    One endpoint's breaker, shared by all its requests; safe for threads and greenlets.

    Closed: all may pass. Open, for *reset_s* seconds: none may. Then one may pass as a probe; how it ends decides.
    """

    def __init__(self, failures: int, reset_s: float, clock: Callable[[], float]) -> None:
        """Start closed. *failures* in a row open it, 0 turns it off; *clock* gives seconds that never go back."""
        self._most, self._reset_s, self._clock = failures, reset_s, clock
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._opened_at: float | None = None
        self._probes = 0
        self._probe = 0
        """The number of the probe that is on its way, 0 for none: only its own report ends it."""

    def verdict(self) -> BreakerVerdict:
        """
        Return whether one request may pass now, which must then be reported; else the seconds until one may.

        A request that was let through is reported with its verdict to exactly one of `failed`, `passed`, `answered` and
        `gave_up`.
        """
        with self._lock:
            if self._opened_at is None:
                return BreakerVerdict()
            left = self._opened_at + self._reset_s - self._clock()
            if left <= 0 and not self._probe:
                self._probes += 1
                self._probe = self._probes
                return BreakerVerdict(probe=self._probe)
            return BreakerVerdict(max(left, 1.0))

    @property
    def is_open(self) -> bool:
        """Return whether the breaker is open, or half-open without an answered probe; sends no request."""
        return self._opened_at is not None

    def failed(self, verdict: BreakerVerdict) -> None:
        """Note a failure that is the endpoint's."""
        with self._lock:
            self._in_a_row += 1
            if self._opened_at is not None or (self._most and self._in_a_row >= self._most):
                self._opened_at = self._clock()
            self._end(verdict)

    def passed(self, verdict: BreakerVerdict) -> None:
        """Note an answer: the endpoint is there."""
        with self._lock:
            self._in_a_row, self._opened_at = 0, None
            self._end(verdict)

    def answered(self, verdict: BreakerVerdict) -> None:
        """Note a failure that is not the endpoint's: it ends a probe well, and counts for nothing else."""
        with self._lock:
            if self._opened_at is not None:
                self._in_a_row, self._opened_at = 0, None
            self._end(verdict)

    def gave_up(self, verdict: BreakerVerdict) -> None:
        """Note a request without a result for the endpoint, because its reader disconnected."""
        with self._lock:
            self._end(verdict)

    def _end(self, verdict: BreakerVerdict) -> None:
        """Let another probe pass if *verdict* was that of the last one."""
        if verdict.probe == self._probe:
            self._probe = 0
