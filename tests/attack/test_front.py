"""The production server against bytes that never end, bodies without a limit, and heads that no browser sends."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.callers import (
    WANTED,
    body_of,
    calling,
    flood,
    head,
    heard,
    is_closed_well,
    memory_kb,
    said,
    served_during,
    status_of,
)
from tests.attack.report import Record, judge
from tests.end_to_end.processes import Running, service
from tests.security.test_hostile_http import POSTED, settings

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
MULTIPART = "multipart/form-data; boundary=b"

PATHS = (
    "/search/select", "/Datafari/rest/v2.0/search/select", *POSTED, "/api/chat/stream", "/v1/models", "/talk",
    "/feedback", "/admin", "/admin/revoke", "/demo/user", "/", "/documents", "/nowhere",
    "/health/live", "/metrics", "/static/page.css",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run one worker, so that what stops it stops all."""
    folder = tmp_path_factory.mktemp("front")
    more = {"feedback.file": str(folder / "thumbs.jsonl"), "log.level": "INFO"}
    with service(folder, settings(folder) | more) as running:
        yield running


CHUNKED = head("POST", "/chat", f"Content-Type: {JSON}", "Transfer-Encoding: chunked")

FLOODS = {
    "an endless request line": (b"GET /search/select?q=", b"a" * 65_536),
    "an endless header": (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"a" * 65_536),
    "endless headers": (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n" * 8000),
    "headers of one byte each": (b"GET / HTTP/1.1\r\n", b"a:\r\n" * 16_000),
    "an endless chunk extension": (CHUNKED + b"5;", b"a" * 65_536),
    "endless trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-A: b\r\n" * 8000),
    "chunks of one byte": (CHUNKED, b"1\r\na\r\n" * 10_000),
    "empty lines before a request": (b"\r\n", b"\r\n" * 32_000),
    "a form of small pairs": (head("POST", "/search/select", f"Content-Type: {FORM}", "Content-Length: 9e9"), b"a=b&"),
    "a form without an end": (
        head("POST", "/search/select", f"Content-Type: {FORM}", "Content-Length: 10000000"), b"a=b&" * 16_000,
    ),
    "a form of parts": (
        head("POST", "/api/chat", f"Content-Type: {MULTIPART}", "Content-Length: 10000000"),
        b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n' * 1000,
    ),
    "a part of line ends": (
        head("POST", "/api/chat", f"Content-Type: {MULTIPART}", "Content-Length: 10000000"), b"\r\n-" * 20_000,
    ),
    "requests behind each other": (b"", head("GET", "/nowhere") * 500),
}  # fmt: skip


@pytest.mark.parametrize(("first", "block"), FLOODS.values(), ids=FLOODS.keys())
def test_others_are_served_during_a_flood(
    server: Running, first: bytes, block: bytes, record_property: Record, request: pytest.FixtureRequest
) -> None:
    """Before the bounds, one or two of these requests were answered in 15 s."""
    over = threading.Event()
    attack = [
        threading.Thread(target=flood, args=(server, first, block), kwargs={"over": over, "most": 400_000_000})
        for _ in range(4)
    ]
    served = served_during(server, attack, over)
    holes = [f"{served} requests of others in half a minute"] if served < WANTED else []
    judge(record_property, f"flood: {request.node.callspec.id}", against="HTTP", tried=4, holes=holes)


