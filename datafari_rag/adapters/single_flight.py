"""Callers that want the same at the same time share one call."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from datafari_rag.adapters.machine import MACHINE, Machine, Signal

T = TypeVar("T")


class _Flight(Generic[T]):
    __slots__ = ("began", "error", "landed", "value")

    def __init__(self, began: float, landed: Signal) -> None:
        self.began, self.landed = began, landed
        self.value: T | None = None
        self.error: Exception | None = None


class Flights(Generic[T]):
    """The calls under way, by key; safe for many threads and greenlets."""

    def __init__(self, machine: Machine = MACHINE) -> None:
        """Begin with none."""
        self._machine = machine
        self._lock = threading.Lock()
        self._open: dict[Hashable, _Flight[T]] = {}

    def once(self, key: Hashable, call: Callable[[], T], *, max_age_s: float = math.inf) -> T:
        """
        Return what *call* returns, or what the call of *key* that is already under way will return.

        A call that began more than *max_age_s* before this one is waited for and not shared: what it returns may be
        older than the caller can use. Those who waited share the next one.

        Raises:
            Exception: what the call raised, for everybody who waited for it.
        """
        arrived = self._machine.monotonic()
        while True:
            with self._lock:
                flight = self._open.get(key)
                if flight is None:
                    mine: _Flight[T] = _Flight(self._machine.monotonic(), self._machine.signal())
                    self._open[key] = mine
                    break
            flight.landed.wait()
            if flight.began < arrived - max_age_s:
                continue
            if flight.error is not None:
                # A copy: one exception raised in many threads would mix up their tracebacks.
                raise copy.copy(flight.error) from flight.error
            if flight.value is not None:
                return flight.value
            # The caller that made the call was killed before it landed: make it again.
        try:
            mine.value = value = call()
            return value
        except Exception as error:
            mine.error = error
            raise
        finally:
            with self._lock:
                del self._open[key]
            mine.landed.set()
