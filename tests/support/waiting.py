"""Waiting for what a program or a thread brings about: it takes as long as it takes on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

HANGS_S = 240.0
"""A test that still waits then hangs; none is right or wrong by how long it waited."""

STEP_S = 0.02


def until(look: Callable[[], Found], why: Callable[[], object] = str) -> Found:
    """
    Return what *look* finds, as soon as it finds something true.

    Raises:
        AssertionError: it never does; the text is what *why* returns.
    """
    limit = time.monotonic() + HANGS_S
    while not (found := look()):
        assert time.monotonic() < limit, why()
        time.sleep(STEP_S)
    return found
