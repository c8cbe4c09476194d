from __future__ import annotations

import pytest

from datafari_rag.core.passages.term_matching import MAX_LIST_CHARS, Leads, leads_of
from datafari_rag.core.text.sentences import spans


def needs_in(text: str) -> dict[str, list[str]]:
    bounds = spans(text)
    said = [text[start:end] for start, end in bounds]
    return {said[one]: [said[lead] for lead in leads] for one, leads in leads_of(text, bounds).needs.items()}


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        pytest.param(
            "Limits:\na | b\n1 | 2\n3 | 4", {"1 | 2": ["a | b"], "3 | 4": ["a | b"]}, id="rows need their header"
        ),
        pytest.param("Text. More text.", {}, id="prose needs nothing"),
        pytest.param("", {}, id="nothing"),
        pytest.param("Can I?\nYes, you can.\nMore.", {"Yes, you can.": ["Can I?"]}, id="an answer its question"),
        pytest.param(
            "You need:\n- a pen\n- paper\nThat is all.",
            {"- a pen": ["You need:"], "- paper": ["You need:"]},
            id="items the line before",
        ),
        pytest.param(
            "What is needed?\n1. A pen.\n2. Paper.",
            {"1. A pen.": ["What is needed?"], "2. Paper.": ["What is needed?"]},
            id="steps that answer a question",
        ),
        pytest.param("He said:\nNothing at all.", {}, id="a colon before running text"),
        pytest.param("Is that so? Yes.", {}, id="a question within a line"),
        pytest.param("Which?\na | b\n1 | 2", {"1 | 2": ["a | b"]}, id="a question before a table"),
        pytest.param("The end?", {}, id="a question that ends the text"),
        pytest.param("a | b\n1 | 2\n\nc | d\n3 | 4", {"1 | 2": ["a | b"], "3 | 4": ["c | d"]}, id="two tables"),
    ],
)
def test_what_is_shown_with_what(text: str, needs: dict[str, list[str]]) -> None:
    assert needs_in(text) == needs


def test_the_header_and_the_line_before_it_speak_for_the_rows() -> None:
    text = "Limits:\na | b\n1 | 2\n3 | 4"
    leads = leads_of(text, spans(text))
    assert {one: list(members) for one, members in leads.members.items()} == {0: [1, 2, 3], 1: [2, 3]}
    assert leads.tables == [0, 1, 1, 1]


def test_rows_of_a_region_find_their_header_far_above() -> None:
    text = "a | b\n" + "".join(f"{number} | x\n" for number in range(100))
    bounds = spans(text)
    chosen = [bounds[0], *bounds[50:60]]
    assert leads_of(text, chosen).needs == dict.fromkeys(range(1, 11), (0,))
    assert leads_of(text, bounds[50:60]) == Leads([1] * 10)


def test_an_item_knows_where_its_list_begins_unless_that_is_far_above() -> None:
    text = "You need:\n- a pen\n- paper\nThat is all.\n- more\n" + "- again and again\n" * 60
    bounds = spans(text)
    lists = leads_of(text, bounds).lists
    assert lists[1] == lists[2] == text.index("- a pen")
    assert 3 not in lists
    assert lists[4] == lists[5] == text.index("- more")
    assert bounds[max(lists)][0] - text.index("- more") <= MAX_LIST_CHARS < len(text) - text.index("- more")
    assert max(lists) < len(bounds) - 1
