"""
`POST /mcp`: what agents call (Model Context Protocol). The user is proved here, before a message is read.

Nothing is kept between two requests. Every tool reads as its caller, by the same pipeline as every other dialect.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from flask import Response, request

from datafari_rag.core.ask import Ask, TokenBudget
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.errors import BadRequest, BadSetting, NoDocuments, NotAllowed, NotAuthenticated, NotFound
from datafari_rag.core.events import Sources
from datafari_rag.core.identity import authority_of, is_same, normalized
from datafari_rag.core.query.filter_queries import facets_of
from datafari_rag.core.settings.table import ServerSettings, Settings
from datafari_rag.pipeline import fetch, sources_for
from datafari_rag.ports import Identity
from datafari_rag.protocols.mcp import messages, replies
from datafari_rag.protocols.mcp.messages import Notification, Rejected, RpcRequest
from datafari_rag.protocols.mcp.replies import AnswerCall, Room, succeeded, tool_result
from datafari_rag.protocols.mcp.tools import (
    TOOLS,
    CheckArguments,
    FetchArguments,
    SearchArguments,
    Tool,
    restrictions_of,
)
from datafari_rag.protocols.records import distinct
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.api.answers import answer_of
from datafari_rag.web.api.grounding import documents_for, found_for, work_units
from datafari_rag.web.ops import request_context
from datafari_rag.web.responses import EVENTS, json_response, plain
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.turn import DialectRoute, Route, Turn, run

RESULT_TOKENS = 2_000
"""Most tokens of one result of a tool: what an agent can read of several calls beside its own work."""

PASSAGE_SHARE = 0.6
"""Share of a search's result that its passages may take; the rest is for ids, titles, addresses and places."""

PASSAGE_TOKENS = 300
"""Most tokens of one passage of a search's result."""

NAME = "mcp"
"""The dialect in metrics, log and audit."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the *message* of a *turn*; the addresses of our own pages begin with *origin*."""

    turn: Turn
    message: RpcRequest
    origin: str

    @property
    def snapshot(self) -> ServiceSnapshot:
        """The settings and parts that this call keeps to."""
        return self.turn.snapshot

    def room(self) -> Room:
        """Return how large the result may be."""
        return Room(RESULT_TOKENS, self.snapshot.dependencies.counter.count, self.origin)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool found: *structured* is its result, *read* what was given to the caller, for the audit."""

    structured: Mapping[str, object]
    read: tuple[Extract, ...] = ()
    linked: Sequence[Document] = ()
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool and what runs it."""

    tool: Tool
    run: Callable[[Call], Response]


def answer(call: Call) -> Response:
    """Return the answer to a question, as a stream where the client wants to see progress."""
    arguments, turn = call.message.params.get("arguments"), call.turn
    # No model is wanted; what is wrong with the arguments the dialect says.
    if isinstance(arguments, Mapping) and arguments.get("effort") == "minimal":
        dependencies = call.snapshot.dependencies
        model = call.snapshot.extractive or dependencies.model
        turn.snapshot = replace(call.snapshot, dependencies=replace(dependencies, model=model))
    turn.row = DialectRoute(NAME, AnswerCall(call.message, call.room()), EVENTS)
    return answer_of(turn)


def _work(tool: Tool) -> Offered:
    """Return *tool* as work on whole documents: streamed from its first step on, where the client wants that."""

    def run(call: Call) -> Response:
        call.turn.row = DialectRoute(NAME, AnswerCall(call.message, call.room(), tool), EVENTS, begins_at_once=True)
        return answer_of(call.turn)

    return Offered(tool, run)


def _search(call: Call) -> ToolOutcome:
    arguments, settings = call.message.arguments(SearchArguments), call.snapshot.settings
    ask = Ask(
        question=arguments.query,
        # Short passages of many documents, the best of each before the second of any.
        token_budget=TokenBudget(int(RESULT_TOKENS * PASSAGE_SHARE), PASSAGE_TOKENS, arguments.rows),
        max_documents=arguments.rows,
        restrictions=restrictions_of(arguments.filters, facets_of(settings.solr)),
        documents=arguments.basket,
    )
    try:
        sources = sources_for(ask, call.turn.user(), settings=settings, dependencies=call.snapshot.dependencies)
    except NoDocuments:
        sources = Sources(())
    return ToolOutcome(replies.search_result(sources, call.room()), sources.extracts, question=ask.question)


def _fetch(call: Call) -> ToolOutcome:
    arguments, settings = call.message.arguments(FetchArguments), call.snapshot.settings
    field, user = arguments.field_by(settings.rag), call.turn.user()
    document = fetch(arguments.id, field, user, settings=settings, dependencies=call.snapshot.dependencies)
    if document is None:
        # One sentence for what is not there and for what is not theirs, without the id.
        raise NotFound("There is no document with this id.")
    read_place = Passage(arguments.start, min(arguments.end, len(document.text)))
    result = replies.fetched(document, (arguments.start, arguments.end), call.room(), arguments.max_tokens)
    return ToolOutcome(result, (Extract(1, document.id, document, (read_place,), ""),))


