"""The published client's form: sessionState, errors as objects, a body that may come with files."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.errors import ModelBusy, RagError, leaves
from datafari_rag.core.events import Failed
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import ai_chat_protocol
from tests.protocols.values import ANSWER, asking, context, events, request
from tests.settings import settings_with


def test_the_whole_answer_has_only_the_later_spelling_of_the_state() -> None:
    reply: Any = ai_chat_protocol.reply(ANSWER, context(session_state={"id": 1}))
    assert set(reply) == {"message", "context", "sessionState"}
    assert reply["sessionState"] == {"id": 1}


def test_the_stream_is_that_of_seed_003_with_the_later_spelling() -> None:
    lines: list[Any] = list(ai_chat_protocol.stream(iter(events()), context()))
    assert lines[0]["sessionState"] is None
    assert all("session_state" not in line for line in lines)
    assert "".join(line["delta"].get("content", "") for line in lines) == "Paris “ate” [1].\n"
    assert lines[-1]["context"]["citations"][0]["label"] == "Rabbits.txt"


def test_a_memory_is_issued_in_the_last_line() -> None:
    memory = settings_with(chat_memory_enabled=True)
    lines: list[Any] = list(ai_chat_protocol.stream(iter(events()), context(memory)))
    assert lines[0]["sessionState"] is None
    assert lines[-1]["sessionState"] == ai_chat_protocol.reply(ANSWER, context(memory))["sessionState"]


@pytest.mark.parametrize("error", [kind() for kind in leaves()], ids=lambda error: type(error).__name__)
def test_every_failure_is_an_object(error: RagError) -> None:
    _, body = ai_chat_protocol.failure(error, Settings())
    assert body == {"error": {"code": error.label, "message": error.reason}}
    assert list(ai_chat_protocol.stream(iter([*events()[:2], Failed(error)]), context()))[-1] == body


def test_a_busy_model_keeps_its_status() -> None:
    assert ai_chat_protocol.failure(ModelBusy(), Settings())[0] == 503


@pytest.mark.parametrize(("path", "is_streamed"), [("/api/chat", False), ("/api/chat/stream", True)])
def test_the_path_says_whether_it_is_streamed(path: str, is_streamed: bool) -> None:
    assert ai_chat_protocol.parse(request(asking(stream=True), path), Settings()).is_streamed is is_streamed
