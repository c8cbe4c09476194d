"""Which dialect answers which path, and which page: one row each, and the test that tells two of one path apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import Response, request

from datafari_rag.protocols import chat, ragapi
from datafari_rag.protocols.ai import ACTIONS, UNKNOWN, AiAction
from datafari_rag.protocols.openai import chat_completions, responses
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web import conversations as view
from datafari_rag.web.admin.page import admin_page
from datafari_rag.web.admin.revoke import revoke
from datafari_rag.web.api import documents, grounding
from datafari_rag.web.api.exchange import SITE, DialectRoute, Exchange, WorkerContext
from datafari_rag.web.api.mcp import MCP, PATH, RESOURCE_PATH, mcp_view, resource_view
from datafari_rag.web.api.models import MODELS, relay
from datafari_rag.web.api.search import RETRIEVE, RETRIEVE_PATH, SELECT
from datafari_rag.web.pages.demo import choose, progress
from datafari_rag.web.pages.feedback import give
from datafari_rag.web.pages.rendering import failure_page, widget_setup
from datafari_rag.web.pages.search import FOUND_PAGE, PAGE, TALK_TAKES, search_page
from datafari_rag.web.responses import ASCII_NDJSON, JSON_LINES, JSONL, NAMED_SSE, NDJSON, SSE, failure

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
CHOICES = DialectRoute("choices", chat.CHOICES, ASCII_NDJSON, chat.has_stream_key, softened=chat.CHOICES.softened)
CHAT = DialectRoute("chat", chat.CHAT, JSON_LINES, softened=chat.CHAT.softened)
PUBLISHED = DialectRoute("published", chat.PUBLISHED, JSONL, softened=chat.PUBLISHED.softened)
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
    Route(
        "ai",
        AI_PATHS,
        ("POST",),
        _JSON,
        (*(_of_ai(action, action.accepts) for action in ACTIONS.values()), _of_ai(UNKNOWN)),
    ),
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
    Route("pictures", (documents.PICTURE_PATH,), ("GET",), frozenset(), (documents.PICTURES,)),
    Route("models", ("/v1/models", "/v1/models/<path:name>"), ("GET",), frozenset(), (MODELS,)),
)


_QUESTIONLESS = Questionless(failure)


def _row(
    work: Callable[[Exchange], Response],
    accepts: Callable[[Incoming], bool] | None = None,
    *,
    is_shown: bool = True,
) -> DialectRoute:
    page_of = failure_page if is_shown else None
    return DialectRoute(SITE, _QUESTIONLESS, NDJSON, accepts, work=work, is_question=False, page=page_of)


def _route(path: str, method: str, *rows: DialectRoute, takes: frozenset[str] = frozenset()) -> Route:
    return Route(f"page:{method}", (path,), (method,), takes, rows)


PAGES = (
    _route("/", "GET", _row(search_page)),
    _route("/found", "POST", FOUND_PAGE),
    _route("/talk", "POST", PAGE, takes=TALK_TAKES),
    _route("/demo/user", "POST", _row(choose)),
    _route("/demo/progress", "GET", _row(progress, is_shown=False)),
    _route(
        "/feedback", "POST", _row(give, lambda _: request.mimetype == "application/json", is_shown=False), _row(give)
    ),
    _route("/widget.json", "GET", _row(widget_setup, is_shown=False)),
    _route("/admin", "GET", _row(admin_page)),
    _route("/admin/revoke", "POST", _row(revoke, is_shown=False)),
)
"""Its rows read what their forms send themselves; a failure for a script is JSON, any other one a page."""
