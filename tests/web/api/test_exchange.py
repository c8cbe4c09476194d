"""What every door of the service does alike, one row each: who asks, limits, counts, audit, failures, preflight."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest
from flask.testing import FlaskClient
from werkzeug.test import EnvironBuilder, TestResponse

from datafari_rag.core.access import Filter, User
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import ModelUnavailable, NoAnswer, NotAuthenticated
from datafari_rag.core.events import Delta, Event, ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.search_request import Search, SearchResult
from datafari_rag.core.settings.table import RequestRates, ServerLimits
from datafari_rag.ports import Ending, TextChunk
from datafari_rag.protocols import ragapi
from datafari_rag.protocols.mcp import messages
from datafari_rag.protocols.request import ReplyContext
from datafari_rag.web.api.answers import answer_of
from datafari_rag.web.api.grounding import work_units
from datafari_rag.web.app import SNAPSHOT
from datafari_rag.web.responses import NDJSON
from datafari_rag.web.routes import PAGES, ROUTES
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.turn import DialectRoute, Route, current_turn, run
from tests.fakes import FLIGHT, FakeIdentity, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with
from tests.web.api.test_mcp import BOTH, META, FakeTrail

QUESTION = "When does the plane take off?"
CHAT = {"messages": [{"role": "user", "content": QUESTION}]}


@dataclass(frozen=True)
class Door:
    """One way in, with a request that is answered there."""

    name: str
    path: str
    body: object = None
    form: dict[str, str] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    asks: bool = True
    """Whether it is a question, an opening or a check: counted for its user and audited."""
    question: str | None = QUESTION

    def send(self, client: FlaskClient, **headers: str) -> TestResponse:
        every = {**self.headers, **headers}
        if self.body is not None:
            return client.post(self.path, json=self.body, headers=every)
        if self.form is not None:
            return client.post(self.path, data=self.form, headers=every)
        return client.get(self.path, headers=every)


def tool(name: str, arguments: dict[str, object], question: str | None = None) -> Door:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": META},
    }
    headers = {"MCP-Protocol-Version": messages.MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name, "Accept": BOTH}
    return Door(f"mcp {name}", "/mcp", body, headers=headers, question=question)


FACTS = {"answerCandidate": "It flies.", "facts": [{"factText": "It flies."}]}

DOORS = (
    Door("select rag", "/search/select?action=rag&q=When+does+the+plane+take+off%3F"),
    Door("select rag, a stream", "/search/select?action=rag&stream=true&q=When+does+the+plane+take+off%3F"),
    Door("select", "/search/select?q=plane", asks=False),
    Door("select by form", "/search/select", form={"q": "plane"}, asks=False),
    Door("chat", "/chat", CHAT),
    Door("chat stream", "/chat/stream", CHAT),
    Door("published", "/api/chat", CHAT),
    Door("openai", "/v1/chat/completions", {**CHAT, "index_name": "default", "model": "m"}),
    Door("openai stream", "/v1/chat/completions", {**CHAT, "index_name": "default", "model": "m", "stream": True}),
    Door("responses", "/v1/responses", {"input": QUESTION}),
    Door("models", "/v1/models", asks=False),
    Door("ai rag", "/rest/v2.0/ai", {"action": "rag", "query": QUESTION}),
    Door("ai summarize", "/rest/v2.0/ai", {"action": "summarize", "id": FLIGHT.id}, question=""),
    Door("ai stream", "/rest/v2.0/ai/stream", {"action": "rag", "query": QUESTION}),
    Door(
        "grounding",
        "/grounding/check",
        {"answerCandidate": "It flies.", "facts": [{"factText": "It flies."}]},
        question=None,
    ),
    Door("retrieve", "/retrieve", {"question": QUESTION}),
    Door("documents", f"/documents?id={FLIGHT.id}", headers={"Accept": "application/json"}, question=None),
    Door("documents page", f"/documents?id={FLIGHT.id}", headers={"Accept": "text/html"}, question=None),
    Door("talk", "/talk", CHAT),
    Door("page", "/?q=When+does+the+plane+take+off%3F"),
    Door("results of the page", "/found?q=plane", form={}, asks=False),
    Door("first page", "/", asks=False),
    tool("answer", {"question": QUESTION}, QUESTION),
    tool("search", {"query": QUESTION}, QUESTION),
    tool("fetch", {"id": FLIGHT.id}),
    tool("check", {"text": "It flies.", "document_ids": [FLIGHT.id]}),
)


@pytest.fixture(params=DOORS, ids=lambda door: door.name)
def door(request: pytest.FixtureRequest) -> Door:
    found: Door = request.param
    return found


def client_of(line: ServiceSnapshot | None = None) -> FlaskClient:
    return app_of(line or fake_snapshot()).test_client()


def counted(client: FlaskClient, name: str) -> float:
    text = client.get("/metrics").get_data(as_text=True)
    return sum(float(row.rsplit(" ", 1)[1]) for row in text.splitlines() if row.startswith(name))


def limited(client: FlaskClient) -> float:
    text = client.get("/metrics").get_data(as_text=True)
    rows = [row for row in text.splitlines() if 'outcome="tooManyRequests"' in row and "answers_total" in row]
    return sum(float(row.rsplit(" ", 1)[1]) for row in rows)


def test_every_door_answers(door: Door) -> None:
    response = door.send(client_of(), **{"X-User": "ann"})
    assert response.status_code == 200 and response.get_data()


def test_who_cannot_be_known_learns_how_to_sign_in(door: Door) -> None:
    response = door.send(client_of(fake_snapshot(identity=FakeIdentity(NotAuthenticated()))))
    if response.status_code == 401:
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    else:
        # A dialect that says failures with HTTP 200 says this one so as well.
        assert response.status_code == 200 and b"notAuthenticated" in response.get_data()


def test_the_second_question_of_a_minute_is_refused_and_searches_are_not(door: Door) -> None:
    client = client_of(fake_snapshot(settings=settings_with(server_rate=RequestRates(user=1))))
    door.send(client, **{"X-User": "ann"}).get_data()
    assert limited(client) == 0, "one request counts once"
    second = door.send(client, **{"X-User": "ann"})
    second.get_data()
    assert limited(client) == door.asks
    if second.status_code == 429:
        assert int(second.headers["Retry-After"]) >= 1


def test_an_address_with_too_many_requests_learns_when_to_come_again(door: Door) -> None:
    client = client_of(fake_snapshot(settings=settings_with(server_rate=RequestRates(client=1))))
    door.send(client)
    second = door.send(client)
    assert int(second.headers["Retry-After"]) >= 1


def test_a_header_that_forges_a_user_is_counted_once(door: Door) -> None:
    client = client_of()
    door.send(client, **{"X-Forwarded-User": "root"}).get_data()
    assert counted(client, 'datafari_rag_ignored_parameters_total{kind="identity"}') == 1


def test_every_question_is_one_whole_line_of_the_audit(door: Door) -> None:
    trail = FakeTrail()
    door.send(client_of(replace(fake_snapshot(), audit=trail)), **{"X-User": "ann"}).get_data()

    assert len(trail.records) == door.asks
    for record in trail.records:
        assert (record["who"], record["outcome"]) == ("ann", "ok")
        assert (record["question"] or None) == (door.question or None)
        if door.name != "grounding":
            assert FLIGHT.id in {one["id"] for one in record["documents"]}


def test_an_answer_that_failed_is_audited_with_its_question_and_documents(door: Door) -> None:
    trail = FakeTrail()
    broken = FakeModel(failure=ModelUnavailable(), facts=ModelFacts(name="m", extras={"usage": {"total_tokens": 7}}))
    door.send(client_of(replace(fake_snapshot(model=broken), audit=trail)), **{"X-User": "ann"}).get_data()

    for record in trail.records:
        if record["outcome"] != "ok":
            assert (record["question"] or None) == (door.question or None)
            assert {one["id"] for one in record["documents"]} >= {FLIGHT.id}
            if door.name != "ai summarize":  # whose calls of the model are many
                assert (record["model"], record["tokens"]) == ("m", 7)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/search/select?action=rag&stream=true&q=plane", None, id="ragapi"),
        pytest.param("/v1/chat/completions", {**CHAT, "stream": True, "model": "datafari"}, id="openai"),
    ],
)
def test_a_stream_that_is_closed_before_its_first_line_is_counted(path: str, body: object) -> None:
    """Its caller left; what was begun for it ends, and says so."""
    app = app_of(fake_snapshot())
    method = "GET" if body is None else "POST"
    environ = EnvironBuilder(path=path, method=method, json=body).get_environ()
    lines = app(environ, lambda *begun: lambda data: None)
    lines.close()  # type: ignore[attr-defined]  # a WSGI server calls it where it is there
    assert counted(app.test_client(), 'datafari_rag_answers_total{dialect="') == 1


def test_a_browser_may_use_every_method_of_a_path_of_the_api() -> None:
    client = client_of(fake_snapshot(settings=settings_with(server_cors_origins=("https://intranet.example",))))
    headers = {"Origin": "https://intranet.example", "Access-Control-Request-Method": "PUT"}
    for path, methods in (
        ("/rest/v2.0/users/conversations", "DELETE, GET, POST, PUT"),
        ("/search/select", "GET, POST"),
        ("/documents", "GET"),
        ("/v1/responses", "POST"),
    ):
        assert client.options(path, headers=headers).headers["Access-Control-Allow-Methods"] == methods


def test_a_thousand_requests_refused_for_a_bad_setting_leave_nothing_behind() -> None:
    client = client_of(replace(fake_snapshot(), bad_setting="rag.maxFiles is wrong."))

    def users() -> int:
        gc.collect()
        return sum(isinstance(one, User) for one in gc.get_objects())

    first = [(door, door.send(client, **{"X-User": "ann"}).get_data()) for door in DOORS]
    refusing = [door for door, said in first if b"rag.maxFiles" in said]
    assert [door.name for door in DOORS if door.asks and door not in refusing] == ["documents", "documents page"]
    before = users()
    for number in range(1000):
        door = refusing[number % len(refusing)]
        assert b"rag.maxFiles" in door.send(client, **{"X-User": f"ann{number}"}).get_data(), door.name
    assert users() <= before


@pytest.mark.parametrize(
    ("method", "path", "takes"),
    [
        (method, path, route.takes)
        for route in (*ROUTES, *PAGES)
        if route.name != "mcp-resource"  # tells a client how to sign in (RFC 9728)
        for path in route.paths
        for method in route.methods
    ],
)
def test_nothing_is_outside_of_what_every_request_passes_through(method: str, path: str, takes: frozenset[str]) -> None:
    client = client_of(fake_snapshot(identity=FakeIdentity(NotAuthenticated())))
    body: dict[str, str] | None = None if takes == {"form"} else {}
    response = client.open(path, method=method, json=body, headers={"X-Forwarded-User": "root"})
    assert response.status_code == 401 and response.headers["WWW-Authenticate"].startswith("Bearer")
    assert counted(client, 'datafari_rag_ignored_parameters_total{kind="identity"}') == 1
    refused = [line for line in client.get("/metrics").text.splitlines() if 'outcome="notAuthenticated"' in line]
    assert [line.rsplit(" ", 1)[1] for line in refused if "answers_total" in line] == ["1.0"]


class BrokenDialect:
    """RagAPI, whose stream has a defect at the second words."""

    parse, reply, failure = staticmethod(ragapi.parse), staticmethod(ragapi.reply), staticmethod(ragapi.failure)

    def stream(self, events: Iterator[Event], context: ReplyContext) -> Iterator[Mapping[str, object]]:
        for event in events:
            if isinstance(event, Delta) and "15h50" in event.text:
                raise ValueError(event.text)
            yield from ragapi.stream(iter((event,)), context)


def test_a_defect_of_a_dialect_is_the_last_event_of_its_stream_and_no_text_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trail = FakeTrail()
    line = replace(fake_snapshot(model=FakeModel("The flight takes ", "off at 15h50.")), audit=trail)
    app = app_of(line)
    row = DialectRoute("broken", BrokenDialect(), NDJSON)
    with app.test_request_context(DOORS[1].path, environ_base={SNAPSHOT: line}), caplog.at_level(logging.DEBUG):
        app.preprocess_request()
        route = Route("broken", (), (), frozenset(), (row,))
        lines = run(current_turn(), answer_of, route=route).get_data(as_text=True).splitlines()

    assert "internal" in lines[-2] and json.loads(lines[-1])["data"]["status"] == "ERROR"
    assert "incident" in caplog.text and "15h50" not in caplog.text
    assert [record["outcome"] for record in trail.records] == ["internal"]


def test_a_defect_in_what_is_passed_through_is_the_last_event_of_its_stream(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Iterator[Mapping[str, object] | Ending]:
        yield {"id": "u", "model": "m", "choices": []}
        raise ValueError("secret words")

    class Relay:
        def relay(self, body: Mapping[str, object], *, is_streamed: bool) -> Iterator[Mapping[str, object] | Ending]:
            return broken()

    line = replace(fake_snapshot(), relay=Relay())  # type: ignore[arg-type] # what a relay's own defect does
    text = client_of(line).post("/v1/chat/completions", json={**CHAT, "stream": True}).get_data(as_text=True)
    assert "internal error" in text.split("\n\n")[-2] and "[DONE]" not in text
    assert "secret words" not in caplog.text


def test_what_is_passed_through_as_a_stream_is_audited_with_model_and_tokens() -> None:
    facts = ModelFacts(name="m", extras={"usage": {"total_tokens": 12}})

    class Relay:
        def relay(self, body: Mapping[str, object], *, is_streamed: bool) -> Iterator[Mapping[str, object] | Ending]:
            yield {"id": "u", "choices": []}
            yield Ending("stop", None, facts)

    trail = FakeTrail()
    line = replace(fake_snapshot(), relay=Relay(), audit=trail)  # type: ignore[arg-type] # as above
    client_of(line).post("/v1/chat/completions", json={**CHAT, "stream": True}).get_data()
    assert [(one["outcome"], one["model"], one["tokens"]) for one in trail.records] == [("passed", "m", 12)]


@pytest.mark.parametrize(
    "door", [one for one in DOORS if one.name in ("ai stream", "ai summarize", "openai stream", "mcp answer")]
)
def test_whoever_finds_no_place_to_begin_is_refused_on_streams_too(door: Door) -> None:
    app = app_of(fake_snapshot(settings=settings_with(server_limits=ServerLimits(starting=1, wait_s=0))))
    with app.extensions["worker"].starts.place(1, 0):
        assert b"overloaded" in door.send(app.test_client()).get_data()


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_a_silent_model_is_an_answer_without_documents_and_one_that_breaks_off_is_a_failure(path: str) -> None:
    def said(model: FakeModel) -> tuple[str, str]:
        trail = FakeTrail()
        text = client_of(replace(fake_snapshot(model=model), audit=trail)).post(path, json=CHAT).get_data(as_text=True)
        return text, str(trail.records[-1]["outcome"])

    text, outcome = said(FakeModel(" "))
    assert NoAnswer.sentence in text and outcome == "ok" and FLIGHT.text not in text
    text, outcome = said(FakeModel("It flies. ", failure=ModelUnavailable()))
    assert NoAnswer.sentence not in text and outcome == "modelUnavailable"
    text, outcome = said(FakeModel("It flies [1]."))
    assert "It flies" in text and outcome == "ok"


class Left(BaseException):
    """What the server ends a request with whose caller left."""


@pytest.mark.parametrize("door", [one for one in DOORS if one.name in ("select rag", "openai stream", "ai stream")])
def test_a_caller_who_leaves_during_the_search_leaves_one_line_and_no_place(door: Door) -> None:
    class Leaving(FakeRetriever):
        def search(self, search: Search, access: Filter) -> SearchResult:
            raise Left

    trail = FakeTrail()
    app = app_of(replace(fake_snapshot(Leaving(FLIGHT)), audit=trail))
    with pytest.raises(Left):
        door.send(app.test_client(), **{"X-User": "ann"}).get_data()
    gc.collect()
    assert [(record["outcome"], record["question"]) for record in trail.records] == [("aborted", QUESTION)]
    assert (app.extensions["worker"].streams.open, app.extensions["worker"].starts._busy) == (0, 0)


def test_a_place_is_held_until_the_documents_are_known() -> None:
    busy: list[int] = []

    class Watching(FakeModel):
        def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
            busy.append(app.extensions["worker"].starts._busy)
            yield from super().generate(prompt, is_streamed=is_streamed)

    class Searching(FakeRetriever):
        def search(self, search: Search, access: Filter) -> SearchResult:
            busy.append(app.extensions["worker"].starts._busy)
            return super().search(search, access)

    app = app_of(fake_snapshot(Searching(FLIGHT), Watching("It flies [1].")))
    DOORS[0].send(app.test_client())
    assert busy == [1, 0]


@pytest.mark.parametrize("name", ["select", "select by form", "grounding", "mcp check"])
def test_a_caller_has_so_many_units_of_work_a_minute(name: str) -> None:
    door = next(one for one in DOORS if one.name == name)
    client = client_of(fake_snapshot(settings=settings_with(server_rate=RequestRates(work=3))))
    outcomes = []
    for _ in range(4):
        door.send(client, **{"X-User": "ann"}).get_data()
        outcomes.append(limited(client))
    assert outcomes == [0, 0, 0, 1]
    door.send(client, **{"X-User": "bob"}).get_data()
    assert limited(client) == 1, "another caller has another count"


@pytest.mark.parametrize("name", ["grounding of documents", "mcp check"])
def test_no_document_is_read_for_a_caller_without_units(name: str) -> None:
    body = {"answerCandidate": "It flies.", "documentIds": [FLIGHT.id]}
    several = (*DOORS, Door("grounding of documents", "/grounding/check", body))
    door = next(one for one in several if one.name == name)
    fetched: list[str] = []

    class Noting(FakeRetriever):
        def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
            fetched.append(document_id)
            return super().fetch(document_id, field, access)

    client = client_of(fake_snapshot(Noting(FLIGHT), settings=settings_with(server_rate=RequestRates(work=1))))
    for _ in range(2):
        door.send(client, **{"X-User": "ann"}).get_data()
    assert limited(client) == 1 and fetched == [FLIGHT.id]


def test_a_check_of_much_text_is_more_units() -> None:
    facts = [Document("1", "words " * 20_000)]
    assert work_units("word", facts) == 2
    assert work_units("word " * 2_000, facts) == 14


def test_what_a_script_asks_for_every_second_is_logged_when_it_failed_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        client_of().get("/widget.json")
        assert "dialect=site" not in caplog.text
        client_of(fake_snapshot(identity=FakeIdentity(NotAuthenticated()))).get("/widget.json")
    assert "dialect=site outcome=notAuthenticated" in caplog.text
