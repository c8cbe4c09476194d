"""Every row of contract §4 that `search/select` can reach, over HTTP, with fakes at the ports only."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.adapters.usage_file import UsageFile
from datafari_rag.core.errors import (
    AuthorityTimeout,
    AuthorityUnavailable,
    EmbeddingsTimeout,
    NotAuthenticated,
    SearchTimeout,
)
from datafari_rag.core.settings.table import ServerLimits
from datafari_rag.core.vectors import EmbeddingModel
from datafari_rag.ports import Meaning
from datafari_rag.web.runtime import ServiceSnapshot
from tests.fakes import FLIGHT, FakeIdentity, FakeModel, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with

RAG = "/search/select?action=rag&q=when+does+the+plane+take+off"
PATHS = ("/Datafari/rest/v2.0/search/select", "/search/select", "/search/select/")


def client_of(line: ServiceSnapshot) -> FlaskClient:
    return app_of(line).test_client()


def get(line: ServiceSnapshot, path: str = RAG, **headers: str) -> TestResponse:
    return client_of(line).get(path, headers=headers)


@pytest.mark.parametrize("path", PATHS)
def test_every_spelling_of_the_path_answers_without_a_redirect(path: str) -> None:
    response = client_of(fake_snapshot()).get(f"{path}?action=rag&q=when")

    assert response.status_code == 200
    assert response.mimetype == "application/json"
    body: Any = response.get_json()
    assert body["status"] == "OK"
    assert body["content"]["message"] == "The flight takes off at 15h50 [1]."
    assert [document["id"] for document in body["content"]["documents"]] == ["doc-2", "doc-1"]


def test_an_answer_says_which_model_gave_it_and_to_strangers_no_times() -> None:
    response = get(fake_snapshot())

    assert response.headers["X-RAG-Model"] == "fake-model; tries=1; fallback=0"
    assert "Server-Timing" not in response.headers
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Request-ID"]


def test_a_request_id_that_was_sent_comes_back_and_a_strange_one_does_not() -> None:
    assert get(fake_snapshot(), **{"X-Request-ID": "abc-1"}).headers["X-Request-ID"] == "abc-1"
    assert get(fake_snapshot(), **{"X-Request-ID": "a b"}).headers["X-Request-ID"] != "a b"


BEFORE_THE_SEARCH = [
    pytest.param(
        {"rights": FakeRights(error=AuthorityUnavailable())}, 502, "authorityUnavailable", id="rights are down"
    ),
    pytest.param({"rights": FakeRights(error=AuthorityTimeout())}, 504, "authorityTimeout", id="rights are slow"),
    pytest.param({"identity": FakeIdentity(NotAuthenticated())}, 401, "notAuthenticated", id="a bad credential"),
]


def assert_is_failure(line: ServiceSnapshot, code: int, label: str, **headers: str) -> None:
    """The same failure three times: under HTTP 200, under its own status, and before a stream's first word."""
    plain = get(line, **headers)
    strict = replace(line, settings=settings_with(line.settings, rag_reply_http_errors=True))
    loud, streamed = get(strict, **headers), get(strict, f"{RAG}&stream=true", **headers)

    assert plain.status_code == 200
    assert loud.status_code == streamed.status_code == code
    for response in (plain, loud, streamed):
        body: Any = response.get_json()
        assert body["status"] == "ERROR"
        assert body["content"]["error"]["code"] == code
        assert body["content"]["error"]["label"] == label
        assert body["content"]["error"]["reason"]


@pytest.mark.parametrize(("dependencies", "code", "label"), BEFORE_THE_SEARCH)
def test_who_cannot_be_known_is_not_answered_and_nothing_is_searched(
    dependencies: dict[str, Any], code: int, label: str
) -> None:
    retriever = FakeRetriever(FLIGHT)

    assert_is_failure(fake_snapshot(retriever, **dependencies), code, label, **{"X-User": "ann"})
    assert retriever.searches == []


def test_a_document_without_text_is_nothing_found() -> None:
    assert_is_failure(fake_snapshot(FakeRetriever(replace(FLIGHT, text=" "))), 428, "noDocuments")


def test_a_plain_search_with_too_many_values_says_of_which() -> None:
    response = get(fake_snapshot(), "/search/select?q=x&fl=" + "id," * 101)

    assert response.status_code == 400
    assert response.get_json() == {"error": {"code": 400, "msg": "Too many values of fl: at most 100."}}


def test_the_page_with_too_many_filters_says_so() -> None:
    for language, words in (("en", "Too many values"), ("fr", "Trop de valeurs")):
        response = get(fake_snapshot(), "/?q=x" + "&fq=source:a" * 101, **{"Accept-Language": language})

        assert words in response.get_data(as_text=True)


