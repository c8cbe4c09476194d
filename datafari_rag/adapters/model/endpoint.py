"""
The model behind an HTTP endpoint: one prompt, one request, one reply read as it comes. No retries here, no fallback.

An outcome is a value. Nothing of a request is kept on the model: what belongs to one answer lives in its generator,
and closing that closes the connection. JSON is turned into values here, by orjson, and nowhere else on this side.

Every foreign exception ends here as a core error. What holds for all HTTP is in `adapters/http.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

import orjson

from datafari_rag.adapters.http import TIMEOUTS, UNREADABLE, Fault, Reply, Request, without_credentials
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.errors import (
    ContentFiltered,
    ModelError,
    ModelGarbled,
    ModelInputTooLong,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NoAnswer,
    OnlyThoughts,
    RagError,
    Rejection,
    ThoughtsPassedOn,
)
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.replies import (
    RELAYED,
    ReplyChunk,
    ReplyTotals,
    error_object,
    failure_for,
    most_bytes,
    refused_by_model,
)
from datafari_rag.core.model.servers import (
    AUTO,
    LISTINGS,
    MAX_CHANGES,
    ServerNeeds,
    Thinking,
    callers_error,
    names_in,
    needs_for,
    window_in,
    with_query,
    with_thoughts,
    without_refused,
)
from datafari_rag.core.model.streams import Characters, ServerSentEvents, ThinkingFilter, TooLong
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.settings.table import ModelLimits
from datafari_rag.llm_templates import TEMPLATES, Template, openai
from datafari_rag.ports import Ending, TextChunk

MAX_ERROR_BYTES = 65_536
"""Longest reply of a status other than 200 that is read."""

AFTER_END_S, AFTER_DONE_S = 0.5, 0.05
"""How long more is waited for after a finish reason, such as usage; and after `[DONE]`, for the end of the body."""

END_MARK = "[DONE]"

MAX_MODELS = 256
"""Of how many models of one endpoint the form is remembered: callers of /v1 may name any."""

MAX_LISTING_BYTES, LISTING_S = 16_000_000, (5.0, 20.0)
"""What is read of what a server says of its models, and for how long: to connect, and in all."""

POOL = 2048
"""Most idle connections kept for one endpoint: at least the streams of a worker, or they are opened again and again."""

T = TypeVar("T")

_COMPLETIONS = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    Where a model's server is; *token* empty means that no key is sent. *model* None asks for the prompt's model.

    *proxy* is the http address of a proxy in between, with user and password if it wants them; empty means none.
    *headers* are asked for with each request: its id and its trace. *server* names a row of the known servers, *body*
    has further keys of a request (`llm.server`, `llm.body`).
    """

    url: str
    token: str = field(default="", repr=False)
    model: str | None = None
    tls: Tls = PLAIN_TLS
    proxy: str = field(default="", repr=False)
    headers: Callable[[], Mapping[str, str]] = dict
    server: str = AUTO
    body: Mapping[str, object] = field(default_factory=dict)

    def needs(self, model: str) -> ServerNeeds:
        """Return what the server wants for *model*, as far as the table of known servers says."""
        return needs_for(self.server, self.url, model, body=self.body)


