"""
One request's part in a stored conversation: what is recalled of it, and what is kept of the answer.

Rights are looked up each time: what its user may not read any more is neither shown to him nor told to the model. A
store that fails costs the conversation, and never the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from datafari_rag.core.access import User
from datafari_rag.core.answer.stored_conversations import (
    ConversationStore,
    KeptTurn,
    StoredTurn,
    documents_behind,
    is_conversation_id,
    shown,
    title_from,
)
from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.documents import Document, first_value
from datafari_rag.core.errors import BadRequest, ConversationsUnavailable
from datafari_rag.core.events import Event, Finished
from datafari_rag.core.query.search_request import Browse
from datafari_rag.core.settings.table import fields_of
from datafari_rag.pipeline import browse
from datafari_rag.web.runtime import ServiceSnapshot
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
        self._told: tuple[StoredTurn, ...] = ()
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
            self._told = turns
            return ()
        last = turns[-max(1, self._snapshot.settings.chat_memory_history_size // 2) :]
        self._told = shown(last, documents_of(documents_behind(last), self._user(), self._snapshot))
        return tuple(message for turn in self._told for message in turn.messages)

    def kept(self, ask: Ask, events: Generator[Event, None, None]) -> Generator[Event, None, None]:
        """Yield *events*; a good answer is kept, and its last event says where, or why not."""
        with closing(events):
            for event in events:
                if isinstance(event, Finished) and ask.conversation is not None:
                    event = replace(event, kept=self._keep(ask, event, ask.conversation))
                yield event

    def _keep(self, ask: Ask, finished: Finished, conversation_id: str) -> KeptTurn:
        title = title_from(ask.question)
        earlier = documents_behind(self._told)
        sources = tuple(extract.document.id for extract in finished.extracts)
        turn = StoredTurn(ask.question, finished.text, self._now_s, sources, earlier)
        if self._failure is None:
            try:
                found = self._store.add(self._name, conversation_id, turn)
            except ConversationsUnavailable as error:
                self._failed(error)
            else:
                # None: it was deleted while the answer was written, and stays so.
                return KeptTurn(None, title) if found is None else KeptTurn(found.id, found.title)
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
    names, found = fields_of(snapshot.settings.solr_fields), dict[str, Document]()
    for start in range(0, len(ids), IDS_AT_ONCE):
        some = tuple(ids[start : start + IDS_AT_ONCE])
        plain = Browse(None, rows=len(some), fields=(names.id, names.title, names.url), ids=some)
        page: Mapping[str, Any] = browse(plain, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
        for row in page["response"]["docs"]:
            own_id = first_value(row, names.id)
            if own_id is not None:
                found[own_id] = Document(
                    own_id, "", title=first_value(row, names.title), url=first_value(row, names.url)
                )
    return found
