"""What a stranger can read off the front: echoes of what he sent, times, hosts of other parts, hashes of questions."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from datafari_rag.commands.records import audit
from tests.attack.report import Record, judge
from tests.end_to_end.processes import Running, service
from tests.security.test_hostile_http import POSTED, settings
from tests.support.server import Asked, Reply, serving

MAX_REPLY_BYTES = 300_000
"""Two spellings of a state of 64 KiB, written in a choice and beside it, and the answer."""


@pytest.fixture(scope="module", params=["memory off", "memory on"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("answers")
    more = {"server.secret": "a secret of the conversations"}
    more |= {"chat.memory.enabled": "true"} if "on" in request.param else {}
    with service(folder, settings(folder) | more) as running:
        yield running


LARGE = "x" * 2_000_000
QUESTION = [{"role": "user", "content": "common report"}]
ECHOES = {
    "a state": {"session_state": LARGE},
    "a state in the later spelling": {"sessionState": {"a": LARGE}},
    "a state that claims to be ours": {"session_state": {"datafari_rag": LARGE}},
    "one with more beside": {"session_state": {"datafari_rag": "v1.a.b", "more": LARGE}},
    "one of many keys": {"session_state": {f"k{number}": number for number in range(200_000)}},
    "one of null": {"session_state": {"datafari_rag": None, "more": [LARGE]}},
    "an index": {"index_name": LARGE},
    "a model": {"model": LARGE},
    "a ratio": {"context_token_ratio": int("9" * 4000)},
    "a role": {"messages": [{"role": LARGE, "content": "a"}]},
    "a message that is none": {"messages": [LARGE]},
    "a role without content": {"index_name": "default", "messages": [{"role": LARGE}]},
    "an override": {"context": {"overrides": {"language": LARGE, LARGE: 1}}},
    "a name of a field": {LARGE: 1},
    "a stream flag": {"stream": LARGE},
    "a file's name": {"files": LARGE},
}


def test_what_is_sent_comes_back_small_or_not_at_all(server: Running, record_property: Record) -> None:
    holes, tried = [], 0
    for path, base in POSTED.items():
        for name, more in ECHOES.items():
            answer = server.session.post(server.url + path, json={"messages": QUESTION, **base, **more}, timeout=60)
            tried += 1
            if len(answer.content) > MAX_REPLY_BYTES or sum(len(value) for value in answer.headers.values()) > 20_000:
                holes.append(f"{path} {name}: {len(answer.content)} bytes, HTTP {answer.status_code}")
            if answer.status_code >= 500:
                holes.append(f"{path} {name}: HTTP {answer.status_code}")
    for header in ("X-Request-ID", "Origin", "Accept-Language", "Cookie", "traceparent", "Referer", "User-Agent"):
        answer = server.get("/search/select?q=common", **{header: "a" * 60_000})
        tried += 1
        holes += [] if sum(len(value) for value in answer.headers.values()) < 5000 else [f"{header} comes back"]
    judge(record_property, "large values that come back", against="HTTP", tried=tried, holes=holes)


def test_times_are_too_coarse_to_tell_of_hidden_documents(server: Running, record_property: Record) -> None:
    """93 µs more for a word of a hidden document were to be read in the sums."""
    holes = []
    for word in ("common", "zxhidden", "zkabsent") * 10:
        answer = server.get(f"/search/select?action=rag&q={word}+report")
        holes += [f"Server-Timing: {answer.headers['Server-Timing']}"] if "Server-Timing" in answer.headers else []
        streamed = server.get(f"/search/select?action=rag&stream=true&trace=true&q={word}+report")
        holes += ["a stream's Server-Timing"] if "Server-Timing" in streamed.headers else []
        holes += ["timings in a trace"] if "timings_ms" in streamed.text else []
    rows = [row for row in server.get("/metrics").text.splitlines() if "_seconds_sum{" in row]
    steps = [float(row.rpartition(" ")[2]) * 100 for row in rows]
    holes += [row for row, step in zip(rows, steps, strict=True) if abs(step - round(step)) > 1e-6]
    holes += [] if any("stage" in row for row in rows) else ["no stage was counted"]
    judge(record_property, "times in headers and metrics", against="embedded", tried=60 + len(rows), holes=holes)


def test_readiness_names_no_host_to_strangers_and_asks_the_parts_seldom(
    tmp_path: Path, record_property: Record
) -> None:
    def refuse(asked: Asked) -> Reply:
        return Reply(b"no", status=500)

    with serving(refuse) as solr, serving(refuse) as authority:
        more = {
            "solr.url": f"{solr.url}/solr/canarycollection",
            "rag.api.endpoint": "http://canaryhost.example:9/v1/chat/completions",
            "security.tokens": "authority",
            "security.authority.url": f"{authority.url}/canarypath",
            "security.admins": "root",
        }
        with service(tmp_path, settings(tmp_path) | more) as found:
            solr.asked.clear()
            authority.asked.clear()
            telling = ("canary", solr.url.rpartition(":")[2], authority.url.rpartition(":")[2], "security.", "solr.")
            holes = []
            for headers in ({"X_Forwarded_For": "192.0.2.7"}, {"Forwarded": "for=192.0.2.7"}, {"Via": "1.1 proxy"}):
                text = found.get("/health/ready", **headers).text
                holes += [f"{headers} reads {word}" for word in telling if word in text]
                holes += [] if '"what":"search"' in text and '"ok":false' in text else [f"no state: {text[:200]}"]
            for headers in ({}, {"X_Forwarded_For": "192.0.2.7", "X_Remote_User": "root"}):
                text = found.get("/health/ready", **headers).text
                holes += [] if "canaryhost.example" in text else [f"{headers} reads no host: {text[:300]}"]
            threads = [threading.Thread(target=_read, args=(found, 25)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            # One look a second; a machine that is busy for some seconds looks some more times.
            holes += [f"{len(solr.asked)} requests to Solr for 205"] if len(solr.asked) > 40 else []
            holes += [f"{len(authority.asked)} requests to the authority"] if len(authority.asked) > 40 else []
    judge(record_property, "readiness read by strangers, often", against="HTTP", tried=205, holes=holes)


def _read(running: Running, times: int) -> None:
    for _ in range(times):
        requests.get(f"{running.url}/health/ready", timeout=60)


def test_the_audit_holds_no_hash_that_can_be_tried(tmp_path: Path, record_property: Record) -> None:
    questions = ("common report", "common", "report", "zkabsent")
    with service(tmp_path, settings(tmp_path), workers=2) as found:
        for question in questions:
            for _ in range(4):
                found.session.close()
                found.get(f"/search/select?action=rag&q={question}", X_Remote_User="ann")
    folder = tmp_path / "audit"
    lines = [json.loads(line) for chain in folder.glob("*.jsonl") for line in chain.read_text().splitlines()]
    key = (folder / "audit.key").read_bytes()
    text = "".join(chain.read_text() for chain in folder.glob("*.jsonl"))
    hashes = [make(question.encode()).hexdigest() for question in questions for make in (hashlib.sha256, hashlib.md5)]
    holes = [one for one in (*questions, *hashes) if one in text]
    expected = {hmac.new(key, question.encode(), hashlib.sha256).hexdigest() for question in questions}
    # None: a question that was not answered.
    found_hashes = {line["question_hmac"] for line in lines} - {None}
    holes += [] if found_hashes and found_hashes <= expected else ["not the keyed hash"]
    holes += [] if (folder / "audit.key").stat().st_mode & 0o777 == 0o600 else ["others can read the key"]
    result = CliRunner().invoke(audit, ["verify", str(folder)])
    holes += [] if result.exit_code == 0 else [result.output]
    judge(record_property, "questions guessed from the audit", against="audit", tried=len(lines), holes=holes)
