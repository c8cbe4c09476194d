"""Declared records: what is read, how an error names its field, and the schema of the same declaration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct

from datafari_rag.core.errors import BadRequest, NoQuery, QueryTooLong, RagError, TooManyValues
from datafari_rag.protocols.records import (
    MAX_NOTED,
    MAX_NOTED_CHARS,
    Question,
    distinct,
    read,
    schema_of,
    schemas_of,
    unknown_names,
)


class Turn(Struct):
    role: Literal["user", "assistant"]
    text: Annotated[str, Meta(extra={"field": "text"})] = ""


class Sent(Struct):
    """What is sent."""

    question: Annotated[Question, Meta(description="The question.")]
    turns: Annotated[list[Turn], Meta(max_length=2)] | None = None
    is_on: bool | None = None
    rows: Annotated[int, Meta(ge=1, le=50)] = 10
    share: Annotated[float, Meta(ge=0.2, le=0.8)] | None = None
    seed: Annotated[int, Meta(ge=-(2**53) + 1)] | None = None
    name: Annotated[str, Meta(max_length=3)] | None = None
    labels: dict[str, str] | None = None


class Closed(Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(extra={"must": "the id of a document"})]


def refused(values: object, **how: Any) -> tuple[type[RagError], str | None, str]:
    with pytest.raises(RagError) as caught:
        read(Sent, values, **how)
    return type(caught.value), caught.value.field, caught.value.reason


def test_a_record_has_what_was_sent_and_defaults_for_the_rest() -> None:
    sent = read(Sent, {"question": "who?", "turns": [{"role": "user"}], "is_on": None, "other": 1})
    assert (sent.question, sent.turns, sent.is_on, sent.rows) == ("who?", [Turn("user")], None, 10)


@pytest.mark.parametrize(
    ("values", "field", "reason"),
    [
        ({"is_on": 1}, "is_on", "is_on must be true or false."),
        ({"rows": 51}, "rows", "rows must be a whole number from 1 to 50."),
        ({"share": "0.5"}, "share", "share must be a number from 0.2 to 0.8."),
        ({"seed": -(2**53)}, "seed", "seed must be a whole number of at least -9007199254740991."),
        ({"name": "four"}, "name", "name must be a string of at most 3 characters."),
        ({"labels": {"a": 1}}, "labels", "Each value of labels must be a string."),
        ({"turns": {}}, "turns", "turns must be a list."),
        ({"turns": [3]}, "turns", "turns[0] must be an object."),
        ({"turns": [{"role": "x"}]}, "turns", "turns[0].role must be one of: assistant, user."),
        ({"turns": [{"role": "user", "text": 1}]}, "text", "text must be a string."),
        ({"question": 3}, "question", "question must be a string of at most 4000 characters."),
    ],
)
def test_an_error_names_its_field_and_what_it_must_be(values: dict[str, Any], field: str, reason: str) -> None:
    assert refused({"question": "who?", **values}) == (BadRequest, field, reason)


@pytest.mark.parametrize("hostile", ["x - at `$.rows`", "`$.rows`", "Object missing required field `rows`"])
def test_a_value_cannot_choose_the_field_that_is_named(hostile: str) -> None:
    values = {"question": "who?", "turns": [{"role": hostile}]}
    assert refused(values, is_deep=True)[1] == "turns[0].role"


def test_the_place_in_a_field_is_named_where_callers_want_it() -> None:
    values = {"question": "who?", "turns": [{"role": "user"}, {"role": "x"}]}
    assert refused(values, is_deep=True)[1:] == ("turns[1].role", "turns[1].role must be one of: assistant, user.")


@pytest.mark.parametrize("values", [{}, {"question": ""}, {"question": " \n"}])
def test_a_question_that_is_absent_or_blank(values: dict[str, Any]) -> None:
    assert refused(values) == (NoQuery, "question", "question is missing or blank.")


def test_too_much_of_something() -> None:
    assert refused({"question": "a" * 4001})[:2] == (QueryTooLong, "question")
    assert refused({"question": "who?", "turns": [{"role": "user"}] * 3})[:2] == (TooManyValues, "turns")


def test_what_is_no_object_is_named_as_the_caller_calls_it() -> None:
    assert refused([]) == (BadRequest, None, "The body must be an object.")
    assert refused([], whole="arguments") == (BadRequest, "arguments", "arguments must be an object.")


def test_a_closed_record_says_which_names_it_has() -> None:
    with pytest.raises(BadRequest, match=r"arguments must be an object with no other names than id\.") as caught:
        read(Closed, {"id": "a", "other": 1}, whole="arguments")
    assert caught.value.field == "arguments"


@pytest.mark.parametrize("name", ["a` - at `$.id", "$.id[...]", "\n"])
def test_a_name_that_a_closed_record_has_not_chooses_no_field(name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(Closed, {name: 1}, whole="arguments")
    assert (caught.value.field, caught.value.reason) == (
        "arguments",
        "arguments must be an object with no other names than id.",
    )


def test_names_that_are_unknown_and_texts_that_are_there_twice() -> None:
    assert unknown_names(Sent, {"rows": 1, "other": 1, "null": None}) == ["other"]
    assert unknown_names(Sent, "no object") == []
    many = unknown_names(Sent, {f"{number:02}{'x' * 100}": 1 for number in range(100)})
    assert (len(many), {len(one) for one in many}) == (MAX_NOTED, {MAX_NOTED_CHARS})
    assert distinct(["b", "a", "b"]) == ("b", "a")


def test_the_schema_is_of_the_same_declaration() -> None:
    schemas = schemas_of(Sent, ref_template="#/{name}")
    assert schemas["Sent"]["required"] == ["question"] and schemas["Sent"]["description"] == "What is sent."
    assert schemas["Sent"]["properties"]["rows"] == {"type": "integer", "minimum": 1, "maximum": 50, "default": 10}
    assert schemas["Sent"]["properties"]["is_on"] == {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
    assert schemas["Turn"]["properties"]["role"] == {"enum": ["assistant", "user"]}


def test_a_schema_in_one_piece_holds_its_parts() -> None:
    turns = schema_of(Sent)["properties"]["turns"]["anyOf"][0]
    assert turns["items"]["required"] == ["role"]
    assert schema_of(Closed)["additionalProperties"] is False
