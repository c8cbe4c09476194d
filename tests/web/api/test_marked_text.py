from __future__ import annotations

import pytest

from datafari_rag.web.api.marked_text import Part, parts_of

TABLE = "Hours\na | b\n1 | 2\n3 | 4"


@pytest.mark.parametrize(
    ("text", "marked", "parts"),
    [
        pytest.param("", "", [], id="nothing"),
        pytest.param("Text.", "", [Part("Text.")], id="no passage"),
        pytest.param("Some text.", "text", [Part("Some "), Part("text", "passage"), Part(".")], id="a passage"),
        pytest.param(
            TABLE, "4", [Part("Hours\n"), Part("a | b", "header"), Part("\n1 | 2\n"), Part("3 | 4", "row")], id="a cell"
        ),
        pytest.param(TABLE, "a | b", [Part("Hours\n"), Part("a | b", "row"), Part("\n1 | 2\n3 | 4")], id="the header"),
        pytest.param(
            TABLE, "1 | 2\n3", [Part("Hours\na | b\n"), Part("1 | 2\n3", "passage"), Part(" | 4")], id="two rows"
        ),
    ],
)
def test_the_parts_of_a_text(text: str, marked: str, parts: list[Part]) -> None:
    start = text.index(marked)
    found = parts_of(text, start, start + len(marked))
    assert list(found) == parts
    assert "".join(part.text for part in found) == text
