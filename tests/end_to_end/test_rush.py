"""A rush on the production server: who would wait too long to begin is refused with the time to try again."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import requests

from tests.end_to_end.matrix import Record, tell
from tests.end_to_end.processes import service
from tests.support.server import Asked, Loopback, Reply, serving

READERS, PLACES = 20, 16
ASK = "/search/select?action=rag&q=What+does+the+pump+need"
FOUND = {"id": "d1", "title": "Pumps", "exactContent": ["The pump needs oil every spring."], "language": "en"}


@contextmanager
def held_solr(gate: threading.Event) -> Iterator[Loopback]:
    """Answer every search with one document as soon as *gate* is open."""

    def answer(one: Asked) -> Reply:
        if one.path.endswith("/schema"):
            return Reply(b"{}", status=403)
        gate.wait(60)
        response = {"numFound": 1, "start": 0, "numFoundExact": True, "docs": [FOUND]}
        return Reply(json.dumps({"responseHeader": {"status": 0, "QTime": 1}, "response": response}).encode())

    with serving(answer) as solr:
        yield solr


def test_who_would_wait_too_long_is_refused_and_those_with_a_place_are_answered(
    tmp_path: Path, record_property: Record
) -> None:
    gate = threading.Event()
    with held_solr(gate) as solr, ThreadPoolExecutor(READERS) as readers:
        settings = {
            "solr.url": f"{solr.url}/solr/FileShare",
            "solr.limits.wait_s": "60",
            "rag.api.endpoint": "builtin:extractive",
            "rag.reply.http_errors": "true",
        }
        with service(tmp_path, settings, workers=1) as found:
            asked = [readers.submit(requests.get, f"{found.url}{ASK}", timeout=60) for _ in range(READERS)]
            refused = [one.result() for one in islice(as_completed(asked), READERS - PLACES)]
            gate.set()
            statuses = Counter(one.result().status_code for one in asked)
            after = found.get(ASK).status_code
    assert statuses == {200: PLACES, 503: READERS - PLACES}
    assert {one.json()["content"]["error"]["label"] for one in refused} == {"overloaded"}
    assert all(int(one.headers["Retry-After"]) >= 1 for one in refused)
    assert after == 200
    fault = f"service: {READERS} readers at the same moment, {PLACES} may begin, and a wait of five seconds"
    saw = f"{PLACES} × HTTP 200, {READERS - PLACES} × HTTP 503 with Retry-After"
    tell(record_property, fault, saw, label="overloaded", then=f"HTTP {after}")
