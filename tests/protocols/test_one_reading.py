"""The same value means the same in every dialect."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from datafari_rag.core.ask import Ask
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import ai_chat_protocol, chat, ragapi
from datafari_rag.protocols.ai.action import ACTIONS
from datafari_rag.protocols.openai import responses
from datafari_rag.protocols.request import Incoming

MESSAGES = [{"role": "user", "content": "When does it leave?"}]


def asked(found: object) -> Ask:
    assert isinstance(found, Ask)
    return found


def by_ragapi(name: str, value: object) -> Ask:
    names = {"language": "lang"}
    query = {"q": ("When does it leave?",), "action": ("rag",), names.get(name, name): (str(value),)}
    return asked(ragapi.parse(Incoming("/", query), Settings()))


def by_chat(name: str, value: object) -> Ask:
    body = {"messages": MESSAGES, "context": {"overrides": {name: value}}}
    return asked(chat.parse(Incoming("/chat", body=body), Settings()))


def by_published(name: str, value: object) -> Ask:
    body = {"messages": MESSAGES, "context": {"overrides": {name: value}}}
    return asked(ai_chat_protocol.parse(Incoming("/api/chat", body=body), Settings()))


def by_ai(name: str, value: object) -> Ask:
    names = {"language": "lang"}
    body = {"action": "rag", "query": "When does it leave?", names.get(name, name): value}
    return asked(ACTIONS["rag"].parse(Incoming("/rest/v2.0/ai", body=body), Settings()))


def by_responses(name: str, value: object) -> Ask:
    return asked(responses.parse(Incoming("/v1/responses", body={"input": "When?", name: value}), Settings()))


LANGUAGE: dict[str, Callable[[str, object], Ask]] = {
    "ragapi": by_ragapi,
    "chat": by_chat,
    "published": by_published,
    "ai": by_ai,
}
SECONDS: dict[str, Callable[[str, object], Ask]] = {
    "ragapi": by_ragapi,
    "chat": by_chat,
    "published": by_published,
    "responses": by_responses,
}


@pytest.mark.parametrize("text", ["fr", "FR", " fr ", "fr-CA", "fr_CA", "fr-Latn-CA"])
@pytest.mark.parametrize("read", LANGUAGE.values(), ids=LANGUAGE)
def test_a_language_however_it_is_spelled(read: Callable[[str, object], Ask], text: str) -> None:
    assert read("language", text).language == "fr"


@pytest.mark.parametrize("value", [0, 2, 2.5])
@pytest.mark.parametrize("read", SECONDS.values(), ids=SECONDS)
def test_a_limit_of_seconds_may_have_a_fraction(read: Callable[[str, object], Ask], value: float) -> None:
    assert read("max_seconds", value).limits.seconds == value
