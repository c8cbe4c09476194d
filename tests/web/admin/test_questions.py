"""The report of questions: what every dialect leaves in it, who may read it, and nothing of what they may not see."""

from __future__ import annotations

import json
import logging
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.ledgers import SqliteLedger
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.question_file import QuestionFile
from datafari_rag.core.accounts import TokenCaps
from datafari_rag.core.answer.question_report import KeptQuestion, masked
from datafari_rag.core.errors import EmbeddingsUnavailable, ModelTimeout, SearchUnavailable
from datafari_rag.core.settings.records import RequestRates
from datafari_rag.core.vectors import EmbeddingModel
from datafari_rag.web.admin import usage
from datafari_rag_trials.evaluation.questions import questions_in
from tests.fakes import FLIGHT, FakeModel, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with
from tests.web.test_spending import DOORS

NOW_S = 1_700_000_000.0
JSON = {"Accept": "application/json"}
OPEN = {"id": "open", "title": ["Holiday rules"], "exactContent": ["Holiday rules for everybody: 25 days."]}
HIDDEN = {
    "id": "hidden",
    "title": ["Zxcanary merger"],
    "exactContent": ["The zxcanary merger is planned for May."],
    "allow_token_document": ["board"],
    "deny_token_document": ["nobody"],
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[QuestionFile]:
    with closing(QuestionFile(tmp_path / "report", 30, replace(MACHINE, wall=lambda: NOW_S))) as found:
        yield found


@dataclass
class Site:
    client: FlaskClient
    store: QuestionFile

    def as_user(self, name: str) -> FlaskClient:
        self.client.environ_base["HTTP_X_USER"] = name
        return self.client

    def report(self, name: str, query: str = "") -> dict[str, Any]:
        found: dict[str, Any] = self.as_user(name).get(f"/admin/questions?{query}", headers=JSON).get_json()
        return found


def site_of(store: QuestionFile, retriever: Any = None, model: FakeModel | None = None, **more: Any) -> Site:
    settings = settings_with(security_admins=("ann", "chief"), **more)
    rights = FakeRights({"chief": ["board"]})
    snapshot = fake_snapshot(retriever, model, settings=settings, rights=rights)
    return Site(app_of(replace(snapshot, questions=store)).test_client(), store)


@pytest.fixture
def indexed(tmp_path: Path) -> EmbeddedRetriever:
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.add([OPEN, HIDDEN])
        writer.commit()
    return EmbeddedRetriever(tmp_path / "index")


def kept(store: QuestionFile, text: str, shown: tuple[str, ...], people: int = 3, **more: Any) -> None:
    for number in range(people):
        question = KeptQuestion(f"{text}{number}", NOW_S, f"p{number}", masked(text), "en", "ok", shown)
        store.keep(replace(question, is_near=True, **more))


@pytest.mark.parametrize("door", DOORS)
def test_every_dialect_leaves_its_question(store: QuestionFile, door: str) -> None:
    site = site_of(store, model=FakeModel("The flight takes off at 15h50, from terminal 2 [1]."))
    assert DOORS[door](site.as_user("bob")).get_data()
    (found,) = store.since(0)
    assert "flight" in found.text and found.outcome == "ok" and found.person and found.language == "en"
    assert found.sources[0] == FLIGHT.id and found.cited == (FLIGHT.id,) and found.checked == found.proved == 1


@pytest.mark.parametrize(
    ("site_parts", "problem"),
    [
        ({"retriever": FakeRetriever()}, "nothingFound"),
        ({"model": FakeModel(failure=ModelTimeout())}, "modelFailed"),
        ({"model": FakeModel("Cats are the best pilots of Mars [1].")}, "notProved"),
    ],
)
def test_what_goes_wrong_is_in_the_report(store: QuestionFile, site_parts: dict[str, Any], problem: str) -> None:
    site = site_of(store, **site_parts)
    for name in ("a", "b", "c"):
        DOORS["Datafari RagAPI"](site.as_user(name))
    (group,) = site.report("ann")["groups"]
    assert (group["texts"], group["asked"], group["people"]) == (["flight"], 3, 3)
    assert group["problems"] == {problem: 3}


def test_a_question_that_was_refused_for_its_user_is_not_kept(store: QuestionFile) -> None:
    site = site_of(store, server_rate=RequestRates(user=1))
    for _ in range(3):
        DOORS["Datafari RagAPI"](site.as_user("bob"))
    assert len(store.since(0)) == 1


def test_a_question_that_no_budget_was_left_for_is_not_kept(store: QuestionFile, tmp_path: Path) -> None:
    snapshot = fake_snapshot(settings=settings_with(limits_tokens=TokenCaps(user={"day": 0})))
    with closing(SqliteLedger(tmp_path)) as accounts:
        client = app_of(replace(snapshot, questions=store, accounts=accounts)).test_client()
        assert DOORS["RAG chat protocol"](client).status_code == 429
    assert store.since(0) == []


def test_searches_and_titles_of_conversations_leave_nothing(store: QuestionFile) -> None:
    site = site_of(store)
    site.as_user("bob").get("/search/select?q=flight")
    assert store.since(0) == []


def test_thumbs_down_go_to_the_answer_they_are_about(store: QuestionFile, tmp_path: Path) -> None:
    site = site_of(store, feedback_file=str(tmp_path / "thumbs"))
    client = site.as_user("bob")
    page = client.get("/?q=flight", headers={"Accept": "text/html"}).get_data(as_text=True)
    token, answer = (re.search(rf'name="{name}" value="([^"]+)"', page) for name in ("csrf_token", "request_id"))
    assert token is not None and answer is not None
    form = {"csrf_token": token[1], "request_id": answer[1], "verdict": "down"}
    assert client.post("/feedback", data=form).status_code == 200
    assert [one.is_disliked for one in store.since(0)] == [True]


def test_no_text_is_in_the_log(store: QuestionFile, caplog: pytest.LogCaptureFixture) -> None:
    site = site_of(store)
    with caplog.at_level(logging.INFO):
        kept(store, "zxcanary rules", ("doc-1",))
        DOORS["Datafari RagAPI"](site.as_user("bob"))
        assert "zxcanary" in json.dumps(site.report("ann"))
    assert "zxcanary" not in caplog.text and "flight" not in caplog.text


@pytest.mark.parametrize("path", ["/admin/questions", "/admin/questions.jsonl?group=x"])
def test_administrators_read_it_and_nobody_else(store: QuestionFile, path: str) -> None:
    site = site_of(store)
    assert site.as_user("bob").get(path, headers=JSON).status_code == 403
    assert site.client.get(path, headers=JSON | {"X-User": ""}).status_code in (401, 403)


@pytest.mark.parametrize("query", ["days=0", "days=367", "days=-1", "days=²", "old=0", "old=99999", "old=x"])
def test_a_number_that_cannot_be_is_named(store: QuestionFile, query: str) -> None:
    assert site_of(store).as_user("ann").get(f"/admin/questions?{query}", headers=JSON).status_code == 400


def test_where_nothing_is_kept_there_is_no_report() -> None:
    snapshot = fake_snapshot(settings=settings_with(security_admins=("ann",)))
    found = app_of(snapshot).test_client().get("/admin/questions", headers=JSON | {"X-User": "ann"})
    assert found.status_code == 404


def test_without_a_search_engine_nothing_is_said(store: QuestionFile) -> None:
    kept(store, "holiday rules", ("open",))
    site = site_of(store, FakeRetriever(error=SearchUnavailable()))
    assert site.as_user("ann").get("/admin/questions", headers=JSON).status_code == 502


def test_of_documents_a_report_tells_what_its_reader_may_see(store: QuestionFile, indexed: EmbeddedRetriever) -> None:
    site = site_of(store, indexed)
    before = site.report("ann")
    kept(store, "zxcanary merger", ("hidden",), cited=("hidden",))
    assert site.report("ann") == before
    kept(store, "holiday zxcanary", ("open", "hidden"), cited=("hidden",))
    told = site.report("ann")
    (group,) = told["groups"]
    assert group["missingWords"] == ["zxcanary"] and group["cited"] == []
    assert "hidden" not in json.dumps(told) and "erger" not in json.dumps(told)
    assert told["documents"]["neverCited"] == [{"id": "open", "title": "Holiday rules", "count": 3}]
    whole = site.report("chief")
    assert {one["id"] for one in whole["documents"]["citedOften"]} == {"hidden"}
    assert len(whole["groups"]) == 2 and all(not one["missingWords"] for one in whole["groups"])


def test_a_report_is_the_same_whatever_the_hidden_document_says(store: QuestionFile, tmp_path: Path) -> None:
    kept(store, "holiday merger zxcanary unheard", ("open", "hidden"), cited=("open", "hidden"))
    told = []
    for number, text in enumerate(("zxcanary", "unheard", "")):
        with closing(EmbeddedWriter(tmp_path / f"index{number}")) as writer:
            writer.add([OPEN, *([{**HIDDEN, "title": [text], "exactContent": [text]}] if text else [])])
            writer.commit()
        told.append(site_of(store, EmbeddedRetriever(tmp_path / f"index{number}")).report("ann"))
    assert told[0] == told[1] == told[2] and told[0]["groups"][0]["missingWords"] == ["merger", "zxcanary", "unheard"]


def test_a_long_question_about_a_hidden_document_is_left_out(store: QuestionFile, indexed: EmbeddedRetriever) -> None:
    kept(store, "is it true that the zxcanary merger is planned for May", ("open", "hidden"))
    site = site_of(store, indexed)
    assert site.report("ann")["groups"] == []
    assert len(site.report("chief")["groups"]) == 1


def test_a_passage_of_a_hidden_document_that_no_search_found_is_not_in_the_report(
    store: QuestionFile, indexed: EmbeddedRetriever
) -> None:
    passage = "everybody says that the zxcanary merger is planned for May this year"
    kept(store, passage, (), outcome="noDocuments")
    kept(store, passage, ("open",))
    told = json.dumps(site_of(store, indexed).report("ann"))
    assert "zxcanary" in told
    words = passage.split()
    assert all(" ".join(words[start : start + 8]) not in told for start in range(len(words) - 7))
    assert all(f" {word} " not in told for word in ("that", "is", "for"))


def test_the_page_shows_texts_as_texts_and_a_group_is_a_file(
    store: QuestionFile, indexed: EmbeddedRetriever, tmp_path: Path
) -> None:
    kept(store, "<b>holiday</b> {{ 7 * 7 }}", ("open",))
    kept(store, "parking", ("open",), people=2)
    site = site_of(store, indexed)
    page = site.as_user("ann").get("/admin/questions", headers={"Accept": "text/html"}).get_data(as_text=True)
    assert "&lt;b&gt;holiday&lt;/b&gt; {{ 7 * 7 }}" in page and "parking" not in page and "near only: 3" in page
    (link,) = re.findall(r'href="(/admin/questions.jsonl[^"]+)"', page)
    file = tmp_path / "questions.jsonl"
    response = site.client.get(link.replace("&amp;", "&"))
    file.write_bytes(response.get_data())
    (question,) = questions_in(file)
    assert (question.text, question.group, question.language) == ("<b>holiday</b> {{ 7 * 7 }}", "report", "en")
    too_few = next(one["key"] for one in site.report("ann")["groups"] if one["people"] == 2)
    assert site.client.get(f"/admin/questions.jsonl?group={too_few}", headers=JSON).status_code == 404


class FakeMeaning:
    """Both halves of a search by meaning: two kinds of texts, or an embedding model that is gone."""

    def __init__(self, *, is_gone: bool = False) -> None:
        self.is_gone, self.model = is_gone, EmbeddingModel("fake", "fake")
        self.embedder = self.passages = self

    def spread(self, model: EmbeddingModel) -> float:
        return 0.1

    def embed(self, texts: Sequence[str], purpose: str) -> Sequence[array[float]]:
        if self.is_gone:
            raise EmbeddingsUnavailable
        return [array("f", (0, 1) if "parking" in text else (1, 0)) for text in texts]


@pytest.mark.parametrize(("is_gone", "sizes"), [(False, [6, 3]), (True, [3, 3, 3])])
def test_groups_are_joined_by_meaning_where_vectors_can_be_had(
    store: QuestionFile, is_gone: bool, sizes: list[int]
) -> None:
    for text in ("holiday rules", "annual leave", "parking"):
        kept(store, text, ("doc-1",))
    snapshot = fake_snapshot(settings=settings_with(security_admins=("ann",)))
    meaning: Any = FakeMeaning(is_gone=is_gone)
    snapshot = replace(snapshot, questions=store, dependencies=replace(snapshot.dependencies, meaning=meaning))
    found = app_of(snapshot).test_client().get("/admin/questions", headers=JSON | {"X-User": "ann"}).get_json()
    assert [one["asked"] for one in found["groups"]] == sizes


def test_documents_are_looked_up_together_and_within_a_bound(
    store: QuestionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "LOOKED_UP_TOGETHER", 2)
    monkeypatch.setattr(usage, "MOST_LOOKED_UP", 3)
    kept(store, "holiday", ("a", "b", "c", "d"))
    retriever = FakeRetriever()
    site_of(store, retriever).report("ann")
    assert [plain.ids for plain, _ in retriever.browsed] == [("a", "b"), ("c",)]
