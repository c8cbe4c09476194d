"""The production server against callers who mean ill: bodies, lines, headers, limits, secrets, the audit trail."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.commands.records import audit
from tests.end_to_end.processes import Running, service
from tests.security.test_fuzz import CORPUS

SECRET_TOKEN = "sk-7Hq9-a-secret-that-must-not-be-told"
SECRET_PASSWORD = "p4ss-word-that-must-not-be-told"

POSTED = {
    "/ask": {"messages": [{"role": "user", "content": "common report"}], "stream": False},
    "/chat": {"messages": [{"role": "user", "content": "common report"}]},
    "/chat/stream": {"messages": [{"role": "user", "content": "common report"}]},
    "/api/chat": {"messages": [{"role": "user", "content": "common report"}]},
    "/v1/chat/completions": {"index_name": "default", "messages": [{"role": "user", "content": "common report"}]},
}


def settings(folder: Path) -> dict[str, str]:
    (folder / "users.json").write_text(json.dumps(CORPUS.users))
    with closing(EmbeddedWriter(folder / "index")) as writer:
        writer.add([doc.fields() for doc in CORPUS.docs])
        writer.commit()
    return {
        "solr.url": f"embedded:{folder / 'index'}",
        "solr.password": SECRET_PASSWORD,
        "rag.api.endpoint": "builtin:extractive",
        "rag.api.token": SECRET_TOKEN,
        "rag.enable.logs": "true",
        "security.identity": "header",
        "security.tokens.file": str(folder / "users.json"),
        "audit.folder": str(folder / "audit"),
        "log.level": "DEBUG",
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the production server with two workers over an open and a hidden document."""
    folder = tmp_path_factory.mktemp("hostile")
    with service(folder, settings(folder), workers=2) as running:
        yield running


def raw(running: Running, request: bytes, *, limit: int = 1_000_000) -> bytes:
    """Send *request* as it is and return all that comes back until the server closes or falls silent."""
    port = int(running.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=15) as caller:
        caller.sendall(request)
        answer = b""
        while len(answer) < limit:
            try:
                part = caller.recv(65_536)
            except TimeoutError:
                break
            if not part:
                break
            answer += part
        return answer


def post(running: Running, path: str, body: bytes, **headers: str) -> requests.Response:
    named = {"Content-Type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
    return running.session.post(running.url + path, data=body, headers=named, timeout=60)


BODIES = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"messages":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
    "half an object": b'{"messages": [',
    "a lone surrogate": b'{"messages": [{"role": "user", "content": "a\\ud800b"}]}',
    "a lone surrogate in a key": b'{"\\ud800": 1}',
    "bytes that are no UTF-8": b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
    "a NUL as it is": b'{"messages": [{"role": "user", "content": "a\x00b"}]}',
    "a number too large": b'{"messages": 1e999999}',
    "no object": b'"messages"',
    "nothing": b"",
    "a list of a million": b"[" + b"1," * 500_000 + b"1]",
    "messages that are numbers": b'{"messages": [1, 2]}',
    "one word of a megabyte": b'{"messages": [{"role": "user", "content": "' + b"a" * 1_000_000 + b'"}]}',
    "NaN": b'{"messages": NaN}',
}


@pytest.mark.parametrize("path", POSTED)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_cannot_be_read_is_a_4xx_of_json(server: Running, path: str, body: bytes) -> None:
    response = post(server, path, body)
    assert 400 <= response.status_code < 500
    assert response.json()["error"]


@pytest.mark.parametrize("path", POSTED)
def test_a_nul_that_json_spells_is_a_character_like_others(server: Running, path: str) -> None:
    body = json.dumps({**POSTED[path], "messages": [{"role": "user", "content": "common\x00 report"}]}).encode()
    assert post(server, path, body).status_code == 200


@pytest.mark.parametrize("path", [*POSTED, "/search/select"])
def test_a_body_over_the_limit_is_413_as_json(server: Running, path: str) -> None:
    kind = "application/x-www-form-urlencoded" if path == "/search/select" else "application/json"
    response = post(server, path, b"q=" + b"a" * 10_490_000, Content_Type=kind)
    assert response.status_code == 413
    assert response.json()


