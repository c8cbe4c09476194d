"""A wall clock that jumps: by a correction, a resumed machine, a wrong hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask

from datafari_rag.bootstrap import TEMPLATES
from datafari_rag.web.app import register
from datafari_rag.web.ops.metrics import LastFailures
from datafari_rag.web.ops.rate_limits import SharedCounters
from tests.end_to_end.matrix import Record, tell
from tests.fakes import FakeService, fake_snapshot
from tests.support.clock import Clock

YEAR_S = 365 * 86_400.0
QUESTION = "/search/select?action=rag&q=When+does+the+flight+take+off"


class Jumping(FakeService):
    """A service under that clock."""

    the_clock = Clock()

    @property
    def clock(self) -> Callable[[], float]:
        return self.the_clock


@pytest.mark.parametrize("jump_s", [YEAR_S, -YEAR_S, -1.0], ids=["a year on", "a year back", "a second back"])
def test_answers_go_on_when_the_clock_jumps(jump_s: float, record_property: Record) -> None:
    service = Jumping(fake_snapshot())
    service.the_clock = Clock()
    app = Flask("tests", static_folder=None, template_folder=str(TEMPLATES))
    register(app, service)
    client = app.test_client()
    before = client.get(QUESTION).status_code
    service.the_clock.now += jump_s
    whole, streamed = client.get(QUESTION), client.get(f"{QUESTION}&stream=true")

    ready = client.get("/health/ready").status_code
    saw = f"HTTP {whole.status_code}, streamed HTTP {streamed.status_code}, readiness HTTP {ready}"
    tell(record_property, f"clock: it jumps by {jump_s:+,.0f} s", saw)

    assert (before, whole.status_code, streamed.status_code, ready) == (200, 200, 200, 200)
    assert "stream.completed" in streamed.text


@pytest.mark.parametrize("jump_s", [YEAR_S, -YEAR_S], ids=["on", "back"])
def test_a_limit_used_up_is_free_again_within_a_window_however_the_clock_jumps(jump_s: float) -> None:
    clock = Clock()
    counters = SharedCounters(clock=clock)
    used = [counters.add("ann")[0] for _ in range(5)]
    clock.now += jump_s

    assert used == [1, 2, 3, 4, 5]
    assert counters.add("ann")[0] == 1


def test_a_failure_after_the_clock_was_set_back_is_told_and_shared(tmp_path: Path) -> None:
    clock = Clock()
    mine, other = LastFailures(tmp_path, clock), LastFailures(tmp_path, clock)
    mine.note("searchTimeout")
    clock.now -= YEAR_S
    mine.note("searchUnavailable")

    assert other.latest("search") == {"label": "searchUnavailable", "at": "2022-11-14T22:13:20Z"}
