"""
Settings of the dialects with a conversation, of whole documents and of agents: `openai.*`, `chat.*`, `ai.*`, `mcp.*`.

As those of the answer, a bad value fails answers and never stops the service.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from datafari_rag.core.settings.addresses import Indexes
from datafari_rag.core.settings.checks import Fixed, Group, Names, PathName, matching

MCP_TOOLS = ("search", "fetch", "answer", "check", "summarize", "compare")


class OpenaiClient(Group, frozen=True):
    """What clients of /v1 get."""

    model: Annotated[str, matching("[^\\s/,]{1,60}", "names without spaces, slashes and commas", is_optional=False)] = (
        "datafari"
    )
    """Name of the model that answers from documents; NAME/INDEX from an index of openai.indexes."""
    passthrough: bool = True
    """Send requests for which no documents were found, or that name no index, on to the model."""
    sources: Literal["auto", "annotations", "openwebui"] = "auto"
    """Documents as annotations or Open WebUI's events. auto: by the header X-OpenWebUI-Chat-Id."""


class OpenaiLimits(Group, frozen=True):
    """Budgets of /v1: *files* None for `rag.maxFiles`; tokens of a passage, and of labels and instructions."""

    files: Fixed[int | None] = None
    node_tokens: Fixed[int] = 500
    reserve_tokens: Fixed[int] = 150
    """The numbers of KAITO's RAG engine, whose protocol it is; a request has `context_token_ratio`."""


class OpenaiSettings(Group, frozen=True):
    """OpenAI-compatible callers (/v1)."""

    client: OpenaiClient = OpenaiClient()
    indexes: Indexes = field(default_factory=lambda: {"default": ""})
    """Values of index_name on /v1. NAME alone is the collection of solr.url; NAME=SOLR-URL is another."""
    models: Names = ()
    """Models that callers of /v1 may request. Empty: any."""
    limits: OpenaiLimits = OpenaiLimits()


class ChatClient(Group, frozen=True):
    """What a chat client may do and see."""

    no_documents: Literal["answer", "error"] = "answer"
    """If nothing is found: an answer that says so, or the error 428."""
    thoughts: Literal["all", "admins", "none"] = "all"
    """Who sees how an answer was made; only security.admins ever see prompt, filter and timings."""
    prompt_template: bool = False
    """Clients may replace or extend the instructions with overrides.prompt_template."""
    system: bool = False
    """Keep a client's system messages. false: they are left out, and the thoughts say so."""


class ChatLimits(Group, frozen=True):
    """What a chat client may send: documents, tokens of its history, bytes and seconds of a signed state."""

    top: Fixed[int] = 50
    history_tokens: Fixed[int] = 4000
    memory_bytes: Fixed[int] = 16_384
    memory_age_s: Fixed[int] = 86_400
    """Far above what clients send; a quarter of the context window limits the history where that is less."""


class StoreLimits(Group, frozen=True):
    """How long conversations are stored, and the megabytes that those of a user and of all may take."""

    age_days: Annotated[int, Meta(ge=1, le=36_500)] = 90
    """Days for which a conversation is stored after its last question."""
    user_mb: Fixed[int] = 20
    whole_mb: Fixed[int] = 1000
    """They bound what one user, and all, can fill of a disk; a user's oldest conversations go first."""


class ChatSettings(Group, frozen=True):
    """Chat callers (/chat, /ask, /api/chat)."""

    client: ChatClient = ChatClient()
    limits: ChatLimits = ChatLimits()
    memory_enabled: bool = field(name="memory.enabled", default=False)
    """Return the last messages in a signed session_state, for clients that send only the new one."""
    memory_history_size: Annotated[int, Meta(ge=1, le=100)] = field(name="memory.history.size", default=6)
    """Maximum number of messages in session_state."""
    store_folder: PathName = field(name="store.folder", default="")
    """Folder on a local disk for the conversations of signed-in users (Datafari 7). Empty: none."""
    store_limits: StoreLimits = field(name="store.limits", default=StoreLimits())
    query_rewriting_enabled: bool = field(name="query.rewriting.enabled", default=True)
    """Let the model write the search query of a follow-up: one more short request to it."""


class AiSettings(Group, frozen=True):
    """Requests of Datafari 7 (/rest/v2.0/ai)."""

    enable_rag: bool = field(name="enable.rag", default=True)
    """Answer the action rag of /rest/v2.0/ai."""
    enable_agentic: bool = field(name="enable.agentic", default=True)
    """Answer the action agentic of /rest/v2.0/ai."""
    enable_summarization: bool = field(name="enable.summarization", default=True)
    """Summarise whole documents: the action summarize of /rest/v2.0/ai."""
    enable_synthesis: bool = field(name="enable.synthesis", default=True)
    """Put several documents together: the action synthesize of /rest/v2.0/ai."""


class SynthesisSettings(Group, frozen=True):
    """Several documents together."""

    max_files: Annotated[int, Meta(ge=1, le=20)] = field(name="maxFiles", default=5)
    """Maximum number of documents in one; further ones are named as left out."""


class SummarizationSettings(Group, frozen=True):
    """Summaries of whole documents."""

    chunks_number: Annotated[int, Meta(ge=1, le=100)] = field(name="chunks.number", default=10)
    """Maximum number of pieces of a document, each one call of the model; a longer one is sampled."""


class PromptSettings(Group, frozen=True):
    """Requests for whole documents."""

    chunking_strategy: Literal["refine", "mapreduce"] = field(name="chunking.strategy", default="refine")
    """Pieces are summarised one after another (refine), or each for itself and then together (mapreduce)."""
    max_request_size: Annotated[int, Meta(ge=1000, le=10_000_000)] = field(name="max.request.size", default=40_000)
    """Maximum number of characters of documents in one call for them."""


class McpSettings(Group, frozen=True):
    """Agents (/mcp)."""

    enabled: bool = True
    """Serve agents at /mcp (Model Context Protocol), each with its user's rights."""
    scopes: Names = ()
    """Scopes that clients request from the identity provider for /mcp. Empty: none."""
