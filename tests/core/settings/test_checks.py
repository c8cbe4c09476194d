"""What each check takes and what it says to the rest."""

from __future__ import annotations

import re

import pytest

from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.checks import Check
from datafari_rag.core.settings.parsing import parse
from datafari_rag.core.settings.row import text_of_value

TAKEN = [
    pytest.param(checks.flag(), "true", True, id="a flag is true"),
    pytest.param(checks.flag(), "FALSE", False, id="a flag is read in any case"),
    pytest.param(checks.choice("a", "b"), "b", "b", id="a choice is one of its names"),
    pytest.param(checks.integer(0, 5), "+5", 5, id="an integer may carry its sign"),
    pytest.param(checks.integer(0, 5, is_optional=True), "", None, id="an optional integer may be empty"),
    pytest.param(checks.integer(0, 5, is_optional=True), "0", 0, id="zero is not absence"),
    pytest.param(checks.number(0, 2), "2", 2.0, id="a number may be written without a point"),
    pytest.param(checks.number(0, 2), ".5", 0.5, id="a number may begin with its point"),
    pytest.param(checks.number(0, 2), "1e-3", 0.001, id="a number may have an exponent"),
    pytest.param(checks.text(), "", "", id="a text may be empty"),
    pytest.param(checks.text("words", re.compile(r"\w+")), "abc", "abc", id="a text fits its pattern"),
    pytest.param(checks.text("words", re.compile(r"\w+")), "", "", id="an empty text needs no pattern"),
    pytest.param(checks.header_name(), "X-Remote-User", "X-Remote-User", id="a header has a name"),
    pytest.param(checks.search_handler(), "/a/b", "/a/b", id="a handler is a path"),
    pytest.param(checks.claim(), "realm_access.roles", "realm_access.roles", id="a claim may lie deeper"),
    pytest.param(checks.field_name(), "dc_title", "dc_title", id="a field has a name"),
    pytest.param(checks.path(), "a/b", "/etc/rag/a/b", id="a relative path starts at the folder of the file"),
    pytest.param(checks.path(), "/a", "/a", id="an absolute path stays"),
    pytest.param(checks.path(), "", "", id="no path is no path"),
    pytest.param(checks.names(), " b , a,,b", ("b", "a"), id="a list keeps its order and drops doubles"),
    pytest.param(checks.names(), "", (), id="a list may be empty"),
    pytest.param(checks.names(allowed=("a", "b")), "b", ("b",), id="a list of allowed names"),
    pytest.param(checks.plain_list(), "a,,a", ("a", "", "a"), id="a list of places keeps its gaps"),
    pytest.param(checks.plain_list(), "", (), id="a list of places may be empty"),
    pytest.param(checks.field_names(), "a,b,a", ("a", "b"), id="a list of fields"),
    pytest.param(checks.header_names(), "X-A, B", ("X-A", "B"), id="a list of headers"),
    pytest.param(checks.keys(), "", (), id="no key"),
    pytest.param(checks.keys(), f"{'k' * 16},{'l' * 16}", ("k" * 16, "l" * 16), id="two keys"),
]

HEADERS = "Valid values are lists of names of HTTP headers, separated by commas."
KEYS = "Valid values are lists of keys of at least 16 characters without spaces, separated by commas."

