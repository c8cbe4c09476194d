"""The basket on the page: what its script is told, and the results of its documents alone."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest

from datafari_rag.core.ask import NamedDocuments
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.settings.table import RequestRates, Settings
from datafari_rag.whole_documents import TOGETHER
from tests.fakes import FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with


def setup(settings: Settings, language: str = "en") -> dict[str, Any]:
    client = app_of(fake_snapshot(settings=settings)).test_client()
    body = client.get("/", headers={"Accept": "text/html", "Accept-Language": language}).get_data(as_text=True)
    found: dict[str, Any] = json.loads(unescape(body.split('data-setup="')[1].split('"')[0]))
    return found


def test_as_many_documents_are_compared_as_the_service_takes() -> None:
    assert setup(Settings())["most"] == TOGETHER


def test_every_reason_to_leave_a_document_out_has_its_sentence() -> None:
    for language in ("en", "fr"):
        left_out = setup(Settings(), language)["words"]["left_out"]
        assert set(left_out) == {"notFound", "empty", "overLimit"}
        assert all("{title}" in sentence for sentence in left_out.values())


@pytest.mark.parametrize(
    ("ids", "narrowed"), [([], ()), (["b", "a", "b"], (NamedDocuments(("b", "a")),))], ids=["all", "the basket"]
)
def test_the_results_are_of_the_documents_that_the_form_names(ids: list[str], narrowed: tuple[Any, ...]) -> None:
    retriever = FakeRetriever()
    client = app_of(fake_snapshot(retriever)).test_client()
    response = client.post("/found?q=plane&lang=en", data={"documents": ids})
    assert response.status_code == 200 and response.mimetype == "text/html"
    assert response.get_data(as_text=True).strip().startswith("<h2>No documents found</h2>")
    # The last look is for the latest documents of all, which are proposed where nothing was found.
    assert {browse.restrictions for browse, _ in retriever.browsed[:-1]} == {narrowed}


def test_a_search_that_failed_has_its_status_as_a_page_or_as_json() -> None:
    client = app_of(fake_snapshot(FakeRetriever(error=SearchUnavailable()))).test_client()
    shown = client.post("/found?q=plane")
    assert (shown.status_code, shown.mimetype) == (502, "text/html")
    said = client.post("/found?q=plane", headers={"Accept": "application/json"})
    assert (said.status_code, said.get_json()["error"]["code"]) == (502, 502)


def test_results_are_refused_as_a_plain_search_is() -> None:
    client = app_of(fake_snapshot(settings=settings_with(server_rate=RequestRates(work=1)))).test_client()
    assert client.post("/found?q=plane").status_code == 200
    refused = client.post("/found?q=plane")
    assert refused.status_code == 429 and int(refused.headers["Retry-After"]) >= 1
    assert 'answers_total{dialect="select",outcome="tooManyRequests"} 1.0' in client.get("/metrics").text
