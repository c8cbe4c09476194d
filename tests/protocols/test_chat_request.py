"""What the chat dialects read out of a body, and how they name what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.answer.conversations import issued
from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.errors import BadRequest, ContextTooLong
from datafari_rag.core.query.plan import planned
from datafari_rag.core.settings.table import ChatLimits, Settings
from datafari_rag.protocols.chat import ask_of
from datafari_rag.protocols.chat_reply_parts import memory_limits
from tests.fakes import FakeSigning
from tests.protocols.values import asking, request
from tests.settings import settings_with

SETTINGS = Settings()


def read(body: object, settings: Settings = SETTINGS, **more: Any) -> Any:
    return planned(ask_of(request(body, **more), settings))


def turns(*pairs: tuple[str, str]) -> dict[str, object]:
    return {"messages": [{"role": role, "content": content} for role, content in pairs]}


def test_a_follow_up_is_searched_for_with_the_turn_before_it() -> None:
    ask = read(turns(("user", "What is KAITO?"), ("assistant", "An operator."), ("user", "How do I install it?")))
    assert ask.question == "How do I install it?"
    assert ask.search_text == "KAITO\nHow do I install it?"


MESSAGE = {"role": "user", "content": "q"}
BAD: list[tuple[str, object, str]] = [
    (
        "the assistant's last",
        {"messages": [MESSAGE, {"role": "assistant", "content": "a"}]},
        "messages[1].role must be user: the last message is the question.",
    ),
    (
        "a huge state that claims to be ours",
        asking(session_state={"datafari_rag": "x" * 70_000}),
        "session_state must have at most 65536 bytes.",
    ),
]


@pytest.mark.parametrize(("body", "reason"), [pytest.param(body, reason, id=name) for name, body, reason in BAD])
def test_what_does_not_fit_is_named(body: object, reason: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read(body)
    assert refused.value.reason == reason


def test_only_a_question_sure_to_be_larger_than_the_window_is_refused() -> None:
    settings = settings_with(SETTINGS, llm_context_window=512)
    assert read(asking("word " * 500), settings).question
    with pytest.raises(ContextTooLong):
        read(asking("word " * 790), settings)


def test_the_clients_system_message_is_left_out_and_named() -> None:
    body = turns(("system", "obey"), ("user", "q"))
    assert read(body).history == ()
    assert read(body).overrides["system message"].startswith("Left out")


def test_the_oldest_turns_go_when_history_is_over_its_budget() -> None:
    body = turns(("user", "old " * 300), ("assistant", "new"), ("user", "q"))
    assert read(body, settings_with(SETTINGS, chat_limits=ChatLimits(history_tokens=100))).history == (
        ChatMessage("assistant", "new"),
    )


def test_history_never_takes_more_than_its_share_of_a_small_window() -> None:
    body = turns(("user", "old " * 300), ("assistant", "new"), ("user", "q"))
    assert read(body, settings_with(SETTINGS, llm_context_window=400)).history == (ChatMessage("assistant", "new"),)


MEMORY = settings_with(SETTINGS, chat_memory_enabled=True)
TALK = (ChatMessage("user", "What is KAITO?"), ChatMessage("assistant", "An operator."))
STATE = issued(TALK, FakeSigning(), now_s=990.0, limits=memory_limits(MEMORY.chat))


def test_a_client_that_sends_only_its_new_message_does_not_lose_the_thread() -> None:
    ask = read(asking("How do I install it?", sessionState=STATE), MEMORY, signing=FakeSigning())
    assert ask.history == TALK
    assert ask.search_text == "KAITO\nHow do I install it?"


def test_a_client_that_sends_its_history_keeps_its_own() -> None:
    body = turns(("user", "Hello"), ("assistant", "Hi"), ("user", "q")) | {"session_state": STATE}
    assert read(body, MEMORY, signing=FakeSigning()).history == (
        ChatMessage("user", "Hello"),
        ChatMessage("assistant", "Hi"),
    )


def test_another_users_memory_is_refused() -> None:
    with pytest.raises(BadRequest, match="not valid"):
        read(asking(session_state=STATE), MEMORY, signing=FakeSigning("bob"))


def test_a_state_that_was_issued_here_may_be_as_large_as_the_setting_lets_it_be() -> None:
    roomy = settings_with(
        MEMORY, chat_limits=ChatLimits(memory_bytes=200_000, history_tokens=1_000_000), llm_context_window=1_000_000
    )
    talk = (ChatMessage("user", "q" * 100_000), ChatMessage("assistant", "a"))
    state = issued(talk, FakeSigning(), now_s=990.0, limits=memory_limits(roomy.chat))
    assert read(asking(session_state=state), roomy, signing=FakeSigning()).history == talk
    with pytest.raises(BadRequest, match="at most 200100 bytes"):
        read(asking(session_state={"datafari_rag": "x" * 300_000}), roomy, signing=FakeSigning())
    with pytest.raises(BadRequest, match="at most 65536 bytes"):
        read(asking(session_state=state))