class ModelServer:
    """All connections to one endpoint. Safe for threads and greenlets: a connection has one user at a time."""

    def __init__(self, endpoint: Endpoint, machine: Machine = MACHINE) -> None:
        """
        Hold no connection yet; nothing is opened before the first request.

        Raises:
            ValueError: the URL is not http or https, or a PEM file cannot be used.
        """
        # Credentials in the address would take the place of the token.
        url, _ = without_credentials(endpoint.url)
        needs = endpoint.needs("")
        self._url = with_query(url, needs.query)
        self._client = machine.client(endpoint.url, failed, endpoint.tls, proxy=endpoint.proxy, pool=POOL)
        self._passed_on, self._clock = endpoint.headers, machine.monotonic
        self._headers = {"Content-Type": "application/json"}
        if endpoint.token:
            name, value = (needs.key_header, "{}") if needs.key_header else ("Authorization", "Bearer {}")
            self._headers[name] = value.format(endpoint.token)

    def post(self, body: bytes, *, accept: str, timeout_s: tuple[float, float], max_bytes: int) -> Reply:
        """
        Send *body* and return the reply's head, whatever its status; the limits are those of `http.Request`.

        Raises:
            ModelTimeout: not connected in time, or no head in time.
            ModelUnavailable: no connection, or it ended before the head.
            ModelGarbled: the head is not HTTP.
        """
        headers = {**self._passed_on(), **self._headers, "Accept": accept}
        return self._client.open(Request("POST", self._url, timeout_s, max_bytes, body, headers, is_safe=True))

    def names(self) -> tuple[str, ...]:
        """Return the names of its models. Raises: ModelError."""
        return names_in(self._read("models"))

    def window(self, model: str) -> int | None:
        """Return the window of *model* in tokens, None where the server does not say; never fails."""
        for path, asks in LISTINGS:
            with suppress(ModelError):
                size = window_in(self._read(path, orjson.dumps({"model": model}) if asks else None), model)
                if size is not None:
                    return size
        return None

    def _read(self, path: str, body: bytes | None = None) -> object:
        """
        Return the JSON at *path* of this server, beside the completions where it is relative; None where it is no JSON.

        Raises:
            ModelRefused: another status than 200.
            ModelError: as `post`.
        """
        parts = urlsplit(self._url)
        beside = path if path.startswith("/") else f"{parts.path.removesuffix(_COMPLETIONS)}/{path}"
        url, method = urlunsplit(parts._replace(path=beside, query="")), "GET" if body is None else "POST"
        until = self._clock() + LISTING_S[1]
        headers = {**self._passed_on(), **self._headers, "Accept": "application/json"}
        request = Request(method, url, LISTING_S, MAX_LISTING_BYTES, body, headers, is_safe=True)
        status, data = self._client.whole(request, lambda: until - self._clock())
        if status != 200:
            raise ModelRefused(log=f"status={status}", status=status)
        with suppress(ValueError):
            return orjson.loads(data)
        return None

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their reply ends."""
        self._client.close()


class HttpModel:
    """
    One endpoint with its template: a `Model` and a `Relay` that asks once.

    A question that is refused for a parameter or for the form of its messages is sent once more without that.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        template: str = "openai",
        limits: ModelLimits = ModelLimits(),  # noqa: B008 – frozen
        machine: Machine = MACHINE,
    ) -> None:
        """
        Open nothing yet.

        Raises:
            ValueError: the endpoint's URL or one of its PEM files cannot be used.
            KeyError: no such template.
        """
        self._server, self._endpoint = ModelServer(endpoint, machine), endpoint
        self._taken: dict[str, tuple[bool, Thinking]] = {}
        """By model: whether it wanted the plain form, and how it thinks."""
        # Its replies name no model, and callers are to see what answered.
        self._name = "" if template == "openai" else template
        self._template: Template = TEMPLATES[template]
        self._limits, self._clock, self._wall_clock = limits, machine.monotonic, machine.wall

    def generate(
        self, prompt: Prompt, *, is_streamed: bool, until: float | None = None
    ) -> Generator[TextChunk | Ending, None, None]:
        """
        Ask, and yield pieces, then one `Ending`; see `ports.Model`. Each request that was refused counts as a try.

        *until* is the time of *clock* at which the answer must be there, when that is sooner than the total limit.
        """
        if self._endpoint.model is not None:
            prompt = replace(prompt, model=self._endpoint.model, chosen=prompt.chosen - {"model"})
        until = self._clock() + self._limits.total_s if until is None else until
        is_plain, thinks = self._taken.get(prompt.model, (False, None))
        needs = self._endpoint.needs(prompt.model)
        # What its table says, in the form that was taken last.
        known = needs = replace(needs, is_plain=is_plain or needs.is_plain, thinking=thinks or needs.thinking)
        refused: list[ServerNeeds] = []
        while True:
            tally = ReplyTotals(prompt.model or self._name, tries=1 + len(refused))
            # A whole reply can wait for its end to be without thoughts, a stream only where it must.
            is_aloud = needs.thinking == "aloud"
            thinking = ThinkingFilter(is_held=is_aloud or not is_streamed, thinks_aloud=is_aloud)
            failure: RagError | None = None
            try:
                reply, deadline = self._reply_to(prompt, needs, is_streamed=is_streamed, until=until)
                with reply:
                    yield from self._pieces(reply, tally, deadline, thinking)
                failure = tally.failure()
            except ModelError as error:
                failure = error
            rejection = failure.rejection if isinstance(failure, ModelError) and not tally.has_text else None
            changed = without_refused(needs, rejection) if rejection and len(refused) < MAX_CHANGES else None
            if changed is None or changed in (needs, *refused):
                break
            refused.append(needs)
            needs = changed
        if failure is None or isinstance(failure, UNDERSTOOD):
            has_thoughts = tally.facts.has_thoughts or isinstance(failure, OnlyThoughts)
            needs = with_thoughts(needs, thinking, prompt, has_thoughts=has_thoughts)
            if (needs.is_plain, needs.thinking) != (known.is_plain, known.thinking) and len(self._taken) < MAX_MODELS:
                self._taken[prompt.model] = needs.is_plain, needs.thinking
        if isinstance(failure, ModelError):
            # What the caller chose and the model refused is the caller's error.
            failure = callers_error(failure, chosen=prompt.chosen, model=prompt.model) or failure
        yield Ending(tally.finish_reason, failure, tally.facts)

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool, until: float | None = None
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        """Hand *body* on once, and its reply back, both unchanged; see `ports.Relay`."""
        if self._endpoint.model is not None:
            body = {**body, "model": self._endpoint.model}
        tally = ReplyTotals(str(body.get("model") or ""))
        failure: RagError | None = None
        try:
            deadline = ReadDeadline(self._limits, self._clock, is_streamed=is_streamed, until=until)
            with self._answered(encoded(body), deadline, most_bytes(body), is_relayed=True) as reply:
                read = openai.delta if _is_stream(reply, deadline) else openai.answer
                # Of all answers that a relayed body requests each must be finished.
                wanted = body.get("n")
                unfinished = wanted if isinstance(wanted, int) and wanted > 0 else 1
                for chunk in _chunks(reply, tally, deadline):
                    choices = chunk.get("choices")
                    for choice in choices if isinstance(choices, list) else ():
                        unfinished -= isinstance(choice, Mapping) and choice.get("finish_reason") is not None
                    delta = read(chunk)
                    finished = None if unfinished > 0 else delta.finish_reason or tally.finish_reason or "stop"
                    tally.add(replace(delta, finish_reason=finished))
                    yield from deadline.lent(chunk)
        except RagError as error:
            failure = error
        yield Ending(tally.finish_reason, failure, tally.facts)

    def close(self) -> None:
        """Close the idle connections."""
        self._server.close()

    def _reply_to(
        self, prompt: Prompt, needs: ServerNeeds, *, is_streamed: bool, until: float
    ) -> tuple[Reply, ReadDeadline]:
        """
        Send *prompt* and return the reply, and how long it is waited for. Raises: ModelError.

        The request's body, all documents in it, ends here: it would be the largest part of an open stream.
        """
        body = self._template.body(prompt, is_streamed, needs)
        deadline = ReadDeadline(self._limits, self._clock, is_streamed=body.get("stream") is True, until=until)
        most = most_bytes({"max_tokens": prompt.max_tokens, **body})
        return self._answered(encoded(body), deadline, most), deadline

    def _answered(self, body: bytes, deadline: ReadDeadline, most: int, *, is_relayed: bool = False) -> Reply:
        """Return the reply when it is a 200. Raises: ModelError; RefusedByModel, where a relayed body is refused."""
        left_s = deadline.left_s()
        reply = self._server.post(
            body,
            accept="text/event-stream, application/json" if deadline.is_streamed else "application/json",
            timeout_s=(min(self._limits.connect_s, left_s), left_s),
            max_bytes=most,
        )
        if reply.status == 200:
            return reply
        data, error = b"", dict[str, object]()
        # A body that cannot be read leaves the status.
        with reply, suppress(ModelError):
            for piece in reply.pieces(deadline.left_s):
                data += piece
                if len(data) > MAX_ERROR_BYTES:
                    break
            error |= error_object(decoded(data))
        rejection = Rejection(reply.status, reply.headers, len(data), error)
        # All of a relayed body was its sender's own.
        if is_relayed and rejection.status in RELAYED:
            raise refused_by_model(rejection)
        raise failure_for(rejection, now_s=self._wall_clock())

    def _pieces(
        self, reply: Reply, tally: ReplyTotals, deadline: ReadDeadline, thinking: ThinkingFilter
    ) -> Iterator[TextChunk]:
        """
        Yield the answer's text without the model's thoughts; a whole reply's at its end, when it is no failure.

        White space before the first word waits for it. Raises: ModelError, as `_chunks`; ThoughtsPassedOn, where a
        stream showed too late that it began with thoughts.
        """
        is_stream, began, is_begun = _is_stream(reply, deadline), self._clock(), False
        read = self._template.delta if is_stream else self._template.answer
        characters, text = Characters(), ""
        for chunk in _chunks(reply, tally, deadline):
            delta = read(chunk)
            before = thinking.thought_chars
            if delta.thought_chars:
                thinking.apart(delta.thought_chars)
            said = thinking.feed(delta.text)
            if thinking.thought_chars > before:
                tally.note_thoughts(thinking.thought_chars, (self._clock() - began) * 1000)
                deadline.go_on()
            tally.add(delta if said == delta.text else replace(delta, text=said))
            text += characters.feed(said)
            if text and is_stream and tally.has_text:
                yield from deadline.lent(TextChunk(text, None if is_begun else tally.facts))
                text, is_begun = "", True
        said = thinking.end(is_cut=tally.finish_reason == "length")
        if thinking.is_late:
            raise ThoughtsPassedOn(log="a mark that ends thoughts")
        tally.note_thoughts(thinking.thought_chars, tally.facts.thought_ms)
        tally.add(ReplyChunk(said))
        text += characters.feed(said) + characters.end()
        if text and tally.has_text and (is_stream or tally.failure() is None):
            yield TextChunk(text, None if is_begun else tally.facts)


