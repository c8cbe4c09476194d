"""Which dialect answers which path: one row each, and the test that distinguishes two dialects of one path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import Response

from datafari_rag.protocols import ai_chat_protocol, chat, chat_completion, chat_request, ragapi
from datafari_rag.protocols.ai.action import ACTIONS, UNKNOWN, AiAction
from datafari_rag.protocols.openai import chat_completions, responses
from datafari_rag.protocols.request import Incoming
from datafari_rag.web import conversations as view
from datafari_rag.web.api import documents, grounding
from datafari_rag.web.api.exchange import DialectRoute, WorkerContext
from datafari_rag.web.api.mcp import MCP, PATH, RESOURCE_PATH, mcp_view, resource_view
from datafari_rag.web.api.models import MODELS, relay
from datafari_rag.web.api.search import RETRIEVE, RETRIEVE_PATH, SELECT
from datafari_rag.web.responses import ASCII_NDJSON, JSON_LINES, JSONL, NAMED_SSE, NDJSON, SSE

SELECT_PATHS = ("/Datafari/rest/v2.0/search/select", "/search/select")


@dataclass(frozen=True, slots=True)
class Route:
    """Some paths, the methods and body types they take, and the rows that may serve them, the first that accepts."""

    name: str
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    takes: frozenset[str]
    rows: tuple[DialectRoute, ...]
    view: Callable[[WorkerContext], Response] | None = None
    """What serves the paths in place of a dialect; its rows then only give failures their shape."""

    def row_for(self, incoming: Incoming) -> DialectRoute:
        """Return the row that serves *incoming*: the last one takes all."""
        return next(row for row in self.rows if row.accepts is None or row.accepts(incoming))


AI_PATHS = tuple(f"{prefix}/rest/v2.0/ai{end}" for prefix in ("/Datafari", "") for end in ("", "/stream"))


def _of_ai(action: AiAction, accepts: Callable[[Incoming], bool] | None = None) -> DialectRoute:
    return DialectRoute("ai", action, NDJSON, accepts, begins_at_once=True)


RAGAPI = DialectRoute("ragapi", ragapi, NDJSON, ragapi.accepts)
CHOICES = DialectRoute(
    "choices", chat_completion, ASCII_NDJSON, chat_completion.accepts, softened=chat_request.softened
)
CHAT = DialectRoute("chat", chat, JSON_LINES, softened=chat_request.softened)
PUBLISHED = DialectRoute("published", ai_chat_protocol, JSONL, softened=chat_request.softened)
OPENAI = DialectRoute(
    "openai",
    chat_completions,
    SSE,
    softened=chat_completions.softened,
    relay=relay,
    fallback=chat_completions.fallback,
)
RESPONSES = DialectRoute("responses", responses, NAMED_SSE, softened=responses.softened)

_JSON = frozenset({"json"})

ROUTES = (
    Route("ai", AI_PATHS, ("POST",), _JSON, (*(_of_ai(one, one.accepts) for one in ACTIONS.values()), _of_ai(UNKNOWN))),
    Route("select", SELECT_PATHS, ("GET", "POST"), frozenset({"form"}), (RAGAPI, SELECT)),
    Route("chat", ("/chat", "/ask"), ("POST",), _JSON, (CHOICES, CHAT)),
    Route("chat-stream", ("/chat/stream",), ("POST",), _JSON, (CHAT,)),
    Route("published", ("/api/chat", "/api/chat/stream"), ("POST",), frozenset({"json", "files"}), (PUBLISHED,)),
    Route("openai", ("/v1/chat/completions",), ("POST",), _JSON, (OPENAI,)),
    Route("conversations", view.PATHS, tuple(view.METHODS), _JSON, (view.CONVERSATIONS,), view.conversations_view),
    Route("mcp", (PATH,), ("POST",), _JSON, (MCP,), mcp_view),
    Route("mcp-resource", (RESOURCE_PATH, f"{RESOURCE_PATH}{PATH}"), ("GET",), frozenset(), (MCP,), resource_view),
    Route("responses", ("/v1/responses",), ("POST",), _JSON, (RESPONSES,)),
    Route("retrieve", (RETRIEVE_PATH,), ("POST",), _JSON, (RETRIEVE,)),
    Route("grounding", (grounding.PATH,), ("POST",), _JSON, (grounding.GROUNDING,)),
    Route("documents", (documents.PATH,), ("GET",), frozenset(), (documents.DOCUMENTS,)),
    Route("models", ("/v1/models", "/v1/models/<path:name>"), ("GET",), frozenset(), (MODELS,)),
)
