"""
Long work in a separate thread, so that the streams of a worker continue, and only up to a limit.

The greenlets of a worker share one thread; who works long there keeps every open stream waiting. A thread has to give
the interpreter up every few milliseconds. One such thread is enough: two would only share the interpreter, and the
memory of two such answers would be held at the same time. A caller waits for the end of the caller's own work before
waiting for the thread, so that nobody waits for more than one piece of each other caller. Work that is still not done
after `server.limits.work_s` is ended, and its caller gets a specific error.

What kept the loop of a worker standing is logged: every other request of the worker waited meanwhile. It is looked at
when one greenlet gives way to another, so that a call into C is seen too. What answers no path, such as the greenlet of
the loop itself, which waits for events, is not counted.
"""

from __future__ import annotations

import ctypes
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any, Generic, TypeVar

import gevent
import gevent.lock
import gevent.monkey
import gevent.threadpool
import greenlet

from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import Overloaded, TooMuchWork
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.ports import Offload, Retriever, inline

T = TypeVar("T")

LONG_UNITS = 100_000
"""Work of more units than this is long: about ten milliseconds, or a hundred if the text is made to be slow."""

LIMIT_S = 10.0
ATTEMPTS, PAUSE_S = 20, 0.1
"""How often, and how many seconds apart, work is ended until it has: a call of the library ends first."""


class WorkInterrupted(BaseException):
    """Raised inside work that took too long; no `except Exception` of the work catches it."""


def offload_for_worker(
    limit_s: Callable[[], float] = lambda: LIMIT_S, caller: Callable[[], str] = lambda: ""
) -> Offload:
    """
    Return the thread for long work where greenlets share one, which is then started when first needed.

    *limit_s* gives the seconds that a piece of work may take, *caller* names whose work it is. Without greenlets no
    other request waits, and all work is done in place, without a limit.
    """
    return WorkThread(limit_s, caller) if gevent.monkey.is_module_patched("socket") else inline


class WorkThread:
    """An `Offload` of one thread, which long work waits for in turn."""

    def __init__(self, limit_s: Callable[[], float], caller: Callable[[], str] = lambda: "") -> None:
        """Start no thread yet."""
        self._limit_s, self._caller = limit_s, caller
        self._turn = gevent.lock.BoundedSemaphore(1)
        self._own: dict[str, _OwnTurn] = {}
        self._pool: gevent.threadpool.ThreadPool | None = None

    def __call__(self, work: Callable[[], T], units: int) -> T:
        """
        Return what *work* returns.

        Raises:
            Overloaded: other long work had the thread for as long as one may take.
            TooMuchWork: it took too long and was ended.
        """
        if units < LONG_UNITS:
            return work()
        limit_s = self._limit_s()
        with self._own_turn(self._caller(), limit_s), _holding(self._turn, limit_s):
            own = _Work(work)
            if self._pool is None:
                # Made by whom it serves: a thread does not outlive a fork.
                self._pool = gevent.threadpool.ThreadPool(1)
            result = self._pool.spawn(own)
            try:
                result.wait(timeout=limit_s)
                if result.ready():
                    return own.result()
                self._end(own, result)
                raise TooMuchWork(log=f"ended after {limit_s:g} s")
            finally:
                if not result.ready():  # the waiting greenlet was ended, or the work does not end
                    own.end()
                if own.was_ended:
                    # An end that came late may be raised in the idle thread, so that this one is used no more.
                    gevent.spawn(self._pool.kill)
                    self._pool = None

    @contextmanager
    def _own_turn(self, caller: str, limit_s: float) -> Iterator[None]:
        """Hold the place of *caller*, who has one; the callers that nobody names have none to wait for."""
        own = self._own.setdefault(caller, _OwnTurn()) if caller else _OwnTurn()
        own.waiters += 1
        try:
            with _holding(own.turn, limit_s):
                yield
        finally:
            own.waiters -= 1
            if not own.waiters:
                self._own.pop(caller, None)

    def _end(self, work: _Work[T], result: Any) -> None:
        for _ in range(ATTEMPTS):
            work.end()
            result.wait(timeout=PAUSE_S)
            if result.ready():
                return


