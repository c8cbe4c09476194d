"""Two works at the same time, each waiting for a server of its own; in threads, or greenlets where they are patched."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def side_by_side(first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """
    Be a `ports.Both` that does *first* here and *second* beside it, in the same context.

    Raises:
        Exception: what *first* raised, else what *second* did; never before both have ended.
    """
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(copy_context().run, second)
        return first(), beside.result()
