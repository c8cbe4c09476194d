"""The tokens of requests: every way to the model is counted, the cap holds, a call that is broken off is settled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.adapters.usage_file import UsageFile
from datafari_rag.core.errors import AccountsUnavailable, BudgetSpent, ModelUnavailable
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.usage import DayUsage
from datafari_rag.ports import Ending, UsageStore
from datafari_rag.web.usage import CountedModel, CountedRelay, RequestUsage
from tests.fakes import FakeModel, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with
from tests.web.api.test_mcp import called

FACTS = ModelFacts(name="gpt-4o", extras={"usage": {"prompt_tokens": 100, "completion_tokens": 20}})
TODAY = "2023-11-14"
MESSAGES = [{"role": "user", "content": "When does the flight leave?"}]

DOORS: dict[str, Callable[[FlaskClient], TestResponse]] = {
    "Datafari RagAPI": lambda client: client.get("/search/select", query_string={"action": "rag", "q": "flight"}),
    "RAG chat protocol": lambda client: client.post("/chat", json={"messages": MESSAGES}),
    "RAG chat protocol, streamed": lambda client: client.post("/chat", json={"messages": MESSAGES, "stream": True}),
    "AI Chat Protocol": lambda client: client.post("/api/chat", json={"messages": MESSAGES}),
    "OpenAI chat completions": lambda client: client.post(
        "/v1/chat/completions", json={"model": "datafari", "messages": MESSAGES}
    ),
    "OpenAI responses": lambda client: client.post("/v1/responses", json={"input": "When does the flight leave?"}),
    "MCP": lambda client: called(client, "answer", {"question": "When does the flight leave?", "effort": "none"}),
    "Datafari 7": lambda client: client.post("/rest/v2.0/ai", json={"action": "rag", "query": "flight"}),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[UsageFile]:
    with closing(UsageFile(tmp_path)) as found:
        yield found


def client_of(store: UsageStore, model: FakeModel | None = None, cap: int | None = None, **more: Any) -> FlaskClient:
    snapshot = fake_snapshot(
        model=model or FakeModel("It takes off at 15h50 [1].", facts=FACTS),
        settings=settings_with(limits_tokens=cap, **more),
        rights=FakeRights({"ann": ["staff"]}),
    )
    client = app_of(replace(snapshot, usage=store)).test_client()
    client.environ_base["HTTP_X_USER"] = "ann"
    return client


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
def test_every_door_is_counted_for_the_one_who_asks(
    store: UsageFile, ask: Callable[[FlaskClient], TestResponse]
) -> None:
    assert ask(client_of(store)).get_data()
    assert store.since(TODAY) == [DayUsage(TODAY, "ann", 120)]


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
def test_at_the_cap_every_door_refuses_and_calls_no_model(
    store: UsageFile, ask: Callable[[FlaskClient], TestResponse]
) -> None:
    store.add("ann", TODAY, 1)
    model = FakeModel("Never said.", facts=FACTS)
    response = ask(client_of(store, model, cap=1))
    assert model.prompts == []
    assert "Ask again after 2023-11-15 00:00 UTC" in response.get_data(as_text=True)


def test_a_refusal_says_when_it_is_worth_another_try(store: UsageFile) -> None:
    store.add("ann", TODAY, 1)
    response = DOORS["RAG chat protocol"](client_of(store, cap=1))
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) == 1_700_006_400 - 1_700_000_000


def test_a_cap_is_each_users_own(store: UsageFile) -> None:
    client = client_of(store, cap=250)
    assert [DOORS["RAG chat protocol"](client).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    client.environ_base["HTTP_X_USER"] = "bob"
    assert DOORS["RAG chat protocol"](client).status_code == 200


def test_a_stream_that_its_reader_leaves_is_settled_with_what_had_come(store: UsageFile) -> None:
    model = FakeModel(*["word "] * 50, facts=ModelFacts(name="gpt-4o"))
    response = DOORS["RAG chat protocol, streamed"](client_of(store, model, cap=10**6))
    next(iter(response.response))
    (reserved,) = store.since(TODAY)
    response.close()
    (row,) = store.since(TODAY)
    assert 0 < row.tokens < reserved.tokens - 200


def test_a_model_that_is_not_reached_takes_nothing(store: UsageFile) -> None:
    model = FakeModel(failure=ModelUnavailable(), facts=ModelFacts())
    assert DOORS["RAG chat protocol"](client_of(store, model, cap=10_000)).status_code == 502
    assert [row.tokens for row in store.since(TODAY)] == [0]


class Broken:
    """Counts nothing."""

    def add(self, user: str, day: str, tokens: int, *, cap: int | None = None) -> bool:
        raise AccountsUnavailable(log="it is full")

    def problem(self) -> None: ...


def test_where_nothing_can_be_counted_no_answer_goes_past_a_cap() -> None:
    response = DOORS["RAG chat protocol"](client_of(Broken(), cap=10**9))
    assert response.status_code == 503
    assert "Tokens cannot be counted at the moment" in response.get_data(as_text=True)


def test_where_nothing_can_be_counted_and_there_is_no_cap_answers_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert DOORS["RAG chat protocol"](client_of(Broken())).status_code == 200
    assert "a call of the model is not counted: it is full" in caplog.text


@pytest.mark.parametrize("settings", [{"rag_api_endpoint": "builtin:extractive"}, {}], ids=["always", "as fallback"])
def test_the_built_in_model_takes_no_tokens(store: UsageFile, settings: dict[str, Any]) -> None:
    model = FakeModel("At 15h50 [1].", facts=ModelFacts(name="builtin:extractive", is_fallback=True))
    DOORS["RAG chat protocol"](client_of(store, model, **settings))
    assert [row.tokens for row in store.since(TODAY)] == [0] * (not settings)


def usage(store: UsageStore, cap: int | None = None) -> RequestUsage:
    return RequestUsage(store, "ann", cap, lambda: 1_700_000_000.0, len)


class FakeRelay:
    """Hands on *replies*, the last one with what they took."""

    def __init__(self, *replies: Mapping[str, object] | Ending) -> None:
        self.replies = replies

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        yield from self.replies


def test_what_passes_through_is_counted_by_what_its_server_reports(store: UsageFile) -> None:
    relay = CountedRelay(FakeRelay({"choices": []}, Ending(None, facts=FACTS)), usage(store))
    assert len([*relay.relay({"messages": []}, is_streamed=False)]) == 2
    assert store.since(TODAY) == [DayUsage(TODAY, "ann", 120)]


def test_a_passed_stream_without_a_report_is_estimated_by_its_chunks(store: UsageFile) -> None:
    relay = CountedRelay(FakeRelay({}, {}, {}, Ending(None)), usage(store))
    said = relay.relay({"messages": "four"}, is_streamed=True)
    next(said), next(said)
    said.close()
    assert store.since(TODAY) == [DayUsage(TODAY, "ann", 4 + 2)]


def test_at_the_cap_nothing_passes_through(store: UsageFile) -> None:
    store.add("ann", TODAY, 1)
    relay = CountedRelay(FakeRelay({"choices": []}), usage(store, cap=1))
    (ending,) = relay.relay({"messages": []}, is_streamed=False)
    assert isinstance(ending, Ending) and isinstance(ending.failure, BudgetSpent)


def test_a_day_that_ends_in_the_middle_of_a_stream_is_settled_where_it_began(store: UsageFile) -> None:
    times = iter([1_700_006_399.0, 1_700_006_401.0])
    model = CountedModel(FakeModel("one ", "two", facts=FACTS), replace(usage(store, 1000), now=lambda: next(times)))
    prompt = Prompt("Who?", (), None, "n", max_tokens=500)
    assert len([*model.generate(prompt, is_streamed=True)]) == 3
    assert store.since("2023-01-01") == [DayUsage(TODAY, "ann", 120)]
