from __future__ import annotations

import pytest

from datafari_rag.core.text.structure import headings_in, is_row, path_among

MARKED = "# Travel policy\n\nIntro.\n\n## Hotels\nText.\n\n### Limits\n\nBerlin: 150\n\n## Meals\n\nText."
NUMBERED = "8. Types\n\n8.1. Numbers\n\nText.\n\n8.1.2. Large ones\n\nText.\n\n8.2. Dates\n\nText."
PLAIN = "Guide\n\nText that ends.\n\nOpening hours\n\nMore text.\n"


def said(text: str) -> list[tuple[str, int]]:
    return [(text[one.start : one.end], one.level) for one in headings_in(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(MARKED, [("Travel policy", 1), ("Hotels", 2), ("Limits", 3), ("Meals", 2)], id="marks"),
        pytest.param(NUMBERED, [("8.1. Numbers", 2), ("8.1.2. Large ones", 3), ("8.2. Dates", 2)], id="numbers"),
        pytest.param(PLAIN, [("Guide", 7), ("Opening hours", 7)], id="short lines apart"),
        pytest.param("## Closed ##\n", [("Closed", 2)], id="marks on both sides"),
        pytest.param("A\n\n```\n# a comment\n\nOutput\n\n```\n\nB\n\n.", [("A", 7), ("B", 7)], id="nothing in code"),
        pytest.param(
            "T\n\nno heading\n\n- Item\n\nKey: value\n\na | b\n\nEnds.\n\n42\n\nx", [("T", 7)], id="other lines"
        ),
        pytest.param("", [], id="nothing"),
        pytest.param("One line", [], id="one line"),
        pytest.param("# \n\n", [], id="a mark without words"),
    ],
)
def test_headings_with_their_levels(text: str, wanted: list[tuple[str, int]]) -> None:
    assert said(text) == wanted


@pytest.mark.parametrize(
    ("text", "place", "path"),
    [
        pytest.param(MARKED, "Berlin", ["Travel policy", "Hotels", "Limits"], id="title, section, subsection"),
        pytest.param(
            MARKED[: MARKED.rindex("Text")] + "Lunch", "Lunch", ["Travel policy", "Meals"], id="the next section"
        ),
        pytest.param(NUMBERED, "8.2.", ["8.1. Numbers", "8.1.2. Large ones"], id="a heading is not above itself"),
        pytest.param(PLAIN, "More", ["Opening hours"], id="lines of one level"),
        pytest.param("Text.", "Text", [], id="no heading"),
    ],
)
def test_the_path_of_headings(text: str, place: str, path: list[str]) -> None:
    assert [text[one.start : one.end] for one in path_among(headings_in(text), text.index(place))] == path


def test_at_most_three_headings() -> None:
    text = "# a\n\n## b\n\n### c\n\n#### d\n\nHere"
    assert [text[one.start : one.end] for one in path_among(headings_in(text), text.index("Here"))] == ["b", "c", "d"]


def test_headings_behind_a_place_are_not_above_it() -> None:
    found = path_among(headings_in(MARKED), MARKED.index("Berlin"))
    assert [MARKED[one.start : one.end] for one in found] == ["Travel policy", "Hotels", "Limits"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("pump | 7 | open", True, id="cells"),
        pytest.param("A pump has no valve.", False, id="prose"),
        pytest.param("The pipe joins words:\n\nprint(a | b)", False, id="several lines, of which one has a bar"),
    ],
)
def test_a_row_is_one_line_with_cells(text: str, *, wanted: bool) -> None:
    assert is_row(text) is wanted