UNDERSTOOD = (NoAnswer, OnlyThoughts, ThoughtsPassedOn, ModelInputTooLong, ContentFiltered)
"""Failures of a request whose form the server took."""


class ReadDeadline:
    """How much longer one answer is waited for: until its first text, then until the next, and never past the total."""

    def __init__(
        self, limits: ModelLimits, clock: Callable[[], float], *, is_streamed: bool, until: float | None = None
    ) -> None:
        """Start now. *until* ends it sooner than the total limit would."""
        self._limits, self._clock, self.is_streamed = limits, clock, is_streamed
        now = clock()
        self._end = now + limits.total_s if until is None else min(until, now + limits.total_s)
        self._next = now + limits.first_token_s if is_streamed else self._end
        self._is_waited, self._lent_s = False, 0.0

    def lent(self, piece: T) -> Iterator[T]:
        """
        Yield *piece*, and measure the next silence from when the reader comes back for more.

        The time of a slow reader says nothing about the model.
        """
        given_at = self._clock()
        yield piece
        now = self._clock()
        self._lent_s += now - given_at
        if self.is_streamed:
            self._next = now + self._limits.stall_s

    def go_on(self) -> None:
        """Note that the model works without an answer yet: a thought is no silence."""
        if self.is_streamed:
            self._next = max(self._next, self._clock() + self._limits.stall_s)

    def end(self, more_s: float) -> None:
        """Note that the answer is complete: what may follow is waited for *more_s* seconds."""
        self._next = min(self._next, self._clock() + more_s)

    def left_s(self) -> float:
        """Return the seconds left, more than 0. Raises: ModelTimeout, when none are."""
        now = self._clock()
        rest = min(self._next, self._end) - now
        if rest <= 0:
            is_blameless = not self._is_waited or min(self._next, self._end + self._lent_s) > now
            raise ModelTimeout(log="over a limit of llm.*_timeout_s", is_blameless=is_blameless)
        self._is_waited = True
        return rest


