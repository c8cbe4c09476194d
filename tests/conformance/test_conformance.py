"""What is promised of every door, whole and streamed, over the real application with fakes at the ports."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.core.errors import (
    AuthorityUnavailable,
    BadSetting,
    ContentFiltered,
    ModelBusy,
    ModelTimeout,
    ModelUnavailable,
    NoAnswer,
    NoDocuments,
    NotAuthenticated,
    RagError,
    SearchTimeout,
    SearchUnavailable,
    leaves,
)
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending, Model
from datafari_rag.web.routes import ROUTES
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag_trials.conformance.doors import DOORS, Door, Seen
from tests.conformance.promises import promise
from tests.fakes import FLIGHT, RABBIT, FakeIdentity, FakeModel, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with
from tests.support.stub import raw_server

QUESTION = "When does the plane take off?"
SETTINGS = Settings()
"""RagAPI with real line breaks, so that texts can be compared letter by letter."""

ODD = 'He said: "C:\\Users"\n\n\tÉté — 漢字 👩‍👩‍👧‍👦 at 15h50 [1].\u2028End {x} %s a < b &amp; c'


class FakeRelay:
    """Answers what is passed through, and remembers it."""

    def __init__(self) -> None:
        self.bodies: list[Mapping[str, object]] = []

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        self.bodies.append(body)
        part = "delta" if is_streamed else "message"
        yield {"id": "up", "choices": [{"index": 0, part: {"content": "as the model says"}, "finish_reason": "stop"}]}
        yield Ending("stop")


def client_of(line: ServiceSnapshot) -> FlaskClient:
    return app_of(line).test_client()


def line(
    model: Model | None = None, retriever: FakeRetriever | None = None, settings: Settings = SETTINGS, **more: Any
) -> ServiceSnapshot:
    told = fake_snapshot(retriever, settings=settings, **more)
    return replace(told, dependencies=replace(told.dependencies, model=model)) if model is not None else told


def ask(door: Door, at: ServiceSnapshot, question: str = QUESTION, **more: object) -> TestResponse:
    return door.ask(client_of(at), question, more)


def see(door: Door, at: ServiceSnapshot, question: str = QUESTION, **more: object) -> Seen:
    response = ask(door, at, question, **more)
    assert response.status_code == 200, response.get_data()
    assert response.mimetype == door.media_type
    return door.seen(response.get_data())


def marks_of(seen: Seen) -> list[str]:
    """Return the text of the answer at the place where each citation says that its mark is."""
    return [seen.text[slice(int(str(one["answer_start"])), int(str(one["answer_end"])))] for one in seen.citations]


def reference(at: ServiceSnapshot, question: str = QUESTION) -> Seen:
    """Return what the search UI's dialect shows, which all others must show too."""
    return see(DOORS[0], at, question)


@promise
def test_the_same_answer(door: Door) -> None:
    seen = see(door, line())
    assert replace(seen, times_sources=1) == reference(line())
    assert seen.text == "The flight takes off at 15h50 [1]."
    assert seen.labels == ("Boarding pass", "Rabbits")
    assert [citation["status"] for citation in seen.citations] == ["quoted"]
    assert marks_of(seen) == ["[1]"]


@promise
def test_odd_characters(door: Door) -> None:
    model = FakeModel(*ODD)
    seen = see(door, line(model))
    assert seen.text == ODD
    assert seen.citations == reference(line(FakeModel(*ODD))).citations


@promise
def test_each_citation_has_the_place_of_its_mark(door: Door) -> None:
    """Line ends and characters of two code units before it count one each."""
    seen = see(door, line(FakeModel("🛫 At\r", "\n\r\n 15h50 ", "[1]. \\n “x [7]” 👩‍👩‍👧", " [1, 2] [Nowhere]")))
    assert marks_of(seen) == ["[1]", "[7]", "[1, 2]", "[1, 2]", "[Nowhere]"]


def _split_stream(connection: socket.socket) -> None:
    """Send a model's stream with one character in two packets, and one escaped emoji in two deltas' bytes."""
    chunk = json.dumps({"choices": [{"index": 0, "delta": {"content": "Été 👩 à 15h50 [1]."}}]}, ensure_ascii=False)
    end = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    raw = f"data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n".encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    for byte in raw:
        connection.sendall(bytes([byte]))


def _whole_reply(connection: socket.socket) -> None:
    choice = {"index": 0, "message": {"content": "Été 👩 à 15h50 [1]."}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice]}, ensure_ascii=False).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode())
    for byte in body:
        connection.sendall(bytes([byte]))


@promise
def test_a_character_split_over_packets(door: Door) -> None:
    with raw_server(_split_stream if door.how == "stream" else _whole_reply) as url:
        assert see(door, line(HttpModel(Endpoint(url)))).text == "Été 👩 à 15h50 [1]."


@promise
def test_a_cut_answer(door: Door) -> None:
    seen = see(door, line(FakeModel("The flight takes off at", finish_reason="length")))
    assert (seen.text, seen.finish_reason) == ("The flight takes off at", "length")


