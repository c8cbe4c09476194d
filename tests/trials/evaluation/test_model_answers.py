"""Answers of a model with known text: right, near, wrong and refused, and the rates of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.errors import ModelTimeout, RagError, SearchUnavailable
from datafari_rag.core.events import ModelFacts
from datafari_rag.pipeline import Dependencies
from datafari_rag_trials.evaluation.model_answers import ModelAnswer, answered, answers_table, rates_of, report_of
from datafari_rag_trials.evaluation.questions import Question
from datafari_rag_trials.evaluation.trial import TrialSetup
from tests.fakes import FakeCounter, FakeModel, FakeRetriever
from tests.settings import settings_with

FERRY = Document(
    "ferry", "The fare of the island ferry is nine euros. The boat leaves at eight.", score=3.0, language="en"
)
FARE = Question("fare", "g", "What is the fare of the island ferry?", ("nine euros",), frozenset({"ferry"}))
PAINTER = Question("painter", "g", "Who paints the fare of the island ferry?", is_answerable=False)
USAGE = {"usage": {"prompt_tokens": 100, "completion_tokens": 7}}


def setup(text: str = "", *, failure: RagError | None = None, documents: tuple[Document, ...] = (FERRY,)) -> TrialSetup:
    model = FakeModel(text, failure=failure, facts=ModelFacts("m", extras=USAGE))
    dependencies = Dependencies(
        retriever=FakeRetriever(*documents),
        model=model,
        counter=FakeCounter(),
        instructions="",
        new_nonce=lambda: "nonce",
        clock=lambda: 0.0,
    )
    return TrialSetup(settings_with(rag_api_endpoint="http://a/v1"), dependencies)


def outcome(question: Question, text: str) -> str:
    ticks = iter((1.0, 3.5))
    return answered(question, setup(text), lambda: next(ticks)).outcome


KNOWN = {
    "the answer word for word": (FARE, "The fare is nine euros [1].", "right"),
    "the answer in other case": (FARE, "NINE  EUROS", "right"),
    "the right answer with a denial": (FARE, "It is not free, but nine euros.", "right"),
    "its words in another order": (FARE, "In euros, the fare is nine [1].", "near"),
    "another fare": (FARE, "The fare is ten euros [1].", "wrong"),
    "a refusal": (FARE, "The documents do not say what the fare is.", "refused"),
    "a denial with a citation": (FARE, "The fare is not known [1].", "wrong"),
    "a right refusal": (PAINTER, "The documents do not say who paints the ferry.", "refused"),
    "an invention": (PAINTER, "Bob paints it [1].", "wrong"),
    "an invention without a citation": (PAINTER, "Bob paints it.", "wrong"),
}


@pytest.mark.parametrize(("question", "text", "wanted"), KNOWN.values(), ids=KNOWN.keys())
def test_a_known_text_has_its_outcome(question: Question, text: str, wanted: str) -> None:
    assert outcome(question, text) == wanted


def test_citations_proof_tokens_and_seconds_are_counted() -> None:
    ticks = iter((1.0, 3.5))
    found = answered(FARE, setup("The fare of the island ferry is nine euros [1]."), lambda: next(ticks))
    assert (found.is_cited, found.checked, found.proved) == (True, 1, 1)
    assert (found.prompt_tokens, found.tokens, found.took_s) == (100, 7, 2.5)


def test_nothing_found_and_nothing_said_are_refusals_and_a_failure_is_named() -> None:
    assert answered(PAINTER, setup(documents=()), lambda: 0.0).outcome == "refused"
    assert answered(PAINTER, setup(""), lambda: 0.0).outcome in ("refused", "failed")
    failed = answered(FARE, setup(failure=ModelTimeout()), lambda: 0.0)
    assert (failed.outcome, failed.label) == ("failed", "modelTimeout")


def test_a_search_that_fails_is_no_result() -> None:
    broken = setup("x")
    broken = replace(
        broken, dependencies=replace(broken.dependencies, retriever=FakeRetriever(error=SearchUnavailable()))
    )
    with pytest.raises(SearchUnavailable):
        answered(FARE, broken, lambda: 0.0)


ANSWERS = [
    ModelAnswer("1", "a", True, "right", is_cited=True, checked=2, proved=2, tokens=10, prompt_tokens=100, took_s=1.0),
    ModelAnswer("2", "a", True, "near", checked=2, proved=1, tokens=20, prompt_tokens=200, took_s=2.0),
    ModelAnswer("3", "a", True, "wrong", is_cited=True, took_s=3.0),
    ModelAnswer("4", "a", True, "failed", "modelTimeout", took_s=4.0),
    ModelAnswer("5", "b", False, "refused", took_s=5.0),
    ModelAnswer("6", "b", False, "wrong", took_s=6.0),
]


def test_the_rates_are_of_those_that_can_have_them() -> None:
    rates = rates_of(ANSWERS)
    assert (rates["right"], rates["near"], rates["refused_wrongly"]) == (25.0, 25.0, 0.0)
    assert (rates["refused_rightly"], rates["cited"], rates["proved"]) == (50.0, 50.0, 75.0)
    assert (rates["failed"], rates["tokens"], rates["seconds"]) == ({"modelTimeout": 1}, 20, 4.0)


def test_the_table_has_a_row_for_each_set_and_dashes_for_nothing() -> None:
    report = report_of("m", ANSWERS)
    table = answers_table("m", report["sets"])  # type: ignore[arg-type]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0] for row in rows] == ["| set", "| a", "| b", "| all"]
    assert rows[1].startswith("| a | 4 | 25.0 | 25.0 | 66.7 | 75.0 | – | 0.0 | modelTimeout 1 | 200 | 20 |")
    assert rows[2].startswith("| b | 2 | – | – | 0.0 | – | 50.0 | – | – | – | – |")
