"""The list of a plain search, arranged by words and meaning."""

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.meaning.result_list import NEAREST, WINDOW, arranged, asked_by_meaning, is_arranged, widened
from datafari_rag.core.query.search_request import Browse
from datafari_rag.core.query.steps import plain_step

PLAIN = Browse("parental leave", rows=3, language="en")


def page_of(count: int) -> dict[str, Any]:
    rows = [{"id": f"d{at}", "title": f"Title {at}"} for at in range(count)]
    return {
        "response": {"numFound": 100, "start": 0, "docs": rows},
        "highlighting": {row["id"]: {"content": [row["title"]]} for row in rows},
        "facet_counts": {"facet_fields": {}},
    }


def ids_of(page: Any) -> list[str]:
    return [row["id"] for row in page["response"]["docs"]]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"start": WINDOW - 1}, True),
        ({"start": WINDOW}, False),
        ({"rows": 0}, False),
        ({"text": None}, False),
        ({"sort": "last_modified desc"}, False),
    ],
)
def test_meaning_arranges_the_first_pages_of_a_search_by_relevance(changes: dict[str, Any], expected: bool) -> None:
    assert is_arranged(replace(PLAIN, **changes)) is expected


def test_the_same_question_under_the_same_restrictions_is_asked_by_meaning() -> None:
    search = asked_by_meaning(PLAIN)
    assert (search.question, search.language, search.restrictions) == (PLAIN.text, "en", PLAIN.restrictions)
    assert search.step == plain_step("parental leave", language="en", operator=PLAIN.operator)
    assert (search.rows, search.is_bare) == (2 * NEAREST, True)


def test_a_step_that_the_search_has_is_the_one_asked_by_meaning() -> None:
    step = plain_step("leave", language="en", operator="AND")
    assert asked_by_meaning(replace(PLAIN, step=step)).step is step


def test_all_hits_that_may_change_places_are_asked_for() -> None:
    assert (widened(PLAIN, "id").start, widened(PLAIN, "id").rows) == (0, WINDOW)
    assert widened(replace(PLAIN, start=28, rows=10), "id").rows == 38


@pytest.mark.parametrize(
    ("fields", "expected"), [(None, None), (("id", "title"), ("id", "title")), (("title",), ("title", "id"))]
)
def test_ids_are_asked_for_with_the_fields_of_the_page(
    fields: tuple[str, ...] | None, expected: tuple[str, ...] | None
) -> None:
    assert widened(replace(PLAIN, fields=fields), "id").fields == expected


def test_a_much_nearer_document_goes_before_the_hits_by_words() -> None:
    found = arranged(page_of(5), PLAIN, {"d4": 3.0, "d0": 1.0, "d1": 1.0}, "id")
    assert ids_of(found) == ["d4", "d0", "d1"]


def test_a_document_that_is_not_among_the_nearest_counts_as_the_farthest_of_them() -> None:
    # d2 is no nearer than the farthest, and so takes no place from d0 and d1.
    assert ids_of(arranged(page_of(3), PLAIN, {"d2": 1.5}, "id")) == ["d0", "d1", "d2"]


def test_without_anything_near_the_order_by_words_stays() -> None:
    found = arranged(page_of(5), replace(PLAIN, start=1), {}, "id")
    assert ids_of(found) == ["d1", "d2", "d3"]
    assert found["response"]["start"] == 1


def test_hits_behind_the_window_keep_their_places() -> None:
    last = WINDOW + 2
    found = arranged(page_of(last + 1), replace(PLAIN, start=WINDOW - 1, rows=4), {f"d{last}": 9.0}, "id")
    assert ids_of(found) == [f"d{at}" for at in range(WINDOW - 1, last + 1)]


def test_numbers_and_facets_stay_and_highlights_are_those_of_the_page() -> None:
    found = arranged(page_of(5), PLAIN, {"d4": 3.0}, "id")
    assert found["response"]["numFound"] == 100
    assert found["facet_counts"] == {"facet_fields": {}}
    assert set(found["highlighting"]) == set(ids_of(found))


def test_a_page_without_highlights_gets_none() -> None:
    page = {"response": page_of(2)["response"]}
    assert "highlighting" not in arranged(page, PLAIN, {}, "id")


def test_an_id_that_nobody_asked_for_is_left_out_of_the_rows() -> None:
    found = arranged(page_of(2), replace(PLAIN, fields=("title",)), {}, "id")
    assert found["response"]["docs"] == [{"title": "Title 0"}, {"title": "Title 1"}]
