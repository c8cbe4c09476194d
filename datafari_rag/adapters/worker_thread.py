"""
Long work in a separate thread, so that the streams of a worker continue, and only up to a limit.

The greenlets of a worker share one thread; who works long there keeps every open stream waiting. A thread has to give
the interpreter up every few milliseconds. One such thread is enough: two would only share the interpreter, and the
memory of two such answers would be held at the same time. A caller waits for the end of the caller's own work before
waiting for the thread, so that nobody waits for more than one piece of each other caller. The caller of work that is
still not done after `server.limits.work_s` gets a specific error. Nothing ends a thread from outside: its work, whose
length its input limits, keeps the thread until it is done, and other long work is refused meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from typing import TypeVar, cast

import gevent
import gevent.lock
import gevent.monkey
import gevent.threadpool
from gevent.util import wrap_errors

from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import Overloaded, TooMuchWork
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.ports import Offload, Retriever, inline

T = TypeVar("T")

LONG_UNITS = 100_000
"""Work of more units than this is long: about ten milliseconds, or a hundred if the text is made to be slow."""

LIMIT_S = 10.0


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
        self._own: dict[str, tuple[gevent.lock.BoundedSemaphore, list[str]]] = {}
        self._pool: gevent.threadpool.ThreadPool | None = None

    def __call__(self, work: Callable[[], T], units: int) -> T:
        """
        Return what *work* returns.

        Raises:
            Overloaded: other long work had the thread for as long as one may take.
            TooMuchWork: it took too long; it goes on, and has the thread until it is done.
        """
        if units < LONG_UNITS:
            return work()
        limit_s = self._limit_s()
        with self._own_turn(self._caller(), limit_s):
            _take(self._turn, limit_s)
            if self._pool is None:
                # Made by whom it serves: a thread does not outlive a fork.
                self._pool = gevent.threadpool.ThreadPool(1)
            # What the work raises the pool would write to the log, with the texts that it was about.
            running = self._pool.spawn(wrap_errors(BaseException, work))
            running.rawlink(lambda _: self._turn.release())
            running.wait(timeout=limit_s)
            if not running.ready():
                raise TooMuchWork(log=f"not done after {limit_s:g} s")
            if isinstance(running.value, BaseException):
                raise running.value
            return cast(T, running.value)

    @contextmanager
    def _own_turn(self, caller: str, limit_s: float) -> Iterator[None]:
        """Hold the place of *caller*, who has one; the callers that nobody names have none to wait for."""
        new = gevent.lock.BoundedSemaphore(1), list[str]()
        turn, waiters = self._own.setdefault(caller, new) if caller else new
        waiters.append(caller)
        try:
            _take(turn, limit_s)
            try:
                yield
            finally:
                turn.release()
        finally:
            waiters.pop()
            if not waiters:
                self._own.pop(caller, None)


def _take(turn: gevent.lock.BoundedSemaphore, limit_s: float) -> None:
    """Take *turn*. Raises: Overloaded: it was not free in time."""
    if not turn.acquire(timeout=limit_s):
        raise Overloaded(log="the thread for long work was not free in time")


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
