"""Every override of the chat protocols has an effect or a sentence, and a bad value is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.ask import Ask, Restriction
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat import IGNORED, ask_of
from tests.protocols.values import asking, request
from tests.settings import settings_with

SETTINGS = Settings()


def applied(overrides: dict[str, object], settings: Settings = SETTINGS) -> Ask:
    return ask_of(request(asking(context={"overrides": overrides})), settings)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        pytest.param({"top": 50}, {"max_documents": 50}, id="top at its limit"),
        pytest.param({"top": 4.0}, {"max_documents": 4}, id="top as a whole float"),
        pytest.param({"temperature": 0}, {"temperature": 0.0}, id="temperature zero is a value"),
        pytest.param({"semantic_captions": True}, {"wants_captions": True}, id="captions are highlighted snippets"),
        pytest.param({"suggest_followup_questions": True}, {"wants_followups": True}, id="follow-up questions"),
        pytest.param({"minimum_search_score": 1.5}, {"min_score": 1.5}, id="weakest score"),
        pytest.param({"language": "fr-CA"}, {"language": "fr"}, id="language of the answer"),
        pytest.param({"seed": 42}, {"sampling": {"seed": 42}}, id="seed goes to the model"),
        pytest.param({"top": None, "temperature": None}, {"overrides": {}}, id="null is absent"),
        pytest.param(
            {"include_category": "hr", "exclude_category": "it's"},
            {"restrictions": (Restriction("source", "hr"), Restriction("source", "it's", is_excluded=True))},
            id="both categories narrow together",
        ),
    ],
)
def test_an_override_changes_the_ask(overrides: dict[str, object], expected: dict[str, object]) -> None:
    ask = applied(overrides)
    assert {name: getattr(ask, name) for name in expected} == expected


# What is of another type is in tests/web/api/test_bad_values.py.
BAD: list[tuple[str, object]] = [
    ("top", 51),
    ("top", 2.5),
    ("temperature", 2.1),
    ("temperature", float("nan")),
    ("exclude_category", "x" * 201),
    ("language", "../etc"),
    ("effort", "high"),
    ("max_searches", 0),
    ("max_searches", 2**70),
    ("max_model_calls", 0.5),
    ("max_tokens", -5),
    ("max_seconds", float("inf")),
    ("seed", -(2**53)),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{name} {str(value)[:12]!r}" for name, value in BAD])
def test_a_value_that_does_not_fit_is_named(name: str, value: object) -> None:
    with pytest.raises(BadRequest, match=rf"^context\.overrides\.{name}(\[0\])? must be ") as refused:
        applied({name: value})
    assert refused.value.field == f"context.overrides.{name}"


@pytest.mark.parametrize("value", [False, [1], "x" * 20_001])
def test_what_is_ignored_changes_nothing_and_is_named(value: object) -> None:
    """The filters of rights are among them: nothing that is sent can widen them."""
    ask = applied(dict.fromkeys(IGNORED, value))
    assert ask.overrides == dict(IGNORED)
    assert replace(ask, overrides={}) == applied({})


DATAFARI = {"rag_template": "datafari"}
BUILT_IN = {"rag_api_endpoint": "builtin:extractive"}


@pytest.mark.parametrize(
    ("name", "value", "settings", "is_used"),
    [
        pytest.param("suggest_followup_questions", True, DATAFARI, True, id="follow-ups at the head of the context"),
        pytest.param("suggest_followup_questions", True, BUILT_IN, False, id="no follow-ups of the built-in model"),
        pytest.param(
            "language", "fr", {**DATAFARI, "rag_add_instructions": False}, False, id="no language without instructions"
        ),
        pytest.param("language", "fr", {**DATAFARI, "rag_add_instructions": True}, True, id="a language with them"),
        pytest.param("seed", 4, {}, True, id="a seed in OpenAI's request"),
        pytest.param("seed", 4, DATAFARI, False, id="no seed in the other one"),
        pytest.param("temperature", 0.2, BUILT_IN, False, id="no temperature of the built-in model"),
    ],
)
def test_in_use_is_said_of_what_reaches_the_model(
    name: str, value: object, settings: dict[str, Any], is_used: bool
) -> None:
    said = applied({name: value}, settings_with(SETTINGS, **settings)).overrides[name]
    assert said.startswith("In use: " if is_used else "Not in use here: ")
