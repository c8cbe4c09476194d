"""The list of a plain search, arranged by words and meaning."""

import random
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.ask import Restriction
from datafari_rag.core.meaning.result_list import (
    ADDED,
    NEAREST,
    WINDOW,
    Pulled,
    arranged,
    asked_by_meaning,
    behind,
    far_of,
    head_of,
    is_arranged,
    no_words,
    others_of,
    pulled_of,
    same_words,
    widened,
)
from datafari_rag.core.query.plan import plain_step
from datafari_rag.core.search_request import Browse

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
        ({"start": WINDOW + ADDED}, True),
        ({"rows": 0}, False),
        ({"text": None}, False),
        ({"sort": "last_modified desc"}, False),
    ],
)
def test_meaning_has_a_part_in_the_pages_of_a_search_by_relevance(changes: dict[str, Any], expected: bool) -> None:
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


def test_the_nearest_documents_that_are_not_among_the_first_hits_come_into_the_list() -> None:
    cosines = {"d1": 9.0, **{f"n{at}": 8.0 + at / 10 for at in range(9)}, "m8": 8.8, "far": 7.9}
    nearest = ("m8", "n8", "n7", "n6", "n5", "n4", "n3", "n2", "n1", "n0")
    assert others_of(page_of(3), cosines, "id") == nearest
    assert pulled_of(nearest, ()) == ((), ("m8", "n8", "n7", "n6", "n5"))
    assert pulled_of(nearest[:4], ("n8",)) == (("n8",), ("m8", "n7", "n6"))
    assert others_of(page_of(3), {"d1": 9.0, "n": 8.0, "far": 7.9}, "id") == ("n",)
    assert others_of(page_of(WINDOW + 1), {f"d{WINDOW}": 9.0}, "id") == (f"d{WINDOW}",)
    assert others_of(page_of(3), {}, "id") == ()


def test_how_many_come_without_the_words_is_the_same_in_whatever_order_the_hits_are() -> None:
    """The order depends on how rare words are, in hidden documents too; what is counted must not."""
    chance = random.Random(11)
    for _ in range(200):
        hits = [f"d{number}" for number in range(chance.randrange(31, 60))]
        near = {name: chance.random() for name in chance.sample(hits, 12)}
        near |= {f"n{number}": chance.random() for number in range(chance.randrange(9))}
        found = set()
        for _ in range(5):
            chance.shuffle(hits)
            others = others_of({"response": {"docs": [{"id": name} for name in hits]}}, near, "id")
            found.add(pulled_of(others, set(hits))[1])
        assert len(found) == 1


def test_the_list_is_longer_by_what_words_do_not_find_and_the_page_says_so() -> None:
    pulled = Pulled(({"id": "d4"}, {"id": "b"}), {"d4": {"content": ["here"]}}, 1)
    page: Any = arranged(page_of(4), replace(PLAIN, rows=10), {"d4": 1.0, "b": 1.0}, "id", pulled)
    assert page["response"]["numFound"] == 101 and page["meaning"] == {"added": 1}
    assert page["facet_counts"] == {"facet_fields": {}} and page["highlighting"]["d4"] == {"content": ["here"]}
    far: Any = behind(page_of(3), {**page_of(1), "facet_counts": "all"}, replace(PLAIN, start=50), pulled)
    assert (far["response"]["numFound"], far["response"]["start"]) == (101, 50)
    assert ids_of(far) == ["d0", "d1", "d2"] and far["meaning"] == {"added": 1} and far["facet_counts"] == "all"
    bare = {"response": page_of(1)["response"]}
    assert not {"meaning", "facet_counts"} & {*behind(bare, bare, PLAIN, Pulled())}


def test_what_comes_from_further_down_is_not_there_a_second_time() -> None:
    last = f"d{WINDOW + 1}"
    page = arranged(page_of(WINDOW + 3), replace(PLAIN, rows=50), {last: 9.0}, "id", Pulled(({"id": last},)))
    assert ids_of(page).count(last) == 1 and ids_of(page)[-2:] == [f"d{WINDOW}", f"d{WINDOW + 2}"]
    far = far_of(replace(PLAIN, start=70, facet_fields=("source",)), Pulled(({"id": last}, {"id": "x"})), "id")
    assert (far.start, far.without, far.facet_fields) == (68, (last, "x"), ())


def test_they_are_read_under_the_same_restrictions_and_with_the_fields_of_the_page() -> None:
    plain = replace(PLAIN, start=20, restrictions=(Restriction("source", "x"),), facet_fields=("source",))
    plain = replace(plain, wants_highlighting=True)
    words = same_words(replace(plain, fields=("title",)), ("a", "b"), "id")
    assert (words.text, words.ids, words.start, words.rows) == (plain.text, ("a", "b"), 0, 2)
    assert (words.fields, words.wants_highlighting) == (("title", "id"), True)
    read = no_words(plain, ("a", "b"), "id")
    assert (read.text, read.step, read.ids, read.fields, read.wants_highlighting) == (
        None,
        None,
        ("a", "b"),
        None,
        False,
    )
    assert {one.restrictions for one in (words, read)} == {plain.restrictions}
    assert {one.facet_fields for one in (words, read)} == {()}
    head = head_of(plain, "id")
    assert (head.start, head.rows, head.fields, head.facet_fields) == (0, WINDOW, ("id",), ("source",))
