"""
`/rest/v2.0/users/conversations` as Datafari 7's assistant page knows it: the list, and one conversation opened.

There is no basket of documents here, so `docsBasket` is empty. A turn that is not shown is counted in `hidden`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from datafari_rag.core.answer.conversations import StoredConversation, StoredTurn, readable_turns, title_from
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import NotAuthenticated, RagError
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.query.dates import iso_at
from datafari_rag.core.settings.table import RagSettings
from datafari_rag.protocols.ai import status_of
from datafari_rag.protocols.chat_reply_parts import Json
from datafari_rag.protocols.records import NOT_BLANK, about, read
from datafari_rag.protocols.request import Incoming

ANONYMOUS_CODE = 407
"""What Datafari's page takes for "not signed in"."""


@dataclass(frozen=True, slots=True)
class OpenedConversation:
    """A *conversation* with its *turns*; *documents* are those behind them that its user may read now, by id."""

    conversation: StoredConversation
    turns: Sequence[StoredTurn]
    documents: Mapping[str, Document]


Text = Annotated[str, Meta(pattern=NOT_BLANK, extra={"must": "a text that is not empty"})]


class ConversationTitle(Struct, frozen=True, rename="camel"):
    """A new title of a stored conversation."""

    conversation_id: Annotated[Text, about("The stored conversation.")]
    title: Annotated[Text, about("Its new title, cut after 60 characters.")]


def id_in(incoming: Incoming) -> str | None:
    """Return which conversation the query names, None where it names none."""
    return incoming.param("conversationId") or None


def wants_all(incoming: Incoming) -> bool:
    """Say whether all conversations are to be deleted."""
    return incoming.param("all") == "true"


def renaming(incoming: Incoming) -> tuple[str, str]:
    """Return the conversation and its new title. Raises: BadRequest."""
    record = read(ConversationTitle, incoming.body)
    return record.conversation_id, title_from(record.title)


def renamed(conversation_id: str, title: str) -> Json:
    """Return the reply to a new title."""
    return {"status": "OK", "content": {"conversationId": conversation_id, "title": title}}


def reply(listed: Sequence[StoredConversation], opened: OpenedConversation | None, root: str = "") -> Json:
    """Return the list, and what may be shown of the one that was *opened*; paths of ours are below *root*."""
    messages: list[Json] = []
    documents: Mapping[str, Document] = {} if opened is None else opened.documents
    turns = () if opened is None else readable_turns(opened.turns, documents)
    for turn in turns:
        at, behind = iso_at(turn.at_s), [documents[document_id] for document_id in turn.sources]
        sources = [{"id": each.id, "title": title_of(each), "url": target_of(each, root)} for each in behind]
        messages.append({"role": "user", "content": turn.question, "date": at})
        messages.append({"role": "assistant", "content": turn.answer, "date": at, "sources": sources})
    content: Json = {
        "conversationId": None if opened is None else opened.conversation.id,
        "title": None if opened is None else opened.conversation.title,
        "conversations": [
            {"id": each.id, "title": each.title, "created": iso_at(each.began_s), "lastRefresh": iso_at(each.changed_s)}
            for each in listed
        ],
        "messages": messages,
        "docsBasket": [],
        "hidden": 0 if opened is None else len(opened.turns) - len(turns),
    }
    return {"status": "OK", "content": content}


def failure(error: RagError, rag: RagSettings) -> tuple[int, Json]:
    """Return HTTP status and body of a failure."""
    code = ANONYMOUS_CODE if isinstance(error, NotAuthenticated) else error.code
    content = {"code": code, "label": error.label, "reason": error.reason}
    return status_of(error, rag), {"status": "ERROR", "content": content}
