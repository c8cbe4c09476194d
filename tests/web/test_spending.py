"""What requests cost: every way to a model is counted, caps hold, and a call that is broken off is settled."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.adapters.ledgers import SqliteLedger
from datafari_rag.core.accounts import CappedAccount, Price, Spender, TokenUse, caps_in
from datafari_rag.core.errors import AccountsUnavailable, BudgetSpent, ModelUnavailable
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending, Ledger
from datafari_rag.web.spending import CountedModel, CountedRelay, Spending
from tests.fakes import FakeModel, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with
from tests.web.api.test_mcp import called

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}
FACTS = ModelFacts(name="gpt-4o-2024-08-06", extras={"usage": USAGE})
PRICES = {"gpt-4o": Price(Decimal("2.5"), Decimal("1.25"), Decimal("10"))}
SINCE = "2023-11-14"
MESSAGES = [{"role": "user", "content": "When does the flight leave?"}]

DOORS: dict[str, Callable[[FlaskClient], TestResponse]] = {
    "Datafari RagAPI": lambda client: client.get("/search/select", query_string={"action": "rag", "q": "flight"}),
    "RAG chat protocol": lambda client: client.post("/chat", json={"messages": MESSAGES}),
    "RAG chat protocol, streamed": lambda client: client.post("/chat", json={"messages": MESSAGES, "stream": True}),
    "AI Chat Protocol": lambda client: client.post("/api/chat", json={"messages": MESSAGES}),
    "OpenAI chat completions": lambda client: client.post(
        "/v1/chat/completions", json={"model": Settings().openai.client.model, "messages": MESSAGES}
    ),
    "OpenAI responses": lambda client: client.post("/v1/responses", json={"input": "When does the flight leave?"}),
    "MCP": lambda client: called(client, "answer", {"question": "When does the flight leave?", "effort": "none"}),
    "Datafari 7": lambda client: client.post("/rest/v2.0/ai", json={"action": "rag", "query": "flight"}),
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(SqliteLedger(tmp_path)) as found:
        yield found


def client_of(ledger: Ledger, model: FakeModel | None = None, caps: object = None, **more: Any) -> FlaskClient:
    settings = settings_with(llm_prices=PRICES, limits_tokens=caps_in(caps or {}), **more)
    snapshot = fake_snapshot(
        model=model or FakeModel("It takes off at 15h50 [1].", facts=FACTS),
        settings=settings,
        rights=FakeRights({"ann": ["staff"]}),
    )
    client = app_of(replace(snapshot, accounts=ledger)).test_client()
    client.environ_base["HTTP_X_USER"] = "ann"
    return client


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
def test_every_door_is_counted_for_the_one_who_asks(ledger: Ledger, ask: Callable[[FlaskClient], TestResponse]) -> None:
    assert ask(client_of(ledger)).get_data()
    (row,) = ledger.costs(SINCE)
    assert (row.name, row.model, row.calls, row.use) == ("ann", FACTS.name, 1, TokenUse(100, 60, 20))
    assert row.money == 40 * 2.5 + 60 * 1.25 + 20 * 10


@pytest.mark.parametrize("ask", DOORS.values(), ids=DOORS)
def test_at_a_cap_every_door_refuses_and_calls_no_model(
    ledger: Ledger, ask: Callable[[FlaskClient], TestResponse]
) -> None:
    model = FakeModel("Never said.", facts=FACTS)
    response = ask(client_of(ledger, model, {"user": {"day": 0}}))
    assert model.prompts == []
    assert "It begins again at 2023-11-15 00:00 UTC" in response.get_data(as_text=True)


def test_a_refusal_says_when_it_is_worth_another_try(ledger: Ledger) -> None:
    response = DOORS["RAG chat protocol"](client_of(ledger, caps={"all": {"day": 0}}))
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) == 1_700_006_400 - 1_700_000_000


def test_a_cap_of_a_group_is_for_its_members_alone(ledger: Ledger) -> None:
    client = client_of(ledger, caps={"groups": {"staff": {"month": 0}}})
    assert DOORS["RAG chat protocol"](client).status_code == 429
    client.environ_base["HTTP_X_USER"] = "bob"
    assert DOORS["RAG chat protocol"](client).status_code == 200


def test_a_cap_is_overshot_by_the_open_estimates_alone(ledger: Ledger) -> None:
    client = client_of(ledger, caps={"user": {"day": 250}})
    statuses = [DOORS["RAG chat protocol"](client).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


def test_at_a_cap_the_built_in_model_answers_where_the_settings_say_so(ledger: Ledger) -> None:
    client = client_of(ledger, caps={"user": {"day": 0}, "then": "builtin"})
    response = DOORS["RAG chat protocol"](client)
    assert response.status_code == 200
    assert response.get_json()["message"]["content"] == "Sentences of the documents."
    assert "fallback" in response.headers["X-RAG-Model"]
    assert ledger.costs(SINCE) == []


def test_a_stream_that_its_reader_leaves_is_settled_with_what_had_come(ledger: Ledger) -> None:
    model = FakeModel(*["word "] * 50, facts=ModelFacts(name="gpt-4o"))
    response = DOORS["RAG chat protocol, streamed"](client_of(ledger, model))
    next(iter(response.response))
    response.close()
    (row,) = ledger.costs(SINCE)
    assert row.estimated == 1 and 0 < row.use.output < 50 and row.use.input > 0


def test_a_model_that_is_not_reached_costs_nothing(ledger: Ledger) -> None:
    model = FakeModel(failure=ModelUnavailable(), facts=ModelFacts())
    assert DOORS["RAG chat protocol"](client_of(ledger, model, {"user": {"day": 10_000}})).status_code == 502
    assert [one.use.total for one in ledger.costs(SINCE)] == [0]


def test_a_model_without_a_price_has_none(ledger: Ledger) -> None:
    DOORS["RAG chat protocol"](client_of(ledger, FakeModel("At 15h50 [1].", facts=ModelFacts(name="llama"))))
    assert [one.money for one in ledger.costs(SINCE)] == [None]


class Broken:
    """Counts nothing."""

    def reserve(self, accounts: object, tokens: int) -> None:
        if accounts:
            raise AccountsUnavailable

    def settle(self, accounts: object, reserved: int, rows: object) -> None:
        raise AccountsUnavailable

    def costs(self, since: str) -> tuple[()]:
        raise AccountsUnavailable

    def problem(self) -> None: ...

    def close(self) -> None: ...


def test_where_nothing_can_be_counted_a_cap_is_kept_to_by_no_answer() -> None:
    assert DOORS["RAG chat protocol"](client_of(Broken(), caps={"all": {"day": 10**9}})).status_code == 503


def test_where_nothing_can_be_counted_and_there_is_no_cap_answers_go_on() -> None:
    assert DOORS["RAG chat protocol"](client_of(Broken())).status_code == 200


def test_the_built_in_model_has_no_account(ledger: Ledger) -> None:
    DOORS["RAG chat protocol"](client_of(ledger, rag_api_endpoint="builtin:extractive"))
    assert ledger.costs(SINCE) == []


def test_administrators_see_costs_and_nobody_else(ledger: Ledger) -> None:
    client = client_of(ledger, security_admins=("ann",))
    DOORS["RAG chat protocol"](client)
    headers = {"Accept": "application/json"}
    found = client.get("/admin/costs?by=model", headers=headers).get_json()
    assert found["totals"] == [
        {
            "name": FACTS.name,
            "calls": 1,
            "estimatedCalls": 0,
            "inputTokens": 100,
            "cachedTokens": 60,
            "outputTokens": 20,
            "money": "0.000375",
        }
    ]
    page = client.get("/admin/costs", headers={"Accept": "text/html"}).get_data(as_text=True)
    assert "<td>ann</td>" in page and "0.000375" in page
    client.environ_base["HTTP_X_USER"] = "bob"
    assert client.get("/admin/costs", headers=headers).status_code == 403


@pytest.mark.parametrize("query", ["by=password", "days=0", "days=732", "days=-1", "days=²", "days=99999"])
def test_a_sum_that_does_not_exist_is_named(ledger: Ledger, query: str) -> None:
    client = client_of(ledger, security_admins=("ann",))
    assert client.get(f"/admin/costs?{query}", headers={"Accept": "application/json"}).status_code == 400


def test_a_metric_has_what_models_cost(ledger: Ledger) -> None:
    client = client_of(ledger, rag_model="gpt-4o")
    DOORS["RAG chat protocol"](client)
    text = client.get("/metrics").get_data(as_text=True)
    assert 'datafari_rag_model_cost_millionths_total{dialect="chat",model="gpt-4o"} 375.0' in text


def spending(ledger: Ledger, caps: object = None) -> Spending:
    return Spending(
        ledger=ledger,
        caps=caps_in(caps or {}),
        prices=PRICES,
        spender=lambda: Spender("ann", frozenset(), "openai"),
        now=lambda: 1_700_000_000.0,
        count=len,
    )


class FakeRelay:
    """Hands on *replies*, the last one with what they took."""

    def __init__(self, *replies: Mapping[str, object] | Ending) -> None:
        self.replies = replies

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        yield from self.replies


def test_what_passes_through_is_counted_by_what_its_server_reports(ledger: Ledger) -> None:
    relay = CountedRelay(FakeRelay({"choices": []}, Ending(None, facts=FACTS)), spending(ledger), "gpt-4o")
    assert len([*relay.relay({"messages": []}, is_streamed=False)]) == 2
    assert [(one.use, one.estimated) for one in ledger.costs(SINCE)] == [(TokenUse(100, 60, 20), 0)]


def test_a_passed_stream_without_a_report_is_estimated_by_its_chunks(ledger: Ledger) -> None:
    relay = CountedRelay(FakeRelay({}, {}, {}, Ending(None)), spending(ledger), "gpt-4o")
    said = relay.relay({"messages": "four"}, is_streamed=True)
    next(said), next(said)
    said.close()
    (row,) = ledger.costs(SINCE)
    assert (row.use.input, row.use.output, row.estimated) == (4, 2, 1)


def test_at_a_cap_nothing_passes_through(ledger: Ledger) -> None:
    relay = CountedRelay(FakeRelay({"choices": []}), spending(ledger, {"all": {"day": 0}}), "gpt-4o")
    (ending,) = relay.relay({"messages": []}, is_streamed=False)
    assert isinstance(ending, Ending) and isinstance(ending.failure, BudgetSpent)


def test_a_day_that_ends_in_the_middle_of_a_stream_is_settled_where_it_began(ledger: Ledger) -> None:
    times = iter([1_700_006_399.0, 1_700_006_401.0])
    caps = {"user": {"day": 1000}}
    model = CountedModel(
        FakeModel("one ", "two", facts=FACTS), replace(spending(ledger, caps), now=lambda: next(times))
    )
    prompt = Prompt("Who?", (), None, "n", max_tokens=500)
    assert len([*model.generate(prompt, is_streamed=True)]) == 3
    assert [one.day for one in ledger.costs(SINCE)] == ["2023-11-14"]
    assert ledger.reserve((CappedAccount("user ann", "2023-11-14", 121, 4e9),), 0) is None
    assert ledger.reserve((CappedAccount("user ann", "2023-11-14", 120, 4e9),), 0) is not None
