"""Texts into settings: sentences for callers, messages for administrators, and what contradicts what."""

from __future__ import annotations

import pytest

from datafari_rag.core.settings.parsing import parse
from datafari_rag.core.settings.table import Settings
from tests.settings import settings_with

SENTENCES = [
    pytest.param(
        "rag.solrField",
        "body",
        "Invalid value for rag.solrField property. "
        'Valid values are "highlighting", "preview_content" and "exactContent".',
        id="the sentence of the contract",
    ),
    pytest.param(
        "rag.hl.fragsize", "x", "Invalid value for rag.hl.fragsize property. An integer is expected.", id="no integer"
    ),
    pytest.param(
        "rag.temperature",
        "3",
        "Invalid value for rag.temperature property. A number between 0 and 2 is expected.",
        id="out of range",
    ),
]


@pytest.mark.parametrize(("key", "text", "sentence"), SENTENCES)
def test_callers_see_key_and_what_was_wanted(key: str, text: str, sentence: str) -> None:
    settings, (problem,) = parse({key: text})
    assert problem.sentence == sentence
    assert (problem.stops, problem.is_of_answers) == (True, True)
    assert settings == Settings()


MESSAGES = [
    pytest.param("rag.maxFiles", "many", 'property: "many". An integer is expected.', id="the value is repeated"),
    pytest.param(
        "rag.maxFiles",
        "3 # three",
        '"3 # three". An integer is expected. Put the comment on its own line.',
        id="comment",
    ),
    pytest.param(
        "rag.operator", '"AND"', 'Valid values are "AND" and "OR". Leave out the quotation marks.', id="quotation marks"
    ),
    pytest.param("log.file", "C:\temp", "Write a backslash twice.", id="a lost backslash"),
    pytest.param("rag.operator", "x" * 500, f'"{"x" * 80}…"', id="a long value is cut"),
    pytest.param("rag.api.endpoint", "ftp://a:b@h/", '"ftp://***@h/"', id="a password is hidden"),
]


@pytest.mark.parametrize(("key", "text", "part"), MESSAGES)
def test_administrators_see_the_value(key: str, text: str, part: str) -> None:
    _, (problem,) = parse({key: text})
    assert part in problem.message


def test_a_secret_is_in_no_message() -> None:
    _, (problem,) = parse({"server.secret": "hunter2"})
    assert "hunter2" not in problem.message + problem.sentence


def test_the_text_of_the_file_is_shown_and_not_what_it_refers_to() -> None:
    _, (problem,) = parse({"rag.operator": "inner"}, written_as={"rag.operator": "${OPERATOR}"})
    assert "${OPERATOR}" in problem.message and "inner" not in problem.message


def test_good_values_are_taken_beside_bad_ones_and_unknown_keys() -> None:
    settings, problems = parse({"rag.maxFiles": " 7 ", "rag.operator": "XOR", "what.ever": "1", "rag.model": ""})
    assert settings == settings_with(rag_max_files=7, rag_model="")
    assert [problem.key for problem in problems] == ["rag.operator"]


def test_an_empty_text_is_the_default_but_not_for_security() -> None:
    settings, problems = parse({"rag.operator": "", "rag.maxFiles": "", "security.identity": ""})
    assert settings == Settings()
    assert [problem.key for problem in problems] == ["security.identity"]


def test_an_empty_length_or_temperature_is_none_and_a_quarter_of_the_window_is_kept_for_the_answer() -> None:
    settings, problems = parse({"rag.maxTokens": "", "rag.temperature": "", "llm.context.window": "8000"})
    assert (settings.rag.max_tokens, settings.rag.temperature, settings.answer_tokens) == (None, None, 2000)
    assert (Settings().rag.max_tokens, Settings().rag.temperature, problems) == (250, 0.7, ())


@pytest.mark.parametrize(
    "text",
    ["[]", "{", "x", '{"model": "m"}', '{"messages": []}', '{"stream": true}', "[" * 100_000],
    ids=["a list", "half an object", "a word", "a model", "messages", "a stream", "brackets without end"],
)
def test_what_is_no_object_of_further_keys_is_refused(text: str) -> None:
    settings, problems = parse({"llm.body": text})
    assert (settings.llm.body, [problem.key for problem in problems]) == ("", ["llm.body"])