HEADS = {
    "a line of 200 KB": b"GET /search/select?q=" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a line of 200 KB without an end": b"GET /" + b"a" * 200_000,
    "a header of 70 KB": head("GET", "/", "X-A: " + "a" * 70_000),
    "headers of 60 KB": head("GET", "/", *[f"X-A{number}: " + "a" * 60_000 for number in range(6)]),
    "101 headers": head("GET", "/", *[f"X-A{number}: b" for number in range(101)]),
    "10,000 headers": head("GET", "/", *["X-A: b"] * 10_000),
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\n" * 20,
    "HTTP/9.9": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nHost: x\n\n",
    "a folded header": head("GET", "/", "X-A: a\r\n b"),
    "a NUL": head("GET", "/", "X-A: a\x00b"),
    "two hosts": head("GET", "/", "Host: y"),
    "two lengths": head("POST", "/chat", "Content-Length: 2", "Content-Length: 3") + b"{}",
    "two lengths alike": head("POST", "/chat", "Content-Length: 2", "Content-Length: 2") + b"{}",
    "length and chunks": head("POST", "/chat", "Content-Length: 4", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "chunks of HTTP/1.0": head("POST", "/chat", "Transfer-Encoding: chunked", version="1.0") + b"0\r\n\r\n",
    "a negative length": head("POST", "/chat", "Content-Length: -1"),
    "an expectation that nobody knows": head("POST", "/chat", "Expect: 200-ok", "Content-Length: 2") + b"{}",
}


def test_a_head_over_a_limit_is_refused_in_json_and_the_connection_closed(
    server: Running, record_property: Record
) -> None:
    holes = []
    for name, request in HEADS.items():
        answer = said(server, request)
        error = body_of(answer)
        if status_of(answer) != 400 or not isinstance(error, dict) or not is_closed_well(answer):
            holes.append(f"{name}: {answer[:200]!r}")
        elif "10,000" in name or "101" in name:
            holes += [] if error["error"]["label"] == "tooManyValues" else [f"{name}: {error}"]
    judge(record_property, "heads over a limit, or no HTTP", against="HTTP", tried=len(HEADS), holes=holes)


BAD_CHUNKS = {
    "no number": b"zz\r\n{}\r\n0\r\n\r\n",
    "a negative number": b"-1\r\n{}\r\n0\r\n\r\n",
    "a sign": b"+2\r\n{}\r\n0\r\n\r\n",
    "as a program writes it": b"0x2\r\n{}\r\n0\r\n\r\n",
    "an underscore": b"1_0\r\n{}\r\n0\r\n\r\n",
    "nothing": b"\r\n{}\r\n0\r\n\r\n",
    "a space before": b" 2\r\n{}\r\n0\r\n\r\n",
    "no line end behind": b"2\r\n{}0\r\n\r\n",
    "too short": b"1\r\n{}\r\n0\r\n\r\n",
    "a bare line feed": b"2\n{}\n0\n\n",
    "an extension that is none": b'2;a="\r\n{}\r\n0\r\n\r\n',
    "a trailer that is none": b"2\r\n{}\r\n0\r\n: x\r\n\r\n",
    "a length in a trailer": b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n",
    "extensions of 200 KB": b"2;" + b"a" * 200_000 + b"\r\n{}\r\n0\r\n\r\n",
    "trailers of 200 KB": b"2\r\n{}\r\n0\r\n" + b"X-A: b\r\n" * 25_000 + b"\r\n",
    "100,000 chunks of one byte": b"1\r\n \r\n" * 100_000 + b"0\r\n\r\n",
    "a size of 4 GB digits": b"0" * 100_000 + b"2\r\n{}\r\n0\r\n\r\n",
}


def test_chunks_that_are_none_are_a_400_that_closes_and_no_incident(server: Running, record_property: Record) -> None:
    before, tried, holes = server.logged().count("incident"), 0, []
    for path, kind in (("/chat", JSON), ("/search/select", FORM), ("/api/chat", MULTIPART), ("/feedback", JSON)):
        first = head("POST", path, f"Content-Type: {kind}", "Transfer-Encoding: chunked", "X-Remote-User: ann")
        for name, chunks in BAD_CHUNKS.items():
            answer = said(server, first + chunks + head("GET", "/health/live", "Connection: close"))
            tried += 1
            # A plain page of a form without its token is 403 before any of its body is read.
            is_refused = 400 <= status_of(answer) < 500 or b'"status":"ERROR"' in answer
            if not is_refused or not is_closed_well(answer) or answer.count(b"HTTP/1.1 ") != 1:
                holes.append(f"{path} {name}: {answer[:160]!r} … {answer.count(b'HTTP/1.1 ')} answers")
    holes += [] if server.logged().count("incident") == before else ["an incident in the log"]
    judge(record_property, "chunks that are none", against="HTTP", tried=tried, holes=holes)


def test_an_honest_body_in_chunks_is_read(server: Running) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "common report"}]}).encode()
    pieces = [body[at : at + 5] for at in range(0, len(body), 5)]
    chunks = b"".join(b"%x;a=b\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    answer = said(
        server, CHUNKED + chunks + b"0\r\nX-Trailer: 1\r\n\r\n" + head("GET", "/nowhere", "Connection: close")
    )
    assert status_of(answer) == 200
    assert answer.count(b"HTTP/1.1 ") == 2