def test_a_defect_of_ours_is_an_internal_error_with_an_id_and_nothing_else() -> None:
    class Broken(FakeModel):
        def generate(self, prompt: Any, *, is_streamed: bool) -> Any:
            raise ZeroDivisionError("secret words")

    for path in (RAG, f"{RAG}&stream=true"):
        response = get(fake_snapshot(model=Broken()), path, **{"X-Request-ID": "r-1"})
        error = response.get_json()["content"]["error"]

        assert error["label"] == "internal"
        assert "r-1" in error["reason"]
        assert "secret" not in response.get_data(as_text=True)
        assert "ZeroDivision" not in response.get_data(as_text=True)


def test_a_failed_plain_search_has_solrs_shape_and_that_status() -> None:
    response = get(fake_snapshot(FakeRetriever(error=SearchTimeout())), "/search/select?q=x")

    assert response.status_code == 504
    assert response.get_json() == {"error": {"code": 504, "msg": SearchTimeout.sentence}}


def test_the_users_tokens_and_nothing_of_the_request_make_the_filter() -> None:
    retriever = FakeRetriever(FLIGHT)
    line = fake_snapshot(retriever, rights=FakeRights({"ann": ["s2", "s1", "__nosecurity__", ""]}))
    forged = "&UserTokens=s9&AuthenticatedUserName=bob&mcf=false&shards=x&fq=allow_token_document:s9"
    get(line, RAG + forged, **{"X-User": "ann"})
    get(line, RAG + forged)

    assert [access.tokens for _, access in retriever.searches] == [("s1", "s2"), ()]
    assert all(search.restrictions == () for search, _ in retriever.searches)


def test_ignored_parameters_are_counted_apart_from_those_that_name_a_user() -> None:
    client = client_of(fake_snapshot())
    client.get(f"{RAG}&mcf=false&UserTokens=s9&colour=red")
    text = client.get("/metrics").get_data(as_text=True)

    assert 'datafari_rag_ignored_parameters_total{kind="identity"} 2.0' in text
    assert 'datafari_rag_ignored_parameters_total{kind="other"} 1.0' in text
    assert 'datafari_rag_answers_total{dialect="ragapi",outcome="ok"} 1.0' in text


def test_a_reader_who_never_reads_frees_the_model_and_his_place() -> None:
    model = FakeModel(*["word "] * 50)
    app = app_of(fake_snapshot(model=model))
    app.test_client().get(f"{RAG}&stream=true", buffered=False).close()

    assert model.was_closed_early
    assert app.extensions["worker"].streams.open == 0


def test_above_the_limit_of_open_streams_a_new_one_is_refused_at_once() -> None:
    line = fake_snapshot(settings=settings_with(server_limits=ServerLimits(streams=1), rag_reply_http_errors=True))
    app = app_of(line)
    first = app.test_client().get(f"{RAG}&stream=true", buffered=False)
    second = app.test_client().get(f"{RAG}&stream=true")
    first.close()

    assert second.status_code == 503
    assert second.get_json()["content"]["error"]["label"] == "overloaded"
    assert second.headers["Retry-After"] == "5"
    assert app.test_client().get(f"{RAG}&stream=true").status_code == 200


def test_live_is_always_and_ready_is_when_nothing_is_wrong() -> None:
    broken = app_of(fake_snapshot(), [{"what": "search", "problem": "down"}]).test_client()

    assert client_of(fake_snapshot()).get("/health/live").status_code == 200
    good: Any = client_of(fake_snapshot()).get("/health/ready").get_json()
    assert (good["status"], good["problems"]) == ("ready", [])
    assert broken.get("/health/live").status_code == 200
    assert broken.get("/health/ready").status_code == 503
    assert broken.get("/health/ready").get_json()["problems"] == [{"what": "search", "problem": "down"}]


def test_a_rejected_settings_file_is_named_and_takes_no_service_out_of_rotation() -> None:
    app = app_of(fake_snapshot(), rejected="rag.properties:1: no number")
    response = app.test_client().get("/health/ready")
    far = app.test_client().get("/health/ready", environ_overrides={"REMOTE_ADDR": "192.0.2.1"})

    assert (response.status_code, response.get_json()["problems"]) == (200, [])
    assert response.get_json()["settings_rejected"] == "rag.properties:1: no number"
    assert far.get_json()["settings_rejected"] and "rag.properties" not in far.get_data(as_text=True)
    assert "datafari_rag_settings_rejected 1.0" in app.test_client().get("/metrics").get_data(as_text=True)
    assert client_of(fake_snapshot()).get("/health/ready").get_json()["settings_rejected"] is None


