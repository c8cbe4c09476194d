"""`/rest/v2.0/users/conversations`: a signed-in user's stored conversations, listed, opened, renamed and deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flask import Response, request

from datafari_rag.core.access import User
from datafari_rag.core.answer.stored_conversations import ConversationStore, documents_behind, is_conversation_id
from datafari_rag.core.errors import NotAuthenticated, NotFound
from datafari_rag.protocols.ai import conversations
from datafari_rag.protocols.ai.conversations import OpenedConversation
from datafari_rag.protocols.questionless import Questionless
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged
from datafari_rag.web.conversations.talk import documents_of
from datafari_rag.web.json_bytes import NDJSON, plain
from datafari_rag.web.request_values import bodyless, incoming_from
from datafari_rag.web.responses import json_response
from datafari_rag.web.runtime import ServiceSnapshot

PATHS = tuple(f"{prefix}/rest/v2.0/users/conversations" for prefix in ("/Datafari", ""))

MAX_BODY_BYTES = 10_000

Json = dict[str, object]

CONVERSATIONS = DialectRoute("conversations", Questionless(conversations.failure), NDJSON)


@dataclass(frozen=True, slots=True)
class ConversationCall:
    """One request of a signed-in *user* about his conversations in *store*."""

    store: ConversationStore
    user: User
    name: str
    incoming: Incoming
    snapshot: ServiceSnapshot

    def opened(self, conversation_id: str | None) -> Json:
        """Return the list with one conversation opened, the one that was used last for None. Raises: NotFound."""
        listed = self.store.conversations(self.name)
        if conversation_id is None:
            wanted = listed[0] if listed else None
        else:
            wanted = next((one for one in listed if one.id == conversation_id), None)
        turns = None if wanted is None else self.store.turns(self.name, wanted.id)
        if wanted is None or turns is None:
            if conversation_id is not None:
                raise _absent()
            return conversations.reply(listed, None)
        documents = documents_of(documents_behind(turns), self.user, self.snapshot)
        return conversations.reply(listed, OpenedConversation(wanted, turns, documents))


def conversations_view(worker: WorkerContext) -> Response:
    """Return what the method asks for, with rights looked up now."""
    request.max_content_length = MAX_BODY_BYTES
    return exchanged(Exchange(worker, CONVERSATIONS), lambda: _incoming(worker), _done)


def _done(exchange: Exchange) -> Response:
    store, name = exchange.snapshot.conversations, exchange.user_name
    if store is None:
        raise NotFound("Conversations are not stored here.")
    if name is None:
        raise NotAuthenticated
    call = ConversationCall(store, exchange.user(), name, exchange.incoming, exchange.snapshot)
    return json_response(plain(METHODS[request.method](call)))


def _incoming(worker: WorkerContext) -> Incoming:
    if request.method in ("GET", "HEAD", "DELETE"):
        return bodyless()
    # A form: Datafari's page begins a conversation with a body or without one.
    return incoming_from(request, takes=frozenset({"json", "form"}), now_s=worker.now())


def _listed(call: ConversationCall) -> Json:
    return call.opened(conversations.id_in(call.incoming))


def _begun(call: ConversationCall) -> Json:
    return call.opened(call.store.begin(call.name))


def _renamed(call: ConversationCall) -> Json:
    own_id, title = conversations.renaming(call.incoming)
    if not is_conversation_id(own_id) or not call.store.rename(call.name, own_id, title):
        raise _absent()
    return conversations.renamed(own_id, title)


def _deleted(call: ConversationCall) -> Json:
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
    "POST": _begun,
    "PUT": _renamed,
    "DELETE": _deleted,
}
"""What each method does."""