def test_an_announced_body_over_the_limit_is_refused_before_it_is_sent(
    server: Running, record_property: Record
) -> None:
    """The caller sends nothing but the head: whoever waits for the body would wait for ever."""
    holes, tried = [], 0
    for path in PATHS:
        for kind in (FORM, JSON, MULTIPART, "text/plain"):
            for more in ((), ("Expect: 100-continue",)):
                request = head("POST", path, f"Content-Type: {kind}", "Content-Length: 300000000", *more)
                answer = said(server, request)
                tried += 1
                if not 400 <= status_of(answer) < 500 or not is_closed_well(answer) or b" 100 " in answer[:40]:
                    holes.append(f"{path} {kind} {more}: {answer[:120]!r}")
    judge(record_property, "bodies announced over the limit", against="HTTP", tried=tried, holes=holes)


def test_no_body_over_the_limit_is_kept_in_memory(server: Running, record_property: Record) -> None:
    (worker,) = server.workers()
    before, holes, tried = memory_kb(worker), [], 0
    for path in ("/feedback", "/admin/revoke", "/demo/user", "/nowhere", "/search/select", "/chat"):
        for kind in (FORM, MULTIPART):
            for length in ("Content-Length: 60000000", "Transfer-Encoding: chunked"):
                first = head("POST", path, f"Content-Type: {kind}", length)
                block = b"f4240\r\n" + b"a" * 1_000_000 + b"\r\n" if "chunked" in length else b"a" * 1_000_000
                answer = said(server, first, *[block] * 60)
                tried += 1
                holes += [] if status_of(answer) in (0, 400, 403, 404, 413, 415) else [f"{path}: {answer[:100]!r}"]
    grown = memory_kb(worker) - before
    holes += [] if grown < 60_000 else [f"the worker's peak grew by {grown} KB"]
    judge(record_property, "bodies of 60 MB", against="HTTP", tried=tried, holes=holes)


