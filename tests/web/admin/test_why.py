"""Why a document is not in an answer: every verdict, whom it is told, and what it never tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from flask.testing import FlaskClient

from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document
from datafari_rag.core.search_request import Search, SearchResult
from datafari_rag.core.settings.table import BY_KEY, RequestRates
from datafari_rag.web.admin.why import REASONS
from tests.fakes import FLIGHT, RABBIT, FakeModel, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with
from tests.web.api.test_mcp import FakeTrail

QUESTION = "When does the flight take off?"
ADMIN = {"X-User": "root"}


class Guarded(FakeRetriever):
    """Knows which tokens a document needs."""

    def __init__(self, *documents: Document, needs: Mapping[str, str]) -> None:
        super().__init__(*documents)
        self.needs = needs

    def _is_open(self, document_id: str, access: Filter) -> bool:
        return self.needs.get(document_id, "all") in {*access.tokens, "all"}

    def search(self, search: Search, access: Filter) -> SearchResult:
        found = super().search(search, access)
        readable = tuple(one for one in found.documents if self._is_open(one.id, access))
        return SearchResult(readable, len(readable))

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        return super().fetch(document_id, field, access) if self._is_open(document_id, access) else None


def client_of(retriever: FakeRetriever, **settings: object) -> FlaskClient:
    rights = FakeRights({"root": ("boss",), "ann": ("staff",)})
    whole = settings_with(security_admins=("root",), **settings)
    return app_of(fake_snapshot(retriever, settings=whole, rights=rights)).test_client()


def verdict(client: FlaskClient, document_id: str = FLIGHT.id, **more: str) -> tuple[object, object]:
    query = {"q": QUESTION, "id": document_id, **more}
    body = client.get("/admin/why", query_string=query, headers=ADMIN).get_json()
    assert body["reason"] == REASONS[body["verdict"]]
    return body["verdict"], body.get("rank")


class Nothing(FakeRetriever):
    """Has documents that no search finds, but for one narrowed to them where *finds_named*."""

    def __init__(self, *documents: Document, finds_named: bool) -> None:
        super().__init__(*documents)
        self.finds_named = finds_named

    def search(self, search: Search, access: Filter) -> SearchResult:
        return super().search(search, access) if search.restrictions and self.finds_named else SearchResult((), 0)


def test_what_an_answer_is_made_of_is_chosen_and_has_its_rank() -> None:
    assert verdict(client_of(FakeRetriever(FLIGHT, RABBIT))) == ("chosen", 1)


@pytest.mark.parametrize(
    ("retriever", "settings", "document_id", "expected"),
    [
        pytest.param(FakeRetriever(FLIGHT), {}, "absent", "not found", id="absent"),
        pytest.param(Nothing(FLIGHT, finds_named=False), {}, FLIGHT.id, "no match", id="no word of it"),
        pytest.param(Nothing(FLIGHT, finds_named=True), {}, FLIGHT.id, "beyond", id="behind the candidates"),
        pytest.param(FakeRetriever(FLIGHT, RABBIT), {"rag_max_files": 1}, RABBIT.id, "rank", id="others are better"),
        pytest.param(FakeRetriever(RABBIT), {"rag_evidence_min": 0.99}, RABBIT.id, "no evidence", id="no evidence"),
    ],
)
def test_each_reason_has_its_verdict(
    retriever: FakeRetriever, settings: dict[str, object], document_id: str, expected: str
) -> None:
    assert verdict(client_of(retriever, **settings), document_id)[0] == expected


def test_another_users_rights_are_told_of_what_the_administrator_may_read_and_of_nothing_else() -> None:
    client = client_of(Guarded(FLIGHT, RABBIT, needs={FLIGHT.id: "boss", RABBIT.id: "staff"}))
    assert verdict(client, FLIGHT.id, user="ann")[0] == "not readable"
    assert verdict(client, FLIGHT.id, user="root")[0] == "chosen"
    hidden = client.get("/admin/why", query_string={"q": QUESTION, "id": RABBIT.id, "user": "ann"}, headers=ADMIN)
    absent = client.get("/admin/why", query_string={"q": QUESTION, "id": "absent", "user": "ann"}, headers=ADMIN)
    assert hidden.get_json() == {**absent.get_json(), "id": RABBIT.id}


@pytest.mark.parametrize("headers", [{}, {"X-User": "ann"}], ids=["nobody", "a user"])
def test_nobody_else_is_answered(headers: dict[str, str]) -> None:
    response = client_of(FakeRetriever(FLIGHT)).get(f"/admin/why?q=x&id={FLIGHT.id}", headers=headers)
    assert response.status_code == 403 and FLIGHT.id not in response.get_data(as_text=True)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"id": "a"}, 422),
        ({"q": " ", "id": "a"}, 422),
        ({"q": "x"}, 400),
        ({"q": "x", "id": "a" * 3000}, 400),
        ({"q": "x" * 4001, "id": "a"}, 413),
        ({"q": "x", "id": FLIGHT.id, "user": "a" * 300}, 400),
        ({"q": "x", "id": FLIGHT.id, "user": "a\u202e"}, 400),
    ],
)
def test_what_is_missing_or_too_long_is_refused(query: dict[str, str], status: int) -> None:
    client = client_of(FakeRetriever(FLIGHT))
    assert client.get("/admin/why", query_string=query, headers=ADMIN).status_code == status


def test_users_whose_rights_are_in_their_tokens_cannot_be_looked_up() -> None:
    client = client_of(FakeRetriever(FLIGHT), security_tokens="claims")
    query = {"q": QUESTION, "id": FLIGHT.id, "user": "ann"}
    assert client.get("/admin/why", query_string=query, headers=ADMIN).status_code == 400


def test_it_is_a_line_of_the_audit_calls_no_model_and_is_limited() -> None:
    trail, model = FakeTrail(), FakeModel("never")
    settings = settings_with(security_admins=("root",), rag_effort="low", server_rate=RequestRates(work=3))
    line = replace(fake_snapshot(model=model, settings=settings), audit=trail)
    client = app_of(line).test_client()
    path = f"/admin/why?q=plane&id={FLIGHT.id}"
    statuses = [client.get(path, headers=ADMIN).status_code for _ in range(3)]
    assert statuses[0] == 200 and statuses[-1] == 429
    assert [record["dialect"] for record in trail.records] == ["why"] * 3
    assert (trail.records[0]["who"], trail.records[0]["question"]) == ("root", "plane")
    assert model.prompts == []


def test_every_setting_that_a_reason_names_is_one() -> None:
    named = {name for reason in REASONS.values() for name in re.findall(r"\b(?:rag|llm)\.[A-Za-z_.]*[A-Za-z]", reason)}
    assert named and named - BY_KEY.keys() == set()
