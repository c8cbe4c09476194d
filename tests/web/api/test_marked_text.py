from __future__ import annotations

import pytest

from datafari_rag.web.api.documents import TextPart, parts_of

TABLE = "Hours\na | b\n1 | 2\n3 | 4"


@pytest.mark.parametrize(
    ("text", "marked", "parts"),
    [
        pytest.param("", "", [], id="nothing"),
        pytest.param("Text.", "", [TextPart("Text.")], id="no passage"),
        pytest.param(
            "Some text.", "text", [TextPart("Some "), TextPart("text", "passage"), TextPart(".")], id="a passage"
        ),
        pytest.param(
            TABLE,
            "4",
            [TextPart("Hours\n"), TextPart("a | b", "header"), TextPart("\n1 | 2\n"), TextPart("3 | 4", "row")],
            id="a cell",
        ),
        pytest.param(
            TABLE, "a | b", [TextPart("Hours\n"), TextPart("a | b", "row"), TextPart("\n1 | 2\n3 | 4")], id="the header"
        ),
        pytest.param(
            TABLE,
            "1 | 2\n3",
            [TextPart("Hours\na | b\n"), TextPart("1 | 2\n3", "passage"), TextPart(" | 4")],
            id="two rows",
        ),
    ],
)
def test_the_parts_of_a_text(text: str, marked: str, parts: list[TextPart]) -> None:
    start = text.index(marked)
    found = parts_of(text, start, start + len(marked))
    assert list(found) == parts
    assert "".join(part.text for part in found) == text