def test_leave_to_send_a_body_is_given_to_those_whose_body_is_read(server: Running) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "common report"}]}).encode()
    request = head("POST", "/chat", f"Content-Type: {JSON}", f"Content-Length: {len(body)}", "Expect: 100-continue")
    with calling(server) as caller:
        caller.sendall(request)
        assert heard(caller, enough=b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        caller.sendall(body)
        assert status_of(heard(caller, enough=b"}")) == 200


PART = b'--b\r\nContent-Disposition: form-data; name="a"'
MESSAGE = {"role": "user", "content": "a"}
FIELDS = {f"k{number}": 1 for number in range(5000)}


def openai(messages: object) -> bytes:
    return json.dumps({"index_name": "default", "messages": messages}).encode()


TOO_MANY = {
    "pairs of a form": ("/search/select", FORM, b"a=b&" * 2000),
    "empty pairs of a form": ("/search/select", FORM, b"=&" * 400_000),
    "names of a form": ("/search/select", FORM, b"&".join(b"p%d=x" % number for number in range(60_000))),
    "pairs of a thumb": ("/feedback", FORM, b"a=b&" * 2000),
    "parts": ("/api/chat", MULTIPART, (PART + b"\r\n\r\nx\r\n") * 5000 + b"--b--\r\n"),
    "files": ("/api/chat", MULTIPART, (PART + b'; filename="a"\r\n\r\nx\r\n') * 300 + b"--b--\r\n"),
    "messages": ("/chat", JSON, json.dumps({"messages": [MESSAGE] * 100_000}).encode()),
    "messages of the first dialect": ("/ask", JSON, json.dumps({"messages": [1] * 5000}).encode()),
    "messages of OpenAI": ("/v1/chat/completions", JSON, openai([MESSAGE] * 5000)),
    "parts of a message": ("/v1/chat/completions", JSON, openai([{"role": "user", "content": ["a"] * 5000}])),
    "fields": ("/chat", JSON, json.dumps(FIELDS).encode()),
    "overrides": ("/chat", JSON, json.dumps({"context": {"overrides": FIELDS}}).encode()),
}


def test_more_values_than_a_caller_can_need_are_an_error_of_their_own(server: Running, record_property: Record) -> None:
    holes = []
    for name, (path, kind, body) in TOO_MANY.items():
        request = head("POST", path, f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close")
        answer = said(server, request + body)
        text = answer.partition(b"\r\n\r\n")[2]
        if b"Too many values" not in text and b"tooManyValues" not in text:
            holes.append(f"{name}: {answer[:300]!r}")
    answer = said(server, head("GET", "/search/select?" + "a&" * 20_000, "Connection: close"))
    holes += [] if b"Too many values" in answer else [f"the query: {answer[:200]!r}"]
    judge(record_property, "too many values", against="HTTP", tried=len(TOO_MANY) + 1, holes=holes)


def test_the_limit_of_an_address_comes_before_the_body(tmp_path: Path, record_property: Record) -> None:
    more = {"server.rate.client": "1", "rag.reply.http_errors": "true"}
    with service(tmp_path, settings(tmp_path) | more) as found:
        first = found.session.post(f"{found.url}/chat", json=POSTED["/chat"], timeout=30)
        holes = [] if first.status_code == 200 else [f"the first: {first.status_code}"]
        for path, kind in (
            *((path, JSON) for path in POSTED),
            ("/search/select", FORM),
            ("/", FORM),
            ("/feedback", JSON),
        ):
            # Only the head is sent, and the answer must come all the same.
            answer = said(found, head("POST", path, f"Content-Type: {kind}", "Content-Length: 900000"))
            if status_of(answer) != (405 if path == "/" else 429):
                holes.append(f"{path}: {answer[:120]!r}")
    judge(record_property, "a limited address with a body", against="HTTP", tried=len(POSTED) + 4, holes=holes)


def test_no_compressed_body_is_opened(server: Running, record_property: Record) -> None:
    holes, tried = [], 0
    for path in ("/chat", "/search/select", "/api/chat", "/talk", "/feedback", "/v1/chat/completions"):
        for coding in ("gzip", "GZIP", "deflate", "br", "zstd", "identity, gzip", "x-gzip", "compress"):
            request = head("POST", path, f"Content-Encoding: {coding}", f"Content-Type: {JSON}", "Content-Length: 20")
            answer = said(
                server, request + b"\x1f\x8b" + b"\x00" * 18 + head("GET", "/health/live", "Connection: close")
            )
            tried += 1
            holes += [] if status_of(answer) == 415 else [f"{path} {coding}: {answer[:100]!r}"]
    judge(record_property, "compressed bodies", against="HTTP", tried=tried, holes=holes)


SPELLINGS = (
    "SCRIPT_NAME", "Script_Name", "script_name", "sCRIPT_nAME", "SCRIPT-NAME", "Script-Name", "X-Script-Name",
    "HTTP_SCRIPT_NAME", "PATH_INFO", "Path_Info", "path_info", "PATH-INFO", "Path-Info", "X-Original-URL",
    "X-Rewrite-URL", "X-Forwarded-Prefix", "X-Forwarded-Path", "RAW_URI", "REQUEST_URI", "X-HTTP-Method-Override",
)  # fmt: skip


def test_no_header_of_a_caller_shifts_a_path(server: Running, record_property: Record) -> None:
    holes, tried = [], 0
    for name in SPELLINGS:
        for path, value in (("/x/metrics", "/x"), ("/x/health/ready", "/x"), ("/x/admin", "/x"), ("/x", "/metrics")):
            for version in ("1.0", "1.1"):
                answer = said(server, head("GET", path, f"{name}: {value}", "Connection: close", version=version))
                tried += 1
                holes += [] if status_of(answer) in (404, 400) else [f"{name}: {value} {path}: {answer[:80]!r}"]
    judge(record_property, "paths shifted by a header", against="HTTP", tried=tried, holes=holes)


def test_requests_behind_each_other_are_answered_wherever_they_are_cut(
    server: Running, record_property: Record
) -> None:
    """The head is read whole where it can be: a request that is cut anywhere must not wait for what has come."""
    body = b'{"messages": []}'
    post = head("POST", "/chat", f"Content-Type: {JSON}", f"Content-Length: {len(body)}", host="a") + body
    chunks = head("POST", "/nowhere", "Transfer-Encoding: chunked", host="a") + b"2\r\n{}\r\n0\r\n\r\n"
    lives = head("GET", "/health/live", host="a") + post + head("GET", "/nowhere", host="a")
    whole = lives + b"\r\n" + head("GET", "/health/live", "Connection: close", host="a")
    holes = []
    for at in range(1, len(whole)):
        answer = said(server, whole[:at], whole[at:], pause_s=0.003)
        statuses = [int(part.split()[0]) for part in answer.split(b"HTTP/1.1 ")[1:]]
        holes += [] if statuses == [200, 400, 404, 200] else [f"cut at {at}: {statuses}"]
    # A body in chunks that nobody read ends the connection: where the next request begins is not known.
    unread = said(server, chunks + head("GET", "/health/live", host="a"))
    holes += [] if unread.count(b"HTTP/1.1 ") == 1 and is_closed_well(unread) else [f"chunks left: {unread[:200]!r}"]
    judge(record_property, "pipelined requests, cut anywhere", against="HTTP", tried=len(whole), holes=holes)
