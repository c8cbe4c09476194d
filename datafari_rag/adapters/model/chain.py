"""
Several endpoints as one model: each guarded by its breaker and retried within limits, then the next one.

A circuit breaker leaves an endpoint alone for a while after several failures in a row, then tries it with one request.
It is our own, because the known libraries have had no release for a year or more and each of them is larger than what
is needed here: a counter, a time and a lock.

Passing on happens only before the first word. What is tried, and how it fails, is decided by the outcomes that the
endpoints give; nothing here uses HTTP. The log has names, numbers and labels.

`chain_for` makes it of the settings: their endpoints in order, and perhaps the built-in model last.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from datafari_rag.adapters.machine import MACHINE, Machine, pause
from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.adapters.retries import RetryPolicy, repeated
from datafari_rag.core.errors import ContentFiltered, ModelError, ModelTimeout, ModelUnavailable, RagError
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts
from datafari_rag.core.evidence.answer import pieces
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.servers import completed
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import ModelLimits, Settings
from datafari_rag.ports import Ending, Model, Offload, TextChunk, inline

log = logging.getLogger(__name__)

T = TypeVar("T")
Answering = Generator[T | Ending, None, None]


Attempt = Callable[[float], Answering[T]]
"""Asks once; takes the time at which the answer must be there."""

WAIT_WITH_FALLBACK_S = 2.0
"""Longest time spent on one endpoint's retries while another one is left to ask."""


class ChainEndpoint(Protocol):
    """What a link needs of an endpoint: `HttpModel` has it."""

    def generate(
        self, prompt: Prompt, *, is_streamed: bool, until: float | None = None
    ) -> Generator[TextChunk | Ending, None, None]:
        """Answer once, as `ports.Model` says, by *until*."""
        ...

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool, until: float | None = None
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        """Relay once, as `ports.Relay` says, by *until*."""
        ...

    def close(self) -> None:
        """Close the idle connections."""
        ...


@dataclass(frozen=True, slots=True)
class ChainMember:
    """One endpoint of the chain: *name* for the log (a host, never a whole URL), and its breaker."""

    name: str
    endpoint: ChainEndpoint
    breaker: Breaker


