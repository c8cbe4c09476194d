"""
One request's part in a stored conversation: what is recalled of it, and what is kept of the answer.

Rights are looked up each time: what its user may not read any more is neither shown to them nor told to the model. A
store that fails costs the conversation, and never the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from datafari_rag.core.access import User
from datafari_rag.core.answer.conversations import (
    ConversationStore,
    StoredTurn,
    documents_behind,
    is_conversation_id,
    readable_turns,
    title_from,
)
from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.documents import Document, first_value
from datafari_rag.core.errors import BadRequest, ConversationsUnavailable, NotAuthenticated, NotFound
from datafari_rag.core.events import Finished, KeptTurn
from datafari_rag.core.search_request import Browse
from datafari_rag.core.settings.table import fields_of
from datafari_rag.pipeline import browse
from datafari_rag.protocols import ai_conversations as conversations
from datafari_rag.protocols.ai_conversations import OpenedConversation
from datafari_rag.protocols.chat_reply_parts import Json
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.responses import NDJSON, json_response, plain
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.turn import DialectRoute, Route, Turn
from datafari_rag.web.user import RightsOfRequest

log = logging.getLogger(__name__)

IDS_AT_ONCE = 100
"""So many documents are looked up with one search."""


class Talk:
    """The stored conversation of one request (`protocols.request.ConversationMemory`); lives as long as it does."""

    def __init__(
        self, store: ConversationStore, name: str, user: Callable[[], User], *, snapshot: ServiceSnapshot, now_s: float
    ) -> None:
        """Look up nothing yet: *user* gives the rights of the user called *name* when they are needed."""
        self._store, self._name, self._user = store, name, user
        self._snapshot, self._now_s = snapshot, now_s
        self._turns: tuple[StoredTurn, ...] = ()
        self._failure: str | None = None

    def recalled(self, conversation_id: str, *, has_own_history: bool) -> tuple[ChatMessage, ...]:
        """Return the last messages that may be shown now, as `ConversationMemory` has it. Raises: as there."""
        try:
            is_id = is_conversation_id(conversation_id)
            turns = self._store.turns(self._name, conversation_id) if is_id else None
        except ConversationsUnavailable as error:
            self._failed(error)
            return ()
        if turns is None:
            raise BadRequest(
                "conversationId is not valid: start a new conversation without it.", field="conversationId"
            )
        if has_own_history:
            # What the client sends may come from every turn, one included that is not shown any more.
            self._turns = turns
            return ()
        last = turns[-max(1, self._snapshot.settings.chat.limits.messages // 2) :]
        self._turns = readable_turns(last, documents_of(documents_behind(last), self._user(), self._snapshot))
        return tuple(message for turn in self._turns for message in turn.messages)

    def kept(self, ask: Ask, finished: Finished, conversation_id: str) -> KeptTurn:
        """Keep a good answer to *ask*; say where it is kept, or why it is not."""
        title = title_from(ask.question)
        earlier = documents_behind(self._turns)
        sources = tuple(extract.document.id for extract in finished.extracts)
        turn = StoredTurn(ask.question, finished.text, self._now_s, sources, earlier)
        if self._failure is None:
            try:
                conversation = self._store.add(self._name, conversation_id, turn)
            except ConversationsUnavailable as error:
                self._failed(error)
            else:
                # None: it was deleted while the answer was written, and stays so.
                return KeptTurn(None, title) if conversation is None else KeptTurn(conversation.id, conversation.title)
        return KeptTurn(conversation_id or None, title, self._failure)

    def _failed(self, error: ConversationsUnavailable) -> None:
        self._failure = error.label
        log.warning("a conversation was not kept: label=%s cause=%r", error.label, error.log)


def talk_of(rights: RightsOfRequest, snapshot: ServiceSnapshot, now_s: float) -> Talk | None:
    """Return the stored conversations of who sent the request; None where none are stored, or nobody is signed in."""
    store, name = snapshot.conversations, rights.identified.name
    if store is None or name is None:
        return None
    return Talk(store, name, rights.user, snapshot=snapshot, now_s=now_s)


def documents_of(ids: Sequence[str], user: User, snapshot: ServiceSnapshot) -> Mapping[str, Document]:
    """
    Return by their ids those documents that *user* may read now, with title and address and without their text.

    Raises:
        SearchError: they cannot be looked up.
        NotAuthenticated: no user is signed in and that is required.
    """
    names, documents = fields_of(snapshot.settings.solr.fields), dict[str, Document]()
    for start in range(0, len(ids), IDS_AT_ONCE):
        some = tuple(ids[start : start + IDS_AT_ONCE])
        plain = Browse(None, rows=len(some), fields=(names.id, names.title, names.url), ids=some)
        page: Mapping[str, Any] = browse(plain, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
        for row in page["response"]["docs"]:
            own_id = first_value(row, names.id)
            if own_id is not None:
                documents[own_id] = Document(
                    own_id, "", title=first_value(row, names.title), url=first_value(row, names.url)
                )
    return documents


@dataclass(frozen=True, slots=True)
class ConversationCall:
    """One request of a signed-in *user* about their conversations in *store*."""

    store: ConversationStore
    user: User
    name: str
    incoming: Incoming
    snapshot: ServiceSnapshot

    def opened(self, conversation_id: str | None) -> Json:
        """Return the list with one conversation opened, the one that was used last for None. Raises: NotFound."""
        listed = self.store.conversations(self.name)
        if conversation_id is None:
            conversation = listed[0] if listed else None
        else:
            conversation = next((each for each in listed if each.id == conversation_id), None)
        turns = None if conversation is None else self.store.turns(self.name, conversation.id)
        if conversation is None or turns is None:
            if conversation_id is not None:
                raise _absent()
            return conversations.reply(listed, None)
        documents = documents_of(documents_behind(turns), self.user, self.snapshot)
        opened = OpenedConversation(conversation, turns, documents)
        return conversations.reply(listed, opened, self.snapshot.settings.server.root)


def answer_call(turn: Turn) -> Response:
    """Return what the method asks for, with rights looked up now. Raises: RagError."""
    store, name = turn.snapshot.conversations, turn.user_name
    if store is None:
        raise NotFound("Conversations are not stored here.")
    if name is None:
        raise NotAuthenticated
    call = ConversationCall(store, turn.user(), name, turn.incoming, turn.snapshot)
    return json_response(plain(METHODS[request.method](call)))


def _listed(call: ConversationCall) -> Json:
    return call.opened(conversations.id_in(call.incoming))


def _new_conversation(call: ConversationCall) -> Json:
    return call.opened(call.store.begin(call.name))


def _renamed(call: ConversationCall) -> Json:
    own_id, title = conversations.renaming(call.incoming)
    if not is_conversation_id(own_id) or not call.store.rename(call.name, own_id, title):
        raise _absent()
    return conversations.renamed(own_id, title)


def _delete(call: ConversationCall) -> Json:
    """Delete one conversation, or all; return the list that is left. Raises: NotFound."""
    if conversations.wants_all(call.incoming):
        call.store.delete_all(call.name)
        return conversations.reply((), None)
    own_id = conversations.id_in(call.incoming)
    if own_id is None or not is_conversation_id(own_id) or not call.store.delete(call.name, own_id):
        raise _absent()
    return call.opened(None)


def _absent() -> NotFound:
    """Return one sentence for what is not there and for what is another user's."""
    return NotFound("There is no such conversation.", field="conversationId")


METHODS: Mapping[str, Callable[[ConversationCall], Json]] = {
    "GET": _listed,
    "HEAD": _listed,
    "POST": _new_conversation,
    "PUT": _renamed,
    "DELETE": _delete,
}
"""What each method does."""

CONVERSATIONS = Route(
    "conversations",
    tuple(f"{prefix}/rest/v2.0/users/conversations" for prefix in ("/Datafari", "")),
    tuple(METHODS),
    # A form: Datafari's page begins a conversation with a body or without one.
    frozenset({"json", "form"}),
    (DialectRoute("conversations", Questionless(conversations.failure), NDJSON, work=answer_call),),
    max_bytes=10_000,
)