def test_a_body_that_lies_about_its_length_harms_nobody(server: Running) -> None:
    head = b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    assert (
        b" 413 " in raw(server, head + b"Content-Length: 99999999999\r\nConnection: close\r\n\r\n{}").split(b"\r\n")[0]
    )
    for lie in (b"Content-Length: -1", b"Content-Length: 1e3", b"Content-Length: 2\r\nContent-Length: 3"):
        assert b" 400 " in raw(server, head + lie + b"\r\nConnection: close\r\n\r\n{}").split(b"\r\n")[0]
    both = (
        head
        + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /documents HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert raw(server, both).count(b"HTTP/1.1 2") == 0
    assert server.get("/health/live").status_code == 200


def line(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *headers, "Connection: close", "", ""]).encode("latin-1")


def test_a_request_line_of_almost_64_kib_is_read_and_a_longer_one_refused(server: Running) -> None:
    answer = raw(server, line("/search/select?action=rag&x=" + "a" * 60_000 + "&q=common"))
    assert b" 200 " in answer.split(b"\r\n")[0]
    assert b'"status":"OK"' in answer
    assert b" 4" in raw(server, line("/search/select?q=" + "a" * 200_000)).split(b"\r\n")[0]


SPLITTING = {
    "in the question": "/search/select?action=rag&q=a%0d%0aSet-Cookie:%20x=1",
    "in the name of a parameter": "/search/select?a%0d%0aSet-Cookie:%20x=1=1",
    "in the path": "/nowhere%0d%0aSet-Cookie:%20x=1",
    "in a document's id": "/documents?id=%0d%0aSet-Cookie:%20x=1",
    "in the model's name": "/v1/models?x=%0d%0aSet-Cookie:%20x=1",
}


@pytest.mark.parametrize("path", SPLITTING.values(), ids=SPLITTING.keys())
def test_no_line_end_of_a_caller_becomes_a_header(server: Running, path: str) -> None:
    head = raw(server, line(path, "X-Request-ID: a\tb")).partition(b"\r\n\r\n")[0]
    assert b"\r\nset-cookie" not in head.lower()
    assert b"a\tb" not in head


TRICKS = (
    "/documents/../../etc/passwd", "/documents/%2e%2e/%2e%2e/etc/passwd", "/documents?id=../../../etc/passwd",
    "/documents?id=file:///etc/passwd", "/documents?id=%00", "/documents?id=doc%202", "/documents?id=doc%202%00",
    "/documents?id=*", "/documents?id=doc*", "/documents?id=doc%201%20OR%20doc%202", "/documents?id[]=doc%202",
    "/documents?id=doc%202&field=allow_token_document", "/documents?id=doc%202&field=*", "/documents//doc%202",
    "/documents;id=doc%202", "/documents?id=doc%201&id=doc%202&field=title", "/documents?id={!term%20f=id}doc%202",
    "/static/../rag.properties", "/static/%2e%2e/%2e%2e/%2e%2e/rag.properties", "/static//etc/passwd",
)  # fmt: skip


@pytest.mark.parametrize("path", TRICKS)
def test_a_path_trick_opens_nothing(server: Running, path: str) -> None:
    answer = raw(server, line(path, "Accept: application/json", "X-Remote-User: eve"))
    assert b" 404 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0]
    assert b"root:" not in answer
    assert b"zxhidden" not in answer
    assert SECRET_TOKEN.encode() not in answer


def test_absent_and_forbidden_are_told_alike(server: Running) -> None:
    answers = [
        server.get(f"/documents?id={name}", Accept="application/json", X_Remote_User="eve")
        for name in ("doc%202", "nowhere")
    ]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert server.get("/documents?id=doc%202", Accept="application/json", X_Remote_User="ann").status_code == 200


IDENTITIES = {
    "twice": ("X-Remote-User: eve", "X-Remote-User: ann"),
    "with an underscore": ("X_Remote_User: ann",),
    "folded": ("X-Remote-User: eve\r\n ann",),
    "in another header": ("Remote-User: ann", "X-Forwarded-User: ann", "Authorization: Basic YW5uOng="),
    "beside a forged address": ("X-Forwarded-For: 127.0.0.1", "AuthenticatedUserName: ann"),
    "in a cookie": ("Cookie: user=ann; X-Remote-User=ann",),
}


@pytest.mark.parametrize("headers", IDENTITIES.values(), ids=IDENTITIES.keys())
def test_nobody_becomes_ann_by_a_trick_of_headers(server: Running, headers: tuple[str, ...]) -> None:
    answer = raw(
        server, line("/documents?id=doc%202&mcf=false&AuthenticatedUserName=ann", "Accept: application/json", *headers)
    )
    assert b"zxhidden" not in answer


