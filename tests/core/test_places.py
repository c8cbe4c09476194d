"""The place of a quote in its file: what is stored, and how it is named."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from datafari_rag.core.documents import MAX_MARKS, MAX_STORED_CHARS, Place, PlaceMark, mark_text, place_at, with_rows_at

TEXT = "Sheet\nhead\nrow\nrow\n\nlast\nOther"
MARKS = (
    PlaceMark(0, Place("sheet", 1, "Q 3")),
    PlaceMark(6, Place("row", 12, "Q 3")),
    PlaceMark(20, Place("row", 20, "Q 3")),
    PlaceMark(25, None),
)


@pytest.mark.parametrize(
    ("offset", "place"),
    [
        pytest.param(0, Place("sheet", 1, "Q 3"), id="the name of a sheet"),
        pytest.param(6, Place("row", 12, "Q 3"), id="the first row of a run"),
        pytest.param(10, Place("row", 12, "Q 3"), id="the end of a row is in it"),
        pytest.param(11, Place("row", 13, "Q 3"), id="each line end is a row"),
        pytest.param(15, Place("row", 14, "Q 3"), id="and the next one"),
        pytest.param(22, Place("row", 20, "Q 3"), id="a row behind a gap"),
        pytest.param(26, None, id="where nothing is known"),
    ],
)
def test_a_place_is_found_by_its_offset(offset: int, place: Place | None) -> None:
    assert place_at(mark_text(MARKS), TEXT, offset) == place


def test_pages_do_not_count_lines() -> None:
    stored = mark_text([PlaceMark(0, Place("page", 1)), PlaceMark(4, Place("page", 3))])
    assert stored == "0 page 1\n4 page 3"
    assert [place_at(stored, "a\nb\nc\nd\n", at) for at in (2, 7)] == [Place("page", 1), Place("page", 3)]


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("words", id="words"),
        pytest.param("0", id="an offset alone"),
        pytest.param("0 page", id="no number"),
        pytest.param("0 room 1", id="an unknown kind"),
        pytest.param("0 page x", id="no digits"),
        pytest.param("0 page \u0661", id="digits of another script"),
        pytest.param("0 page 1234567890", id="too many digits"),
        pytest.param("-1 page 1", id="a negative offset"),
        pytest.param("5 page 1", id="a place behind the offset"),
        pytest.param("0 page 1\n\n", id="an empty line"),
        pytest.param("0 page 1" + " " * MAX_STORED_CHARS, id="too long"),
    ],
)
def test_what_others_wrote_into_the_field_says_nothing(stored: str | None) -> None:
    assert place_at(stored, "text", 2) is None


def test_marks_have_an_end_and_behind_it_nothing_is_known() -> None:
    stored = mark_text(PlaceMark(n, Place("page", n + 1)) for n in range(MAX_MARKS + 5))
    assert stored.count("\n") == MAX_MARKS
    assert place_at(stored, "", MAX_MARKS - 1) == Place("page", MAX_MARKS)
    assert place_at(stored, "", MAX_MARKS) is None


def test_of_many_marks_few_are_read() -> None:
    """A reply may have hundreds of citations of one document."""
    stored = mark_text(PlaceMark(n, Place("page", n + 1)) for n in range(MAX_MARKS))
    calls: list[str] = []

    def note(_: FrameType, event: str, __: object) -> None:
        calls.append(event)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        place = place_at(stored, "", 7_000)
    finally:
        sys.setprofile(before)
    assert place == Place("page", 7_001)
    assert len(calls) < 1_000


def test_a_sheet_may_be_named_by_anything() -> None:
    stored = mark_text([PlaceMark(0, Place("row", 1, "a\n5 page 9\tb" + "x" * 200))])
    place = place_at(stored, "ab", 1)
    assert place is not None and place.sheet is not None and place.sheet.startswith("a 5 page 9 bx")
    assert stored.count("\n") == 0 and len(place.sheet) == 100


@pytest.mark.parametrize(
    ("place", "language", "label"),
    [
        (Place("page", 12), "en", "p. 12"),
        (Place("page", 12), "de", "S. 12"),
        (Place("slide", 3), "en", "Slide 3"),
        (Place("slide", 3), "fr", "Diapositive 3"),
        (Place("sheet", 1, "Q3"), "en", "Sheet Q3"),
        (Place("sheet", 1), "en", "Sheet 1"),
        (Place("row", 14, "Q3"), "en", "Sheet Q3, row 14"),
        (Place("row", 14, "{number}"), "es", "Hoja {number}, fila 14"),
        (Place("row", 14), "fr", "Ligne 14"),
        (Place("row", 14), "zh", "Row 14"),
    ],
)
def test_how_a_place_is_named(place: Place, language: str, label: str) -> None:
    assert place.label(language) == label


def test_without_the_text_a_row_is_its_sheet() -> None:
    row, nameless, page = Place("row", 3, "Q3"), Place("row", 1), Place("page", 2)
    marks = mark_text([PlaceMark(0, row), PlaceMark(20, nameless), PlaceMark(40, page)])
    assert [place_at(marks, "", offset, offset + 1) for offset in (5, 25, 45)] == [Place("sheet", 1, "Q3"), None, page]


def test_rows_of_a_part_are_counted_from_its_beginning() -> None:
    """Marks at the beginnings of the parts say of each character what those of the whole text say."""
    text = "About\n" + "".join(f"row {number}\n" for number in range(3, 40)) + "Page"
    marks = mark_text(
        [PlaceMark(0, Place("page", 1)), PlaceMark(6, Place("row", 3, "Q3")), PlaceMark(len(text) - 4, None)]
    )
    starts = [0, 6, 41, 42, 90, len(text) - 2]
    cut = with_rows_at(marks, text, starts)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        for offset in range(start, end):
            assert place_at(cut, text[start:end], offset, start) == place_at(marks, text, offset) or start == 0
    assert with_rows_at(cut, text, starts) == cut and len(cut.split("\n")) == 6


@pytest.mark.parametrize("stored", ["", "0 page 1", "no marks\n0 row 1", "0 row 1\n-"])
def test_marks_without_rows_and_what_is_none_stay_as_they_are(stored: str) -> None:
    assert with_rows_at(stored, "a\nb\nc", [0, 2, 4]) == stored
