"""Values of a row as a search engine has them."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import first_value


@pytest.mark.parametrize(
    ("value", "expected"),
    [("x", "x"), (3, "3"), (["x", "y"], "x"), ([None, "y"], "y"), ([], None), ([None], None), (None, None)],
)
def test_the_first_value_of_a_field(value: object, expected: str | None) -> None:
    assert first_value({"title": value}, "title") == expected


def test_a_field_that_is_not_there_has_none() -> None:
    assert first_value({}, "title") is None
