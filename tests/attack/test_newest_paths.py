"""The newest paths with the worst value of each parameter: an answer within bounds, or a failure with a name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.attack import engines
from tests.attack.engines import Service
from tests.attack.report import Record, judge
from tests.web.api.test_bad_values import BODIES, MARK, marked, places_in

PARTS = 30
"""One in so many pairs of a parameter and a value is tried; the slow test tries all of them."""

MOST_BYTES = 3_000_000
"""No reply is larger, whatever was sent."""

JSON = "application/json"
ADMIN = {"X-Remote-User": "admin", "Accept": "application/json, text/event-stream"}


def texts(number: int, text: str = "x") -> str:
    return json.dumps([f"{text}{place}" for place in range(number)])


VALUES: Mapping[str, str] = {
    "5,000 digits": "1" + "0" * 5000,
    "a header": '"a\\r\\nX-Evil: 1"',
    "a macro": '"${java.version}"',
    "a local parameter": '"{!term f=id v=d}"',
    "a path": '"../../etc/passwd"',
    "a list 1,000 deep": "[" * 1000 + "]" * 1000,
    "an object 1,000 deep": '{"a":' * 1000 + "1" + "}" * 1000,
    "a list 100,000 deep": "[" * 100_000 + "]" * 100_000,
    "20 ids": texts(20),
    "200 ids": texts(200),
    "10,000 ids": texts(10_000),
    "100 long ids": texts(100, "y" * 2000),
    "20,000 keys": json.dumps({f"k{place}": 1 for place in range(20_000)}),
    "1 MB": json.dumps("x" * 1_000_000),
    "1 MB of ideographs": json.dumps("中。" * 160_000, ensure_ascii=False),
    "1 MB of brackets": json.dumps("[(" * 500_000),
    "20 texts of 50 kB": json.dumps(["中\n" * 25_000] * 20),
    "a key of 1 MB": json.dumps({"k" * 1_000_000: 1}),
}

"""What is too large, or too deep, or means something to others; `web/api/test_bad_values.py` has the small ones."""

ASKED: Mapping[str, tuple[str, object]] = {**BODIES, "revoke": ("/admin/revoke", {"user": "ann"})}
QUESTION = "When does the ferry leave?"
SAID = [{"role": "user", "content": QUESTION}]
TEXT = "The ferry leaves at nine. The flight takes off at ten. "
DOCUMENTS = [
    {"id": one, "title": f"Timetable {one}", "exactContent": TEXT * 40, "language": "en", "source": "web"}
    for one in ("doc-1", "doc-2")
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with engines.embedded(tmp_path_factory.mktemp("index")) as engine:
        engine.load(DOCUMENTS)
        memory = {"chat__memory__enabled": "true", "chat__memory__secret": "a secret for the memory of the chats"}
        stored = {"chat__store__folder": str(tmp_path_factory.mktemp("conversations"))}
        yield Service(tmp_path_factory.mktemp("service"), engine.url, **memory, **stored)


def hole_in(response: Any) -> str | None:
    """Return what is wrong with *response*: a defect of ours, a status without a name, or a reply without a bound."""
    data: bytes = response.get_data()
    if len(data) > MOST_BYTES:
        return f"{len(data)} bytes"
    is_named = any(name in data for name in (b'"label"', b'"code"', b'"error":"'))
    if b'"internal"' in data or b"incident" in data or (response.status_code >= 400 and not is_named):
        return f"{response.status_code} {data[:200]!r}"
    return None


def pairs() -> list[tuple[str, tuple[Any, ...], str]]:
    return [(name, place, value) for name, (_, body) in ASKED.items() for place in places_in(body) for value in VALUES]


def attacked(service: Service, some: Sequence[tuple[str, tuple[Any, ...], str]], record: Record) -> None:
    holes = []
    for name, place, value in some:
        path, body = ASKED[name]
        sent = json.dumps(marked(body, place)).replace(json.dumps(MARK), VALUES[value])
        response = service.client.post(path, data=sent.encode(), content_type=JSON, headers=ADMIN)
        if hole := hole_in(response):
            holes.append(f"{name}: {place} is {value}: {hole}")
    if service.found([("q", "ferry")]) != (200, ("doc-1", "doc-2")):
        holes.append("others are not served")
    judge(record, "worst values of each parameter", against="embedded", tried=len(some), holes=holes)


def test_no_worst_value_is_a_defect_or_has_an_answer_without_a_bound(service: Service, record_property: Record) -> None:
    attacked(service, pairs()[::PARTS], record_property)


@pytest.mark.slow
def test_none_of_all_worst_values_is(service: Service, record_property: Record) -> None:
    attacked(service, pairs(), record_property)


def test_every_body_is_answered_as_it_is(service: Service) -> None:
    """Else the refusals would mean nothing."""
    for name, (path, body) in ASKED.items():
        response = service.client.post(path, json=body, headers=ADMIN)
        assert response.status_code == 200, (name, response.text[:300])
        assert hole_in(response) is None, name


TYPED: Mapping[str, str] = {
    "1 MB": "x" * 60_000,
    "words": "the ferry " * 5000,
    "wildcards": "*" * 200,
    "brackets": "(" * 199,
    "syntax": 'title:[* TO *] OR "${x}"',
    "NUL": "fer\x00ry",
    "accents": "f\u0301" * 100,
    "ideographs": "中" * 200,
    "nothing": "",
}

CONVERSATIONS = "/rest/v2.0/users/conversations"


def test_no_worst_value_about_a_conversation_is_a_defect(service: Service, record_property: Record) -> None:
    def sent(method: str, name: str, query: str = "", body: str | None = None) -> Any:
        json_body = {} if body is None else {"data": body.encode("utf-8", "surrogatepass"), "content_type": JSON}
        more: Mapping[str, Any] = {"query_string": query, "headers": {"X-Remote-User": name}}
        return service.client.open(CONVERSATIONS, method=method, **json_body, **more)

    own_id = sent("POST", "ann").get_json()["content"]["conversationId"]
    asks = {
        **{f"title {name}": ("PUT", "", f'{{"conversationId": "{own_id}", "title": {value}}}')
           for name, value in VALUES.items()},
        **{f"id {name}": ("PUT", "", f'{{"conversationId": {value}, "title": "x"}}') for name, value in VALUES.items()},
        **{f"{method} of {name}": (method, urlencode({"conversationId": value}), None)
           for method in ("GET", "DELETE") for name, value in TYPED.items() if value},
        **{f"all {name}": ("DELETE", urlencode({"all": value}), None) for name, value in TYPED.items()},
    }  # fmt: skip
    holes = [
        f"{what}: {hole}"
        for user in ("ann", "ben")
        for what, (method, query, body) in asks.items()
        if (hole := hole_in(sent(method, user, query, body)))
    ]
    # Another's id is as good as none, and what nobody may reach by a worst value is still there.
    if sent("DELETE", "ben", f"conversationId={own_id}").status_code != 404:
        holes.append("ben deletes what is ann's")
    if [one["id"] for one in sent("GET", "ann").get_json()["content"]["conversations"]] != [own_id]:
        holes.append("ann's conversation is gone")
    judge(record_property, "conversations, worst values", against="embedded", tried=2 * len(asks) + 2, holes=holes)


HEADERS = ("Accept-Language", "Accept", "X-Request-ID", "X-OpenWebUI-Chat-Id", "X-Forwarded-For", "X-Remote-User",
           "Authorization", "MCP-Protocol-Version", "Origin", "Referer", "traceparent", "Sec-Fetch-Site")  # fmt: skip
HEADER_VALUES = ("x" * 8000, "," * 8000, "en;q=1e308," * 500, "\xff\xfe" * 100, "${x}", "a=b; " * 1000, "*/*;q=-1", " ",
                 "[" * 500, "=?base64?" + "A" * 4000 + "?=", "Bearer " + "." * 4000)  # fmt: skip


def test_no_header_is_a_defect(service: Service, record_property: Record) -> None:
    asks: Mapping[str, Callable[[Mapping[str, str]], Any]] = {
        "ai": lambda headers: service.client.post("/rest/v2.0/ai", json={"query": QUESTION}, headers=headers),
        "search": lambda headers: service.client.get("/search/select?q=ferry", headers=headers),
        "mcp": lambda headers: service.client.post("/mcp", json=ASKED["mcp search"][1], headers=headers),
    }
    holes = [
        f"{path}: {name}: {value[:20]!r}: {hole}"
        for path, ask in asks.items()
        for name in HEADERS
        for value in HEADER_VALUES
        if (hole := hole_in(ask({name: value})))
    ]
    tried = len(asks) * len(HEADERS) * len(HEADER_VALUES)
    judge(record_property, "worst values of headers", against="embedded", tried=tried, holes=holes)


@pytest.mark.parametrize("levels", [90, 300, 900])
def test_no_depth_of_a_value_that_is_sent_back_is_a_defect(
    service: Service, levels: int, record_property: Record
) -> None:
    """A session state of 900 levels could not be measured, one of 300 not be sent back; nor `text` of a response."""
    state = '{"a":' * levels + "1" + "}" * levels
    bodies = [
        (path, {"messages": SAID, name: MARK})
        for path in ("/chat", "/chat/stream", "/ask", "/api/chat", "/api/chat/stream")
        for name in ("sessionState", "session_state")
    ]
    bodies.append(("/v1/responses", {"model": "datafari", "input": QUESTION, "text": MARK}))
    holes = []
    for path, body in bodies:
        sent = json.dumps(body).replace(json.dumps(MARK), state)
        response = service.client.post(path, data=sent, content_type=JSON)
        if (hole := hole_in(response)) or (response.status_code == 200) != (levels < 100):
            holes.append(f"{path}: {response.status_code} {hole}")
    judge(record_property, f"values of {levels} levels", against="embedded", tried=len(bodies), holes=holes)