def encoded(body: Mapping[str, object]) -> bytes:
    """Return *body* as JSON; a half character, which UTF-8 cannot hold, is written as an escape."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode("ascii")


def decoded(data: bytes | str) -> Mapping[str, object]:
    """Return the JSON object in *data*; halves of characters and NaN are read too. Raises: ModelGarbled."""
    try:
        value = orjson.loads(data)
    except ValueError:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelGarbled(log=f"no JSON in {len(data)} bytes") from error
    if not isinstance(value, dict):
        raise ModelGarbled(log=f"JSON, but no object, in {len(data)} bytes")
    return value


def _chunks(reply: Reply, tally: ReplyTotals, deadline: ReadDeadline) -> Iterator[Mapping[str, object]]:
    """
    Yield the JSON objects of a reply as they come: one, or the chunks of a stream.

    What goes wrong after the finish reason is no matter. Raises: ModelError.
    """
    if not _is_stream(reply, deadline):
        yield decoded(b"".join(reply.pieces(deadline.left_s)))
        return
    events, count, size = ServerSentEvents(), 0, 0
    data, is_done = b"-", False
    try:
        while data:
            data = reply.read(deadline.left_s())
            size += len(data)
            for event in () if is_done else events.feed(data) if data else events.end():
                is_done = is_done or event.strip() == END_MARK
                if not is_done:
                    count += 1
                    try:
                        chunk = decoded(event)
                    except ModelGarbled as error:
                        if not data:
                            raise ModelUnavailable(log=f"cut in event {count}") from error
                        raise ModelGarbled(log=f"bad_events=1 events={count}") from error
                    yield chunk
            if is_done or tally.finish_reason is not None:
                deadline.end(AFTER_DONE_S if is_done else AFTER_END_S)
    except (ModelError, TooLong) as error:
        if tally.finish_reason is None and isinstance(error, TooLong):
            raise ModelGarbled(log="an event is too long") from error
        if tally.finish_reason is None and not is_done:
            raise
    if size and not count and not is_done:
        raise ModelGarbled(log=f"no event in {size} bytes")
    # The finish reason, not [DONE] and not the end of the bytes, says that an answer is complete.
    if tally.finish_reason is None:
        raise ModelUnavailable(log=f"ended without finish_reason events={count} bytes={size}")


def _is_stream(reply: Reply, deadline: ReadDeadline) -> bool:
    """Say whether the reply is a stream: asked for, and not answered whole all the same."""
    return deadline.is_streamed and not reply.headers.get("content-type", "").lower().startswith("application/json")


def failed(fault: Fault, log: str) -> ModelError:
    """Return the core error of a fault of HTTP; where no server was reached, a repeat may succeed."""
    kind = ModelTimeout if fault in TIMEOUTS else ModelGarbled if fault in UNREADABLE else ModelUnavailable
    return kind(log=log, can_repeat=fault is Fault.REFUSED)
