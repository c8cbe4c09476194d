"""
`POST /mcp`: what agents call (Model Context Protocol). The user is proved here, before a message is read.

Nothing is kept between two requests. Every tool reads as its caller, by the same pipeline as every other dialect.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import replace

from flask import Response, g, request

from datafari_rag.core.errors import BadRequest, BadSetting, NotAllowed, NotAuthenticated, NotFound
from datafari_rag.core.identity import authority_of, is_same, normalized
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Identity
from datafari_rag.protocols.mcp import messages, replies
from datafari_rag.protocols.mcp.messages import Notification, Rejected, RpcRequest
from datafari_rag.protocols.mcp.replies import AnswerCall
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged
from datafari_rag.web.api.mcp_tools import NAME, OFFERED, Call, Offered
from datafari_rag.web.ops import request_context
from datafari_rag.web.request_values import incoming_from, watch_client
from datafari_rag.web.responses import EVENTS, json_response, plain

MCP = DialectRoute(NAME, AnswerCall(), EVENTS, is_question=False)
"""How a failure looks before a call is known, and what is answered without a question: lists of tools."""

PATH = "/mcp"
RESOURCE_PATH = "/.well-known/oauth-protected-resource"

_JSON = frozenset({"json"})
_NO_AUDIENCE = (
    "/mcp accepts only tokens issued for it, and no audience is configured: "
    "set security.jwt.audience or server.public_url."
)


def mcp_view(worker: WorkerContext, offered: Mapping[str, Offered] = OFFERED) -> Response:
    """Return the reply to one message; *offered* are the tools, of which the settings may leave some out."""
    snapshot = worker.snapshot()

    def read() -> Incoming:
        if not snapshot.settings.mcp_enabled:
            raise NotFound
        _check_origin(snapshot.settings)
        return _incoming(worker)

    def identity() -> Identity:
        if snapshot.agent_identity is None:
            raise BadSetting(_NO_AUDIENCE)
        return snapshot.agent_identity

    response = exchanged(Exchange(worker, MCP), read, lambda exchange: _answered(exchange, offered), by=identity)
    return _challenged(response, snapshot.settings)


def resource_view(worker: WorkerContext) -> Response:
    """Return where a client gets a token for `/mcp` (RFC 9728). Raises: NotFound: no token is taken here."""
    settings = worker.snapshot().settings
    if not _takes_tokens(settings):
        raise NotFound
    about: dict[str, object] = {
        "resource": f"{origin_of(settings)}{PATH}",
        "resource_name": replies.SERVER["name"],
        "bearer_methods_supported": ["header"],
    }
    if settings.security_jwt_issuer:
        about["authorization_servers"] = [settings.security_jwt_issuer]
    if settings.mcp_scopes:
        about["scopes_supported"] = list(settings.mcp_scopes)
    return Response(plain(about), mimetype="application/json")


def origin_of(settings: Settings) -> str:
    """Return what the addresses of our own pages begin with: as `server.public_url` has it, else this request."""
    return settings.server_public_url.rstrip("/") or f"{request.scheme}://{request.host}"


def _answered(exchange: Exchange, offered: Mapping[str, Offered]) -> Response:
    settings, incoming = exchange.settings, exchange.incoming
    if exchange.user_name is None and settings.security_anonymous == "refuse":
        raise NotAuthenticated
    message = messages.message_of(incoming.body, incoming.headers)
    if isinstance(message, Notification):
        exchange.finish("listed")
        return Response(status=202)
    watch_client(request)
    _join_trace(message)
    # From here on a failure is the reply to this message.
    exchange.row = replace(MCP, dialect=AnswerCall(message))
    return _replied(Call(exchange, message, origin_of(settings)), offered)


def _replied(call: Call, offered: Mapping[str, Offered]) -> Response:
    message, exchange = call.message, call.exchange
    tools = {name: one for name, one in offered.items() if one.is_offered(exchange.settings)}
    if message.method != "tools/call":
        listed = [one.tool for one in tools.values()]
        result = replies.listing(message, exchange.settings, listed, exchange.user_name)
        exchange.finish("listed")
        return json_response(plain(replies.succeeded(message, result)))
    name = message.params.get("name")
    if not isinstance(name, str) or name not in tools:
        raise replies.unknown_tool(message)
    exchange.take(replace(exchange.row, is_question=True))
    return tools[name].run(call)


def _incoming(worker: WorkerContext) -> Incoming:
    try:
        return incoming_from(request, takes=_JSON, now_s=worker.now())
    except BadRequest as error:
        if type(error) is not BadRequest:
            raise
        raise Rejected(messages.PARSE_ERROR, error.reason) from error


def _check_origin(settings: Settings) -> None:
    """
    Refuse what a page of another site had sent, one included whose name was made to lead here (DNS rebinding).

    That page's own name is in `Host` too, so that being the same proves something only where names are known
    (`server.hosts`, which was checked) or cannot be made to lead elsewhere. Raises: NotAllowed.
    """
    origin = request.headers.get("Origin")
    if origin is None or origin.lower() in settings.server_cors_origins:
        return
    named = authority_of(origin)
    is_ours = named is not None and is_same(named, request.host)
    if not is_ours or not (settings.server_hosts or _is_fixed(request.host)):
        raise NotAllowed("Pages of other web sites are not allowed to send this request.")


def _is_fixed(authority: str) -> bool:
    """Say whether no name service decides where *authority* leads: an address, or the machine itself."""
    found = normalized(authority)
    if found is None:
        return False
    try:
        ipaddress.ip_address(found[0].strip("[]"))
    except ValueError:
        return found[0] == "localhost" or found[0].endswith(".localhost")
    return True


def _join_trace(message: RpcRequest) -> None:
    """Continue the trace that `_meta` names, if any (MCP, "OpenTelemetry trace context")."""
    named = {key: value for key in ("traceparent", "tracestate") if isinstance(value := message.meta.get(key), str)}
    if "traceparent" in named:
        request_context.begin(g.request_id, named)
        request.environ.get("datafari_rag.join_trace", _no_trace)(named)


def _takes_tokens(settings: Settings) -> bool:
    return settings.mcp_enabled and settings.security_identity == "jwt"


def _challenged(response: Response, settings: Settings) -> Response:
    """Return *response*; a caller without a valid token also gets where to obtain one (RFC 9728, RFC 6750)."""
    if response.status_code == NotAuthenticated.code and _takes_tokens(settings):
        parts = [f'resource_metadata="{origin_of(settings)}{RESOURCE_PATH}{PATH}"']
        if settings.mcp_scopes:
            parts.append(f'scope="{" ".join(settings.mcp_scopes)}"')
        if "Authorization" in request.headers:
            parts.append('error="invalid_token"')
        response.headers["WWW-Authenticate"] = f"Bearer {', '.join(parts)}"
    return response


def _no_trace(named: Mapping[str, str]) -> None:
    """Do nothing: no spans are made."""