@promise
def test_a_missing_shard(door: Door) -> None:
    """Every dialect says so, in the words of its own place; and never when all shards answered."""
    partly, wholly = (line(retriever=FakeRetriever(FLIGHT, RABBIT, is_partial=flag)) for flag in (True, False))
    said = ask(door, partly).get_data()

    assert b'"partial_results": true' in said or b'"partial_results":true' in said
    assert b"partial_results" not in ask(door, wholly).get_data()
    assert door.seen(said).labels == ("Boarding pass", "Rabbits")


@promise
def test_nothing_in_what_is_left_of_the_shards(door: Door) -> None:
    """The content of the missing one is unknown: that is not "there are no documents"."""
    model = FakeModel("never asked")
    response = ask(door, line(model, FakeRetriever(is_partial=True)))

    assert response.status_code == door.status(502)
    assert door.said(response.get_json()) == SearchUnavailable().reason
    assert model.prompts == []


INVENTED = (
    "The flight takes off at 15h50 [1]. The moon is made of cheese. "
    "Once upon a time, a nice rabbit called Paris ate a carrot."
)
PROVED = "The flight takes off at 15h50 [1]. Once upon a time, a nice rabbit called Paris ate a carrot."


@pytest.mark.parametrize(
    ("case", "text", "more"),
    [
        pytest.param("mark", INVENTED, '"unsupported":[{"start":35,"end":62}],"dropped":0', id="mark"),
        pytest.param("drop", PROVED, '"unsupported":[],"dropped":1', id="drop"),
    ],
)
@promise
def test_what_no_document_proves(door: Door, case: Any, text: str, more: str) -> None:
    at = line(FakeModel(*re.findall(".{1,7}", INVENTED)), settings=settings_with(SETTINGS, answer_unsupported=case))
    response = ask(door, at)
    said = response.get_data()
    seen = door.seen(said)

    assert (seen.text, [one["status"] for one in seen.citations]) == (text, ["quoted"])
    counted = '"score":0.3333,"checked":3,"verified":1,"quoted":1,"near":0'
    told = f'"support":{{{counted},"policy":"{case}",{more},"replaced":null}}'
    assert told.encode() in said.replace(b": ", b":").replace(b", ", b",")
    assert response.headers.get("X-RAG-Support") == ("0.3333" if door.how == "whole" else None)


@promise
def test_links_are_made_safe(door: Door) -> None:
    model = FakeModel("See ![x](http://e", "vil/p.png) and [that](http://evil/), or [Boarding pass].")
    shown = "See ! [x]\xa0(http://evil/p.png) and [that]\xa0(http://evil/), or [Boarding pass]."
    assert see(door, line(model)).text == shown


@promise
def test_no_documents(door: Door) -> None:
    model = FakeModel("never asked")
    seen = see(door, line(model, FakeRetriever()))
    assert seen == Seen(NoDocuments.sentence, (), (), "stop")
    assert model.prompts == []


@promise
def test_no_documents_in_french(door: Door) -> None:
    seen = see(door, line(retriever=FakeRetriever()), "Quand l'avion décolle-t-il de la piste ?")
    assert seen.text.startswith("Aucune réponse")


@promise
def test_an_empty_answer(door: Door) -> None:
    assert see(door, line(FakeModel("", " \n"))) == Seen(NoAnswer.sentence, (), (), "stop")


@promise
def test_an_empty_answer_as_an_error_of_its_own(door: Door) -> None:
    """Where docs/contract.md has an error in place of a sentence."""
    response = ask(door, line(FakeModel("", " \n")))
    assert response.status_code == door.status(428)
    assert door.said(response.get_json()) == NoAnswer.sentence


@promise
def test_every_failure(door: Door) -> None:
    """Each class of failure has its sentence at each door; where nothing was found that is said above."""
    wrong = []
    for error in (kind() for kind in leaves() if not issubclass(kind, NoDocuments | NoAnswer)):
        response = ask(door, line(retriever=FakeRetriever(error=error)))
        if response.mimetype != "application/json" or door.said(response.get_json()) != error.reason:
            wrong.append((type(error).__name__, response.status_code, response.get_data(as_text=True)[:200]))
    assert wrong == []


BEFORE: list[tuple[str, int, RagError, dict[str, Any]]] = [
    ("model down", 502, ModelUnavailable(), {"model": FakeModel(failure=ModelUnavailable())}),
    ("model slow", 504, ModelTimeout(), {"model": FakeModel(failure=ModelTimeout())}),
    ("model busy", 503, ModelBusy(), {"model": FakeModel(failure=ModelBusy(retry_after_s=7))}),
    ("content filtered", 400, ContentFiltered(), {"model": FakeModel(failure=ContentFiltered())}),
    ("search down", 502, SearchUnavailable(), {"retriever": FakeRetriever(error=SearchUnavailable())}),
    ("search slow", 504, SearchTimeout(), {"retriever": FakeRetriever(error=SearchTimeout())}),
    ("rights unknown", 502, AuthorityUnavailable(), {"rights": FakeRights(error=AuthorityUnavailable())}),
    ("not signed in", 401, NotAuthenticated(), {"identity": FakeIdentity(NotAuthenticated())}),
    ("anonymous refused", 401, NotAuthenticated(), {"settings": settings_with(SETTINGS, security_anonymous="refuse")}),
]


