from dataclasses import replace

import pytest

from datafari_rag.adapters.model.chain import ExtractiveModel
from datafari_rag.core.access import ANONYMOUS
from datafari_rag.core.documents import Document
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.retrieval import Dependencies
from datafari_rag_trials.evaluation.measures import UNFOUND
from datafari_rag_trials.evaluation.questions import LeakReader, Question
from datafari_rag_trials.evaluation.trial import TrialSetup, tried
from tests.fakes import FakeRetriever
from tests.settings import settings_with

FILLER = "Nothing of interest is said in this sentence at all. " * 60
FERRY = Document("ferry", f"{FILLER}The fare of the island ferry is nine euros. {FILLER}", score=3.0, language="en")
OTHER = Document("other", FILLER, score=4.0, language="en")
FARE = Question("q", "g", "What is the fare of the island ferry?", ("nine euros",), frozenset({"ferry"}))


class Words:
    def count(self, text: str) -> int:
        return len(text.split())


def setup(*documents: Document, **more: object) -> TrialSetup:
    dependencies = Dependencies(
        retriever=FakeRetriever(*documents),
        model=ExtractiveModel(),
        counter=Words(),
        instructions="",
        new_nonce=lambda: "nonce",
        clock=lambda: 0.0,
    )
    settings = settings_with(rag_api_endpoint=BUILTIN_MODEL)
    return TrialSetup(settings, dependencies, **more)  # type: ignore[arg-type]


def test_a_question_is_tried_with_every_budget_and_beside_the_baselines() -> None:
    found = tried(FARE, setup(OTHER, FERRY))
    assert (found.engine_rank, found.rank) == (1, 0)
    assert found.hits["passages"] == (True, True, True, True)
    assert found.hits["head"] == (False, False, False, True)
    assert set(found.hits) == {"passages", "head", "highlighting"}
    assert found.is_in_reply
    assert found.has_replied
    assert found.citations >= found.proved >= found.right >= 1
    assert found.evidence > 0.9
    assert set(found.ms) >= {"search", "passages", "model"}


def test_nothing_found_is_a_result() -> None:
    found = tried(FARE, setup(baselines=False))
    assert (found.rank, found.engine_rank) == (UNFOUND, UNFOUND)
    assert found.hits == {"passages": (False, False, False, False)}
    assert not found.has_replied
    assert not found.is_in_reply


def test_what_a_reader_may_not_see_is_counted_as_a_leak() -> None:
    readers = (LeakReader("ann", frozenset({"crew"})), LeakReader("bob", frozenset()))
    rights = {"ferry": {"allow_token_document": ("crew",), "deny_token_document": ()}, "other": {}}
    found = tried(FARE, setup(FERRY, readers=readers, rights=rights, asks=ANONYMOUS, baselines=False))
    assert found.leaks == 1


def test_a_question_that_needs_all_its_documents_has_found_them_with_the_last() -> None:
    both = replace(FARE, document_ids=frozenset({"ferry", "other"}), needs_all=True, answers=())
    assert tried(both, setup(OTHER, FERRY)).rank == 1
    assert tried(both, setup(FERRY)).rank == UNFOUND


@pytest.mark.parametrize(
    ("unit", "is_whole"),
    [
        pytest.param("", None, id="no unit"),
        pytest.param("The fare of the island ferry is nine euros.", True, id="quoted whole"),
        pytest.param("The fare of the island ferry is nine euros. Or ten.", False, id="not quoted"),
    ],
)
def test_whether_the_row_that_answers_is_quoted_whole(unit: str, is_whole: bool | None) -> None:
    assert tried(replace(FARE, unit=unit), setup(FERRY, OTHER)).is_whole is is_whole
    assert tried(replace(FARE, unit=unit), setup()).is_whole is (None if is_whole is None else False)
