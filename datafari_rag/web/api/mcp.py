"""
`POST /mcp`: what agents call (Model Context Protocol). The user is proved here, before a message is read.

Nothing is kept between two requests. Every tool reads as its caller, by the same pipeline as every other dialect.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, replace

from flask import Response, request

from datafari_rag.core.documents import Extract, Passage
from datafari_rag.core.errors import BadRequest, BadSetting, NoDocuments, NotAllowed, NotAuthenticated, NotFound
from datafari_rag.core.events import Sources
from datafari_rag.core.identity import authority_of, is_same, normalized
from datafari_rag.core.search_request import STORED
from datafari_rag.core.settings.table import ServerSettings
from datafari_rag.pipeline import fetch, sources_for
from datafari_rag.ports import Identity
from datafari_rag.protocols.chat_reply_parts import Json
from datafari_rag.protocols.mcp import messages, replies
from datafari_rag.protocols.mcp.messages import Rejected, RpcRequest, succeeded, tool_result
from datafari_rag.protocols.mcp.tools import (
    RESULT_TOKENS,
    AnswerArguments,
    CheckArguments,
    CompareArguments,
    FetchArguments,
    SearchArguments,
    SummarizeArguments,
    listed,
)
from datafari_rag.protocols.records import distinct
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.api.answers import answer_of
from datafari_rag.web.api.grounding import documents_for, found_for, work_units
from datafari_rag.web.ops import request_context
from datafari_rag.web.responses import EVENTS, json_response, plain
from datafari_rag.web.turn import DialectRoute, Route, Turn, run

NAME = "mcp"
"""The dialect in metrics, log and audit."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the *message* of a *turn*, and the *room* of its result."""

    turn: Turn
    message: RpcRequest
    room: replies.Room


def _write(takes: type[replies.Writing]) -> Callable[[Call], Response]:
    """Return what runs a tool that writes; work on whole documents is streamed from its first step on."""

    def run(call: Call) -> Response:
        turn, arguments = call.turn, call.message.params.get("arguments")
        is_answer = takes is AnswerArguments
        is_minimal = is_answer and isinstance(arguments, dict) and arguments.get("effort") == "minimal"
        # No model is wanted; what is wrong with the arguments the dialect says.
        if is_minimal and turn.snapshot.extractive is not None:
            dependencies = replace(turn.snapshot.dependencies, model=turn.snapshot.extractive)
            turn.snapshot = replace(turn.snapshot, dependencies=dependencies)
        dialect = replies.AnswerCall(call.message, call.room, takes)
        turn.row = DialectRoute(NAME, dialect, EVENTS, begins_at_once=not is_answer)
        return answer_of(turn)

    return run


def _search(call: Call) -> Json:
    turn = call.turn
    ask = call.message.arguments(SearchArguments).ask(turn.settings)
    try:
        sources = sources_for(ask, turn.user(), settings=turn.settings, dependencies=turn.snapshot.dependencies)
    except NoDocuments:
        sources = Sources(())
    turn.question, turn.extracts = ask.question, sources.extracts
    return tool_result(replies.search_result(sources, call.room))


def _fetch(call: Call) -> Json:
    turn, wanted = call.turn, call.message.arguments(FetchArguments)
    field = wanted.field or STORED[turn.settings.rag.solr_field]
    document = fetch(
        wanted.id, field, turn.user(), security=turn.settings.security, dependencies=turn.snapshot.dependencies
    )
    if document is None:
        # One sentence for what is not there and for what is not theirs, without the id.
        raise NotFound("There is no document with this id.")
    read = Passage(wanted.start, min(wanted.end, len(document.text)))
    turn.extracts = (Extract(1, document.id, document, (read,), ""),)
    return tool_result(replies.fetched(document, (wanted.start, wanted.end), call.room, wanted.max_tokens))


def _check(call: Call) -> Json:
    turn, wanted = call.turn, call.message.arguments(CheckArguments)
    turn.charge()
    documents, missing = documents_for(distinct(wanted.document_ids), turn.user(), turn.snapshot)
    turn.charge(work_units(wanted.text, documents) - 1)
    check = found_for(wanted.text, documents, turn.snapshot).check
    turn.extracts = check.extracts
    result = replies.check_result(wanted.text, check.stated, documents, missing, call.room)
    return tool_result(result, replies.links(documents, call.room))


def _read(tool: str, work: Callable[[Call], Json]) -> Callable[[Call], Response]:
    """Return what runs the *tool* whose result *work* returns, one JSON object."""

    def run(call: Call) -> Response:
        call.turn.require_settings()
        result = work(call)
        call.turn.finish(log_also=f"tool={tool}")
        return json_response(plain(succeeded(call.message, result)))

    return run


RUNS: dict[str, Callable[[Call], Response]] = {
    "search": _read("search", _search),
    "fetch": _read("fetch", _fetch),
    "answer": _write(AnswerArguments),
    "check": _read("check", _check),
    "summarize": _write(SummarizeArguments),
    "compare": _write(CompareArguments),
}
"""What runs each tool."""


