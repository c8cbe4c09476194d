"""Stored conversations over HTTP: kept with an answer, opened under the rights of now, and nobody else's."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.adapters.conversation_file import FILE, ConversationFile
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.core.answer.conversations import ConversationLimits
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.web.runtime import ServiceSnapshot
from tests.fakes import FLIGHT, RABBIT, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

LIST = "/rest/v2.0/users/conversations"
SETTINGS = settings_with(chat_store_folder="chats")
NOW_S = 1_700_000_000.0
"""The time of the fakes."""


@dataclass
class Desk:
    """A service with a store, as its users reach it."""

    snapshot: ServiceSnapshot
    client: FlaskClient
    retriever: FakeRetriever
    model: FakeModel
    folder: Path

    def asked(self, question: str, name: str | None = "ann", **more: object) -> dict[str, Any]:
        body = {"query": question, **more}
        response = self.client.post("/rest/v2.0/ai", json=body, headers=headers(name))
        found: dict[str, Any] = response.get_json()
        return found

    def sent(self, method: str, query: str = "", name: str | None = "ann", **more: Any) -> dict[str, Any]:
        response = self.client.open(f"{LIST}{query}", method=method, headers=headers(name), **more)
        found: dict[str, Any] = response.get_json()
        return found["content"] | {"http": response.status_code}


def headers(name: str | None) -> Mapping[str, str]:
    return {} if name is None else {"X-User": name}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    limits = ConversationLimits(1000.0, 1_000_000, 10_000_000)
    machine = replace(MACHINE, wall=lambda: NOW_S, sleep=lambda seconds: None)
    retriever, model = FakeRetriever(FLIGHT, RABBIT), FakeModel("The flight takes off ", "at 15h50 [1].")
    with closing(ConversationFile(tmp_path / "chats", limits, machine)) as store:
        snapshot = replace(fake_snapshot(retriever, model, settings=SETTINGS), conversations=store)
        yield Desk(snapshot, app_of(snapshot).test_client(), retriever, model, tmp_path / "chats")


def test_an_answer_is_kept_and_the_next_question_goes_on_from_it(desk: Desk) -> None:
    first = desk.asked("When does the plane take off?")["content"]
    assert first["title"] == "When does the plane take off?"
    again = desk.asked("And where?", conversationId=first["conversationId"])["content"]
    assert again["conversationId"] == first["conversationId"]
    assert [turn.text for turn in desk.model.prompts[-1].history] == [
        "When does the plane take off?",
        "The flight takes off at 15h50 [1].",
    ]
    opened = desk.sent("GET", f"?conversationId={first['conversationId']}")
    assert [(one["role"], one["content"]) for one in opened["messages"]] == [
        ("user", "When does the plane take off?"),
        ("assistant", "The flight takes off at 15h50 [1]."),
        ("user", "And where?"),
        ("assistant", "The flight takes off at 15h50 [1]."),
    ]
    assert [one["id"] for one in opened["messages"][1]["sources"]] == ["doc-2", "doc-1"]
    assert (opened["hidden"], opened["docsBasket"]) == (0, [])
    assert desk.sent("GET")["conversationId"] == first["conversationId"], "without an id it is the latest"


def test_a_stream_names_the_conversation_after_the_answer(desk: Desk) -> None:
    response = desk.client.post("/Datafari/rest/v2.0/ai/stream", json={"query": "When?"}, headers=headers("ann"))
    events = [json.loads(line) for line in response.get_data(as_text=True).splitlines()]
    (told,) = [event["data"] for event in events if event["type"] == "conversation"]
    assert told == {"conversationId": desk.sent("GET")["conversationId"], "title": "When?"}
    assert [event["type"] for event in events].index("conversation") > [event["type"] for event in events].index(
        "message.final"
    )


def test_attempts_to_name_a_user_are_counted(desk: Desk) -> None:
    assert desk.sent("GET", "?AuthenticatedUserName=ben")["http"] == 200
    counted = desk.client.get("/metrics").get_data(as_text=True)
    assert 'datafari_rag_ignored_parameters_total{kind="identity"} 2.0' in counted


def test_a_history_of_the_clients_own_takes_the_place_of_the_stored_one(desk: Desk) -> None:
    own_id = desk.asked("When?")["content"]["conversationId"]
    desk.asked("And?", conversationId=own_id, history=[{"role": "user", "message": "Mine."}])
    assert [turn.text for turn in desk.model.prompts[-1].history] == ["Mine."]


@pytest.mark.parametrize("is_own", [False, True])
def test_what_its_user_may_not_read_any_more_is_neither_shown_nor_told_to_the_model(desk: Desk, is_own: bool) -> None:
    own_id = desk.asked("When does the plane take off?")["content"]["conversationId"]
    desk.retriever.documents = (RABBIT,)
    hidden = desk.sent("GET", f"?conversationId={own_id}")
    assert (hidden["messages"], hidden["hidden"]) == ([], 1)
    assert "15h50" not in str(hidden)
    history = {"history": [{"role": "assistant", "message": "It takes off at 15h50."}]} if is_own else {}
    desk.asked("And the rabbit?", conversationId=own_id, **history)
    told = [turn.text for turn in desk.model.prompts[-1].history]
    assert told == (["It takes off at 15h50."] if is_own else [])
    later = desk.sent("GET", f"?conversationId={own_id}")
    # What the client sent itself may have come from the hidden turn: then the answer to it is hidden as well.
    assert (len(later["messages"]), later["hidden"]) == ((0, 2) if is_own else (2, 1))
    desk.retriever.documents = (FLIGHT, RABBIT)
    assert len(desk.sent("GET", f"?conversationId={own_id}")["messages"]) == 4


def test_an_answer_to_a_question_with_a_hidden_document_behind_its_history_is_hidden_with_it(desk: Desk) -> None:
    desk.retriever.documents = (FLIGHT,)
    own_id = desk.asked("When?")["content"]["conversationId"]
    desk.retriever.documents = (FLIGHT, RABBIT)
    desk.asked("And the rabbit?", conversationId=own_id, id="doc-1")
    desk.retriever.documents = (RABBIT,)
    opened = desk.sent("GET", f"?conversationId={own_id}")
    assert (opened["messages"], opened["hidden"]) == ([], 2)


IDS = [
    "nobody",
    "..%2F..%2Fetc%2Fpasswd",
    "' OR '1'='1",
    "x';DROP TABLE turns;--",
    "%00",
    "0" * 32,
    "a" * 5_000,
]


@pytest.mark.parametrize("own_id", [*IDS, None])
def test_an_unknown_id_and_another_users_look_alike(desk: Desk, own_id: str | None) -> None:
    theirs = desk.asked("When?", name="bob")["content"]["conversationId"]
    wanted = theirs if own_id is None else own_id
    asked = desk.asked("And?", conversationId=wanted)
    assert asked["content"]["error"]["label"] == "aiBadRequest"
    assert asked["content"]["message"] == "conversationId is not valid: start a new conversation without it."
    for method in ("GET", "DELETE"):
        answer = desk.sent(method, f"?conversationId={wanted}")
        assert (answer["code"], answer["label"], answer["reason"]) == (
            404,
            "notFound",
            "There is no such conversation.",
        )
    renamed = desk.sent("PUT", json={"conversationId": wanted, "title": "mine"})
    assert (renamed["code"], renamed["label"]) == (404, "notFound")
    assert desk.sent("GET")["conversations"] == []
    assert len(desk.sent("GET", name="bob")["messages"]) == 2


def test_a_conversation_is_begun_renamed_and_deleted(desk: Desk) -> None:
    begun = desk.sent("POST", json={"sourceConversationId": "x"})
    assert (begun["title"], begun["messages"], len(begun["conversations"])) == ("New conversation", [], 1)
    own_id = begun["conversationId"]
    assert desk.asked("When?", conversationId=own_id)["content"]["conversationId"] == own_id
    assert desk.sent("PUT", json={"conversationId": own_id, "title": "Flights"})["title"] == "Flights"
    assert desk.sent("GET")["title"] == "Flights"
    second = desk.sent("POST")["conversationId"]
    left = desk.sent("DELETE", f"?conversationId={own_id}")
    assert [one["id"] for one in left["conversations"]] == [second]
    assert left["conversationId"] == second


def test_all_conversations_of_a_user_are_deleted_and_no_other(desk: Desk) -> None:
    for name in ("ann", "ann", "bob"):
        desk.asked("When?", name=name)
    assert desk.sent("DELETE", "?all=true")["conversations"] == []
    assert desk.sent("GET")["conversations"] == []
    assert len(desk.sent("GET", name="bob")["conversations"]) == 1
    assert desk.sent("DELETE")["label"] == "notFound", "neither one nor all"


def test_nothing_is_kept_of_who_is_not_signed_in(desk: Desk) -> None:
    content = desk.asked("When?", name=None)["content"]
    assert "conversationId" not in content
    assert desk.snapshot.conversations is not None
    for method in ("GET", "POST", "DELETE"):
        answer = desk.sent(method, name=None)
        assert (answer["http"], answer["code"], answer["label"]) == (401, 407, "notAuthenticated")
    assert not (desk.folder / FILE).exists()


def test_where_nothing_is_stored_there_is_nothing_at_the_address() -> None:
    client = app_of(fake_snapshot()).test_client()
    answer = client.get(LIST, headers=headers("ann"))
    assert answer.get_json()["content"]["label"] == "notFound"
    assert "conversationId" not in client.post("/rest/v2.0/ai", json={"query": "When?"}).get_json()["content"]


def test_a_store_that_is_broken_is_named_and_answers_go_on(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    own_id = desk.asked("When?")["content"]["conversationId"]
    assert isinstance(desk.snapshot.conversations, ConversationFile)
    desk.snapshot.conversations.close()
    (desk.folder / FILE).write_bytes(b"broken " * 1000)
    with caplog.at_level(logging.DEBUG):
        content = desk.asked("Where is zxcanary?", conversationId=own_id)["content"]
        assert content["message"] == "The flight takes off at 15h50 [1]."
        assert (content["conversationId"], content["conversationError"]) == (own_id, "conversationsUnavailable")
        assert desk.asked("And zxcanary?")["content"]["conversationError"] == "conversationsUnavailable"
        assert desk.sent("GET")["label"] == "conversationsUnavailable"
    assert "SQLITE_NOTADB" in caplog.text
    assert "zxcanary" not in caplog.text and own_id not in caplog.text


def test_a_search_that_fails_shows_nothing_of_a_conversation(desk: Desk) -> None:
    own_id = desk.asked("When?")["content"]["conversationId"]
    desk.retriever.error = SearchUnavailable()
    answer = desk.sent("GET", f"?conversationId={own_id}")
    assert (answer["label"], answer["code"]) == ("searchUnavailable", 502)


def test_a_failed_answer_is_not_kept(desk: Desk) -> None:
    desk.retriever.documents = ()
    assert desk.asked("When?")["status"] == "ERROR"
    assert desk.sent("GET")["conversations"] == []


def test_summaries_and_other_dialects_are_no_part_of_a_conversation(desk: Desk) -> None:
    assert "conversationId" not in desk.asked("", action="summarize", id="doc-1")["content"]
    desk.client.post("/chat", json={"messages": [{"role": "user", "content": "When?"}]}, headers=headers("ann"))
    assert desk.sent("GET")["conversations"] == []


def test_a_body_that_is_too_large_or_no_json_is_refused(desk: Desk) -> None:
    large = desk.client.put(LIST, json={"conversationId": "x", "title": "x" * 10_000_000}, headers=headers("ann"))
    assert (large.status_code, large.get_json()["content"]["label"]) == (413, "bodyTooLarge")
    rubbish = desk.client.put(LIST, data=b"{", content_type="application/json", headers=headers("ann"))
    assert (rubbish.status_code, rubbish.get_json()["content"]["label"]) == (400, "badRequest")


def test_a_page_of_another_site_deletes_nothing(desk: Desk) -> None:
    desk.asked("When?")
    foreign = headers("ann") | {"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"}
    for method in ("DELETE", "POST", "PUT"):
        answer = desk.client.open(f"{LIST}?all=true", method=method, headers=foreign)
        assert answer.status_code == 403
    assert len(desk.sent("GET")["conversations"]) == 1


def test_all_documents_behind_a_conversation_are_looked_up_with_one_search(desk: Desk) -> None:
    own_id = desk.asked("When?")["content"]["conversationId"]
    desk.retriever.browsed.clear()
    desk.sent("GET", f"?conversationId={own_id}")
    assert [(one.rows, set(one.ids)) for one, _ in desk.retriever.browsed] == [(2, {"doc-1", "doc-2"})]
