"""Settings that change while questions are being answered: none is dropped, none sees half of a change."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from tests.end_to_end.processes import Running, service, write_settings
from tests.support.waiting import until

QUESTION = "/search/select?action=rag&q=How+do+I+copy+a+file"
CALLERS, RELOADS = 4, 20


def test_twenty_reloads_under_load_drop_nothing_and_each_answer_is_of_one_file(
    tmp_path: Path, demo_index: Path
) -> None:
    base = {"solr.url": f"embedded:{demo_index}", "rag.api.endpoint": "builtin:extractive"}
    one = base | {"rag.maxFiles": "1"}
    two = base | {"rag.maxFiles": "2", "rag.operator": "OR"}
    seen: list[tuple[int, int]] = []
    with service(tmp_path, one, workers=2) as found, ThreadPoolExecutor(CALLERS) as pool:
        is_over: list[bool] = []
        callers = [pool.submit(ask_on, found, is_over, seen) for _ in range(CALLERS)]
        for number in range(RELOADS):
            asked, wanted = len(seen), (200, 2) if number % 2 == 0 else (200, 1)
            write_settings(tmp_path, two if number % 2 == 0 else one)
            found.process.send_signal(signal.SIGHUP)
            until(lambda asked=asked, wanted=wanted: wanted in seen[asked:])  # type: ignore[misc]
        is_over.append(True)
        for caller in callers:
            caller.result()

    assert len(seen) > RELOADS
    assert set(seen) == {(200, 1), (200, 2)}


def ask_on(found: Running, is_over: list[bool], seen: list[tuple[int, int]]) -> None:
    """Ask until it is over, each time over a connection of its own, and note status and number of documents."""
    while not is_over:
        reply = requests.get(found.url + QUESTION, headers={"Connection": "close"}, timeout=60)
        documents = reply.json()["content"]["documents"]
        seen.append((reply.status_code, len(documents)))


def test_a_bad_file_shows_in_the_metrics_until_it_is_mended(tmp_path: Path, demo_index: Path) -> None:
    good = {"solr.url": f"embedded:{demo_index}", "rag.api.endpoint": "builtin:extractive"}
    with service(tmp_path, good) as found:
        before = rejected(found)
        write_settings(tmp_path, good | {"rag.maxFiles": "many"})
        found.process.send_signal(signal.SIGHUP)
        during = becomes(found, "1.0")
        write_settings(tmp_path, good)
        found.process.send_signal(signal.SIGHUP)

        assert (before, during, becomes(found, "0.0")) == ("0.0", "1.0", "0.0")


def rejected(found: Running) -> str:
    rows = found.get("/metrics").text.splitlines()
    return next(row.split()[1] for row in rows if row.startswith("datafari_rag_settings_rejected "))


def becomes(found: Running, wanted: str) -> str:
    return until(lambda: wanted if rejected(found) == wanted else "")
