"""How stored conversations look to Datafari 7's page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.answer.conversations import StoredConversation, StoredTurn
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import BadRequest, ConversationsUnavailable, NotAuthenticated, RagError
from datafari_rag.core.events import KeptTurn
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import ai_conversations as conversations
from datafari_rag.protocols.ai import ACTIONS
from datafari_rag.protocols.ai_conversations import OpenedConversation
from datafari_rag.protocols.request import Incoming
from tests.protocols.values import ANSWER, FINISHED, context
from tests.settings import settings_with

LISTED = (StoredConversation("c1", "Who ate?", 0.0, 60.0),)
TURNS = (StoredTurn("Who ate?", "The rabbit [1].", 0.0, ("d1",)), StoredTurn("When?", "At nine.", 60.0, (), ("d2",)))
READABLE = {"d1": Document("d1", "", title="Rabbits", url="javascript:alert(1)")}


def test_a_conversation_is_opened_without_the_turns_that_may_not_be_shown() -> None:
    content: Any = conversations.reply(LISTED, OpenedConversation(LISTED[0], TURNS, READABLE))["content"]
    assert content == {
        "conversationId": "c1",
        "title": "Who ate?",
        "conversations": [
            {
                "id": "c1",
                "title": "Who ate?",
                "created": "1970-01-01T00:00:00+00:00",
                "lastRefresh": "1970-01-01T00:01:00+00:00",
            }
        ],
        "messages": [
            {"role": "user", "content": "Who ate?", "date": "1970-01-01T00:00:00+00:00"},
            {
                "role": "assistant",
                "content": "The rabbit [1].",
                "date": "1970-01-01T00:00:00+00:00",
                "sources": [{"id": "d1", "title": "Rabbits", "url": "d1"}],
            },
        ],
        "docsBasket": [],
        "hidden": 1,
    }


def test_a_new_title_is_read_and_bounded() -> None:
    assert conversations.renaming(Incoming("", body={"conversationId": "c1", "title": " A  " + "b" * 100})) == (
        "c1",
        "A " + "b" * 58,
    )
    assert conversations.renamed("c1", "A") == {"status": "OK", "content": {"conversationId": "c1", "title": "A"}}


@pytest.mark.parametrize("body", [None, {"title": "A"}, {"conversationId": "c1", "title": " "}])
def test_a_new_title_that_cannot_be_read_is_refused(body: object) -> None:
    with pytest.raises(BadRequest):
        conversations.renaming(Incoming("", body=body))


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotAuthenticated(), 401, 407),
        (BadRequest("x"), 400, 400),
        (ConversationsUnavailable(), 200, 503),
    ],
)
def test_a_failure_has_datafaris_shape(error: RagError, status: int, code: int) -> None:
    content = {"code": code, "label": error.label, "reason": error.reason}
    assert conversations.failure(error, Settings().rag) == (status, {"status": "ERROR", "content": content})
    assert conversations.failure(error, settings_with(rag_reply_http_errors=True).rag)[0] == error.code


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        (KeptTurn("c1", "Who ate?"), {"conversationId": "c1", "title": "Who ate?"}),
        (
            KeptTurn(None, "Who ate?", "conversationsUnavailable"),
            {"conversationId": None, "title": "Who ate?", "conversationError": "conversationsUnavailable"},
        ),
    ],
)
def test_a_reply_says_where_its_answer_was_kept_or_why_not(kept: KeptTurn, told: dict[str, object]) -> None:
    answer = replace(ANSWER, finished=replace(FINISHED, turn=kept))
    content: Any = ACTIONS["rag"].reply(answer, context())["content"]
    assert {key: content[key] for key in told} == told
    assert ("conversationError" in content) is (kept.failure is not None)