REFUSED = [
    pytest.param(checks.flag(), "yes", 'Valid values are "true" and "false".', id="yes is no flag"),
    pytest.param(checks.choice("a", "b", "c"), "A", 'Valid values are "a", "b" and "c".', id="another case"),
    pytest.param(checks.choice("a"), "", 'Valid values are "a".', id="a single name"),
    pytest.param(checks.integer(0, 5), "3.0", "An integer is expected.", id="a fraction is no integer"),
    pytest.param(checks.integer(0, 5), "", "An integer is expected.", id="nothing is no integer"),
    pytest.param(checks.integer(0, 5), "9" * 5000, "An integer is expected.", id="no end of digits"),
    pytest.param(checks.integer(0, 5), "٣", "An integer is expected.", id="digits of another script"),
    pytest.param(checks.integer(0, 5), "6", "A number between 0 and 5 is expected.", id="an integer too high"),
    pytest.param(checks.number(0, 2), "0,7", "A number between 0 and 2 is expected.", id="a comma for a point"),
    pytest.param(checks.number(0, 2), "nan", "A number between 0 and 2 is expected.", id="not a number"),
    pytest.param(checks.number(0, 2), "1e999", "A number between 0 and 2 is expected.", id="an infinite number"),
    pytest.param(checks.number(0, 0.25), "-1", "A number between 0 and 0.25 is expected.", id="a number too low"),
    pytest.param(checks.text(), "a\nb", "Valid values are texts without control characters.", id="a line end"),
    pytest.param(checks.text(), "\ud800", "Valid values are texts without control characters.", id="half a character"),
    pytest.param(checks.text("words", re.compile(r"\w+")), "a b", "Valid values are words.", id="not the pattern"),
    pytest.param(checks.header_name(), "X User", "Valid values are names of HTTP headers.", id="a blank in a header"),
    pytest.param(checks.header_name(), "", "Valid values are names of HTTP headers.", id="no header"),
    pytest.param(checks.claim(), "", "Valid values are names of claims.", id="no claim"),
    pytest.param(checks.header_names(), "", HEADERS, id="no header in a list"),
    pytest.param(checks.header_names(), "X-A,X B", HEADERS, id="a blank in one of them"),
    pytest.param(checks.keys(), "short", KEYS, id="a key that can be guessed"),
    pytest.param(checks.keys(), "k" * 15 + "é", KEYS, id="a key beyond ASCII"),
    pytest.param(
        checks.search_handler(), "/../x", "Valid values are paths of request handlers such as /select.", id="a step up"
    ),
    pytest.param(
        checks.search_handler(),
        "/a/..",
        "Valid values are paths of request handlers such as /select.",
        id="the last one",
    ),
    pytest.param(
        checks.search_handler(), "select", "Valid values are paths of request handlers such as /select.", id="no slash"
    ),
    pytest.param(checks.field_name(), "{!x}", "Valid values are names of fields.", id="query syntax for a field"),
    pytest.param(checks.path(), "a\tb", "Valid values are paths of files.", id="a tab in a path"),
    pytest.param(checks.names(), "a\x00", "Valid values are lists of names, separated by commas.", id="NUL in a name"),
    pytest.param(checks.names(allowed=("a", "b")), "a,none", 'Valid values are "a" and "b".', id="not allowed"),
    pytest.param(checks.plain_list(), "a\nb", "Valid values are lists, separated by commas.", id="a line end in it"),
    pytest.param(
        checks.field_names(), "a b", "Valid values are lists of names of fields, separated by commas.", id="blanks"
    ),
]


@pytest.mark.parametrize(("check", "text", "value"), TAKEN)
def test_a_fitting_text_is_read(check: Check, text: str, value: object) -> None:
    assert check.read(text, "/etc/rag") == value


@pytest.mark.parametrize(("check", "text", "sentence"), REFUSED)
def test_another_text_is_told_what_was_wanted(check: Check, text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        check.read(text, "/etc/rag")
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", ['{"languages": "en,fr"}', '{"languages": ["en", "fr"]}'])
def test_a_list_in_an_object_is_a_list_of_json_or_a_text(text: str) -> None:
    """`written` writes the second form, with which `eval --sets` makes its indexes."""
    settings, problems = parse({"embeddings.options": text})
    assert (settings.embeddings.options.languages, problems) == (("en", "fr"), ())
    options = text_of_value(settings.embeddings.options)
    assert parse({"embeddings.options": options})[0].embeddings.options == settings.embeddings.options