def _row(message: RpcRequest | None, *, is_question: bool) -> DialectRoute:
    """Return the row of a request whose failures are replies to *message* once it is read."""
    dialect = Questionless(lambda error, settings: messages.failed(error, message))
    return DialectRoute(NAME, dialect, EVENTS, is_question=is_question)


MCP = _row(None, is_question=False)

PATH = "/mcp"
RESOURCE_PATH = "/.well-known/oauth-protected-resource"

_NO_AUDIENCE = (
    "/mcp accepts only tokens issued for it, and no audience is configured: "
    "set security.jwt.audience or server.public_url."
)


def mcp_view(turn: Turn) -> Response:
    """Return the reply to one message."""

    def read() -> Incoming:
        _check_origin(turn.settings.server)
        try:
            return turn.body_of(MESSAGES.takes)
        except BadRequest as error:
            if type(error) is not BadRequest:
                raise
            raise Rejected(messages.PARSE_ERROR, error.reason) from error

    def identity() -> Identity:
        if turn.snapshot.agent_identity is None:
            raise BadSetting(_NO_AUDIENCE)
        return turn.snapshot.agent_identity

    response = run(turn, _replied, route=MESSAGES, read=read, by=identity)
    if response.status_code == NotAuthenticated.code and turn.settings.security.identity == "jwt":
        parts = [f'resource_metadata="{turn.base_url}{RESOURCE_PATH}{PATH}"']
        if "Authorization" in request.headers:
            parts.append('error="invalid_token"')
        response.headers["WWW-Authenticate"] = f"Bearer {', '.join(parts)}"
    return response


MESSAGES = Route("mcp", (PATH,), ("POST",), frozenset({"json"}), (MCP,), mcp_view)


def resource_view(turn: Turn) -> Response:
    """Return where a client gets a token for `/mcp` (RFC 9728). Raises: NotFound: no token is taken here."""
    security = turn.settings.security
    if security.identity != "jwt":
        raise NotFound
    about: Json = {
        "resource": f"{turn.base_url}{PATH}",
        "resource_name": messages.SERVER["name"],
        "bearer_methods_supported": ["header"],
    }
    if security.jwt_issuer:
        about["authorization_servers"] = [security.jwt_issuer]
    return Response(plain(about), mimetype="application/json")


def _replied(turn: Turn) -> Response:
    """Return the reply to the message that was sent. Raises: RagError."""
    if turn.user_name is None and turn.settings.security.anonymous == "refuse":
        raise NotAuthenticated
    message = messages.message_of(turn.incoming.body, turn.incoming.headers)
    if message is None:
        turn.outcome = "listed"
        return Response(status=202)
    # The trace that `_meta` names, if any, is continued (MCP, "OpenTelemetry trace context").
    named = {key: value for key in ("traceparent", "tracestate") if isinstance(value := message.meta.get(key), str)}
    if "traceparent" in named:
        request_context.begin(turn.id, named)
        # Where spans are made, the server has put this there.
        if (join := request.environ.get("datafari_rag.join_trace")) is not None:
            join(named)
    # From here on a failure is the reply to this message.
    turn.row = _row(message, is_question=False)
    if message.method != "tools/call":
        turn.outcome = "listed"
        return json_response(plain(succeeded(message, messages.listing(message, listed(), turn.user_name))))
    name = message.params.get("name")
    if not isinstance(name, str) or name not in RUNS:
        shown = messages.short_name(name) if isinstance(name, str) else ""
        raise message.rejected(messages.INVALID_PARAMS, f"Unknown tool: {shown}", status=200)
    turn.take(_row(message, is_question=True))
    room = replies.Room(RESULT_TOKENS, turn.snapshot.dependencies.counter.count, turn.base_url)
    return RUNS[name](Call(turn, message, room))


def _check_origin(server: ServerSettings) -> None:
    """
    Refuse what a page of another site had sent, one included whose name was made to lead here (DNS rebinding).

    That page's own name is in `Host` too, so that being the same proves something only where names are known
    (`server.hosts`, which was checked) or cannot be made to lead elsewhere. Raises: NotAllowed.
    """
    origin = request.headers.get("Origin")
    if origin is None or origin.lower() in server.cors_origins:
        return
    named = authority_of(origin)
    is_ours = named is not None and is_same(named, request.host)
    if not is_ours or not (server.hosts or _is_fixed(request.host)):
        raise NotAllowed("Pages of other web sites are not allowed to send this request.")


def _is_fixed(authority: str) -> bool:
    """Say whether no name service decides where *authority* leads: an address, or the machine itself."""
    host = normalized(authority)
    if host is None:
        return False
    try:
        ipaddress.ip_address(host[0].strip("[]"))
    except ValueError:
        return host[0] == "localhost" or host[0].endswith(".localhost")
    return True
