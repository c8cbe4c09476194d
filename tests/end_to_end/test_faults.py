"""
The fault matrix through the whole service: real processes, each part broken in every way that it can break.

Each row: what the caller saw, the label, the time, and that the next good request works. `.ci/measure faults` prints
the table (`matrix.py`). The model's own faults are in test_model_faults.py; here are the cuts in the network between it
and us.
"""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from datafari_rag.adapters.solr.factory import retriever_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.errors import SearchError, SearchTimeout
from datafari_rag.core.search_request import Search, Step
from datafari_rag.core.settings.table import SolrLimits
from tests.end_to_end.faults import (
    CANARY,
    PATIENCE_S,
    QUESTION,
    ROOMY,
    SECRET,
    TOO_SLOW_S,
    Scene,
    garbage,
    half,
    half_said_whole,
    huge,
    scene,
    status,
)
from tests.end_to_end.matrix import Record, tell
from tests.end_to_end.processes import Running, service
from tests.settings import settings_with
from tests.support.waiting import until

pytestmark = [pytest.mark.solr, pytest.mark.slow]

ACCESS = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
PUMP = Search("pump", Step("asked", ("pump",)), 5)


@dataclass(frozen=True)
class Fault:
    """One way in which *part* breaks; *label* and *code* are what the caller must receive."""

    part: str
    name: str
    label: str
    code: int
    break_it: Callable[[Scene], None]
    is_streamed: bool = False

    @property
    def id(self) -> str:
        return f"{self.part}: {self.name}"

    def service_in(self, parts: Scene) -> Running:
        """Return the service to ask: short limits where they are what must end the request."""
        return parts.service if self.label.endswith("Timeout") else parts.patient


def solr(name: str, label: str, code: int, break_it: Callable[[Scene], None]) -> Fault:
    return Fault("Solr", name, label, code, break_it)


def authority(name: str, label: str, code: int, break_it: Callable[[Scene], None]) -> Fault:
    return Fault("authority", name, label, code, break_it)


def model(name: str, label: str, code: int, break_it: Callable[[Scene], None], *, is_streamed: bool = False) -> Fault:
    return Fault("model", name, label, code, break_it, is_streamed)


def lie(part: str, instead: object) -> Callable[[Scene], None]:
    return lambda scene: setattr(getattr(scene, f"{part}_says"), "instead", instead)


def cut(part: str, **how: object) -> Callable[[Scene], None]:
    def break_it(scene: Scene) -> None:
        wire = getattr(scene, f"{part}_wire")
        for name, value in how.items():
            setattr(wire, name, value)
        wire.drop()

    return break_it


def off(part: str) -> Callable[[Scene], None]:
    return cut(part, refuses=True)


FAULTS = [
    solr("stopped", "searchUnavailable", 502, Scene.stop_solr),
    solr("paused (SIGSTOP)", "searchTimeout", 504, Scene.pause_solr),
    solr("too slow", "searchTimeout", 504, cut("solr", delay_s=TOO_SLOW_S)),
    solr("hangs", "searchTimeout", 504, cut("solr", hangs=True)),
    solr("drips", "searchTimeout", 504, cut("solr", delay_s=0.2, slice_bytes=50)),
    solr("drips its head", "searchTimeout", 504, cut("solr", delay_s=0.2, slice_bytes=1)),
    solr("resets the connection", "searchUnavailable", 502, cut("solr", resets_after=50)),
    solr("401", "searchUnavailable", 502, lie("solr", status(401))),
    solr("403", "searchUnavailable", 502, lie("solr", status(403))),
    solr("500", "searchUnavailable", 502, lie("solr", status(500))),
    solr("503", "searchUnavailable", 502, lie("solr", status(503))),
    solr("garbage", "searchUnavailable", 502, lie("solr", garbage)),
    solr("half an answer", "searchUnavailable", 502, lie("solr", half)),
    solr("half an answer, called whole", "searchUnavailable", 502, lie("solr", half_said_whole)),
    authority("connection refused", "authorityUnavailable", 502, off("authority")),
    authority("too slow", "authorityTimeout", 504, cut("authority", delay_s=TOO_SLOW_S)),
    authority("hangs", "authorityTimeout", 504, cut("authority", hangs=True)),
    authority("drips", "authorityTimeout", 504, cut("authority", delay_s=0.2, slice_bytes=40)),
    authority("drips its head", "authorityTimeout", 504, cut("authority", delay_s=0.2, slice_bytes=1)),
    authority("resets the connection", "authorityUnavailable", 502, cut("authority", resets_after=50)),
    authority("401", "authorityUnavailable", 502, lie("authority", status(401))),
    authority("500", "authorityUnavailable", 502, lie("authority", status(500))),
    authority("garbage", "authorityUnavailable", 502, lie("authority", garbage)),
    authority("half an answer", "authorityUnavailable", 502, lie("authority", half)),
    model("connection refused", "modelUnavailable", 502, off("model")),
    model("hangs", "modelTimeout", 504, cut("model", hangs=True)),
    model("drips its head", "modelTimeout", 504, cut("model", delay_s=0.2, slice_bytes=1)),
    model("resets the connection", "modelUnavailable", 502, cut("model", resets_after=50)),
    model("resets after the first words", "modelUnavailable", 200, cut("model", resets_after=900), is_streamed=True),
    model("cut after the first words", "modelUnavailable", 200, cut("model", ends_after=900), is_streamed=True),
]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("faults"), {}) as found:
        yield found


