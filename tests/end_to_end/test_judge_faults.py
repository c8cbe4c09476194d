"""
Every fault of the second judge, through the whole service: the check is answered all the same, and names the fault.

What the caller saw is a row of the fault matrix (`matrix.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from datafari_rag.bootstrap import create_app
from tests.end_to_end.matrix import Record, tell
from tests.loopback import Asked, Reply, serving

CLAIM = "Your dog may ride in the van."
BODY = {"answerCandidate": CLAIM, "facts": [{"factText": "Dogs travel in the luggage van."}]}
pytestmark = pytest.mark.slow

PATIENCE_S = 0.4
"""The limit where it is what ends the request; everywhere else it would only measure how busy the machine is."""

NO_LIMIT_S = 60.0


def good(asked: Asked) -> Reply:
    pairs = json.loads(asked.body)["inputs"]
    return Reply(json.dumps([[{"label": "entailment", "score": 0.99}] for _ in pairs]).encode())


def hang(asked: Asked) -> Reply:
    asked.over.wait()
    return Reply()


def drip(asked: Asked) -> Reply:
    def write(socket: object) -> None:
        for _ in range(10):
            time.sleep(PATIENCE_S / 4)
            socket.write(b" ")  # type: ignore[attr-defined] # the file of a socket

    return Reply(write=write)


FAULTS: list[tuple[str, Callable[[Asked], Reply], str]] = [
    ("hangs", hang, "judgeTimeout"),
    ("drips", drip, "judgeTimeout"),
    ("401", lambda asked: Reply(status=401), "judgeUnavailable"),
    ("500", lambda asked: Reply(status=500), "judgeUnavailable"),
    ("garbage", lambda asked: Reply(b"<html>"), "judgeGarbled"),
    ("half an answer", lambda asked: Reply(b"[[", length=99), "judgeUnavailable"),
    ("labels for fewer claims", lambda asked: Reply(b"[]"), "judgeGarbled"),
]


def seen(tmp_path: Path, url: str, patience_s: float) -> tuple[int, str, str | None, float]:
    settings = {"answer.judge.endpoint": url, "answer.judge.timeout_s": str(patience_s)}
    client = create_app(overrides=settings | {"log.file": str(tmp_path / "log")}).test_client()
    begun = time.monotonic()
    response = client.post("/grounding/check", json=BODY)
    took_s = time.monotonic() - begun
    found = response.get_json()
    failure = found["secondJudge"]["failure"]
    label = None if failure is None else failure["label"]
    return response.status_code, found["claims"][0]["status"], label, took_s


@pytest.mark.parametrize(("fault", "answer", "label"), FAULTS, ids=[name for name, *_ in FAULTS])
def test_a_fault_of_the_second_judge_is_named_and_fails_no_check(
    fault: str, answer: Callable[[Asked], Reply], label: str, tmp_path: Path, record_property: Record
) -> None:
    with serving(answer) as server:
        patience_s = PATIENCE_S if label == "judgeTimeout" else NO_LIMIT_S
        code, status, found, took_s = seen(tmp_path, server.url, patience_s)
        server.answer = good
        then = seen(tmp_path, server.url, NO_LIMIT_S)
    assert (code, status, found) == (200, "unsupported", label)
    assert then[:3] == (200, "supported", None)
    saw = "HTTP 200, the comparison of words"
    tell(record_property, f"second judge: {fault}", saw, label=label, took_s=took_s, then="HTTP 200, its word")


def test_a_second_judge_that_is_not_there_is_named_and_fails_no_check(tmp_path: Path, record_property: Record) -> None:
    with serving(good) as server:
        pass
    code, status, label, took_s = seen(tmp_path, server.url, NO_LIMIT_S)
    assert (code, status, label) == (200, "unsupported", "judgeUnavailable")
    saw = "HTTP 200, the comparison of words"
    tell(record_property, "second judge: connection refused", saw, label="judgeUnavailable", took_s=took_s)
