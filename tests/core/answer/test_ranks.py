from __future__ import annotations

import pytest

from datafari_rag.core.answer.reasoning_steps import LEAST_SCORE, page_in_ranks, ranked, without_least_score
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.errors import NoDocuments
from datafari_rag.core.events import Delta, Event, Failed, Finished, ModelFacts, Sources

EXTRACTS = tuple(
    Extract(number, f"L{number}", Document(f"d{number}", "text", score=9.87 / number), (Passage(0, 4, 3.21),), "text")
    for number in (1, 2, 4)
)


@pytest.mark.parametrize("event", [Sources(EXTRACTS, language="fr"), Finished("x", extracts=EXTRACTS)], ids=repr)
def test_documents_have_the_inverse_of_their_rank_for_a_score(event: Sources | Finished) -> None:
    shown = ranked(event)

    assert isinstance(shown, type(event))
    assert [one.document.score for one in shown.extracts] == [1.0, 0.5, 0.25]
    assert [one.text for one in shown.extracts] == ["text"] * 3
    assert "9.87" not in repr(shown)
    assert "3.21" not in repr(shown)


def test_passages_keep_their_order_and_lose_their_scores() -> None:
    passages = (Passage(0, 1, 3.2), Passage(1, 2, 9.8), Passage(2, 3, 3.2))
    shown = ranked(Sources((Extract(1, "L", Document("d", "text"), passages, "text"),)))

    assert isinstance(shown, Sources)
    assert [one.score for one in shown.extracts[0].passages] == [1 / 2, 1, 1 / 3]


@pytest.mark.parametrize("event", [Sources(()), Finished("x"), Delta("x"), Failed(NoDocuments())], ids=repr)
def test_an_event_without_documents_stays_as_it_is(event: Event) -> None:
    assert ranked(event) is event


def test_a_least_score_is_left_out_and_said_so() -> None:
    ask = Ask("q", min_score=2.0, overrides={LEAST_SCORE: "In use.", "top": "In use."})

    assert without_least_score(ask) == Ask(
        "q", overrides={LEAST_SCORE: "Not in use: only administrators see scores.", "top": "In use."}
    )
    assert without_least_score(Ask("q")) == Ask("q")


def test_a_page_of_hits_has_ranks_where_scores_were_asked_for() -> None:
    page = {
        "responseHeader": {"status": 0},
        "response": {"numFound": 9, "start": 4, "maxScore": 7.5, "docs": [{"id": "a", "score": 7.5}, {"id": "b"}]},
        "highlighting": {},
    }

    assert page_in_ranks(page, 4) == {
        "responseHeader": {"status": 0},
        "response": {"numFound": 9, "start": 4, "docs": [{"id": "a", "rank": 5}, {"id": "b"}]},
        "highlighting": {},
    }
    assert page_in_ranks({"responseHeader": {}}, 0) == {"responseHeader": {}}


def test_how_long_the_model_thought_is_not_for_everybody() -> None:
    facts = ModelFacts("m", thought_chars=9, thought_ms=1.5)
    assert ranked(Finished("a", facts=facts)) == Finished("a", facts=ModelFacts("m"))
