"""
One call for all who ask the same thing at the same time.

It shares a call that is under way and remembers nothing: what has landed is the caller's to keep or to forget.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from datafari_rag.adapters.machine import Signal, new_signal

T = TypeVar("T")


class _Flight(Generic[T]):
    __slots__ = ("error", "landed", "value")

    def __init__(self, landed: Signal) -> None:
        self.landed = landed
        self.value: T | None = None
        self.error: Exception | None = None


class Flights(Generic[T]):
    """The calls under way, by key; safe for many threads and greenlets."""

    def __init__(self, signal: Callable[[], Signal] = new_signal) -> None:
        """Begin with none; *signal* makes what is waited for."""
        self._signal = signal
        self._lock = threading.Lock()
        self._open: dict[Hashable, _Flight[T]] = {}

    def once(self, key: Hashable, call: Callable[[], T]) -> T:
        """
        Return what *call* returns, or what the call of *key* that is already under way will return.

        Raises:
            Exception: what the call raised, for everybody who waited for it.
        """
        while True:
            with self._lock:
                flight = self._open.get(key)
                if flight is None:
                    mine: _Flight[T] = _Flight(self._signal())
                    self._open[key] = mine
                    break
            flight.landed.wait()
            if flight.error is not None:
                # A copy: one exception raised in many threads would mix up their tracebacks.
                raise copy.copy(flight.error) from flight.error
            if flight.value is not None:
                return flight.value
            # The caller that made the call was killed before it landed: make it again.
        return self._fly(key, mine, call)

    def _fly(self, key: Hashable, mine: _Flight[T], call: Callable[[], T]) -> T:
        try:
            value = call()
            mine.value = value
            return value
        except Exception as error:
            mine.error = error
            raise
        finally:
            with self._lock:
                del self._open[key]
            mine.landed.set()