@contextmanager
def _holding(turn: gevent.lock.BoundedSemaphore, limit_s: float) -> Iterator[None]:
    """Hold *turn* for the block. Raises: Overloaded: it was not free in time."""
    if not turn.acquire(timeout=limit_s):
        raise Overloaded(log="the thread for long work was not free in time")
    try:
        yield
    finally:
        turn.release()


class _OwnTurn:
    """The place of one caller, and how many pieces of work hold it or wait for it."""

    def __init__(self) -> None:
        self.turn = gevent.lock.BoundedSemaphore(1)
        self.waiters = 0


class _Work(Generic[T]):
    """
    Work that another thread can end.

    It keeps what the work raises: gevent's pool would write it to the log, with the texts that it was about.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._thread_id: int | None = None
        self._results: list[T] = []
        self._failure: BaseException | None = None
        self.was_ended = False

    def __call__(self) -> None:
        """Do the work."""
        with self:
            self._results.append(self._work())

    def __enter__(self) -> None:
        self._thread_id = _thread_id()

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> bool:
        self._thread_id, self._failure = None, failure
        return True

    def result(self) -> T:
        """Return what the work returned, and raise what it raised."""
        if self._failure is not None:
            raise self._failure
        return self._results[0]

    def end(self) -> None:
        """
        Have `WorkInterrupted` raised in the thread of the work, at its next step in Python.

        That is CPython's own way to end a thread from outside (`PyThreadState_SetAsyncExc`). It interrupts every loop
        and call of Python code, a pattern or another call of the library only behind its end; no pattern takes long.
        """
        self.was_ended = True
        if self._thread_id is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread_id), ctypes.py_object(WorkInterrupted)
            )


def _thread_id() -> int:
    """Return the id of the system's thread, not of a greenlet."""
    own: int = gevent.monkey.get_original("_thread", "get_ident")()
    return own


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


class Indexes:
    """Sends a search to the index that it names; everything else goes to the one of `solr.url`."""

    def __init__(self, main: Retriever, others: Mapping[str, Retriever]) -> None:
        """Hold *main* and the *others* by their names."""
        self._main = main
        self.others = dict(others)

    @property
    def main(self) -> Retriever:
        """The index of `solr.url`."""
        return self._main

    def search(self, search: Search, access: Filter) -> SearchResult:
        """Search where `search.index` says. Raises as `ports.Retriever.search`; KeyError: no such index."""
        engine = self._main if search.index is None else self.others[search.index]
        result = engine.search(search, access)
        documents = tuple(replace(document, index=search.index) for document in result.documents)
        return replace(result, documents=documents)

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Browse the index of `solr.url`."""
        return self._main.browse(browse, access)

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """Return the document from the first index in which this user may see it, that of `solr.url` first."""
        for engine in (self._main, *self.others.values()):
            document = engine.fetch(document_id, field, access)
            if document is not None:
                return document
        return None

    def probe(self) -> str | None:
        """Return what is wrong with the first index that could not be searched now."""
        return next((problem for engine in (self._main, *self.others.values()) if (problem := engine.probe())), None)


log = logging.getLogger(__name__)

LONGEST_S = 0.25
"""A loop that stood for longer is logged."""


class LoopWatch:
    """What `greenlet.settrace` calls at each change from one greenlet to another."""

    def __init__(self, path_in: Callable[[Context | None], str], clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now. *path_in* names the path that is answered in a context, "" where there is none."""
        self._path_in, self._clock = path_in, clock
        self._since = clock()

    def __call__(self, event: str, change: tuple[Any, Any]) -> None:
        """Log the greenlet that *change* leaves, when it had the loop for too long."""
        now = self._clock()
        stood_s, self._since = now - self._since, now
        if stood_s >= LONGEST_S and (path := self._path_in(change[0].gr_context)):
            log.warning("the loop stood for %.0f ms path=%s", stood_s * 1000, path)


def watch_loop(path_in: Callable[[Context | None], str]) -> None:
    """Watch the greenlets of this thread from here on."""
    greenlet.settrace(LoopWatch(path_in))
