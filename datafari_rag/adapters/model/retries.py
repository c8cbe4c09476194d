"""
Attempts at an answer: generators that end with an `Ending`; the first thing one yields decides whether it is repeated.

After the first word nothing is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from datafari_rag.adapters.retries import RetryPolicy, repeated
from datafari_rag.core.errors import ModelError
from datafari_rag.ports import Ending, TextChunk

T = TypeVar("T")
Answering = Generator[T | Ending, None, None]


@dataclass(frozen=True, slots=True)
class StartedAttempt(Generic[T]):
    """An attempt that yielded its first item, *first*, and the *rest*; *tries* is the number of attempts."""

    first: T | Ending
    rest: Answering[T]
    tries: int


def retried(attempt: Callable[[], Answering[T]], patient: RetryPolicy) -> StartedAttempt[T]:
    """Return the first attempt that is not to be repeated, with the tries of all."""
    every = list(repeated(lambda: begin(attempt()), _failure, patient))
    return replace(every[-1], tries=sum(begun.tries for begun in every))


def begin(answering: Answering[T]) -> StartedAttempt[T]:
    """Return *answering* after its first item; an answer that ended with that item is closed."""
    first = next(answering)
    if isinstance(first, Ending):
        answering.close()
        return StartedAttempt(first, answering, first.facts.tries)
    facts = first.facts if isinstance(first, TextChunk) else None
    return StartedAttempt(first, answering, 1 if facts is None else facts.tries)


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
