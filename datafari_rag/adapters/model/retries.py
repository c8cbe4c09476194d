"""
Asking again: only before the first word, only what may succeed in a moment, with jitter, and never past the deadline.

The rule is ours, the repeating is tenacity's. An attempt is a generator that ends with an `Ending`; the first thing
it yields decides whether it is repeated.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import tenacity

from datafari_rag.core.errors import ModelError
from datafari_rag.ports import Ending, Piece

T = TypeVar("T")
Answering = Generator[T | Ending, None, None]

FIRST_WAIT_S = 0.25
"""Longest wait before the second try; it doubles with each further one, and chance takes some of it off."""

LONGEST_WAIT_S = 8.0


@dataclass(frozen=True, slots=True)
class Patient:
    """How to repeat: *retries* further tries, all of them before *left_s* says 0; *sleep* waits."""

    retries: int
    left_s: Callable[[], float]
    sleep: Callable[[float], None]
    jitter: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Begun(Generic[T]):
    """An attempt that has said its first thing: *first*, and the *rest* of it; *tries* is how many it took."""

    first: T | Ending
    rest: Answering[T]
    tries: int


def retried(attempt: Callable[[], Answering[T]], patient: Patient) -> Begun[T]:
    """Return the first attempt that is not to be repeated, with the tries of all."""
    begun = begin(attempt())
    if not _can_repeat(begun):
        return begun  # nearly always; tenacity's first step alone takes a hundredth of an answer
    tries, attempts, held = 0, [attempt], [begun]
    del attempt

    def ask() -> Begun[T]:
        nonlocal tries
        begun = held.pop() if held else begin(attempts[0]())
        tries += begun.tries
        return begun

    begun = tenacity.Retrying(
        retry=tenacity.retry_if_result(_can_repeat),
        wait=lambda state: _wait_s(state, patient),
        stop=lambda state: _is_enough(state, patient),
        sleep=patient.sleep,
        retry_error_callback=_last,
    )(ask)
    attempts.clear()  # none is asked again, and what it would ask is long
    return replace(begun, tries=tries)


def begin(answering: Answering[T]) -> Begun[T]:
    """Return *answering* when it has said its first thing; one that ended with that is closed."""
    first = next(answering)
    if isinstance(first, Ending):
        answering.close()
        return Begun(first, answering, first.facts.tries)
    return Begun(first, answering, 1)


def counted(said: T | Ending, tries: int, *, is_fallback: bool = False) -> T | Ending:
    """Return *said* with the number of tries in its facts, where it has facts."""
    if isinstance(said, Ending):
        return replace(said, facts=replace(said.facts, tries=tries, is_fallback=is_fallback))
    if isinstance(said, Piece) and said.facts is not None:
        return said._replace(facts=replace(said.facts, tries=tries, is_fallback=is_fallback))
    return said


def _failure(begun: Begun[T]) -> ModelError | None:
    failure = begun.first.failure if isinstance(begun.first, Ending) else None
    return failure if isinstance(failure, ModelError) else None


def _can_repeat(begun: Begun[T]) -> bool:
    failure = _failure(begun)
    return failure is not None and failure.can_repeat


def _wait_s(state: tenacity.RetryCallState, patient: Patient) -> float:
    """Return the time to wait: what the server asked for and a little more, or a random part of a doubling time."""
    failure = _failure(_last(state))
    most: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (state.attempt_number - 1))
    if failure is not None and failure.retry_after_s is not None:
        return failure.retry_after_s + patient.jitter() * FIRST_WAIT_S
    return most * (0.5 + 0.5 * patient.jitter())


def _is_enough(state: tenacity.RetryCallState, patient: Patient) -> bool:
    return state.attempt_number > patient.retries or state.upcoming_sleep >= patient.left_s()


def _last(state: tenacity.RetryCallState) -> Begun[T]:
    if state.outcome is None:
        raise RuntimeError("tenacity asked about a try that was not made")
    last: Begun[T] = state.outcome.result()
    return last
