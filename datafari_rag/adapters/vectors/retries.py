"""Asking an embedding model again: only what may succeed in a moment, with jitter, within one limit of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from datafari_rag.core.errors import EmbeddingError

T = TypeVar("T")

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 8.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How to repeat: *retries* further tries, none begun later than *limit_s* after the first; *sleep* waits."""

    retries: int
    limit_s: float
    sleep: Callable[[float], None]


def repeated(call: Callable[[], T], patience: Patience) -> T:
    """Return what *call* returns at its first success. Raises: EmbeddingError, the last one."""
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(1 + patience.retries) | tenacity.stop_before_delay(patience.limit_s),
        wait=tenacity.wait_random_exponential(FIRST_WAIT_S, max=LONGEST_WAIT_S),
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, EmbeddingError) and error.can_repeat),
        sleep=patience.sleep,
        reraise=True,
    )
    return retrying(call)
