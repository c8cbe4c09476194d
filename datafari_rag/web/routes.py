"""Which dialect answers which path, and which page: one row each, and the test that tells two of one path apart."""

from __future__ import annotations

from collections.abc import Callable

from flask import Response

from datafari_rag.protocols import chat, ragapi
from datafari_rag.protocols.ai import ACTIONS, UNKNOWN, AiAction
from datafari_rag.protocols.openai import chat_completions, responses
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.admin import why
from datafari_rag.web.admin.page import admin_page
from datafari_rag.web.admin.revoke import revoke
from datafari_rag.web.api import documents, grounding
from datafari_rag.web.api.mcp import MCP, MESSAGES, PATH, RESOURCE_PATH, resource_view
from datafari_rag.web.api.models import MODELS, relay
from datafari_rag.web.api.search import RETRIEVE, RETRIEVE_PATH, SELECT
from datafari_rag.web.conversations import CONVERSATIONS
from datafari_rag.web.pages.demo import choose, progress
from datafari_rag.web.pages.feedback import give
from datafari_rag.web.pages.rendering import failure_page, widget_setup
from datafari_rag.web.pages.search import FOUND_PAGE, PAGE, search_page
from datafari_rag.web.responses import ASCII_NDJSON, JSON_LINES, JSONL, NAMED_SSE, NDJSON, SSE, failure
from datafari_rag.web.turn import SITE, DialectRoute, Route, Turn

SELECT_PATHS = ("/Datafari/rest/v2.0/search/select", "/search/select")

AI_PATHS = tuple(f"{prefix}/rest/v2.0/ai{end}" for prefix in ("/Datafari", "") for end in ("", "/stream"))


def _of_ai(action: AiAction, accepts: Callable[[Incoming], bool] | None = None) -> DialectRoute:
    return DialectRoute("ai", action, NDJSON, accepts, begins_at_once=True)


RAGAPI = DialectRoute("ragapi", ragapi, NDJSON, ragapi.accepts)
CHOICES = DialectRoute("choices", chat.CHOICES, ASCII_NDJSON, chat.has_stream_key, softened=chat.softened)
CHAT = DialectRoute("chat", chat.CHAT, JSON_LINES, softened=chat.softened)
PUBLISHED = DialectRoute("published", chat.PUBLISHED, JSONL, softened=chat.softened)
OPENAI = DialectRoute(
    "openai",
    chat_completions,
    SSE,
    softened=chat_completions.softened,
    relay=relay,
    fallback=chat_completions.fallback,
)
RESPONSES = DialectRoute("responses", responses, NAMED_SSE, softened=chat.softened)

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
    CONVERSATIONS,
    MESSAGES,
    Route("mcp-resource", (RESOURCE_PATH, f"{RESOURCE_PATH}{PATH}"), ("GET",), frozenset(), (MCP,), resource_view),
    Route("responses", ("/v1/responses",), ("POST",), _JSON, (RESPONSES,)),
    Route("retrieve", (RETRIEVE_PATH,), ("POST",), _JSON, (RETRIEVE,)),
    Route("grounding", (grounding.PATH,), ("POST",), _JSON, (grounding.GROUNDING,)),
    Route("documents", (documents.PATH,), ("GET",), frozenset(), (documents.DOCUMENTS,)),
    Route("pictures", (documents.PICTURE_PATH,), ("GET",), frozenset(), (documents.PICTURES,)),
    Route("models", ("/v1/models", "/v1/models/<path:name>"), ("GET",), frozenset(), (MODELS,)),
)


_FORM = frozenset({"form"})


def _row(
    work: Callable[[Turn], Response], accepts: Callable[[Incoming], bool] | None = None, *, is_shown: bool = True
) -> DialectRoute:
    """Return the row of a page, or of what its script reads: then a failure *is_shown* by JSON alone."""
    page_of = failure_page if is_shown else None
    return DialectRoute(SITE, Questionless(failure), NDJSON, accepts, work=work, is_question=False, page=page_of)


def _route(
    path: str, method: str, *rows: DialectRoute, takes: frozenset[str] = frozenset(), max_bytes: int | None = None
) -> Route:
    return Route(f"page:{method}", (path,), (method,), takes, rows, max_bytes=max_bytes)


def _is_script(incoming: Incoming) -> bool:
    return incoming.headers.get("content-type", "").startswith("application/json")


PAGES = (
    _route("/", "GET", _row(search_page)),
    _route("/found", "POST", FOUND_PAGE, takes=_FORM),
    # No form of another site can send JSON, and other sites' scripts are not let in (`web/ops/cors.py`).
    _route("/talk", "POST", PAGE, takes=_JSON),
    _route("/demo/user", "POST", _row(choose), takes=_FORM),
    _route("/demo/progress", "GET", _row(progress, is_shown=False)),
    _route(
        "/feedback",
        "POST",
        _row(give, _is_script, is_shown=False),
        _row(give),
        takes=_JSON | _FORM,
        max_bytes=200_000,
    ),
    _route("/widget.json", "GET", _row(widget_setup, is_shown=False)),
    _route("/admin", "GET", _row(admin_page)),
    Route("page:GET", (why.PATH,), ("GET",), frozenset(), (why.WHY,)),
    _route("/admin/revoke", "POST", _row(revoke, is_shown=False), takes=_JSON, max_bytes=10_000),
)
"""A failure for a script is JSON, any other one a page."""
