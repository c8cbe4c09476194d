"""Real threads and real greenlets: who works long, and who goes on meanwhile."""

import subprocess
import sys
import threading

import pytest

from datafari_rag.adapters.worker_thread import LONG_CHARS, _Thread, aside_for_worker
from datafari_rag.ports import at_once

UNDER_GREENLETS = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent
from datafari_rag.adapters.worker_thread import LONG_CHARS, aside_for_worker

steps, aside = [], aside_for_worker()

def long_work():
    total = sum(number % 7 for number in range(8_000_000))
    steps.append("worked")
    return total

others = gevent.spawn(lambda: [(gevent.sleep(0.001), steps.append("went on")) for _ in range(3)])
assert aside(long_work, LONG_CHARS) == sum(number % 7 for number in range(8_000_000))
print(*steps)
"""


def test_where_there_are_no_greenlets_work_is_done_at_once() -> None:
    assert aside_for_worker() is at_once
    assert at_once(threading.get_ident, LONG_CHARS) == threading.get_ident()


def test_only_long_work_gets_a_thread() -> None:
    aside = _Thread()
    assert aside(threading.get_ident, LONG_CHARS - 1) == threading.get_ident()
    assert aside(threading.get_ident, LONG_CHARS) != threading.get_ident()


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        _Thread()(lambda: 1 // 0, LONG_CHARS)


def test_other_greenlets_go_on_during_long_work() -> None:
    done = subprocess.run([sys.executable, "-c", UNDER_GREENLETS], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["went", "on", "went", "on", "went", "on", "worked"], done.stderr
