"""Parallel works that each wait for a different server; in threads, or in greenlets where they are patched."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from datafari_rag.ports import IsWanted

T = TypeVar("T")
U = TypeVar("U")


def side_by_side(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """
    Implement `ports.Both`: run *first* here and *second* in parallel, in the same context.

    Raises:
        Exception: what *first* raised, else what *second* did; never before both have ended.
    """
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(copy_context().run, second)
        return first(), beside.result()


def several_at_once(works: Sequence[Callable[[IsWanted], T]], most: int) -> Generator[T, None, None]:
    """Implement `ports.Several`; does not wait for work that is no longer needed."""
    left = Event()
    pool = ThreadPoolExecutor(min(most, max(1, len(works))))
    try:
        for begun in [pool.submit(copy_context().run, work, lambda: not left.is_set()) for work in works]:
            yield begun.result()
    finally:
        left.set()
        pool.shutdown(wait=False, cancel_futures=True)