def test_readiness_says_that_nothing_can_be_counted_and_stays_ready(tmp_path: Path) -> None:
    with closing(UsageFile(tmp_path)) as usage:
        line, weak = replace(fake_snapshot(), usage=usage), [{"what": "usage", "problem": "It is full."}]
        response = app_of(line, weak=weak).test_client().get("/health/ready")
    (part,) = (one for one in response.get_json()["dependencies"] if one["what"] == "usage")
    assert (response.status_code, part["ok"], part["problem"]) == (200, False, "It is full.")


def test_meaning_that_is_away_is_a_part_of_readiness_and_no_reason_to_be_unready() -> None:
    class Away:
        failure = EmbeddingsTimeout()
        model = EmbeddingModel("away", "key", 2)

    line = fake_snapshot()
    meaning = Meaning(Away(), None)  # type: ignore[arg-type]
    line = replace(line, dependencies=replace(line.dependencies, meaning=meaning))
    app = app_of(line, weak=[{"what": "meaning", "problem": meaning.problem()}])
    told: Any = app.test_client().get("/health/ready").get_json()

    assert (told["status"], told["problems"]) == ("ready", [])
    assert [(part["ok"], part["problem"]) for part in told["dependencies"] if part["what"] == "meaning"] == [
        (False, "The embedding model did not answer in time.")
    ]
    without: Any = client_of(fake_snapshot()).get("/health/ready").get_json()
    assert "meaning" not in {part["what"] for part in without["dependencies"]}


def test_strangers_read_which_part_is_not_well_and_nothing_more() -> None:
    problems = [{"what": "search", "problem": "http://solr.example:8983 is down"}]
    client = app_of(fake_snapshot(settings=settings_with(security_admins=("root",))), problems).test_client()
    far = {"REMOTE_ADDR": "192.0.2.1"}
    for headers, environ in (({"X-Forwarded-For": "192.0.2.1"}, {}), ({}, far), ({"X-User": "ann"}, far)):
        text = client.get("/health/ready", headers=headers, environ_overrides=environ).get_data(as_text=True)
        assert "search" in text
        assert "solr.example" not in text
    seen = client.get("/health/ready", headers={"X-User": "root"}, environ_overrides=far).get_data(as_text=True)
    assert "solr.example" in seen
    refused = app_of(fake_snapshot(identity=FakeIdentity(NotAuthenticated())), problems).test_client()
    answer = refused.get("/health/ready", environ_overrides=far)
    assert (answer.status_code, "solr.example" in answer.get_data(as_text=True)) == (503, False)


JSON = {"Accept": "application/json"}


def test_a_document_opens_with_its_passage_for_those_who_may() -> None:
    response = client_of(fake_snapshot()).get("/documents?id=doc-2&start=0&end=13", headers=JSON)

    assert response.get_json() == {
        "id": "doc-2",
        "title": "Boarding pass",
        "url": "file:///flight.pdf",
        "field": "exactContent",
        "text": FLIGHT.text,
        "start": 0,
        "end": 13,
        "place": None,
    }


def test_a_document_with_pages_opens_with_the_page_of_its_passage() -> None:
    client = client_of(fake_snapshot(FakeRetriever(replace(FLIGHT, places="0 page 4\n10 sheet 1 <em>"))))
    assert client.get("/documents?id=doc-2&start=0&end=13", headers=JSON).get_json()["place"] == "p. 4"
    assert ">p. 4<" in client.get("/documents?id=doc-2&start=0&end=13").get_data(as_text=True)
    assert ">Sheet &lt;em&gt;<" in client.get("/documents?id=doc-2&start=12&end=13").get_data(as_text=True)


def test_a_documents_page_marks_a_row_from_edge_to_edge_and_shows_its_header() -> None:
    text = "Limits\n\n| City | Limit |\n|---|---|\n| Rome | 90 |\n| Berlin | 150 |\n"
    start = text.index("Berlin")
    line = fake_snapshot(FakeRetriever(replace(FLIGHT, text=text)))
    page = client_of(line).get(f"/documents?id=doc-2&start={start}&end={start + 12}").get_data(as_text=True)

    assert '<mark id="passage" class="row">| Berlin | 150 |</mark>' in page
    assert '<span class="columns">| City | Limit |</span>' in page


@pytest.mark.parametrize(
    "query", ["id=absent", "", "id=doc-2&field=allow_token_document", "id=../../etc/passwd", "id=doc-2%00"]
)
def test_what_is_absent_or_not_to_be_opened_is_the_same_404(query: str) -> None:
    response = client_of(fake_snapshot()).get(f"/documents?{query}", headers=JSON)

    assert response.status_code == 404
    assert response.get_json()["error"]["label"] == "notFound"
