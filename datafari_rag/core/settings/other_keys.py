"""
Keys that a file may hold and that are no settings: other spellings, keys of Datafari's files, and earlier forms.

Data only. `FOLDED` says of which setting a key is a member now. A key in none of these tables, and in no row, is an
error.
"""

from __future__ import annotations

from collections.abc import Mapping

from datafari_rag.core.settings.dialects import MCP_TOOLS
from datafari_rag.core.settings.search import FIELD_NAMES

ALIASES: Mapping[str, str] = {
    "rag.maxToken": "rag.maxTokens",
    "llm.maxTokens": "rag.maxTokens",
    "llm.model": "rag.model",
    "llm.temperature": "rag.temperature",
    "ai.api.token": "rag.api.token",
    "ai.llm.service": "rag.template",
    "rag.llm.service": "rag.template",
    "chunking.maxFiles": "rag.maxFiles",
    "chat.query.rewriting.enabled.bm25": "chat.query.rewriting.enabled",
    "shards.tolerant": "solr.shards.tolerant",
}
"""Other spellings, of Datafari's documentation and of its later versions, that mean exactly the same here."""

ELSEWHERE: Mapping[str, str] = {
    "ai.api.endpoint": "here, rag.api.endpoint is the full URL, with /chat/completions",
    "rag.enabled": "RAG is always on in this service",
    "rag.chunk.size": "here, documents are split into passages at question time",
}
"""Keys of earlier Datafari versions that have no equal here, and what to use in their place."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "agentic.*": "here, rag.effort.limits limits the searches of the action agentic",
    "assistant.*": "Datafari's own page reads it; here, chat.store.folder stores conversations",
    "inMemory.*": "vectors are kept in the index here; it is out of date in Datafari too",
    "chunking.chunk.size": "here, documents are split into passages at question time",
    "rag.topK": "here, rag.search sets how many search results are examined",
    "rrf.topK": "50 documents of each list are fused here",
    "rrf.rank.constant": "ranks are fused with the constant 60 here, the usual one",
    "solr.topK": "the 100 nearest passages are asked for here, several of each document that is examined",
    "chat.query.rewriting.enabled.vector": "chat.query.rewriting.enabled is for words and meaning alike here",
    "solr.enable.ladr": "this service words its searches by meaning itself",
    "solr.enable.acorn": "this service words its searches by meaning itself",
    "solr.filtered.search.threshold": "this service words its searches by meaning itself",
}
"""Keys of a rag.properties of Datafari 7 that change nothing here, and why; `.*` means all keys with this prefix."""

FOLDED: Mapping[str, tuple[str, ...]] = {
    **{f"solr.field.{name}": ("solr.fields", name) for name in FIELD_NAMES},
    **{
        f"{key}.tls.{part}": ("tls", server, part)
        for key, server in (("solr", "solr"), ("llm", "llm"), ("embeddings", "embeddings"))
        for part in ("ca", "cert", "key", "verify")
    },
    **{f"embeddings.{purpose}_prefix": ("embeddings.options", "prefixes", purpose) for purpose in ("query", "passage")},
    **{
        f"rag.effort.max_{name}": ("rag.effort.limits", name)
        for name in ("searches", "model_calls", "tokens", "seconds")
    },
    "llm.connect_timeout_s": ("llm.limits", "connect_s"),
    "llm.first_token_timeout_s": ("llm.limits", "first_token_s"),
    "llm.stall_timeout_s": ("llm.limits", "stall_s"),
    "llm.total_timeout_s": ("llm.limits", "total_s"),
    "llm.retries": ("llm.limits", "retries"),
    "llm.breaker.failures": ("llm.limits", "breaker_failures"),
    "llm.breaker.reset_s": ("llm.limits", "breaker_reset_s"),
    "solr.connect_timeout_s": ("solr.limits", "connect_s"),
    "solr.timeout_s": ("solr.limits", "wait_s"),
    "solr.retries": ("solr.limits", "retries"),
    "security.authority.connect_timeout_s": ("security.authority.limits", "connect_s"),
    "security.authority.timeout_s": ("security.authority.limits", "wait_s"),
    "server.max_streams": ("server.limits", "streams"),
    "server.max_wait_s": ("server.limits", "wait_s"),
    "server.max_connections": ("server.limits", "connections"),
    "server.header_timeout_s": ("server.limits", "header_s"),
    "server.max_body_bytes": ("server.limits", "body_bytes"),
    "server.grace_s": ("server.limits", "grace_s"),
    "server.max_starting": ("server.limits", "starting"),
    "openai.maxFiles": ("openai.limits", "files"),
    "openai.node_tokens": ("openai.limits", "node_tokens"),
    "openai.reserve_tokens": ("openai.limits", "reserve_tokens"),
    "chat.top.max": ("chat.limits", "top"),
    "chat.history.tokens": ("chat.limits", "history_tokens"),
    "chat.memory.max_bytes": ("chat.limits", "memory_bytes"),
    "chat.memory.max_age_s": ("chat.limits", "memory_age_s"),
    "chat.store.max_age_days": ("chat.store.limits", "age_days"),
    "chat.store.max_user_mb": ("chat.store.limits", "user_mb"),
    "chat.store.max_mb": ("chat.store.limits", "whole_mb"),
    "security.jwt.user_claim": ("security.jwt.claims", "user"),
    "security.jwt.tokens_claim": ("security.jwt.claims", "tokens"),
    **{f"mcp.{tool}.description": ("mcp.descriptions", tool) for tool in MCP_TOOLS},
    "mcp.instructions": ("mcp.descriptions", "instructions"),
    **{f"demo.{name}": ("demo.folder", name) for name in ("users", "progress")},
    **{
        f"embeddings.{name}": ("embeddings.options", name)
        for name in ("model", "dimensions", "languages", "prefixes", "timeout_s")
    },
    **{f"openai.{name}": ("openai.client", name) for name in ("passthrough", "sources")},
    "openai.model.name": ("openai.client", "model"),
    "rag.candidates": ("rag.search", "candidates"),
    "rag.query.relax": ("rag.search", "relax"),
    "rag.score.min": ("rag.search", "min_score"),
    "chat.no_documents": ("chat.client", "no_documents"),
    "chat.thoughts": ("chat.client", "thoughts"),
    "chat.prompt_template.allowed": ("chat.client", "prompt_template"),
    "chat.client.system": ("chat.client", "system"),
    "server.rate.user_per_minute": ("server.rate", "user"),
    "server.rate.address_per_minute": ("server.rate", "client"),
    "server.rate.work_per_minute": ("server.rate", "work"),
    "server.work_timeout_s": ("server.limits", "work_s"),
    "security.jwt.leeway_s": ("security.jwt.claims", "leeway_s"),
    "rag.linebreaks": ("rag.reply", "linebreaks"),
    "rag.documents.shape": ("rag.reply", "documents"),
    "rag.http.errors": ("rag.reply", "http_errors"),
}
"""Former keys that are members of a JSON object now: the key of its setting, and the names down to the member."""


def folded_text(key: str) -> str:
    """Return how the setting that took up the former *key* is written, with "…" for the value."""
    setting, *names = FOLDED[key]
    value = '"…"'
    for name in reversed(names):
        value = f'{{"{name}": {value}}}'
    return f"{setting}={value}"


def not_used(key: str) -> str | None:
    """Return why a known *key* changes nothing here, None for a setting and for a key that is not known."""
    why = WITHOUT_EFFECT.get(key) or WITHOUT_EFFECT.get(f"{key.partition('.')[0]}.*")
    return None if why is None else f"{key} has no effect here: {why}."
