"""
Repeats: only before the first word, only where one may succeed, with jitter, and never past the deadline.

An attempt is a generator that ends with an `Ending`; the first thing it yields decides whether it is repeated.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from datafari_rag.core.errors import ModelError
from datafari_rag.ports import Ending, TextChunk

T = TypeVar("T")
Answering = Generator[T | Ending, None, None]

FIRST_WAIT_S = 0.25
"""Longest wait before the second try; it doubles with each further one, and chance takes some of it off."""

LONGEST_WAIT_S = 8.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How to repeat: *retries* further tries, all of them before *left_s* says 0; *sleep* waits."""

    retries: int
    left_s: Callable[[], float]
    sleep: Callable[[float], None]
    jitter: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class StartedAttempt(Generic[T]):
    """An attempt that has said its first thing: *first*, and the *rest* of it; *tries* is how many it took."""

    first: T | Ending
    rest: Answering[T]
    tries: int


def retried(attempt: Callable[[], Answering[T]], patient: RetryPolicy) -> StartedAttempt[T]:
    """Return the first attempt that is not to be repeated, with the tries of all."""
    tries, number = 0, 0
    while True:
        begun, number = begin(attempt()), number + 1
        tries += begun.tries
        failure = _failure(begun)
        if failure is None or not failure.can_repeat or number > patient.retries:
            break
        wait_s = _wait_s(failure, number, patient)
        if wait_s >= patient.left_s():
            break
        patient.sleep(wait_s)
    return replace(begun, tries=tries)


def begin(answering: Answering[T]) -> StartedAttempt[T]:
    """Return *answering* when it has said its first thing; one that ended with that is closed."""
    first = next(answering)
    if isinstance(first, Ending):
        answering.close()
        return StartedAttempt(first, answering, first.facts.tries)
    return StartedAttempt(first, answering, 1)


def counted(said: T | Ending, tries: int, *, is_fallback: bool = False) -> T | Ending:
    """Return *said* with the number of tries in its facts, where it has facts."""
    if isinstance(said, Ending):
        return replace(said, facts=replace(said.facts, tries=tries, is_fallback=is_fallback))
    if isinstance(said, TextChunk) and said.facts is not None:
        return replace(said, facts=replace(said.facts, tries=tries, is_fallback=is_fallback))
    return said


def _failure(begun: StartedAttempt[T]) -> ModelError | None:
    failure = begun.first.failure if isinstance(begun.first, Ending) else None
    return failure if isinstance(failure, ModelError) else None


def _wait_s(failure: ModelError, number: int, patient: RetryPolicy) -> float:
    """Return the wait after try *number*: what the server wants and a little more, or part of a doubling time."""
    if failure.retry_after_s is not None:
        return failure.retry_after_s + patient.jitter() * FIRST_WAIT_S
    most: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (number - 1))
    return most * (0.5 + 0.5 * patient.jitter())
