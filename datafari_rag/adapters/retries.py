"""When a failed request is sent again: where it may succeed in a moment, with jitter, and never past a deadline."""

from __future__ import annotations

import random
from collections.abc import Callable

from datafari_rag.core.errors import EmbeddingError, ModelError

FIRST_WAIT_S = 0.25
"""Longest wait before the second try; it doubles with each further one, and chance takes some of it off."""

LONGEST_WAIT_S = 8.0


def retry_wait_s(
    failure: ModelError | EmbeddingError, number: int, *, left_s: float, chance: Callable[[], float] = random.random
) -> float | None:
    """
    Return the seconds to wait after try *number* failed, None where no other try helps or *left_s* is too short.

    It is what the server wants and a little more, or part of a time that doubles; *chance* gives from 0 to 1.
    """
    if not failure.can_repeat:
        return None
    if failure.retry_after_s is not None:
        wait_s = failure.retry_after_s + chance() * FIRST_WAIT_S
    else:
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (number - 1)) * (0.5 + 0.5 * chance())
    return wait_s if wait_s < left_s else None