def told(fault: Fault, status_code: int, body: str) -> tuple[str, int]:
    """Return label and code as the caller read them, from the envelope or from the stream's error event."""
    if fault.is_streamed and status_code == 200:
        error = next(event["data"] for event in map(json.loads, body.splitlines()) if event["type"] == "error")
    else:
        error = json.loads(body)["content"]["error"]
    return error["label"], error["code"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_a_fault_is_named_in_time_and_the_next_good_request_works(
    fault: Fault, parts: Scene, record_property: Record
) -> None:
    found = fault.service_in(parts)
    assert parts.ask_while_late(found)[0] == 200, found.logged()[-1500:]
    fault.break_it(parts)
    began = time.monotonic()
    try:
        status_code, body = parts.ask(found, is_streamed=fault.is_streamed)
        took_s = time.monotonic() - began
        part = readiness_of(fault, parts)
        live = found.get("/health/live").status_code
    finally:
        parts.mend()
    again, answer = parts.ask_while_late(found)

    label, code = told(fault, status_code, body)
    saw = f"HTTP {status_code}, words, then an error" if fault.is_streamed else f"HTTP {status_code}"
    tell(record_property, fault.id, saw, label=label, took_s=took_s, then=f"HTTP {again}")
    assert (status_code, label) == (fault.code, fault.label)
    assert code == (502 if status_code == 200 else status_code)
    assert CANARY not in body or fault.is_streamed
    assert live == 200
    assert (again, json.loads(answer)["status"]) == (200, "OK")
    assert part["last_error"]["label"] == fault.label
    assert is_noticed(fault, is_ok=part["ok"])


def is_noticed(fault: Fault, *, is_ok: bool) -> bool:
    """Say whether readiness is right: the model is not probed, and a part that drips may answer a probe in time."""
    return is_ok is (fault.part == "model") or fault.name == "drips"


def readiness_of(fault: Fault, parts: Scene) -> dict[str, Any]:
    """Return what readiness says of the broken part, once it no longer says what it found before the fault."""
    what = {"Solr": "search", "authority": "rights", "model": "model"}[fault.part]
    found: dict[str, Any] = {}

    def is_found() -> bool:
        ready = fault.service_in(parts).get("/health/ready").json()
        found.update(next(one for one in ready["dependencies"] if one["what"] == what))
        return is_noticed(fault, is_ok=found["ok"])

    until(is_found)
    return found


def test_a_search_of_a_paused_solr_says_that_it_was_late_and_the_next_one_finds(parts: Scene) -> None:
    """The retriever itself, without the service between it and a Solr that is really paused."""
    retriever = retriever_for(settings_with(solr_url=parts.solr.url, solr_limits=SolrLimits(wait_s=PATIENCE_S)))
    try:
        parts.pause_solr()
        with pytest.raises(SearchTimeout):
            retriever.search(PUMP, ACCESS)
        assert "no answer in time" in (retriever.probe() or "")
        parts.mend()

        assert until(lambda: is_found(retriever))
    finally:
        parts.mend()
        retriever.close()


def is_found(retriever: SolrRetriever) -> bool:
    """Say whether a search finds the one document that everybody may see."""
    try:
        return [document.id for document in retriever.search(PUMP, ACCESS).documents] == ["pump"]
    except SearchError:
        return False


def peak_mb(process: int) -> float:
    """Return the most memory that a process ever had, in megabytes."""
    rows = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) / 1000 for row in rows if row.startswith("VmHWM"))


def test_a_document_of_200_megabytes_is_answered_from_in_bounded_memory(
    parts: Scene, tmp_path: Path, record_property: Record
) -> None:
    with service(tmp_path, parts.settings | ROOMY) as patient:
        parts.solr_says.instead = huge
        began = time.monotonic()
        try:
            status_code, body = parts.ask(patient)
        finally:
            parts.mend()
        took_s, peak = time.monotonic() - began, peak_mb(patient.workers()[0])
        again, _ = parts.ask(patient)

    saw = f"HTTP {status_code}; the worker's peak was {peak:.0f} MB"
    tell(record_property, "Solr: a document of 200 MB", saw, took_s=took_s, then=f"HTTP {again}")
    assert (status_code, json.loads(body)["content"]["documents"][0]["id"], again) == (200, "big", 200)
    assert peak < 1000


