"""What could be asked instead, from the words of the question and of pages that the user may see."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from datafari_rag.core.ask import Restriction
from datafari_rag.core.query.proposals import (
    Relaxation,
    count_of_all,
    counts_of_each,
    documents_on,
    latest_search,
    near_search,
    near_word,
    respelled,
    total_of,
    without_rarest,
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


@pytest.mark.parametrize("word", ["cat", "v2.1", "C:\\dir", 'ho"tel', "hotel~2"])
def test_short_words_and_such_with_other_characters_have_no_near_words(word: str) -> None:
    assert near_search(HOTEL, word) is None


def test_near_words_are_searched_for_as_highlights_and_titles() -> None:
    near = near_search(HOTEL, "hotle")

    assert near is not None and near.step == Step("near", ("hotle",), match="near")
    assert (near.fields, near.wants_highlighting, near.restrictions) == (("id", "title"), True, HOTEL.restrictions)


@pytest.mark.parametrize(
    ("word", "found", "near"),
    [
        pytest.param("hotle", page(exactContent=['<span class="em">hotel</span>']), "hotel", id="a marked word"),
        pytest.param("hotle", page("The Hotel guide"), "Hotel", id="a word of a title, as it is written there"),
        pytest.param("hotle", page(["Hotels", None]), "Hotels", id="a title that is a list"),
        pytest.param("hotle", page("Hotle"), None, id="not the word itself"),
        pytest.param("hotle", page("Leave policy", None), None, id="nothing alike"),
        pytest.param("hotle", page(exactContent=["hotel"]), None, id="no word that is not marked"),
        pytest.param("hotle", page(exactContent=['<span class="em">ho-tel</span>']), None, id="not a piece of code"),
        pytest.param("hotle", {"response": {"docs": []}}, None, id="no highlighting at all"),
    ],
)
def test_the_nearest_word(word: str, found: Mapping[str, object], near: str | None) -> None:
    assert near_word(word, found) == near


def test_a_question_is_spelt_as_the_documents_spell_it() -> None:
    assert respelled("A  hotle in Berln?", {"Hotle": "hotel", "Berln": "Berlin"}, "en") == "A hotel in Berlin?"


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        pytest.param({"hotel": 3, "Berlin": 2, "zoo": 4}, "hotel zoo", id="without the rarest"),
        pytest.param({"hotel": 0, "Berlin": 2, "zoo": 0}, "Berlin", id="without all that no document has"),
        pytest.param({"hotel": 1, "Berlin": 1}, "Berlin", id="without one of two as rare"),
        pytest.param({"hotel": 0, "Berlin": 0}, None, id="nothing that could be found"),
        pytest.param({"hotel": 2}, None, id="nothing left"),
        pytest.param({}, None, id="no words"),
    ],
)
def test_what_is_left_without_the_rarest_word(counts: Mapping[str, int], wanted: str | None) -> None:
    assert without_rarest(counts) == wanted


def test_documents_have_a_title_or_their_id() -> None:
    found = {"response": {"docs": [{"id": "a", "title": ["A"]}, {"id": "b"}, {"title": "no id"}]}}

    assert documents_on(found) == (("a", "A"), ("b", "b"))


def test_a_page_without_a_response_has_no_documents() -> None:
    assert (total_of({}), total_of(page("a"))) == (0, 1)


def test_what_a_reply_says_of_its_relaxation() -> None:
    said = Relaxation("any word", True, ("hotle",), ("hotel?",), (("a", "A"),)).wire()

    assert said == {
        "step": "any word",
        "isRelaxed": True,
        "missing": ["hotle"],
        "proposals": ["hotel?"],
        "latest": [{"id": "a", "title": "A"}],
    }


def test_the_latest_documents_are_those_that_changed_last() -> None:
    assert latest_search().sort == ("last_modified", True)
