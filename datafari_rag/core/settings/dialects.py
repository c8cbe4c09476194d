"""
Settings of the dialects with a conversation, of whole documents and of agents: `openai.*`, `chat.*`, `ai.*`, `mcp.*`.

As those of the answer, a bad value fails answers and never stops the service.
"""

from __future__ import annotations

from msgspec import field

from datafari_rag.core.settings.addresses import Indexes
from datafari_rag.core.settings.checks import Fixed, Group, PathName


class OpenaiClient(Group, frozen=True):
    """What clients of /v1 get."""

    passthrough: bool = True
    """Send requests for which no documents were found, or that name no index, on to the model."""


class OpenaiLimits(Group, frozen=True):
    """Budgets of /v1: tokens of a passage, and of labels and instructions."""

    node_tokens: Fixed[int] = 500
    reserve_tokens: Fixed[int] = 150
    """The numbers of KAITO's RAG engine, whose protocol it is; a request has `context_token_ratio`."""


class OpenaiSettings(Group, frozen=True):
    """OpenAI-compatible callers (/v1)."""

    client: OpenaiClient = OpenaiClient()
    indexes: Indexes = field(default_factory=lambda: {"default": ""})
    """Values of index_name on /v1. NAME alone is the collection of solr.url; NAME=SOLR-URL is another."""
    limits: OpenaiLimits = OpenaiLimits()


class ChatLimits(Group, frozen=True):
    """What a chat client may send: documents, tokens of its history; bytes, seconds and messages of a memory."""

    top: Fixed[int] = 50
    history_tokens: Fixed[int] = 4000
    memory_bytes: Fixed[int] = 16_384
    memory_age_s: Fixed[int] = 86_400
    messages: Fixed[int] = 6
    """Far above what clients send; a quarter of the context window limits the history where that is less."""


class StoreLimits(Group, frozen=True):
    """Days that conversations are stored, and the megabytes that those of a user and of all may take."""

    age_days: Fixed[int] = 90
    user_mb: Fixed[int] = 20
    whole_mb: Fixed[int] = 1000
    """A quarter after its last question a conversation goes, and a user's oldest where the disk would fill."""


class ChatSettings(Group, frozen=True):
    """Chat callers (/chat, /ask, /api/chat)."""

    limits: ChatLimits = ChatLimits()
    memory_enabled: bool = field(name="memory.enabled", default=False)
    """Return the last messages in a signed session_state, for clients that send only the new one."""
    store_folder: PathName = field(name="store.folder", default="")
    """Folder on a local disk for the conversations of signed-in users (Datafari 7). Empty: none."""
    store_limits: StoreLimits = field(name="store.limits", default=StoreLimits())
    query_rewriting_enabled: bool = field(name="query.rewriting.enabled", default=True)
    """Let the model write the search query of a follow-up: one more short request to it."""
