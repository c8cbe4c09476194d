"""The data of the kit: frozen, complete, and without a row that says nothing."""

from __future__ import annotations

import hashlib
import json
import re
from importlib import resources

import pytest

from datafari_rag_trials.conformance.command import (
    EACH,
    NEEDS,
    READERS,
    TOGETHER,
    Kit,
    Row,
    UnknownVariable,
    filled,
    kit_of,
    protocols_of,
    versions,
)

FROZEN = {1: "ee6c228a28df02d4487c5edb3a29badcc0bb0d85f714f78ef494f80d8f7dbca8"}
"""What each released version is, so that no row changes under its name."""

OPERATORS = {*EACH, *TOGETHER, "absent"}
KIT = kit_of(1)


def text_of(version: int) -> str:
    return (resources.files("datafari_rag_trials.resources") / "conformance" / f"{version}.json").read_text("utf-8")


def test_every_version_is_frozen() -> None:
    assert {version: hashlib.sha256(text_of(version).encode()).hexdigest() for version in versions()} == FROZEN


def test_every_row_is_complete() -> None:
    assert len({row.id for row in KIT.rows}) == len(KIT.rows)
    for row in KIT.rows:
        assert row.severity in ("must", "should", "may"), row.id
        assert row.says.endswith(".") and row.expectations, row.id
        assert set(row.needs) <= set(NEEDS), row.id
        assert {one.operator for one in row.expectations} <= OPERATORS, row.id


def test_every_variable_has_a_value_in_the_kit_or_in_an_earlier_reply() -> None:
    for row in KIT.rows:
        known = {**KIT.variables, **{name: "" for earlier in row.earlier for name in earlier.names}}
        filled(dict(row.request), known)
        for one in row.expectations:
            filled(one.value, known)


def test_no_row_has_only_what_must_not_be_seen() -> None:
    weak = {"absent", "lacks", "is not", "count at most"}
    silent = [
        row.id
        for row in KIT.rows
        if all(one.operator in weak or one.path in ("status", "type") for one in row.expectations)
        and not any(one.path == "text" for one in row.expectations)
    ]
    assert silent == []


def test_the_rows_speak_of_protocols_by_their_names() -> None:
    assert protocols_of(KIT.rows) == (
        "Datafari RagAPI",
        "Plain search",
        "RAG chat protocol with choices",
        "RAG chat protocol",
        "AI Chat Protocol",
        "OpenAI chat completions",
        "Requests to the model",
        "Datafari External LLM",
        "The service",
    )
    assert not re.search(r"seed 0|issue \d|SPEC", text_of(1).replace('"seed 0"', ""))


def test_a_protocol_is_chosen_by_the_beginning_of_its_name_or_of_a_rows() -> None:
    assert {row.protocol for row in KIT.of(["openai"])} == {"OpenAI chat completions"}
    assert [row.id for row in KIT.of(["service-001"])] == ["service-001"]
    assert KIT.of(["nothing"]) == ()
    assert KIT.of([]) == KIT.rows


def test_a_variable_alone_keeps_its_kind_and_in_a_text_becomes_one() -> None:
    known = {"n": 3, "who": "ann"}
    assert filled({"a": ["${n}", "is ${n} of ${who}"], "b": 1}, known) == {"a": [3, "is 3 of ann"], "b": 1}
    assert len(filled("${4001 characters}", known)) == 4001
    with pytest.raises(UnknownVariable):
        filled("${gone}", known)


def test_the_table_of_readers_has_every_media_type_that_the_rows_name() -> None:
    named = {str(one.value) for row in KIT.rows for one in row.expectations if one.path == "type"}
    assert named - {"text/html"} <= set(READERS)


def test_the_data_is_one_row_a_line() -> None:
    lines = text_of(1).splitlines()
    rows = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"id"')]
    assert len(rows) == len(KIT.rows)
    assert isinstance(KIT, Kit) and isinstance(KIT.rows[0], Row)
