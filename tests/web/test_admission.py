"""What is refused before a body is read, in the shape of its path; over sockets: `attack/test_front.py`."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.core.settings.table import RequestRates, ServerLimits, Settings
from tests.fakes import app_of, fake_snapshot
from tests.settings import settings_with

LOUD = settings_with(rag_reply_http_errors=True)


def client_of(settings: Settings = LOUD) -> FlaskClient:
    return app_of(fake_snapshot(settings=settings)).test_client(use_cookies=False)


class Untouched(io.BytesIO):
    """A body that fails the test when anybody reads of it."""

    def read(self, size: int | None = -1) -> bytes:
        raise AssertionError("the body was read")


PATHS = (
    "/search/select",
    "/chat",
    "/api/chat",
    "/v1/chat/completions",
    "/talk",
    "/feedback",
    "/admin/revoke",
    "/demo/user",
    "/no",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("settings", "more", "status"),
    [
        (settings_with(LOUD, server_limits=ServerLimits(body_bytes=10)), {"length": 11}, 413),
        (LOUD, {"length": 1_000_001, "content_type": "application/x-www-form-urlencoded"}, 413),
        (LOUD, {"length": 5, "headers": {"Content-Encoding": "gzip"}}, 415),
        (LOUD, {"length": 5, "headers": {"Sec-Fetch-Site": "cross-site"}}, 403),
        (settings_with(LOUD, server_hosts=("search.example.org",)), {"length": 5}, 421),
        (LOUD, {"length": 5, "query_string": "a&" * 1000}, 400),
    ],
)
def test_a_refusal_reads_no_body(path: str, settings: Settings, more: dict[str, Any], status: int) -> None:
    sent = {name: value for name, value in more.items() if name != "length"}
    environ = {"CONTENT_LENGTH": str(more["length"])}
    answer = client_of(settings).post(path, input_stream=Untouched(), environ_overrides=environ, **sent)
    assert answer.status_code == status
    is_page = path in ("/demo/user", "/feedback")
    assert answer.mimetype == ("text/html" if is_page else "application/json")


def test_the_address_is_counted_once_for_a_request_and_before_its_body() -> None:
    client = client_of(settings_with(LOUD, server_rate=RequestRates(client=3)))
    assert [client.get("/?q=when").status_code for _ in range(2)] == [200, 200]
    assert client.get("/documents?id=doc-2").status_code == 200
    for path in PATHS[:-1]:
        answer = client.post(path, input_stream=Untouched(), environ_overrides={"CONTENT_LENGTH": "5"})
        assert answer.status_code == 429
        assert "Retry-After" in answer.headers
    assert client.get("/health/live").status_code == 200
    assert client.get("/static/page.css").status_code == 200
    assert client.post("/no").status_code == 404


def test_a_preflight_is_not_counted() -> None:
    client = client_of(settings_with(LOUD, server_rate=RequestRates(client=1)))
    asked = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    assert [client.options("/chat", headers=asked).status_code for _ in range(3)] == [204] * 3
    assert [client.options("/chat").status_code for _ in range(2)] == [200, 429]


def test_another_name_is_shown_nobody() -> None:
    settings = settings_with(LOUD, server_hosts=("search.example.org",), security_admins=("root",))
    text = client_of(settings).get("/admin", headers={"X-User": "root"}).get_data(as_text=True)
    assert "root" not in text
    known = client_of(settings).get("/admin", headers={"X-User": "root", "Host": "search.example.org"})
    assert known.status_code != 421


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"q=\xff", "application/x-www-form-urlencoded"),
        (b"--b\r\nbroken", "multipart/form-data; boundary=b"),
        (b"a", "multipart/form-data"),
    ],
)
def test_a_form_that_cannot_be_read_is_no_empty_form(body: bytes, kind: str) -> None:
    assert client_of().post("/search/select", data=body, content_type=kind).status_code == 400


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/search/select", "application/x-www-form-urlencoded", b"q=" + b"a" * 999_998),
        (
            "/chat",
            "application/json",
            json.dumps({"messages": [{"role": "user", "content": "when"}]}).encode().ljust(2000),
        ),
        ("/feedback", "application/json", b'{"verdict":"up"}'.ljust(200_000)),
        ("/api/chat", "multipart/form-data; boundary=b", b"--b\r\n".ljust(2000)),
    ],
)
def test_a_body_in_chunks_that_is_cut_at_the_limit_is_refused(path: str, kind: str, body: bytes) -> None:
    """Werkzeug hands over what fits as if it were all."""
    limit = 2000 if path in ("/chat", "/api/chat") else 10_000_000
    settings = settings_with(LOUD, server_limits=ServerLimits(body_bytes=limit), feedback_file="/dev/null")
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = client_of(settings).post(
        path, input_stream=io.BytesIO(body + b" "), content_type=kind, environ_overrides=chunked
    )
    assert answer.status_code == 413


FRIEND = settings_with(LOUD, server_cors_origins=("https://friend.example",))
ANY = settings_with(LOUD, server_cors_origins=("*",))


@pytest.mark.parametrize(
    ("settings", "headers", "status"),
    [
        (FRIEND, {"Origin": "https://friend.example", "Sec-Fetch-Site": "cross-site", "Cookie": "a=b"}, 200),
        (FRIEND, {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403),
        (ANY, {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 200),
        (ANY, {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Cookie": "a=b"}, 403),
        (LOUD, {"Origin": "http://localhost"}, 200),
        (LOUD, {"Origin": "http://localhost:1"}, 403),
        (LOUD, {"Origin": "null"}, 403),
        (LOUD, {"Origin": "https://a.example", "X-Forwarded-Host": "b.example, a.example"}, 200),
        (LOUD, {}, 200),
    ],
)
def test_a_page_of_another_site_asks_only_where_it_may(
    settings: Settings, headers: dict[str, str], status: int
) -> None:
    body = {"messages": [{"role": "user", "content": "when"}]}
    assert client_of(settings).post("/chat", json=body, headers=headers).status_code == status


@pytest.mark.parametrize("method", ["OPTIONS", "POST"])
def test_a_refused_origin_is_named_in_the_log_with_the_setting_that_lets_it_in(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    with caplog.at_level("INFO"):
        client_of(FRIEND).open("/chat", method=method, json={}, headers=headers)
    assert any("https://evil.example" in line and "server.cors.origins" in line for line in caplog.messages)
