from __future__ import annotations

from collections.abc import Callable

import pytest

from datafari_rag.core.ask import Restriction
from datafari_rag.core.errors import BadRequest, NoQuery, QueryTooLong, TooManyValues
from datafari_rag.protocols.arguments import Arguments

FACETS = frozenset({"source", "last_modified"})

READS: dict[str, Callable[[Arguments], object]] = {
    "question": lambda given: given.question("x"),
    "text": lambda given: given.text("x", most_chars=10),
    "id": lambda given: given.document_id("x"),
    "ids": lambda given: given.document_ids("x", most=2),
    "integer": lambda given: given.integer("x", 3, low=1, high=5),
    "choice": lambda given: given.choice("x", ("low", "minimal")),
    "filters": lambda given: given.restrictions("x", FACETS),
    "turns": lambda given: given.turns("x"),
}


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        ("question", "When?", "When?"),
        ("text", "short", "short"),
        ("id", "doc-1", "doc-1"),
        ("ids", ["a", "b", "a"][:2], ("a", "b")),
        ("ids", ["a", "a"], ("a",)),
        ("integer", 5, 5),
        ("choice", "minimal", "minimal"),
        ("filters", {"source": "wiki (old)"}, (Restriction("source", value="wiki (old)"),)),
        ("filters", {"last_modified": "[a TO *]"}, (Restriction("last_modified", low="a"),)),
        ("filters", {"source": "[x]"}, (Restriction("source", value="[x]"),)),
        ("turns", [{"role": "user", "content": "Hi", "more": 1}], [{"role": "user", "content": "Hi"}]),
    ],
)
def test_a_value_that_fits_is_read(read: str, value: object, expected: object) -> None:
    assert READS[read](Arguments({"x": value})) == expected


@pytest.mark.parametrize(
    ("read", "expected"), [("text", ""), ("integer", 3), ("choice", "low"), ("filters", ()), ("turns", [])]
)
def test_an_absent_value_is_the_default(read: str, expected: object) -> None:
    assert READS[read](Arguments({})) == expected


@pytest.mark.parametrize(
    ("read", "value", "kind"),
    [
        ("question", " ", NoQuery),
        ("question", None, BadRequest),
        ("question", "x" * 4001, QueryTooLong),
        ("question", "\ud800", BadRequest),
        ("text", 5, BadRequest),
        ("text", "x" * 11, BadRequest),
        ("id", "", BadRequest),
        ("id", "x" * 3000, BadRequest),
        ("ids", [], BadRequest),
        ("ids", "doc-1", BadRequest),
        ("ids", [1], BadRequest),
        ("ids", ["a", "b", "c"], TooManyValues),
        ("integer", 0, BadRequest),
        ("integer", 6, BadRequest),
        ("integer", True, BadRequest),
        ("integer", "3", BadRequest),
        ("integer", 3.0, BadRequest),
        ("choice", "high", BadRequest),
        ("choice", ["low"], BadRequest),
        ("filters", [], BadRequest),
        ("filters", {"allow_token_document": "s1"}, BadRequest),
        ("filters", {"source": 1}, BadRequest),
        ("filters", {"source": ""}, BadRequest),
        ("filters", {"source": "a\nb"}, BadRequest),
        ("filters", {"source": "x" * 20_000}, BadRequest),
        ("filters", {str(number): "x" for number in range(30)}, TooManyValues),
        ("turns", {}, BadRequest),
        ("turns", ["Hi"], BadRequest),
        ("turns", [{"role": "system", "content": "Hi"}], BadRequest),
        ("turns", [{"role": "user", "content": ["Hi"]}], BadRequest),
        ("turns", [{"role": "user", "content": "Hi"}] * 101, TooManyValues),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_that_names_it(read: str, value: object, kind: type[BadRequest]) -> None:
    with pytest.raises(kind) as caught:
        READS[read](Arguments({"x": value}))
    assert type(caught.value) is kind
    assert caught.value.field == "x"


@pytest.mark.parametrize("values", [None, [], "x", {"y": 1}])
def test_there_are_no_arguments_but_those_of_the_tool(values: object) -> None:
    with pytest.raises(BadRequest):
        Arguments.of(values, ("x",))
    assert Arguments.of({"x": 1}, ("x",)).values == {"x": 1}
