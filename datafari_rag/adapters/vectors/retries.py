"""Repeating a request to an embedding model: only what may succeed in a moment, with jitter, within one limit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from datafari_rag.core.errors import EmbeddingError

T = TypeVar("T")

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 8.0


@dataclass(frozen=True, slots=True)
class EmbeddingRetries:
    """How to repeat: *retries* further tries, all of them before *left_s* returns 0; *sleep* waits."""

    retries: int
    left_s: Callable[[], float]
    sleep: Callable[[float], None]


def repeated(call: Callable[[], T], patience: EmbeddingRetries) -> T:
    """Return what *call* returns at its first success. Raises: EmbeddingError, the last one."""
    longest_s = FIRST_WAIT_S
    for left in range(patience.retries, -1, -1):
        try:
            return call()
        except EmbeddingError as error:
            wait_s = random.uniform(0, longest_s)  # noqa: S311 # jitter, not a secret
            if left == 0 or not error.can_repeat or wait_s >= patience.left_s():
                raise
        patience.sleep(wait_s)
        longest_s = min(2 * longest_s, LONGEST_WAIT_S)
    raise AssertionError("the last try returns or raises")
