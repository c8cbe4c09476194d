"""Pages of other sites, and names that are not this service's: what a browser can be made to send for its reader."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.attack.callers import body_of, head, said, status_of
from tests.attack.report import Record, judge
from tests.attack.test_front import FORM, JSON, MULTIPART, PATHS
from tests.end_to_end.processes import Running, service
from tests.security.test_hostile_http import POSTED, settings

OWN = "search.example.org"


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a service that answers under three names and has one friend among other sites."""
    folder = tmp_path_factory.mktemp("named")
    more = {
        "server.hosts": f"LOCALHOST, {OWN}:8443, [::1]",
        "server.cors.origins": "https://friend.example",
        "security.admins": "root",
        "feedback.file": str(folder / "thumbs.jsonl"),
        "rag.reply.http_errors": "true",
    }
    with service(folder, settings(folder) | more) as running:
        yield running


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a service with the defaults: any name, no other site."""
    folder = tmp_path_factory.mktemp("plain")
    with service(folder, settings(folder) | {"rag.reply.http_errors": "true", "security.admins": "root"}) as running:
        yield running


FOREIGN = (
    "evil.example", "evil.example:8080", "localhost.evil.example", "evil-localhost", "localhost@evil.example",
    "127.0.0.1", "127.0.0.1.nip.example", OWN, f"{OWN}:80", f"{OWN}:84430", f"x.{OWN}:8443", "::1", "[::2]", "[::1",
    "[::1]]", "", " ", ":8443", "localhost:", "localhost:x", "localhost:80:80", "localhost/", "localhost,evil.example",
    "l\xf6calhost", "localhost\xa0", "localhost.", "a" * 5000, "0", "2130706433",
)  # fmt: skip
OURS = (
    "localhost", "LocalHost", "localhost:1", "LOCALHOST:65535", f"{OWN}:8443", OWN.upper() + ":8443", "[::1]",
    "[::1]:80",
)  # fmt: skip


def test_only_the_services_own_names_are_answered(named: Running, record_property: Record) -> None:
    """A page whose name was made to mean this machine is refused, with the identity that a proxy would vouch for."""
    holes = []
    requests = [
        (name, head("GET", "/admin", "X-Remote-User: root", "Connection: close", host=name)) for name in FOREIGN
    ]
    requests += [
        ("no host", head("GET", "/admin", "X-Remote-User: root", "Connection: close", host=None)),
        ("no host, HTTP/1.0", head("GET", "/admin", "X-Remote-User: root", host=None, version="1.0")),
        ("two hosts", head("GET", "/admin", "Host: evil.example", "Connection: close", host="localhost")),
        ("another target", head("GET", "http://evil.example/admin", "Connection: close", host="localhost")),
        ("another host", head("GET", "http://localhost/admin", "Connection: close", host="evil.example")),
        ("a name in the target", head("GET", "http://a@localhost/admin", "Connection: close", host="localhost")),
        (
            "another header",
            head("GET", "/admin", "X-Forwarded-Host: localhost", "Connection: close", host="evil.example"),
        ),
        ("another spelling", head("GET", "/admin", "X-Host: localhost", "HOST : localhost", host=None)),
    ]
    for name, request in requests:
        answer = said(named, request)
        is_shown = b"csrf_token" in answer or b"root" in answer.partition(b"\r\n\r\n")[2]
        holes += [] if status_of(answer) in (400, 421) and not is_shown else [f"{name!r}: {answer[:120]!r}"]
    for name in OURS:
        answer = said(named, head("GET", "/health/live", "Connection: close", host=name))
        holes += [] if status_of(answer) == 200 else [f"ours, {name!r}: {answer[:120]!r}"]
    absolute = said(named, head("GET", "http://LOCALHOST:80/health/live", "Connection: close", host="localhost"))
    holes += [] if status_of(absolute) == 200 else [f"absolute: {absolute[:120]!r}"]
    judge(record_property, "names that are not ours", against="HTTP", tried=len(requests) + len(OURS) + 1, holes=holes)


def test_another_name_is_refused_on_every_path_in_its_shape(named: Running, record_property: Record) -> None:
    holes, tried = [], 0
    for path in PATHS:
        for method in ("GET", "POST", "PUT", "OPTIONS", "HEAD"):
            answer = said(named, head(method, path, "Connection: close", "X-Remote-User: ann", host="evil.example"))
            tried += 1
            holes += [] if status_of(answer) == 421 else [f"{method} {path}: {answer[:100]!r}"]
            if b"zxhidden" in answer or b'name="csrf_token" value="ImFubi' in answer:
                holes.append(f"{method} {path} shows something of ann's")
    shapes = {path: body_of(said(named, head("POST", path, "Connection: close", host="evil"))) for path in POSTED}
    for path, body in shapes.items():
        holes += (
            []
            if "unknownHost" in json.dumps(body) or path in ("/ask", "/chat", "/chat/stream")
            else [f"{path}: {body}"]
        )
    judge(record_property, "another name on every path", against="HTTP", tried=tried + len(shapes), holes=holes)


CROSS = {
    "a browser of today": ("Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"),
    "a sibling": ("Origin: https://x.search.example.org", "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors"),
    "a navigation": ("Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"),
    "without an origin": ("Sec-Fetch-Site: cross-site",),
    "an older browser": ("Origin: https://evil.example",),
    "over HTTP": ("Origin: http://evil.example:8443",),
    "a frame in a box": ("Origin: null",),
    "a frame in a box, today": ("Origin: null", "Sec-Fetch-Site: cross-site"),
    "almost our own name": ("Origin: http://localhost.evil.example",),
    "another port": ("Origin: http://localhost:9",),
    "a word": ("Origin: evil",),
    "nothing": ("Origin: ",),
    "an unknown word": ("Origin: http://localhost", "Sec-Fetch-Site: other"),
    "a forged file": ("Origin: file://",),
    "broken": ("Origin: http://[",),
    "with a cookie": ("Origin: https://evil.example", "Cookie: session=1"),
}
MESSAGES = json.dumps({"messages": [{"role": "user", "content": "common report"}]}).encode()
PART = b'--b\r\nContent-Disposition: form-data; name="json"\r\n\r\n' + MESSAGES + b"\r\n--b--\r\n"
SIMPLE = (
    ("/api/chat", MULTIPART, PART),
    ("/api/chat/stream", MULTIPART, PART),
    ("/search/select", FORM, b"action=rag&q=common+report"),
    ("/search/select", MULTIPART, b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\ncommon\r\n--b--\r\n'),
    *((path, JSON, json.dumps(body).encode()) for path, body in POSTED.items()),
    ("/chat", "text/plain", MESSAGES),
)  # fmt: skip


def post(running: Running, path: str, kind: str, body: bytes, *headers: str) -> bytes:
    first = head("POST", path, f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers, host="localhost")
    return said(running, first.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1) + body)


def test_no_page_of_another_site_makes_the_service_work_for_its_reader(
    named: Running, plain: Running, record_property: Record
) -> None:
    holes, tried = [], 0
    for running in (named, plain):
        for path, kind, body in SIMPLE:
            for name, headers in CROSS.items():
                answer = post(running, path, kind, body, "X-Remote-User: ann", *headers)
                tried += 1
                if status_of(answer) != 403 or b"zkopen" in answer:
                    holes.append(f"{path} {kind} {name}: {answer[:100]!r}")
    for path in ("/talk", "/feedback", "/admin/revoke"):
        for name, headers in CROSS.items():
            answer = post(named, path, JSON if path == "/talk" else FORM, MESSAGES, "X-Remote-User: root", *headers)
            tried += 1
            # /admin/revoke takes JSON alone, which a page of another site cannot send: a form is 415 whoever sent it.
            is_refused = status_of(answer) == 403 or (path, status_of(answer)) == ("/admin/revoke", 415)
            is_refused |= path == "/talk" and name == "a frame in a box"
            holes += [] if is_refused else [f"{path} {name}: {answer[:100]!r}"]
    judge(record_property, "POST from a page of another site", against="HTTP", tried=tried, holes=holes)


WELCOME = {
    "no browser": (),
    "our own page": ("Origin: http://localhost", "Sec-Fetch-Site: same-origin"),
    "our own page over HTTP": ("Origin: http://localhost",),
    "our own page behind TLS": ("Origin: https://localhost:443",),
    "our own page behind a proxy": ("Origin: https://www.example.org", "X-Forwarded-Host: www.example.org"),
    "typed by the reader": ("Sec-Fetch-Site: none",),
    "our own page without a referrer": ("Origin: null", "Sec-Fetch-Site: same-origin"),
}


def test_programs_our_own_pages_and_friends_are_answered(named: Running, record_property: Record) -> None:
    holes = []
    for name, headers in WELCOME.items():
        for path, kind, body in (SIMPLE[0], SIMPLE[2], ("/chat", JSON, MESSAGES)):
            answer = post(named, path, kind, body, *headers)
            holes += [] if status_of(answer) == 200 else [f"{name} {path}: {answer[:100]!r}"]
    friend = ("Origin: https://friend.example", "Sec-Fetch-Site: cross-site", "Cookie: session=1")
    answer = post(named, "/chat", JSON, MESSAGES, *friend)
    holes += [] if status_of(answer) == 200 else [f"a friend: {answer[:100]!r}"]
    answer = post(named, "/admin/revoke", FORM, b"", "X-Remote-User: root", *friend)
    holes += [] if status_of(answer) == 403 else [f"a friend at /admin/revoke: {answer[:100]!r}"]
    judge(record_property, "those who may", against="HTTP", tried=3 * len(WELCOME) + 2, holes=holes)
