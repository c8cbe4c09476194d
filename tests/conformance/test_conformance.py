"""One set of cases, run on every dialect, whole and streamed, over the real application with fakes at the ports."""

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
from datafari_rag.core.access import User
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
)
from datafari_rag.core.settings.records import ChatClient, LeastSupport, OpenaiClient, ReplyShape
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending, Model
from datafari_rag.web.runtime import ServiceSnapshot
from tests.conformance.dialects import DIALECTS, Dialect, Seen
from tests.fakes import FLIGHT, RABBIT, FakeIdentity, FakeModel, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with
from tests.stub import raw_server

QUESTION = "When does the plane take off?"
SETTINGS = settings_with(rag_reply=ReplyShape(linebreaks="newline"))
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


@pytest.fixture(params=DIALECTS, ids=str)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """The dialect under test; a case that it cannot express is skipped with the reason."""
    chosen: Dialect = request.param
    case = request.node.originalname.removeprefix("test_").replace("_", " ")
    variant = request.node.callspec.params.get("case")
    title = f"{case}: {variant}" if variant is not None else case
    request.node.user_properties.append(("conformance", (title, str(chosen))))
    reason = next((why for name, why in (chosen.skips or {}).items() if name in (case, str(variant))), None)
    if reason is not None:
        pytest.skip(reason)
    return chosen


def client_of(line: ServiceSnapshot) -> FlaskClient:
    return app_of(line).test_client()


def line(
    model: Model | None = None, retriever: FakeRetriever | None = None, settings: Settings = SETTINGS, **more: Any
) -> ServiceSnapshot:
    told = fake_snapshot(retriever, settings=settings, **more)
    return replace(told, dependencies=replace(told.dependencies, model=model)) if model is not None else told


def ask(dialect: Dialect, at: ServiceSnapshot, question: str = QUESTION, **more: object) -> TestResponse:
    return dialect.asked(client_of(at), question, more)


def see(dialect: Dialect, at: ServiceSnapshot, question: str = QUESTION, **more: object) -> Seen:
    response = ask(dialect, at, question, **more)
    assert response.status_code == 200, response.get_data()
    assert response.mimetype == dialect.media_type
    return dialect.seen(response.get_data())


def marks_of(seen: Seen) -> list[str]:
    """Return the text of the answer at the place where each citation says that its mark is."""
    return [seen.text[slice(int(str(one["answer_start"])), int(str(one["answer_end"])))] for one in seen.citations]


def reference(at: ServiceSnapshot, question: str = QUESTION) -> Seen:
    """Return what the search UI's dialect shows, which all others must show too."""
    return see(DIALECTS[0], at, question)


def test_the_same_answer(dialect: Dialect) -> None:
    seen = see(dialect, line())
    assert replace(seen, times_sources=1) == reference(line())
    assert seen.text == "The flight takes off at 15h50 [1]."
    assert seen.labels == ("Boarding pass", "Rabbits")
    assert [citation["status"] for citation in seen.citations] == ["verified"]
    assert marks_of(seen) == ["[1]"]


def test_sources_exactly_once(dialect: Dialect) -> None:
    assert see(dialect, line()).times_sources == 1


def test_odd_characters(dialect: Dialect) -> None:
    model = FakeModel(*ODD)
    seen = see(dialect, line(model))
    assert seen.text == ODD
    assert seen.citations == reference(line(FakeModel(*ODD))).citations


def test_each_citation_has_the_place_of_its_mark(dialect: Dialect) -> None:
    """Line ends and characters of two code units before it count one each."""
    seen = see(dialect, line(FakeModel("🛫 At\r", "\n\r\n 15h50 ", "[1]. \\n “x [7]” 👩‍👩‍👧", " [1, 2] [Nowhere]")))
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


def test_a_character_split_over_packets(dialect: Dialect) -> None:
    with raw_server(_split_stream if dialect.how == "stream" else _whole_reply) as url:
        assert see(dialect, line(HttpModel(Endpoint(url)))).text == "Été 👩 à 15h50 [1]."


def test_a_cut_answer(dialect: Dialect) -> None:
    seen = see(dialect, line(FakeModel("The flight takes off at", finish_reason="length")))
    assert (seen.text, seen.finish_reason) == ("The flight takes off at", "length")


def test_a_missing_shard(dialect: Dialect) -> None:
    """Every dialect says so, in the words of its own place; and never when all shards answered."""
    partly, wholly = (line(retriever=FakeRetriever(FLIGHT, RABBIT, is_partial=flag)) for flag in (True, False))
    said = ask(dialect, partly).get_data()

    assert b'"partial_results": true' in said or b'"partial_results":true' in said
    assert b"partial_results" not in ask(dialect, wholly).get_data()
    assert dialect.seen(said).labels == ("Boarding pass", "Rabbits")


