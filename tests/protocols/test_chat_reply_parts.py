"""Parts of replies: data points, session states, and a first line that every client can take."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.answer.conversations import KEY
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.events import Sources, Thought
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_reply_parts import (
    data_points,
    fitted_context,
    is_state_issued,
    session_state,
    size_of,
)
from tests.protocols.values import EXTRACT, context
from tests.settings import settings_with


def _large(text: str, documents: int = 10, thoughts: int = 4) -> Sources:
    extracts = tuple(Extract(n, f"label {n}", Document(str(n), text), (), text) for n in range(documents))
    return Sources(extracts, tuple(Thought(f"t{n}", text, {"n": n, "big": text}) for n in range(thoughts)), "en")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("漢字" * 20_000, id="six bytes a character when escaped"),
        pytest.param("🔑" * 9_000, id="twelve bytes a character when escaped"),
    ],
)
def test_the_first_line_of_a_stream_stays_under_200_kb(text: str) -> None:
    fitted: Any = fitted_context(_large(text))
    assert size_of({"delta": {"role": "assistant"}, "context": fitted, "session_state": None}) < 200_000
    assert len(fitted["data_points"]["text"]) == 10
    assert all(
        point.startswith(f"label {n}: ") and point.endswith(" …")
        for n, point in enumerate(fitted["data_points"]["text"])
    )
    assert [one["title"] for one in fitted["thoughts"]] == ["t0", "t1", "t2", "t3"]
    json.dumps(fitted).encode("ascii")


def test_large_thoughts_go_before_data_points_are_cut() -> None:
    sources = replace(_large("w" * 100_000, documents=0), extracts=(EXTRACT,))
    fitted: Any = fitted_context(sources)
    assert fitted["data_points"]["text"] == data_points((EXTRACT,))["text"]
    assert all(one["props"]["is_shortened"] for one in fitted["thoughts"])


MEMORY = settings_with(chat_memory_enabled=True)


@pytest.mark.parametrize(
    ("settings", "sent", "is_issued"),
    [
        pytest.param(Settings(), None, False, id="no memory, no state"),
        pytest.param(Settings(), {"id": 1}, False, id="no memory, the client's own"),
        pytest.param(MEMORY, None, True, id="memory, no state"),
        pytest.param(MEMORY, {KEY: "v1.old"}, True, id="memory, made by this service"),
        pytest.param(MEMORY, {"id": 1}, False, id="memory, the client's own"),
    ],
)
def test_a_state_is_issued_only_where_the_client_has_none(settings: Settings, sent: object, is_issued: bool) -> None:
    told = context(settings, session_state=sent)
    state: Any = session_state(told, "answer")
    assert is_state_issued(told) is is_issued
    assert (state.keys() == {KEY} and state != sent if is_issued else state == sent) is True
    assert session_state(told, None) == (None if is_issued else sent)
