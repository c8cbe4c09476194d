"""Problems of settings in French: every sentence that the checks and the rules between settings can make."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from datafari_rag.core.errors import ModelError, RagError, SearchError, leaves
from datafari_rag.core.messages import message, message_of, translated
from datafari_rag.core.settings.parsing import bad_value, parse, refusals
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import ROWS
from datafari_rag.web.pages.rendering import translator

FRENCH = translator("fr")
WRONG = (
    "\x01",
    "many",
    "-5",
    "9" * 18,
    "x y",
    "::",
    "a=",
    "http://",
    "$%&/",
    "1.5",
    "zookeeper://",
    "embedded:",
    "abc",
    "",
)
ENGLISH = re.compile(r"\b(the|and|are|is|of|with|for|names?|expected|valid|values)\b")
TECHNICAL = re.compile(r"\"[^\"]*\"|[\w.]+\.[\w.]+|http\S*|zookeeper\S*|embedded\S*|https?\(s\)\S*")


def misfits(row: SettingRow) -> Iterator[str]:
    for text in WRONG:
        try:
            row.check.read(text, "")
        except ValueError as error:
            yield bad_value(row.key, text, expectation=message_of(error)).message


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_whatever_does_not_fit_is_said_in_french(row: SettingRow) -> None:
    for said in misfits(row):
        told = translated(said, FRENCH)
        assert told.startswith(f"Valeur non valide pour la propriété {row.key}"), told
        assert not ENGLISH.search(TECHNICAL.sub("", told)), told


RULES = {
    "demo.users": "true",
    "server.host": "0.0.0.0",
    "llm.fallback.models": "a",
    "llm.fallback.tokens": "b",
    "security.identity": "jwt",
    "security.mode": "plugin",
    "security.tokens": "authority",
    "solr.url": "embedded:index",
    "solr.facets": "allow_token_document",
}


def test_sentences_between_settings_are_french() -> None:
    for extra in ({}, {"security.mode": "tokens"}, {"security.identity": "anonymous", "security.tokens": "claims"}):
        for problem in parse({**RULES, **extra})[1]:
            assert translated(problem.message, FRENCH) != problem.message, problem.message


def test_what_no_browser_may_change_is_said_in_french() -> None:
    for problem in refusals({"security.mode": "none", "rag.maxFiles": "${X}"}):
        assert translated(problem.message, FRENCH) != problem.message


@pytest.mark.parametrize("kind", [*leaves(SearchError), *leaves(ModelError)], ids=lambda kind: kind.label)
def test_what_a_part_fails_with_is_said_in_french(kind: type[RagError]) -> None:
    assert translated(message(kind.sentence), FRENCH) != kind.sentence


def test_english_stays_word_for_word() -> None:
    for row in ROWS:
        for said in misfits(row):
            assert translated(said, str) == said


def test_a_value_that_looks_like_a_sentence_changes_nothing_else() -> None:
    hostile = bad_value(
        "rag.maxFiles", '{wanted}". An integer is expected. <b>', expectation=message("An integer is expected.")
    ).message
    told = translated(hostile, FRENCH)

    assert told.endswith("Un nombre entier est attendu.") and "<b>" in told
    assert translated(hostile, str) == hostile