def test_nothing_in_what_is_left_of_the_shards(dialect: Dialect) -> None:
    """The content of the missing one is unknown: that is not "there are no documents"."""
    model = FakeModel("never asked")
    response = ask(dialect, line(model, FakeRetriever(is_partial=True)))

    assert response.status_code == dialect.status(502)
    assert dialect.said(response.get_json()) == SearchUnavailable().reason
    assert model.prompts == []


INVENTED = "The flight takes off at 15h50 [1]. The moon is made of cheese. A nice rabbit called Paris ate a carrot."
PROVED = "The flight takes off at 15h50 [1]. A nice rabbit called Paris ate a carrot."
REMARKED = INVENTED.replace("cheese", "cheese (not proved by the documents)")


@pytest.mark.parametrize(
    ("case", "text", "more"),
    [
        pytest.param("mark", INVENTED, '"unsupported":[{"start":35,"end":62}],"dropped":0', id="mark"),
        pytest.param("hold", REMARKED, '"unsupported":[{"start":35,"end":92}],"dropped":0', id="hold"),
        pytest.param("drop", PROVED, '"unsupported":[],"dropped":1', id="drop"),
    ],
)
def test_what_no_document_proves(dialect: Dialect, case: Any, text: str, more: str) -> None:
    at = line(FakeModel(*re.findall(".{1,7}", INVENTED)), settings=settings_with(SETTINGS, answer_unsupported=case))
    response = ask(dialect, at)
    said = response.get_data()
    seen = dialect.seen(said)

    assert (seen.text, [one["status"] for one in seen.citations]) == (text, ["verified"])
    told = f'"support":{{"score":0.6667,"checked":3,"proved":2,"near":0,"policy":"{case}",{more},"replaced":null}}'
    assert told.encode() in said.replace(b": ", b":").replace(b", ", b",")
    assert response.headers.get("X-RAG-Support") == ("0.6667" if dialect.how == "whole" else None)


def test_an_answer_too_little_of_which_is_proved(dialect: Dialect) -> None:
    settings = settings_with(SETTINGS, answer_support=LeastSupport(0.7, "nothing"))
    seen = see(dialect, line(FakeModel(*re.findall(".{1,7}", INVENTED)), settings=settings))

    assert (seen.text, seen.citations) == ("I found no answer to this question in the documents.", ())


def test_links_are_made_safe(dialect: Dialect) -> None:
    model = FakeModel("See ![x](http://e", "vil/p.png) and [that](http://evil/), or [Boarding pass].")
    assert see(dialect, line(model)).text == "See x and that, or [Boarding pass]."


def test_no_documents(dialect: Dialect) -> None:
    model = FakeModel("never asked")
    seen = see(dialect, line(model, FakeRetriever()))
    assert seen == Seen(NoDocuments.sentence, (), (), "stop")
    assert model.prompts == []


def test_no_documents_in_french(dialect: Dialect) -> None:
    seen = see(dialect, line(retriever=FakeRetriever()), "Quand l'avion décolle-t-il de la piste ?")
    assert seen.text.startswith("Aucune réponse")


CLOSED = settings_with(SETTINGS, chat_client=ChatClient(no_documents="error"))


@pytest.mark.parametrize(
    ("case", "error"),
    [("no documents as an error", NoDocuments()), ("an empty answer as an error", NoAnswer())],
    ids=["no documents", "empty answer"],
)
def test_failure(dialect: Dialect, case: str, error: RagError) -> None:
    if dialect.name == "openai" and isinstance(error, NoDocuments):
        pytest.skip("passes the request through when nothing was found")
    retriever = FakeRetriever() if isinstance(error, NoDocuments) else None
    response = ask(dialect, line(FakeModel(), retriever, CLOSED))
    assert response.status_code == dialect.status(428)
    assert dialect.said(response.get_json()) == error.reason


def test_an_empty_answer(dialect: Dialect) -> None:
    response = ask(dialect, line(FakeModel("", " \n")))
    if dialect.name in ("ragapi", "openai", "mcp"):  # an error there (contract §4)
        assert response.status_code == dialect.status(428)
        assert dialect.said(response.get_json()) == NoAnswer.sentence
        return
    assert response.status_code == 200
    assert dialect.seen(response.get_data()) == Seen(NoAnswer.sentence, (), (), "stop")


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
def test_failure_before_the_first_words(
    dialect: Dialect, case: str, code: int, error: RagError, parts: dict[str, Any]
) -> None:
    client = client_of(line(**parts))
    headers = {"X-User": "alice"} if case == "rights unknown" else {}
    client.environ_base.update({f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()})
    response = dialect.asked(client, QUESTION, {})
    assert response.status_code == dialect.status(code)
    assert response.mimetype == "application/json"
    assert dialect.said(response.get_json()) == error.reason
    assert response.headers.get("Retry-After") == ("7" if case == "model busy" else None)