class ModelChain:
    """
    A `Model` and a `Relay` made of endpoints in order, and perhaps of a last model that needs no endpoint.

    Shared by all requests: breakers and idle connections are all it keeps.
    """

    def __init__(
        self,
        links: Sequence[ChainMember],
        *,
        last: Model | None = None,
        limits: ModelLimits = ModelLimits(),  # noqa: B008 – frozen
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = pause,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Ask *links* in turn, then *last*. *clock* must be the one that the links use; *chance* shortens waits."""
        self._links, self._last = tuple(links), last
        self._limits, self._clock, self._sleep, self._chance = limits, clock, sleep, chance

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        """Yield the pieces of the first endpoint that begins to answer, then one `Ending`; see `ports.Model`."""
        last = self._last

        def by(link: ChainMember) -> Attempt[TextChunk]:
            return lambda until: link.endpoint.generate(prompt, is_streamed=is_streamed, until=until)

        attempts: list[Attempt[TextChunk]] = [partial(_guarded, link, by(link)) for link in self._links]
        if last is not None:
            attempts.append(lambda until: last.generate(prompt, is_streamed=is_streamed))
        return self._in_turn(attempts, within_s=prompt.within_s)

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        """Relay to the first endpoint that takes it; see `ports.Relay`. The last model takes no foreign bodies."""

        def by(link: ChainMember) -> Attempt[Mapping[str, object]]:
            return lambda until: link.endpoint.relay(body, is_streamed=is_streamed, until=until)

        return self._in_turn([partial(_guarded, link, by(link)) for link in self._links])

    def breakers(self) -> Sequence[tuple[str, bool]]:
        """Return each endpoint's name, in order, and whether its breaker is open; sends no request."""
        return [(link.name, link.breaker.is_open) for link in self._links]

    def close(self) -> None:
        """Close the idle connections of all endpoints; running answers continue."""
        for link in self._links:
            link.endpoint.close()

    def _policy(self, until: float) -> RetryPolicy:
        return RetryPolicy(self._limits.retries, lambda: until - self._clock(), self._sleep, self._chance)

    def _in_turn(self, attempts: Sequence[Attempt[T]], *, within_s: float | None = None) -> Answering[T]:
        """Yield the first answer that is not to be passed on, each attempt retried; all tries count in its facts."""
        total_s = self._limits.total_s
        until = self._clock() + (total_s if within_s is None else min(total_s, within_s))
        tries = 0
        for number, attempt in enumerate(attempts, 1):
            is_last = number == len(attempts)
            most = until if is_last else min(until, self._clock() + WAIT_WITH_FALLBACK_S)
            patient = self._policy(most)
            for begun in repeated(partial(_begun, attempt, until), _failure, patient):
                tries += begun.tries
            with closing(begun.rest):
                failure = _failure(begun)
                # Another endpoint filters the same content; and an answer that is nothing is an answer.
                if not is_last and failure is not None and not isinstance(failure, ContentFiltered):
                    continue
                yield counted(begun.first, tries, is_fallback=number > 1)
                for piece in begun.rest:
                    yield counted(piece, tries, is_fallback=number > 1)
                return
        yield Ending(None, ModelUnavailable(log="no endpoint"), UNKNOWN_MODEL)


@dataclass(frozen=True, slots=True)
class _Begun(Generic[T]):
    """An answer whose *first* item is here, its *rest*, and the *tries* that its endpoint counts."""

    first: T | Ending
    rest: Answering[T]
    tries: int


def _begun(attempt: Attempt[T], until: float) -> _Begun[T]:
    rest = attempt(until)
    first = next(rest)
    if isinstance(first, Ending):
        rest.close()
    facts = first.facts if isinstance(first, Ending | TextChunk) else None
    return _Begun(first, rest, 1 if facts is None else facts.tries)


def _failure(begun: _Begun[T]) -> ModelError | None:
    failure = begun.first.failure if isinstance(begun.first, Ending) else None
    return failure if isinstance(failure, ModelError) else None


def _guarded(link: ChainMember, attempt: Attempt[T], until: float) -> Answering[T]:
    """Yield what *attempt* yields, unless the endpoint's breaker is open; report to the breaker how it ended."""
    verdict = link.breaker.verdict()
    if verdict.wait_s > 0:
        failure = ModelUnavailable(log=f"breaker open for {link.name}", retry_after_s=round(verdict.wait_s, 1))
        yield Ending(None, failure, replace(UNKNOWN_MODEL, tries=0))
        return
    is_there: bool | None = None
    try:
        with closing(attempt(until)) as answering:
            for piece in answering:
                if isinstance(piece, Ending):
                    is_there = _is_there(link, piece.failure)
                yield piece
    finally:
        link.breaker.note(verdict, is_there=is_there)


def _is_there(link: ChainMember, failure: RagError | None) -> bool | None:
    """
    Return what an ending says of the endpoint: that it is there, that it is not, or nothing.

    Connection errors, 5xx and time-outs say that it is not; 4xx, 429, garbled and filtered answers show that it is. A
    time-out that a slow reader or the endpoint before this one caused says nothing.
    """
    if failure is None:
        return True
    log.warning("model %s failed: %s %s", link.name, failure.label, failure.log)
    if isinstance(failure, ModelTimeout):
        return None if failure.is_blameless else False
    return not (isinstance(failure, ModelUnavailable) and (failure.status is None or failure.status >= 500))


def counted(piece: T | Ending, tries: int, *, is_fallback: bool = False) -> T | Ending:
    """Return *piece* with the number of tries in its facts, where it has facts."""
    if isinstance(piece, Ending):
        return replace(piece, facts=replace(piece.facts, tries=tries, is_fallback=is_fallback))
    if isinstance(piece, TextChunk) and piece.facts is not None:
        return replace(piece, facts=replace(piece.facts, tries=tries, is_fallback=is_fallback))
    return piece


@dataclass(frozen=True, slots=True)
class BreakerVerdict:
    """Whether a request may pass: now (*wait_s* is 0), or after so many seconds; *probe* numbers a probe, 0 is none."""

    wait_s: float = 0.0
    probe: int = 0


class Breaker:
    """
    One endpoint's breaker, shared by all its requests; safe for threads and greenlets.

    Closed: all may pass. Open, for *reset_s* seconds: none may. Then one may pass as a probe; how it ends decides.
    """

    def __init__(self, failures: int, reset_s: float, clock: Callable[[], float]) -> None:
        """Start closed. *failures* in a row open it, 0 turns it off; *clock* gives seconds that never go back."""
        self._most, self._reset_s, self._clock = failures, reset_s, clock
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._opened_at: float | None = None
        self._probes = 0
        self._probe = 0
        """The number of the probe that is on its way, 0 for none: only its own report ends it."""

    def verdict(self) -> BreakerVerdict:
        """
        Return whether one request may pass now, which must then be reported; else the seconds until one may.

        A request that was let through is reported with its verdict to `note`.
        """
        with self._lock:
            if self._opened_at is None:
                return BreakerVerdict()
            wait = self._opened_at + self._reset_s - self._clock()
            if wait <= 0 and not self._probe:
                self._probes += 1
                self._probe = self._probes
                return BreakerVerdict(probe=self._probe)
            return BreakerVerdict(max(wait, 1.0))

    @property
    def is_open(self) -> bool:
        """Return whether the breaker is open, or half-open without an answered probe; sends no request."""
        return self._opened_at is not None

    def note(self, verdict: BreakerVerdict, *, is_there: bool | None) -> None:
        """Note whether the endpoint is there, by the request of *verdict*; None where its reader left before."""
        with self._lock:
            if is_there:
                self._in_a_row, self._opened_at = 0, None
            elif is_there is False:
                self._in_a_row += 1
                if self._opened_at is not None or (self._most and self._in_a_row >= self._most):
                    self._opened_at = self._clock()
            if verdict.probe == self._probe:
                self._probe = 0


def chain_for(
    settings: Settings,
    extractive: Model,
    *,
    headers: Callable[[], Mapping[str, str]] = dict,
    machine: Machine = MACHINE,
) -> ModelChain:
    """
    Return the models of `rag.api.endpoint` and `llm.fallback`, in order; *extractive* is `builtin:extractive`.

    Endpoints after `builtin:extractive` are never called, because that never fails. Nothing is opened yet. *headers*
    go along with each request.

    Raises:
        ValueError: an endpoint's URL or a PEM file of `llm.tls.*` cannot be used.
    """
    limits = settings.llm.limits
    links: list[ChainMember] = []

    def chain(last: Model | None = None) -> ModelChain:
        clock, sleep, chance = machine.monotonic, machine.sleep, machine.chance
        return ModelChain(links, last=last, limits=limits, clock=clock, sleep=sleep, chance=chance)

    for endpoint in endpoints_for(settings):
        if endpoint.url == BUILTIN_MODEL:
            return chain(extractive)
        model = HttpModel(
            replace(endpoint, headers=headers), template=settings.rag.template, limits=limits, machine=machine
        )
        breaker = Breaker(limits.breaker_failures, limits.breaker_reset_s, machine.monotonic)
        links.append(ChainMember(urlsplit(endpoint.url).hostname or "", model, breaker))
    return chain()


def endpoints_for(settings: Settings) -> tuple[Endpoint, ...]:
    """Return all endpoints in order; a fallback without its own token is sent none."""
    tls = settings.tls.llm
    proxy = settings.llm.proxy
    first = Endpoint(
        settings.rag.model_url,
        settings.rag.api_token,
        tls=tls,
        proxy=proxy,
        server=settings.llm.server,
        body=settings.llm.body,
    )
    complete = completed if settings.rag.template == "openai" else str
    further = []
    # Tokens without an endpoint are an error of the settings, which questions are told; nothing is sent with them.
    for address, token in zip(settings.llm.fallback, chain(settings.llm.fallback_tokens, repeat("")), strict=False):
        url, _, model = address.partition("#")
        further.append(Endpoint(complete(url), token, model or None, tls, proxy))
    return (first, *further)


class ExtractiveModel:
    """A `ports.Model` that needs no server and knows only the extracts of the prompt."""

    def __init__(self, offload: Offload = inline) -> None:
        """Look for sentences in long texts *offload*."""
        self._aside = offload

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        """Yield the answer, sentence by sentence when it is streamed, then an `Ending` with "stop"."""
        facts = ModelFacts(name=BUILTIN_MODEL)
        chars = sum(len(extract.text) for extract in prompt.extracts)
        try:
            parts = self._aside(partial(_pieces, prompt), chars)
        except RagError as error:
            yield Ending(None, error, facts)
            return
        for text in parts if is_streamed else ("".join(parts),):
            yield TextChunk(text, facts)
        yield Ending("stop", facts=facts)


def _pieces(prompt: Prompt) -> tuple[str, ...]:
    asked = prompt.sought or prompt.question
    return pieces(asked, prompt.extracts, language=prompt.language, answer_format=prompt.answer_format)
