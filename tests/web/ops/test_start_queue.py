"""A rush of answers: the first begin promptly, the others in their order; who would wait too long is refused early."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest

from datafari_rag.core.access import Filter
from datafari_rag.core.errors import Overloaded
from datafari_rag.core.search_request import Search, SearchResult
from datafari_rag.core.settings.table import ServerLimits
from datafari_rag.web.ops.rate_limits import MAX_RETRY_S, StartQueue
from tests.fakes import FLIGHT, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with
from tests.support.clock import Clock
from tests.support.waiting import HANGS_S, until

LONG_S = 30.0
QUESTION = {"index_name": "default", "messages": [{"role": "user", "content": "When does the flight take off?"}]}


@contextmanager
def held(queue: StartQueue, places: int) -> Iterator[None]:
    """Hold *places* places."""
    with ExitStack() as stack:
        for _ in range(places):
            stack.enter_context(queue.place(places, LONG_S))
        yield


def used(queue: StartQueue, clock: Clock, took_s: float, times: int = 60) -> None:
    """Let it learn how long a place is held."""
    for _ in range(times):
        with queue.place(1, LONG_S):
            clock.now += took_s


def waiter(queue: StartQueue, order: list[int], number: int, places: int = 1) -> threading.Thread:
    """Return a started thread that waits for a place; returns when it does wait."""
    before = len(queue._waiting)

    def wait() -> None:
        with queue.place(places, LONG_S):
            order.append(number)

    thread = threading.Thread(target=wait)
    thread.start()
    while len(queue._waiting) == before and thread.is_alive():
        pass
    return thread


def test_who_waits_begins_in_the_order_he_came() -> None:
    queue, order = StartQueue(), list[int]()
    with held(queue, 1):
        threads = [waiter(queue, order, number) for number in range(5)]
        assert order == []
    for thread in threads:
        thread.join(LONG_S)
    assert order == [0, 1, 2, 3, 4]
    with held(queue, 1):
        pass


def test_who_would_wait_too_long_is_refused_when_he_comes_with_when_to_try_again() -> None:
    clock = Clock()
    queue, order = StartQueue(clock), list[int]()
    used(queue, clock, took_s=2.0)
    with held(queue, 1):
        thread = waiter(queue, order, 1)
        with pytest.raises(Overloaded) as refused, queue.place(1, 3.0):
            pass
        assert refused.value.retry_after_s == pytest.approx(4.0, rel=0.05)
        with pytest.raises(Overloaded) as refused, queue.place(1, 0.01):
            pass
    thread.join(LONG_S)
    assert order == [1]


def test_more_places_are_a_shorter_wait() -> None:
    clock = Clock()
    queue, order = StartQueue(clock), list[int]()
    used(queue, clock, took_s=2.0)
    with held(queue, 4):
        thread = waiter(queue, order, 1, places=4)
        assert not order
    thread.join(LONG_S)
    assert order == [1]


def test_a_wait_that_lasts_too_long_after_all_is_refused_and_leaves_no_trace() -> None:
    queue = StartQueue()
    with held(queue, 1), pytest.raises(Overloaded) as refused, queue.place(1, 0.05):
        pass
    assert refused.value.retry_after_s == 0.05
    for _ in range(3):
        with queue.place(1, 0.05):
            pass


def test_an_answer_that_fails_gives_its_place_back() -> None:
    queue = StartQueue()
    for _ in range(3):
        with pytest.raises(KeyError), queue.place(1, 0.05):
            raise KeyError


def test_the_time_to_try_again_has_a_bound() -> None:
    clock = Clock()
    queue = StartQueue(clock)
    used(queue, clock, took_s=5000.0)
    with held(queue, 1), pytest.raises(Overloaded) as refused, queue.place(1, 3.0):
        pass
    assert refused.value.retry_after_s == MAX_RETRY_S


class Counting(FakeRetriever):
    """Counts how many search at the same time; none goes on before it is *open*."""

    def __init__(self) -> None:
        super().__init__(FLIGHT)
        self.lock, self.now, self.most, self.open = threading.Lock(), 0, 0, threading.Event()

    def search(self, search: Search, access: Filter) -> SearchResult:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.open.wait(HANGS_S)
        with self.lock:
            self.now -= 1
        return super().search(search, access)


@pytest.mark.parametrize(
    "path", ["/search/select?action=rag&q=flight", "/search/select?action=rag&stream=true&q=flight"]
)
def test_a_rush_of_answers_searches_a_few_at_a_time_and_all_are_answered(path: str) -> None:
    retriever = Counting()
    settings = settings_with(server_limits=ServerLimits(starting=2, wait_s=60.0))
    app = app_of(fake_snapshot(retriever, settings=settings))
    with ThreadPoolExecutor(12) as pool:
        answers = pool.map(lambda _: app.test_client().get(path).get_data(as_text=True), range(12))
        until(lambda: retriever.now + len(app.extensions["worker"].starts._waiting) == 12)
        retriever.open.set()
    assert all("The flight takes off" in answer for answer in answers)
    assert retriever.most == 2


def test_who_is_refused_learns_it_in_his_dialect_with_when_to_try_again() -> None:
    settings = settings_with(server_limits=ServerLimits(starting=1, wait_s=0.1))
    app = app_of(fake_snapshot(settings=settings))
    starts = app.extensions["worker"].starts
    with starts.place(1, 1.0):
        answer = app.test_client().post("/v1/chat/completions", json=QUESTION)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.get_json()["error"]["code"] == "overloaded"
    assert app.test_client().post("/v1/chat/completions", json=QUESTION).status_code == 200


@pytest.mark.parametrize(
    "work", [{"action": "summarize", "id": FLIGHT.id}, {"action": "synthesize", "filters": {"id": [FLIGHT.id]}}]
)
def test_work_on_whole_documents_takes_a_place_as_an_answer_does(work: dict[str, object]) -> None:
    settings = settings_with(server_limits=ServerLimits(starting=1, wait_s=0.1))
    app = app_of(fake_snapshot(settings=settings))
    with app.extensions["worker"].starts.place(1, 1.0):
        refused = app.test_client().post("/rest/v2.0/ai", json=work)
    assert refused.status_code == 503
    assert refused.get_json()["content"]["error"]["cause"] == "overloaded"
    assert app.test_client().post("/rest/v2.0/ai", json=work).get_json()["status"] == "OK"
