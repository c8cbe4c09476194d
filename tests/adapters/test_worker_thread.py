"""Real threads and real greenlets: who works long, who goes on meanwhile, and what is ended."""

import subprocess
import sys
import threading

import gevent

from datafari_rag.adapters.worker_thread import LONG_UNITS, WorkThread, offload_for_worker
from datafari_rag.ports import inline
from tests.support.waiting import HANGS_S

BEGINNING = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent, gevent.event, threading
from datafari_rag.adapters.worker_thread import LONG_UNITS, WorkThread, offload_for_worker
from datafari_rag.core.errors import TooMuchWork
"""

UNDER_GREENLETS = (
    BEGINNING
    + """
steps, offload = [], offload_for_worker()

def long_work():
    total = sum(number % 7 for number in range(8_000_000))
    steps.append("worked")
    return total

others = gevent.spawn(lambda: [(gevent.sleep(0.001), steps.append("went on")) for _ in range(3)])
assert offload(long_work, LONG_UNITS) == sum(number % 7 for number in range(8_000_000))
print(*steps)
"""
)

TOO_LONG = (
    BEGINNING
    + """
from datafari_rag.core.errors import Overloaded
get_ident = gevent.monkey.get_original("_thread", "get_ident")
done = gevent.monkey.get_original("threading", "Event")()
steps, offload = [], offload_for_worker(lambda: 0.2)

def tried(work):
    try:
        return offload(work, LONG_UNITS)
    except (TooMuchWork, Overloaded) as error:
        steps.append(error.label)

others = gevent.spawn(lambda: [(gevent.sleep(0.01), steps.append("went on")) for _ in range(3)])
tried(done.wait)
tried(get_ident)
done.set()
while (thread := tried(get_ident)) is None:
    pass
assert thread != get_ident()
print(*steps[:5])
"""
)


def printed_by(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.split()


def test_where_there_are_no_greenlets_work_is_done_at_once() -> None:
    assert offload_for_worker() is inline
    assert inline(threading.get_ident, LONG_UNITS) == threading.get_ident()


def test_only_long_work_gets_a_thread() -> None:
    offload = WorkThread(lambda: 10.0)
    assert offload(threading.get_ident, LONG_UNITS - 1) == threading.get_ident()
    assert offload(threading.get_ident, LONG_UNITS) != threading.get_ident()


def test_other_greenlets_go_on_during_long_work() -> None:
    assert printed_by(UNDER_GREENLETS) == ["went", "on", "went", "on", "went", "on", "worked"]


def test_work_that_takes_too_long_is_told_and_has_the_thread_until_it_is_done() -> None:
    assert printed_by(TOO_LONG) == ["went", "on", "went", "on", "went", "on", "tooMuchWork", "overloaded"]


IN_TURN = (
    BEGINNING
    + """
from functools import partial
order = []
offload = WorkThread(lambda: 60.0, lambda: names[gevent.getcurrent()])
names, go = {}, gevent.event.Event()

def work(name):
    order.append(name)
    return name

def first():
    while not go.is_set():
        pass
    order.append("first")

def send(name, what):
    one = gevent.spawn(offload, what, LONG_UNITS)
    names[one] = name
    gevent.sleep(0)
    return one

sent = [send("ann", first)] + [send(name, partial(work, name)) for name in ("ann", "ann", "bob")]
go.set()
gevent.joinall(sent)
assert not offload._own
print(*order)
"""
)


def test_nobody_waits_for_more_than_one_piece_of_another_caller() -> None:
    assert printed_by(IN_TURN) == ["first", "bob", "ann", "ann"]


RAISING = (
    BEGINNING
    + """
def work():
    raise ValueError("words of a document")

try:
    offload_for_worker()(work, LONG_UNITS)
except ValueError as error:
    print("raised", len(error.args))
"""
)


def test_what_long_work_raises_is_not_written_anywhere() -> None:
    assert printed_by(RAISING) == ["raised", "1"]


def test_work_whose_caller_is_gone_keeps_the_thread_until_it_is_done() -> None:
    begun, ended = threading.Event(), threading.Event()

    def working() -> None:
        begun.set()
        assert ended.wait(HANGS_S)

    offload = WorkThread(lambda: HANGS_S)
    caller = gevent.spawn(offload, working, LONG_UNITS)
    while not begun.is_set():
        gevent.sleep(0)
    caller.kill()
    next_one = gevent.spawn(offload, threading.get_ident, LONG_UNITS)
    gevent.sleep(0)
    assert not next_one.ready()
    ended.set()
    assert next_one.get(timeout=HANGS_S) != threading.get_ident()