def test_several_documents_of_200_megabytes_at_once_are_read_one_after_the_other(
    parts: Scene, tmp_path: Path, record_property: Record
) -> None:
    """Each costs three times its size while it is read; side by side that would be 2.4 GB."""
    callers = 4
    with service(tmp_path, parts.settings | ROOMY) as patient, ThreadPoolExecutor(callers) as pool:
        parts.solr_says.instead = huge
        began = time.monotonic()
        try:
            url = f"{patient.url}{QUESTION}"
            asked = [pool.submit(requests.get, url, headers={"X-Remote-User": "ann"}, timeout=120) for _ in range(4)]
            codes = [one.result().status_code for one in asked]
        finally:
            parts.mend()
        took_s, peak = time.monotonic() - began, peak_mb(patient.workers()[0])
        again, _ = parts.ask(patient)

    saw = f"HTTP {codes}; the worker's peak was {peak:.0f} MB"
    tell(record_property, f"Solr: {callers} documents of 200 MB at once", saw, took_s=took_s, then=f"HTTP {again}")
    assert (codes, again) == ([200] * callers, 200)
    assert peak < 1200


def full_for(process: int, *, is_full: bool) -> None:
    """Make every file of *process* as long as it may get, or free again: what a full disk looks like to a writer."""
    hard = resource.prlimit(process, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(process, resource.RLIMIT_FSIZE, (1 if is_full else hard, hard))


def test_a_full_disk_for_log_and_audit_stops_no_answer_and_is_told(
    parts: Scene, tmp_path: Path, record_property: Record
) -> None:
    audit = tmp_path / "audit"
    with service(tmp_path, parts.settings | ROOMY | {"audit.folder": str(audit)}) as found:
        (worker,) = found.workers()
        assert parts.ask(found)[0] == 200
        before = len(found.logged())
        full_for(worker, is_full=True)
        began = time.monotonic()
        during = [parts.ask(found)[0] for _ in range(3)]
        took_s = time.monotonic() - began
        wanted = "The audit trail cannot be written"
        assert until(lambda: wanted in found.get("/health/ready").text)
        assert len(found.logged()) == before
        full_for(worker, is_full=False)
        again, _ = parts.ask(found)
        assert until(lambda: wanted not in found.get("/health/ready").text)
        assert len(found.logged()) > before
        then = f"HTTP {again}; no line of the audit was lost"
        tell(
            record_property,
            "disk: full for log and audit",
            f"HTTP {during}, readiness says so",
            took_s=took_s,
            then=then,
        )

    lines = [json.loads(line) for file in audit.glob("*.jsonl") for line in file.read_text().splitlines()]
    assert (during, again) == ([200, 200, 200], 200)
    assert len(lines) == 5  # none was lost: they waited for the disk


@pytest.mark.parametrize("many", [1000, 9_000])
def test_slow_and_dead_connections_do_not_stop_readiness(
    parts: Scene, tmp_path: Path, many: int, record_property: Record
) -> None:
    lines: list[socket.socket] = []
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, many + 2000), hard))
    with service(tmp_path, parts.settings | ROOMY) as found, contextlib.ExitStack() as open_lines:
        place = ("127.0.0.1", int(found.url.rpartition(":")[2]))
        for number in range(many):
            line = open_lines.enter_context(socket.create_connection(place, timeout=30))
            lines.append(line)
            # Half of them say nothing at all, the others begin a head and never end it.
            if number % 2:
                line.sendall(b"GET /health/live HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        began = time.monotonic()
        ready, answer = found.get("/health/ready").status_code, parts.ask(found)[0]
        took_s = time.monotonic() - began
        for line in lines:
            line.settimeout(30)
        closed = sum(is_closed(line) for line in lines)
        again, _ = parts.ask(found)

    saw = f"readiness HTTP {ready}, answer HTTP {answer}"
    then = f"HTTP {again}; {closed:,} closed by us"
    tell(record_property, f"readers: {many:,} slow or dead connections", saw, took_s=took_s, then=then)
    assert (ready, answer, again) == (200, 200, 200)
    assert closed == many


def is_closed(line: socket.socket) -> bool:
    """Say whether the server ends the connection, with or without a word."""
    with contextlib.suppress(ConnectionError):
        while line.recv(65_536):
            continue
    return True


def test_nothing_secret_stands_in_logs_and_metrics_after_all_this(parts: Scene) -> None:
    parts.ask()
    text = (
        parts.service.logged()
        + parts.patient.logged()
        + parts.service.get("/metrics").text
        + parts.service.get("/health/ready").text
    )

    assert "outcome=ok" in text
    assert CANARY not in text
    assert SECRET not in text
    assert "secret-token" not in text
    assert "does the pump" not in text
