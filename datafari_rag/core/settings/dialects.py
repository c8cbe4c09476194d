"""
Settings of the dialects with a conversation, of whole documents and of agents: `openai.*`, `chat.*`, `ai.*`, `mcp.*`.

Rows only. As those of the answer, a bad value fails answers and never stops the service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.records import ChatClient, ChatLimits, OpenaiClient, OpenaiLimits, StoreLimits
from datafari_rag.core.settings.row import mapping, setting

MCP_TOOLS = ("search", "fetch", "answer", "check", "summarize", "compare")


@dataclass(frozen=True, slots=True, repr=False)
class OpenaiSettings:
    """Rows of `openai.*`: the callers of /v1."""

    client: OpenaiClient = setting(
        "openai.client",
        OpenaiClient(),
        check=checks.members(
            OpenaiClient,
            model=checks.filled(checks.text("names without spaces, slashes and commas", re.compile(r"[^\s/,]{1,60}"))),
            passthrough=checks.flag(),
            sources=checks.choice("auto", "annotations", "openwebui"),
        ),
        help="What clients of /v1 get. model: name of the model that answers from documents; NAME/INDEX answers from "
        "an index of openai.indexes. passthrough: requests that name no index, or for which no documents were found, "
        "go to the model unchanged. sources: how the documents are sent, as annotations or as Open WebUI events "
        "(openwebui); auto: events if the request has the header X-OpenWebUI-Chat-Id.",
    )
    indexes: Mapping[str, str] = mapping(
        "openai.indexes",
        MappingProxyType({"default": ""}),
        check=addresses.indexes(),
        help="Values allowed for index_name on /v1. NAME alone is the collection of solr.url; NAME=SOLR-URL is "
        "another collection.",
    )
    models: tuple[str, ...] = setting(
        "openai.models",
        (),
        check=checks.names(),
        help="Models that callers of /v1 may request. Empty: any.",
    )
    limits: OpenaiLimits = setting(
        "openai.limits",
        OpenaiLimits(),
        check=checks.members(
            OpenaiLimits,
            files=checks.integer(0, 1000),
            node_tokens=checks.integer(1, 1_000_000),
            reserve_tokens=checks.integer(0, 1_000_000),
        ),
        help="Budgets on /v1. files: maximum number of documents for an answer, 0 for as many as fit; absent: "
        "rag.maxFiles. node_tokens: maximum number of tokens in one passage. reserve_tokens: tokens reserved "
        "for labels, delimiters and instructions.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class ChatSettings:
    """Rows of `chat.*`: the chat paths."""

    client: ChatClient = setting(
        "chat.client",
        ChatClient(),
        check=checks.members(
            ChatClient,
            no_documents=checks.choice("answer", "error"),
            thoughts=checks.choice("all", "admins", "none"),
            prompt_template=checks.flag(),
            system=checks.flag(),
        ),
        help="What a chat client may do and see. no_documents: if nothing is found, an answer that says so, or the "
        "error 428. thoughts: who may see how an answer was made (all, admins or none); only security.admins ever see "
        "the prompt, the filter and the timings. prompt_template: clients may replace or extend the instructions with "
        "overrides.prompt_template. system: keep a client's system messages; otherwise they are left out, and the "
        "thoughts say so.",
    )
    limits: ChatLimits = setting(
        "chat.limits",
        ChatLimits(),
        check=checks.members(
            ChatLimits,
            top=checks.integer(1, 1000),
            history_tokens=checks.integer(0, 100_000_000),
            memory_bytes=checks.integer(256, 1_000_000),
            memory_age_s=checks.integer(1, 31_536_000),
        ),
        help="Limits of chat clients. top: maximum number of documents that they may request with overrides.top. "
        "history_tokens: maximum number of tokens from earlier messages that are sent to the model; the oldest "
        "are left out first. memory_bytes: maximum size of session_state. memory_age_s: how long a "
        "session_state is accepted.",
    )
    memory_enabled: bool = setting(
        "chat.memory.enabled",
        False,
        check=checks.flag(),
        help="Return the last messages in a signed session_state, for clients that send only their new message.",
    )
    memory_history_size: int = setting(
        "chat.memory.history.size",
        6,
        check=checks.integer(1, 100),
        help="Maximum number of messages in session_state.",
    )
    store_folder: str = setting(
        "chat.store.folder",
        "",
        check=checks.path(),
        help="Folder on a local disk for the conversations of signed-in users (Datafari 7's requests), in an SQLite "
        "file that only the service can read. Empty: nothing is stored.",
    )
    store_limits: StoreLimits = setting(
        "chat.store.limits",
        StoreLimits(),
        check=checks.members(
            StoreLimits,
            age_days=checks.integer(1, 36_500),
            user_mb=checks.integer(1, 100_000),
            whole_mb=checks.integer(1, 1_000_000),
        ),
        help="How long conversations are stored after their last question, in days, and the megabytes that those of "
        "one user may take, of which the oldest are deleted first, and those of all; when these are full, "
        "nothing more is stored.",
    )
    query_rewriting_enabled: bool = setting(
        "chat.query.rewriting.enabled",
        True,
        check=checks.flag(),
        help="Let the model write the search query of a conversation: one more short request to the model for each "
        "question but the first.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class AiSettings:
    """Rows of `ai.*`: the actions of /rest/v2.0/ai."""

    enable_rag: bool = setting(
        "ai.enable.rag",
        True,
        check=checks.flag(),
        help="Answer the action rag of /rest/v2.0/ai (Datafari 7).",
    )
    enable_agentic: bool = setting(
        "ai.enable.agentic", True, check=checks.flag(), help="Answer the action agentic of /rest/v2.0/ai."
    )
    enable_summarization: bool = setting(
        "ai.enable.summarization",
        True,
        check=checks.flag(),
        help="Summarise whole documents: the action summarize of /rest/v2.0/ai.",
    )
    enable_synthesis: bool = setting(
        "ai.enable.synthesis",
        True,
        check=checks.flag(),
        help="Put several documents together: the action synthesize of /rest/v2.0/ai.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class SynthesisSettings:
    """Rows of `synthesis.*`."""

    max_files: int = setting(
        "synthesis.maxFiles",
        5,
        check=checks.integer(1, 20),
        help="Maximum number of documents in one synthesis; further ones are named as left out.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class SummarizationSettings:
    """Rows of `summarization.*`."""

    chunks_number: int = setting(
        "summarization.chunks.number",
        10,
        check=checks.integer(1, 100),
        help="Maximum number of pieces that a document is summarised in; each is one call of the model. For a longer "
        "document, representative sentences of each piece are sent.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class PromptSettings:
    """Rows of `prompt.*`: the calls for whole documents."""

    chunking_strategy: Literal["refine", "mapreduce"] = setting(
        "prompt.chunking.strategy",
        "refine",
        check=checks.choice("refine", "mapreduce"),
        help="How a document of several pieces is summarised: piece after piece, each call going on from the summary "
        "so far (refine), or each piece for itself and the parts put together by one more call (mapreduce).",
    )
    max_request_size: int = setting(
        "prompt.max.request.size",
        40_000,
        check=checks.integer(1_000, 10_000_000),
        help="Maximum number of characters of documents in one call for a summary or a synthesis; llm.context.window "
        "limits them, too.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class GroundingSettings:
    """Rows of `grounding.*`."""

    enabled: bool = setting("grounding.enabled", True, check=checks.flag(), help="Check texts at /grounding/check.")


@dataclass(frozen=True, slots=True, repr=False)
class McpSettings:
    """Rows of `mcp.*`: agents."""

    enabled: bool = setting(
        "mcp.enabled",
        True,
        check=checks.flag(),
        help="Serve agents at /mcp (Model Context Protocol), each with the rights of its authenticated user.",
    )
    tools: tuple[str, ...] = setting(
        "mcp.tools", MCP_TOOLS, check=checks.names(allowed=MCP_TOOLS), help="Tools offered to agents."
    )
    scopes: tuple[str, ...] = setting(
        "mcp.scopes",
        (),
        check=checks.names(),
        help="Scopes that clients request from the identity provider to get a token for /mcp. Empty: none.",
    )
    descriptions: Mapping[str, str] = mapping(
        "mcp.descriptions",
        MappingProxyType({}),
        check=checks.members(checks.frozen_mapping, **dict.fromkeys(("instructions", *MCP_TOOLS), checks.text())),
        help="What agents are told, as a JSON object: instructions describes the whole service, and each tool's name "
        "the tool; models decide by it when to call the tool. What is absent has a built-in text.",
    )