def _check(call: Call) -> ToolOutcome:
    arguments = call.message.arguments(CheckArguments)
    call.turn.charge()
    documents, missing = documents_for(distinct(arguments.document_ids), call.turn.user(), call.snapshot)
    call.turn.charge(work_units(arguments.text, documents) - 1)
    result = found_for(arguments.text, documents, call.snapshot)
    checked = replies.check_result(arguments.text, result.check.stated, result.documents, missing, call.room())
    return ToolOutcome(checked, result.check.extracts, result.documents)


def _run(tool: Tool, work: Callable[[Call], ToolOutcome]) -> Offered:
    """Return *tool* with *work*, whose result is one JSON object."""

    def run(call: Call) -> Response:
        call.turn.require_settings()
        outcome = work(call)
        call.turn.question, call.turn.extracts = outcome.question, outcome.read
        call.turn.finish(log_also=f"tool={tool.name}")
        links = replies.links(outcome.linked, call.room())
        return json_response(plain(succeeded(call.message, tool_result(outcome.structured, links))))

    return Offered(tool, run)


OFFERED: Mapping[str, Offered] = {
    "search": _run(TOOLS["search"], _search),
    "fetch": _run(TOOLS["fetch"], _fetch),
    "answer": Offered(TOOLS["answer"], answer),
    "check": _run(TOOLS["check"], _check),
    "summarize": _work(TOOLS["summarize"]),
    "compare": _work(TOOLS["compare"]),
}
"""Every tool with what runs it, in the order in which they are listed."""


def _without_question(message: RpcRequest | None) -> DialectRoute:
    """Return the row of what is answered without a question; its failures are replies to *message* once it is read."""
    return DialectRoute(
        NAME, Questionless(lambda error, settings: replies.failed(error, message)), EVENTS, is_question=False
    )


MCP = _without_question(None)

PATH = "/mcp"
RESOURCE_PATH = "/.well-known/oauth-protected-resource"

_NO_AUDIENCE = (
    "/mcp accepts only tokens issued for it, and no audience is configured: "
    "set security.jwt.audience or server.public_url."
)


def mcp_view(turn: Turn, offered: Mapping[str, Offered] = OFFERED) -> Response:
    """Return the reply to one message; *offered* are the tools."""
    settings = turn.settings

    def read() -> Incoming:
        _check_origin(settings.server)
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

    response = run(
        turn,
        lambda turn: _answered(turn, offered),
        route=MESSAGES,
        read=read,
        by=identity,
    )
    if response.status_code == NotAuthenticated.code and _takes_tokens(settings):
        parts = [f'resource_metadata="{origin_of(settings.server)}{RESOURCE_PATH}{PATH}"']
        if "Authorization" in request.headers:
            parts.append('error="invalid_token"')
        response.headers["WWW-Authenticate"] = f"Bearer {', '.join(parts)}"
    return response


MESSAGES = Route("mcp", (PATH,), ("POST",), frozenset({"json"}), (MCP,), mcp_view)


def resource_view(turn: Turn) -> Response:
    """Return where a client gets a token for `/mcp` (RFC 9728). Raises: NotFound: no token is taken here."""
    settings = turn.settings
    if not _takes_tokens(settings):
        raise NotFound
    about: dict[str, object] = {
        "resource": f"{origin_of(settings.server)}{PATH}",
        "resource_name": replies.SERVER["name"],
        "bearer_methods_supported": ["header"],
    }
    if settings.security.jwt_issuer:
        about["authorization_servers"] = [settings.security.jwt_issuer]
    return Response(plain(about), mimetype="application/json")


def origin_of(server: ServerSettings) -> str:
    """Return what the addresses of our own pages begin with: as `server.public_url` has it, else this request."""
    return server.public_url.rstrip("/") or f"{request.scheme}://{request.host}"


def _answered(turn: Turn, offered: Mapping[str, Offered]) -> Response:
    incoming = turn.incoming
    if turn.user_name is None and turn.settings.security.anonymous == "refuse":
        raise NotAuthenticated
    message = messages.message_of(incoming.body, incoming.headers)
    if isinstance(message, Notification):
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
    turn.row = _without_question(message)
    return _replied(turn, message, offered)


def _replied(turn: Turn, message: RpcRequest, offered: Mapping[str, Offered]) -> Response:
    if message.method != "tools/call":
        listed = [row.tool for row in offered.values()]
        result = replies.listing(message, listed, turn.user_name)
        turn.outcome = "listed"
        return json_response(plain(succeeded(message, result)))
    name = message.params.get("name")
    if not isinstance(name, str) or name not in offered:
        raise replies.unknown_tool(message)
    turn.take(replace(turn.row, is_question=True))
    return offered[name].run(Call(turn, message, origin_of(turn.settings.server)))


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


def _takes_tokens(settings: Settings) -> bool:
    return settings.security.identity == "jwt"