def test_a_bad_setting(dialect: Dialect) -> None:
    error = BadSetting("Invalid value for rag.template property. Valid values are x.")
    response = ask(dialect, replace(line(), bad_setting=error.reason))
    assert response.status_code == dialect.status(500)
    assert dialect.said(response.get_json()) == error.reason


def test_the_model_breaks_off(dialect: Dialect) -> None:
    response = ask(dialect, line(FakeModel("The flight takes ", "off", failure=ModelUnavailable())))
    text, last = dialect.breaks(response.get_data())
    assert dialect.said(last) == ModelUnavailable.sentence
    if dialect.how == "stream":
        assert (response.status_code, text) == (200, "The flight takes off")
    else:
        assert response.status_code == dialect.status(502)


def test_unknown_fields(dialect: Dialect) -> None:
    seen = see(dialect, line(), wings="two", approach="rrr")
    assert seen.text == "The flight takes off at 15h50 [1]."


@pytest.mark.parametrize(("case", "question"), [("blank", " \n"), ("too long", "x" * 4001)], ids=["blank", "long"])
def test_a_question_that_cannot_be_asked(dialect: Dialect, case: str, question: str) -> None:
    response = ask(dialect, line(), question)
    code = {"blank": 422, "too long": 413}[case] if dialect.name == "ragapi" else 400
    assert response.status_code == dialect.status(code)
    assert dialect.said(response.get_json())


def test_rights_are_the_same(dialect: Dialect) -> None:
    retriever = FakeRetriever(FLIGHT, RABBIT)
    at = line(retriever=retriever, rights=FakeRights({"alice": ["t1", "t2"]}))
    client = client_of(at)
    client.environ_base["HTTP_X_USER"] = "alice"
    dialect.asked(client, QUESTION, {"AuthenticatedUserName": "root", "user": "root"}).get_data()
    (_, access), *_ = retriever.searches
    assert access.tokens == ("t1", "t2")
    assert User("alice").name == "alice"


def test_a_reader_who_hangs_up_frees_the_model(dialect: Dialect) -> None:
    if dialect.how == "whole":
        pytest.skip("has no stream to close before the answer is there")
    model = FakeModel("one ", "two ", "three")
    response = ask(dialect, line(model))
    next(iter(response.response))
    response.close()
    assert model.was_closed_early


def test_session_state(dialect: Dialect) -> None:
    state = {"conversation_id": 1234}
    raw = ask(dialect, line(), session_state=state).get_data()
    first = json.loads(raw.splitlines()[0])
    holder = first["choices"][0] if dialect.name == "choices" else first
    key = "sessionState" if dialect.name == "published" else "session_state"
    assert holder[key] == state


def test_follow_up_questions(dialect: Dialect) -> None:
    model = FakeModel("At 15h50 [1].\n<", "<Which terminal", "?>", ">\n<<Which gate?>>")
    overrides = {"context": {"overrides": {"suggest_followup_questions": True}}}
    raw = ask(dialect, line(model), **overrides).get_data()
    assert b"<<" not in raw and b">>" not in raw
    last = json.loads(raw.splitlines()[-1])
    holder = last["choices"][0] if dialect.name == "choices" else last
    assert holder["context"]["followup_questions"] == ["Which terminal?", "Which gate?"]
    assert dialect.seen(raw).text.strip() == "At 15h50 [1]."


def test_the_first_line_is_small(dialect: Dialect) -> None:
    if dialect.name not in ("choices", "chat", "published") or dialect.how == "whole":
        pytest.skip("has no client that stalls on a long line")
    long = replace(FLIGHT, text="Takeoff at 15h50 漢字. " * 700)
    settings = settings_with(SETTINGS, rag_max_files=50, llm_context_window=2_000_000, rag_extract="head")
    many = tuple(replace(long, id=f"d{number}", title=f"Pass {number}") for number in range(50))
    raw = ask(dialect, line(retriever=FakeRetriever(*many), settings=settings)).get_data()
    assert len(raw) > 120_000
    assert len(raw.split(b"\n", 1)[0]) < 200_000


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
    at = line(
        retriever=FakeRetriever(), settings=settings_with(SETTINGS, openai_client=OpenaiClient(passthrough=False))
    )
    body = {"index_name": "default", "messages": [{"role": "user", "content": "q"}]}
    told = client_of(at).post("/v1/chat/completions", json=body).get_json()
    assert told["choices"][0]["message"]["content"] == NoDocuments.sentence
    assert told["source_nodes"] == []
