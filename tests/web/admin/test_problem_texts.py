"""Problems of settings in French: every sentence that the checks can say, read from where it is said."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from datafari_rag.core.settings import browser_guard, parsing
from datafari_rag.core.settings.parsing import bad_value
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import ROWS
from datafari_rag.web.admin.problem_texts import forms, spoken
from datafari_rag.web.pages.locale import translator

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
            yield bad_value(row.key, text, wanted=str(error)).message


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_whatever_does_not_fit_is_said_in_french(row: SettingRow) -> None:
    for message in misfits(row):
        told = spoken(message, FRENCH)
        assert told.startswith(f"Valeur non valide pour la propriété {row.key}"), told
        assert not ENGLISH.search(TECHNICAL.sub("", told)), told


def sentences(module: ModuleType) -> Iterator[str]:
    """Yield the sentences of *module* that a reader can meet, with their places filled."""
    tree = ast.parse(inspect.getsource(module))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "rag.key" for part in node.values]
            yield "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


@pytest.mark.parametrize("module", [parsing, browser_guard], ids=lambda module: module.__name__.rpartition(".")[2])
def test_sentences_between_settings_and_of_browsers_are_french(module: ModuleType) -> None:
    found = [text for text in sentences(module) if re.fullmatch(r"\S+ .*[a-z\"]\.", text) and "\n" not in text]
    found = [text for text in found if not text.startswith(("Unknown key", "Invalid value"))]

    assert len(found) >= 2
    assert [text for text in found if spoken(text.strip(), FRENCH) == text.strip()] == []


def test_what_is_not_known_stays() -> None:
    assert spoken("Something else entirely.", FRENCH) == "Something else entirely."


def test_english_stays_word_for_word() -> None:
    for row in ROWS:
        for message in misfits(row):
            assert spoken(message, str) == message


def test_a_value_that_looks_like_a_sentence_changes_nothing_else() -> None:
    hostile = bad_value(
        "rag.maxFiles", '{wanted}". An integer is expected. <b>', wanted="An integer is expected."
    ).message
    told = spoken(hostile, FRENCH)

    assert told.endswith("Un nombre entier est attendu.") and "<b>" in told
    assert spoken(hostile, str) == hostile


def test_no_form_hides_another() -> None:
    places = {"low": "1", "high": "2", "value": '"x"', "quoted": '"x"', "key": "rag.key"}
    for form in forms(str):
        text = re.sub(r"{(\w+)}", lambda place: places.get(place[1], "some words"), form)
        assert spoken(text, FRENCH) == re.sub(
            r"{(\w+)}", lambda place: places.get(place[1], "some words"), FRENCH(form)
        ), form