@pytest.mark.parametrize(
    "path", ["/search/select?action=rag&q=common", "/documents?id=doc%201", "/nowhere", "/health/live", "/metrics"]
)
def test_every_response_has_the_security_headers(server: Running, path: str) -> None:
    headers = server.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Set-Cookie" not in headers


def test_no_secret_is_told_anywhere(server: Running) -> None:
    told = [
        server.get(path, X_Remote_User="ann").text
        for path in ("/metrics", "/health/ready", "/health/live", "/openapi.json", "/admin", "/", "/v1/models")
    ]
    told += [post(server, path, json.dumps(body).encode()).text for path, body in POSTED.items()]
    told.append(server.get("/search/select?action=rag&q=common&trace=true").text)
    for secret in (SECRET_TOKEN, SECRET_PASSWORD):
        assert not [text[:100] for text in told if secret in text]
        assert secret not in server.logged()
    assert "zxopen" not in server.logged()


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server with two workers that lets each user ask five times a minute."""
    folder = tmp_path_factory.mktemp("limited")
    limits = {"server.rate.user": "5", "rag.reply.http_errors": "true"}
    with service(folder, {**settings(folder), **limits}, workers=2) as running:
        yield running


def test_a_users_limit_counts_over_the_workers_and_is_told_in_each_dialects_shape(limited: Running) -> None:
    def ask(user: str) -> requests.Response:
        # A new connection each time, so that both workers are asked.
        return requests.get(
            f"{limited.url}/search/select?action=rag&q=common",
            headers={"X-Remote-User": user, "Connection": "close"},
            timeout=60,
        )

    assert [ask("ann").status_code for _ in range(8)] == [200] * 5 + [429] * 3
    assert ask("eve").status_code == 200
    refused = ask("ann")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.json()["content"]["error"]["label"] == "tooManyRequests"
    shapes = {
        path: post(limited, path, json.dumps(body).encode(), X_Remote_User="ann") for path, body in POSTED.items()
    }
    assert {one.status_code for one in shapes.values()} == {429}
    assert all("Retry-After" in one.headers for one in shapes.values())
    assert isinstance(shapes["/chat"].json()["error"], str)
    assert shapes["/api/chat"].json()["error"]["code"] == "tooManyRequests"
    assert shapes["/v1/chat/completions"].json()["error"]["code"] == "tooManyRequests"
    # A plain search is no question: its limit is that of work.
    assert limited.get("/search/select?q=common", X_Remote_User="ann").status_code == 200
    assert limited.get("/documents?id=doc%201", X_Remote_User="ann", Accept="application/json").status_code == 429


def test_every_answer_is_in_the_audit_trail_and_the_chains_are_whole(tmp_path: Path) -> None:
    with service(tmp_path, settings(tmp_path), workers=2) as running:
        for path, body in POSTED.items():
            post(running, path, json.dumps(body).encode(), X_Remote_User="ann")
        running.get("/search/select?action=rag&q=zkabsent", X_Remote_User="eve")
        running.get("/search/select?action=rag&stream=true&q=common", X_Remote_User="eve")
    result = CliRunner().invoke(audit, ["verify", str(tmp_path / "audit")])
    assert result.exit_code == 0, result.output
    records = [
        json.loads(one) for chain in (tmp_path / "audit").glob("*.jsonl") for one in chain.read_text().splitlines()
    ]
    assert len(records) == 7
    assert sorted(one["who"] for one in records) == ["ann"] * 5 + ["eve"] * 2
    assert sorted(one["dialect"] for one in records) == [
        "chat",
        "chat",
        "choices",
        "openai",
        "published",
        "ragapi",
        "ragapi",
    ]
    assert sorted(one["outcome"] for one in records) == ["noDocuments", *["ok"] * 6]
    assert {one["id"] for record in records for one in record["documents"]} <= {"doc 1", "doc 2"}
    assert "common" not in "".join(chain.read_text() for chain in (tmp_path / "audit").glob("*.jsonl"))


def test_a_full_audit_folder_is_said_by_readiness_and_stops_no_answer(tmp_path: Path) -> None:
    blocked = {**settings(tmp_path), "audit.folder": str(tmp_path / "users.json" / "audit")}
    with service(tmp_path, blocked) as running:
        assert running.get("/search/select?action=rag&q=common").json()["status"] == "OK"
        ready = running.get("/health/ready")
        assert ready.status_code == 503
        assert [one["what"] for one in ready.json()["problems"]] == ["audit"]
