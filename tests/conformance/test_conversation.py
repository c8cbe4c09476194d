"""Conversations over the real application: what is searched for, with and without the model's help."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.access import Filter
from datafari_rag.core.search_request import Search, SearchResult
from tests.fakes import FLIGHT, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

TALK = [
    {"role": "user", "content": "When does flight 204 leave?"},
    {"role": "assistant", "content": "At 15h50 [1]."},
]


class Knowing(FakeRetriever):
    """Finds its documents only when a known word is among those searched for."""

    def __init__(self, *known: str) -> None:
        super().__init__(FLIGHT)
        self.known = set(known)

    def search(self, search: Search, access: Filter) -> SearchResult:
        found = super().search(search, access)
        return found if self.known & {word.lower() for word in search.step.words} else SearchResult((), 0)


AS_ASKED = settings_with(chat_query_rewriting_enabled=False)


def asked(path: str, question: str, at: Any, **more: object) -> Any:
    body = {"messages": [*TALK, {"role": "user", "content": question}], **more}
    return app_of(at).test_client().post(path, json=body).get_json()


@pytest.mark.parametrize("path", ["/chat", "/api/chat"])
def test_a_follow_up_is_searched_for_with_the_question_before_it(path: str) -> None:
    retriever = FakeRetriever(FLIGHT)
    asked(path, "And why?", fake_snapshot(retriever, settings=AS_ASKED))
    search, _ = retriever.searches[0]
    assert search.question == "flight 204 leave\nAnd why?"


def test_on_v1_a_follow_up_is_searched_so_without_an_index_name_alone() -> None:
    retriever = FakeRetriever(FLIGHT)
    asked("/v1/chat/completions", "And why?", fake_snapshot(retriever, settings=AS_ASKED), model="datafari")
    asked("/v1/chat/completions", "And why?", fake_snapshot(retriever), index_name="default")
    assert [search.question for search, _ in retriever.searches][:2] == ["flight 204 leave\nAnd why?", "And why?"]


def test_the_question_goes_to_the_model_word_for_word() -> None:
    model = FakeModel("Because [1].")
    asked("/chat", "And why?", fake_snapshot(model=model, settings=AS_ASKED))
    assert model.prompts[0].question == "And why?"
    assert [turn.text for turn in model.prompts[0].history] == [turn["content"] for turn in TALK]


def test_on_v1_the_users_own_words_come_first_and_earlier_ones_only_when_nothing_knows_them() -> None:
    retriever = Knowing("flight")
    told = asked("/v1/chat/completions", "Gobbledygook zzyzx?", fake_snapshot(retriever), index_name="default")
    searched = [search.question for search, _ in retriever.searches]
    assert searched[0] == "Gobbledygook zzyzx?"
    assert searched[-1] == "When does flight 204 leave?"
    assert told["source_nodes"][0]["doc_id"] == FLIGHT.id


def test_on_v1_earlier_words_are_not_used_when_the_question_has_known_ones() -> None:
    retriever = Knowing("gate", "flight")
    asked("/v1/chat/completions", "Which gate?", fake_snapshot(retriever), index_name="default")
    assert {search.question for search, _ in retriever.searches} == {"Which gate?"}


def test_the_model_may_write_the_query() -> None:
    retriever, model = FakeRetriever(FLIGHT), FakeModel("flight 204 departure delay")
    told = asked("/chat", "And why?", fake_snapshot(retriever, model))
    assert retriever.searches[0][0].question == "flight 204 departure delay"
    assert len(model.prompts) == 2
    assert "query rewriting" in told["context"]["thoughts"][0]["props"]["overrides"]


def test_a_first_question_costs_no_second_call() -> None:
    model = FakeModel("At 15h50 [1].")
    body = {"messages": [{"role": "user", "content": "When does flight 204 leave?"}]}
    app_of(fake_snapshot(model=model)).test_client().post("/chat", json=body)
    assert len(model.prompts) == 1


def test_top_and_temperature_replace_the_settings_for_one_request() -> None:
    model = FakeModel("At 15h50 [1].")
    at = fake_snapshot(model=model)
    told = asked("/chat", "When does it leave?", at, context={"overrides": {"top": 1, "temperature": 0}})
    assert len(told["context"]["data_points"]["text"]) == 1
    assert model.prompts[0].temperature == 0
    assert len(asked("/chat", "When does it leave?", at)["context"]["data_points"]["text"]) == 2


def test_captions_ask_for_snippets_and_a_category_narrows() -> None:
    retriever = FakeRetriever(FLIGHT)
    overrides = {"semantic_captions": True, "include_category": "hr"}
    asked("/chat", "When?", fake_snapshot(retriever), context={"overrides": overrides})
    search, _ = retriever.searches[0]
    assert search.content == "highlighting"
    assert [(one.field, one.value) for one in search.restrictions] == [("source", "hr")]


@pytest.mark.parametrize(("user", "least"), [("root", 2), ("ann", 0), (None, 0)])
def test_only_administrators_choose_by_score(user: str | None, least: float) -> None:
    retriever = FakeRetriever(FLIGHT)
    at = fake_snapshot(retriever, settings=settings_with(security_admins=("root",)))
    context = {"overrides": {"minimum_search_score": 2}}
    body = {"messages": [{"role": "user", "content": "When?"}], "context": context}
    told: Any = app_of(at).test_client().post("/chat", json=body, headers={"X-User": user} if user else {}).get_json()

    assert retriever.searches[0][0].min_score == least
    sentence = told["context"]["thoughts"][0]["props"]["overrides"]["minimum_search_score"]
    assert sentence.startswith("In use" if user == "root" else "Not in use")


def test_thoughts_are_there_when_nothing_was_found() -> None:
    told = asked("/chat", "When?", fake_snapshot(FakeRetriever()))
    assert [one["title"] for one in told["context"]["thoughts"]][2:] == ["Results", "Prompt"]
