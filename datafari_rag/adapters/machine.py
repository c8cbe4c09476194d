"""
What the adapters take of the machine: clocks, sleep, chance, connections, and the disk of the audit trail.

The defaults are the machine's own. A simulation passes others, and everything above runs as it does in production.
Nothing here decides anything.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import gevent.monkey
import gevent.threadpool

from datafari_rag.adapters.http import Client


class Signal(Protocol):
    """Waits until it is set, as `threading.Event` does."""

    def wait(self) -> object:
        """Return when it is set."""
        ...

    def set(self) -> None:
        """Release all present and future waiters."""
        ...


def pause(seconds: float) -> None:
    """Sleep; the function is looked up now, so that gevent's is used even if it was put in place late."""
    time.sleep(seconds)


def new_signal() -> Signal:
    """Return a new `threading.Event`; looked up now, as in `pause`."""
    return threading.Event()


def new_nonce() -> str:
    """Return an unguessable word for the fences of one request."""
    return secrets.token_hex(8)


@cache
def _disk_thread() -> gevent.threadpool.ThreadPool:
    # Not the hub's own threads: names of hosts are looked up there.
    return gevent.threadpool.ThreadPool(1)


def in_disk_thread(work: Callable[[], None]) -> None:
    """Do *work* that a slow disk may hold up; where greenlets share a thread, in another one, and the others go on."""
    if gevent.monkey.is_module_patched("socket"):
        _disk_thread().apply(work)
    else:
        work()


@dataclass(frozen=True, slots=True)
class Machine:
    """
    *monotonic* gives seconds that never go back, *wall* seconds since 1970, *chance* a number from 0 to 1.

    *client* makes clients as `http.Client` does; *at_disk* does work that waits for the disk, and *write* writes to a
    file descriptor.
    """

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = pause
    chance: Callable[[], float] = random.random
    client: Callable[..., Client] = Client
    signal: Callable[[], Signal] = new_signal
    nonce: Callable[[], str] = new_nonce
    at_disk: Callable[[Callable[[], None]], None] = in_disk_thread
    write: Callable[[int, bytes], int] = os.write


MACHINE = Machine()
"""The machine itself."""
