"""What is logged when the loop of a worker stood, at whatever clock."""

from __future__ import annotations

import contextvars
import logging
import subprocess
import sys

import pytest

from datafari_rag.adapters.worker_thread import LoopWatch


class Left:
    """A greenlet that gave way."""

    gr_context = contextvars.copy_context()


@pytest.mark.parametrize(
    ("stood_s", "path", "logged"),
    [
        pytest.param(0.3, "/grounding/check", "the loop stood for 300 ms path=/grounding/check", id="too long"),
        pytest.param(0.2, "/grounding/check", "", id="not long"),
        pytest.param(9.0, "", "", id="the loop itself, which waits for events"),
    ],
)
def test_who_had_the_loop_for_long_is_named(
    stood_s: float, path: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    watch = LoopWatch(lambda context: path, lambda: now[0])
    now[0] += stood_s
    with caplog.at_level(logging.WARNING):
        watch("switch", (Left(), Left()))
        watch("switch", (Left(), Left()))
    assert [record.getMessage() for record in caplog.records] == ([logged] if logged else [])


PROGRAM = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent, logging, sys, time
from datafari_rag.adapters import worker_thread
from datafari_rag.web.ops import request_context
logging.basicConfig(stream=sys.stdout, format="%(message)s")
# So small that any work is long.
worker_thread.LONGEST_S = 0.0
worker_thread.watch_loop(request_context.path_in)

def answer():
    request_context.begin("1", {}, "/search/select")
    gevent.sleep(0)

gevent.spawn(answer).join()
"""


def test_the_path_of_a_real_greenlet_is_named() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert "path=/search/select" in done.stdout
