"""What could be asked instead, from the words of the question and of pages that the user may see."""

from __future__ import annotations

from datafari_rag.core.ask import Restriction
from datafari_rag.core.query.proposals import (
    Relaxation,
    count_of_all,
    counts_of_each,
    documents_on,
    latest_search,
    total_of,
)
from datafari_rag.core.search_request import Browse, Step

HOTEL = Browse(
    "How much may a hotel cost?", start=20, restrictions=(Restriction("source", "a"),), facet_fields=("source",)
)


def page(*titles: object, **marked: list[str]) -> dict[str, object]:
    docs = [{"id": str(number), "title": title} for number, title in enumerate(titles)]
    return {"response": {"numFound": len(docs), "docs": docs}, "highlighting": {"0": marked}}


def test_counts_look_for_content_words_within_the_same_filters_and_return_no_document() -> None:
    assert count_of_all(HOTEL).step == Step("all words", ("hotel", "cost"))
    assert {word: one.step for word, one in counts_of_each(HOTEL).items()} == {
        word: Step("one word", (word,)) for word in ("hotel", "cost")
    }
    for one in (count_of_all(HOTEL), *counts_of_each(HOTEL).values()):
        assert (one.rows, one.start, one.restrictions, one.facet_fields) == (0, 0, HOTEL.restrictions, ())


def test_only_so_many_words_are_counted() -> None:
    assert len(counts_of_each(Browse("alpha beta gamma delta epsilon zeta eta theta"))) == 6


def test_documents_have_a_title_or_their_id() -> None:
    found = {"response": {"docs": [{"id": "a", "title": ["A"]}, {"id": "b"}, {"title": "no id"}]}}

    assert documents_on(found) == (("a", "A"), ("b", "b"))


def test_a_page_without_a_response_has_no_documents() -> None:
    assert (total_of({}), total_of(page("a"))) == (0, 1)


def test_what_a_reply_says_of_its_relaxation() -> None:
    said = Relaxation("any word", True, ("hotle",), (("a", "A"),)).wire()

    assert said == {
        "step": "any word",
        "isRelaxed": True,
        "missing": ["hotle"],
        "latest": [{"id": "a", "title": "A"}],
    }


def test_the_latest_documents_are_those_that_changed_last() -> None:
    assert latest_search().sort == ("last_modified", True)
