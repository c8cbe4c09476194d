"""A follow-up question of the page: messages before it, with the format and the filters of the first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datafari_rag.protocols.request import Incoming
from datafari_rag.web.pages import search_dialect
from tests.fakes import app_of, fake_snapshot
from tests.settings import settings_with

TURNS = [
    {"role": "user", "content": "when does the plane take off"},
    {"role": "assistant", "content": "At nine. [1]"},
    {"role": "user", "content": "and where does the plane land"},
]


def events(query: str = "", messages: object = TURNS, **headers: str) -> list[dict[str, Any]]:
    sent = app_of(fake_snapshot()).test_client().post(f"/talk{query}", json={"messages": messages}, headers=headers)
    assert sent.mimetype == "application/x-ndjson", sent.get_data(as_text=True)
    return [json.loads(line) for line in sent.get_data(as_text=True).splitlines()]


def test_it_is_streamed_with_ids_trace_and_proposals() -> None:
    told = events()
    final = next(event["data"] for event in told if event["type"] == "message.final")

    assert [event["type"] for event in told[:2]] == ["stream.started", "sources.final"]
    assert told[-1]["data"] == {"status": "OK"}
    assert all(item["id"] for item in told[1]["data"]["items"])
    assert len(final["thoughts"]) == 4
    assert isinstance(final["followup_questions"], list)


def test_format_filters_and_language_are_those_of_the_address() -> None:
    query = {"format": ("bulletpoint",), "fq": ("source:hr", "allow_token_document:x"), "lang": ("fr",)}
    ask = search_dialect.parse(
        Incoming("/talk", query, body={"messages": TURNS}), settings_with(solr_facets=("source",))
    )

    assert (ask.answer_format, ask.language, ask.wants_followups) == ("bulletpoint", "fr", True)
    assert [(one.field, one.value) for one in ask.restrictions] == [("source", "hr")]
    assert [turn.text for turn in ask.history] == [TURNS[0]["content"], TURNS[1]["content"]]


@pytest.mark.parametrize(
    ("body", "kind", "label", "status"),
    [
        pytest.param({"messages": []}, "application/json", "badRequest", 400, id="no messages"),
        pytest.param({"messages": [{"role": "user", "content": " "}]}, "application/json", "noQuery", 422, id="blank"),
        pytest.param({"messages": TURNS}, "text/plain", "unsupportedMediaType", 415, id="what a form can send"),
    ],
)
def test_what_is_refused_is_told_by_its_label(body: object, kind: str, label: str, status: int) -> None:
    client = app_of(fake_snapshot()).test_client()
    response = client.post("/talk", data=json.dumps(body), content_type=kind)

    assert response.status_code == status
    assert response.get_json()["error"]["label"] == label


def test_other_sites_are_not_let_in() -> None:
    client = app_of(
        fake_snapshot(settings=settings_with(server_cors_origins=("https://intranet.example.org",)))
    ).test_client()
    asked = {"Origin": "https://intranet.example.org", "Access-Control-Request-Method": "POST"}

    assert "Access-Control-Allow-Origin" not in client.options("/talk", headers=asked).headers
