from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from datafari_rag.adapters.worker_thread import side_by_side
from datafari_rag.core.errors import SearchTimeout, SearchUnavailable

WHO: ContextVar[str] = ContextVar("who", default="nobody")


def test_both_are_done_at_the_same_time_in_the_same_context() -> None:
    WHO.set("ann")
    meet = threading.Barrier(2, timeout=30)

    def work(name: str) -> tuple[str, str]:
        meet.wait()  # each waits for the other: one after the other would never end
        return name, WHO.get()

    assert side_by_side(lambda: work("words"), lambda: work("meaning")) == (("words", "ann"), ("meaning", "ann"))


def test_what_the_first_raises_goes_before_and_both_have_ended() -> None:
    ended: list[str] = []

    def fail(error: Exception, name: str) -> None:
        ended.append(name)
        raise error

    with pytest.raises(SearchUnavailable):
        side_by_side(lambda: fail(SearchUnavailable(), "words"), lambda: fail(SearchTimeout(), "meaning"))
    assert sorted(ended) == ["meaning", "words"]
    with pytest.raises(SearchTimeout):
        side_by_side(lambda: None, lambda: fail(SearchTimeout(), "meaning"))
