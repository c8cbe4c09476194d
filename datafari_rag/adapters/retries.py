"""
Repeats of a request to a model: only where one may succeed in a moment, with jitter, and never past the deadline.

An attempt is a call that returns its outcome, a failure included; nothing here knows what is sent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from datafari_rag.core.errors import EmbeddingError, ModelError

T = TypeVar("T")

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


def repeated(
    attempt: Callable[[], T], failure_of: Callable[[T], ModelError | EmbeddingError | None], patient: RetryPolicy
) -> Iterator[T]:
    """Yield the outcome of each attempt, at least one; the last is the one that counts."""
    for number in range(1, patient.retries + 2):
        outcome = attempt()
        yield outcome
        failure = failure_of(outcome)
        if failure is None or not failure.can_repeat or number > patient.retries:
            return
        wait_s = _wait_s(failure, number, patient)
        if wait_s >= patient.left_s():
            return
        patient.sleep(wait_s)


def _wait_s(failure: ModelError | EmbeddingError, number: int, patient: RetryPolicy) -> float:
    """Return the wait after try *number*: what the server wants and a little more, or part of a doubling time."""
    if failure.retry_after_s is not None:
        return failure.retry_after_s + patient.jitter() * FIRST_WAIT_S
    most: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (number - 1))
    return most * (0.5 + 0.5 * patient.jitter())