@pytest.mark.parametrize(("case", "code", "error", "parts"), BEFORE, ids=[name for name, *_ in BEFORE])
@promise
def test_failure_before_the_first_words(
    door: Door, case: str, code: int, error: RagError, parts: dict[str, Any]
) -> None:
    client = client_of(line(**parts))
    headers = {"X-User": "alice"} if case == "rights unknown" else {}
    client.environ_base.update({f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()})
    response = door.ask(client, QUESTION, {})
    assert response.status_code == door.status(code)
    assert response.mimetype == "application/json"
    assert door.said(response.get_json()) == error.reason
    assert response.headers.get("Retry-After") == ("7" if case == "model busy" else None)


@promise
def test_a_bad_setting(door: Door) -> None:
    error = BadSetting("Invalid value for rag.template property. Valid values are x.")
    response = ask(door, replace(line(), bad_setting=error.reason))
    assert response.status_code == door.status(500)
    assert door.said(response.get_json()) == error.reason


@promise
def test_the_model_breaks_off(door: Door) -> None:
    response = ask(door, line(FakeModel("The flight takes ", "off", failure=ModelUnavailable())))
    text, last = door.breaks(response.get_data())
    assert door.said(last) == ModelUnavailable.sentence
    if door.how == "stream":
        assert (response.status_code, text) == (200, "The flight takes off")
    else:
        assert response.status_code == door.status(502)


@promise
def test_rights_are_the_same(door: Door) -> None:
    retriever = FakeRetriever(FLIGHT, RABBIT)
    at = line(retriever=retriever, rights=FakeRights({"alice": ["t1", "t2"]}))
    client = client_of(at)
    client.environ_base["HTTP_X_USER"] = "alice"
    door.ask(client, QUESTION, {"AuthenticatedUserName": "root", "user": "root"}).get_data()
    (_, access), *_ = retriever.searches
    assert access.tokens == ("t1", "t2")


@promise
def test_a_reader_who_hangs_up_frees_the_model(door: Door) -> None:
    model = FakeModel("one ", "two ", "three")
    response = ask(door, line(model))
    next(iter(response.response))
    response.close()
    assert model.was_closed_early


@promise
def test_follow_up_questions(door: Door) -> None:
    model = FakeModel("At 15h50 [1].\n<", "<Which terminal", "?>", ">\n<<Which gate?>>")
    overrides = {"context": {"overrides": {"suggest_followup_questions": True}}}
    raw = ask(door, line(model), **overrides).get_data()
    assert b"<<" not in raw and b">>" not in raw
    assert re.search(rb'"followup_questions": ?\["Which terminal\?", ?"Which gate\?"\]', raw.splitlines()[-1])
    assert door.seen(raw).text.strip() == "At 15h50 [1]."


def test_every_way_to_ask_has_a_door() -> None:
    """A new route whose rows answer questions needs a row in the table of doors."""
    asked = {door.asked(QUESTION, {}).path for door in DOORS}
    answering = [route for route in ROUTES if route.view is None and any(row.work is None for row in route.rows)]
    assert [route.name for route in answering if asked.isdisjoint(route.paths)] == []


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_nothing_found_on_v1_is_one_call_of_the_model_with_the_clients_own_request(is_streamed: bool) -> None:
    relay, model = FakeRelay(), FakeModel("never asked")
    at = replace(line(model, FakeRetriever()), relay=relay)
    body = {
        "index_name": "default",
        "messages": [{"role": "user", "content": "q"}],
        "user": "me",
        "stream": is_streamed,
    }
    response = client_of(at).post("/v1/chat/completions", json=body)
    assert response.status_code == 200
    assert model.prompts == []
    assert relay.bodies == [{key: value for key, value in body.items() if key != "index_name"}]
    raw = response.get_data(as_text=True)
    told = json.loads(raw.split("\n\n")[0].removeprefix("data: "))
    assert told["source_nodes"] is None
    assert told["id"] == "up"
    assert raw.endswith("data: [DONE]\n\n") is is_streamed


def test_nothing_found_on_v1_without_passing_through_is_said() -> None:
    at = line(retriever=FakeRetriever(), settings=settings_with(SETTINGS, openai_client_passthrough=False))
    body = {"index_name": "default", "messages": [{"role": "user", "content": "q"}]}
    told = client_of(at).post("/v1/chat/completions", json=body).get_json()
    assert told["choices"][0]["message"]["content"] == NoDocuments.sentence
    assert told["source_nodes"] == []