def test_mapped_fields_are_gathered() -> None:
    settings, problems = parse({"solr.fields": '{"title": "t", "url": "u"}'})
    assert dict(settings.solr.fields) == {"title": "t", "url": "u"}
    assert [problem.key for problem in problems] == []


JWT = {"security.identity": "jwt"}

CONTRADICTIONS = [
    pytest.param({"rag.maxTokens": "20000"}, "rag.maxTokens", id="an answer longer than the window"),
    pytest.param(
        {"rag.maxTokens": "4000", "llm.context.window": "4096"}, "rag.maxTokens", id="an answer that fills the window"
    ),
    pytest.param(JWT, "security.identity", id="jwt without a key"),
    pytest.param(
        JWT | {"security.jwt.jwks": "k", "security.jwt.algorithms": "HS256"},
        "security.jwt.algorithms",
        id="keys with HS256 alone",
    ),
    pytest.param(
        JWT | {"security.jwt.jwks": "k", "security.jwt.algorithms": "RS256,HS256"},
        "security.jwt.algorithms",
        id="HS256 without a secret",
    ),
    pytest.param({"security.tokens": "claims"}, "security.tokens", id="claims without a token"),
    pytest.param({"security.tokens": "authority"}, "security.tokens", id="an authority without address"),
    pytest.param(
        {"security.mode": "plugin", "solr.url": "embedded:x"}, "security.mode", id="the plugin on the embedded index"
    ),
    pytest.param({"solr.facets": "source,deny_token_share"}, "solr.facets", id="rights among the facets"),
    pytest.param(
        {"solr.facets": "acl", "solr.fields": '{"allow_token_share": "acl"}'},
        "solr.facets",
        id="mapped rights among the facets",
    ),
    pytest.param(
        {"solr.facets": "language", "solr.fields": '{"deny_token_share": "source"}'},
        "solr.fields",
        id="a category of access rights",
    ),
    pytest.param(
        {"demo.folder": '{"users": true}', "server.host": "0.0.0.0"}, "demo.folder", id="demo users for the network"
    ),
    pytest.param(
        {"demo.folder": '{"users": true}', "server.host": "example.org"}, "demo.folder", id="demo users on a name"
    ),
    pytest.param({"llm.fallback.models": "a"}, "llm.fallback.models", id="a model without an endpoint"),
    pytest.param({"llm.fallback.tokens": "a"}, "llm.fallback.tokens", id="a token without an endpoint"),
    pytest.param({"limits.tokens": "5"}, "limits.tokens", id="a limit where nothing is counted"),
]

AGREEMENTS = [
    pytest.param(JWT | {"security.jwt.jwks": "k", "security.tokens": "claims"}, id="jwt with keys and claims"),
    pytest.param(JWT | {"security.jwt.secret": "s", "security.jwt.algorithms": "HS256"}, id="jwt with a secret"),
    pytest.param(JWT | {"security.jwt.secret": "s"}, id="a secret alone, which allows HS256"),
    pytest.param(
        JWT | {"security.jwt.secret": "s", "security.jwt.jwks": "k", "security.jwt.algorithms": "RS256,HS256"},
        id="both",
    ),
    pytest.param({"security.tokens": "authority", "security.authority.url": "http://a/x"}, id="an authority"),
    pytest.param(
        {"security.tokens": "authority", "security.mode": "plugin"}, id="the plugin needs no authority in the service"
    ),
    pytest.param({"demo.users": "true"}, id="demo users on loopback"),
    pytest.param({"demo.users": "true", "server.host": "localhost"}, id="demo users on localhost"),
    pytest.param({"demo.users": "true", "server.host": "[::1]"}, id="demo users on loopback of IPv6"),
    pytest.param(
        {"llm.fallback": "http://a/", "llm.fallback.models": "m", "llm.fallback.tokens": "t"}, id="a fallback"
    ),
]


@pytest.mark.parametrize(("values", "key"), CONTRADICTIONS)
def test_what_contradicts_is_told(values: dict[str, str], key: str) -> None:
    _, problems = parse(values)
    assert [problem.key for problem in problems] == [key]
    assert problems[0].stops and problems[0].sentence


@pytest.mark.parametrize("values", AGREEMENTS)
def test_what_agrees_is_not(values: dict[str, str]) -> None:
    assert parse(values)[1] == ()
