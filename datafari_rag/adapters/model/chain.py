"""
Several endpoints as one model: each guarded by its breaker and retried within limits, then the next one.

A circuit breaker leaves an endpoint alone for a while after several failures in a row, then tries it with one request.
It is our own, because the known libraries have had no release for a year or more and each of them is larger than what
is needed here: a counter, a time and a lock.

Passing on happens only before the first word. What is tried, and how it fails, is decided by the outcomes that the
endpoints give; nothing here uses HTTP. The log has names, numbers and labels.
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
from typing import TypeVar
from urllib.parse import urlsplit

from datafari_rag.adapters.machine import MACHINE, Machine, pause
from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.adapters.retries import retry_wait_s
from datafari_rag.core.errors import ContentFiltered, ModelError, ModelTimeout, ModelUnavailable, RagError
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts
from datafari_rag.core.evidence.answer import pieces
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.servers import completed
from datafari_rag.core.settings.addresses import BUILTIN_MODEL, Tls
from datafari_rag.core.settings.table import LlmSettings, ModelLimits, RagSettings
from datafari_rag.ports import Ending, Model, Offload, TextChunk, inline

log = logging.getLogger(__name__)

T = TypeVar("T")
Answering = Generator[T | Ending, None, None]

WAIT_WITH_FALLBACK_S = 2.0
"""Longest time spent on one endpoint's retries while another one is left to ask."""

NOTICED_S = 1.0
"""A shorter wait before the next try is not reported."""


class Breaker:
    """
    One endpoint's breaker, shared by all its requests; safe for threads and greenlets.

    Closed: all may pass. Open: one may pass in *reset_s* seconds, and the endpoint's first answer closes it.
    """

    def __init__(self, failures: int, reset_s: float, clock: Callable[[], float]) -> None:
        """Start closed. *failures* in a row open it, 0 turns it off; *clock* gives seconds that never go back."""
        self._most, self._reset_s, self._clock = failures, reset_s, clock
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._next_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the endpoint has not answered since the breaker opened."""
        return self._next_at is not None

    def wait_s(self) -> float:
        """Return 0 where one request may pass now, else the seconds until one may."""
        with self._lock:
            now = self._clock()
            if self._next_at is None or now >= self._next_at:
                self._next_at = None if self._next_at is None else now + self._reset_s
                return 0.0
            return self._next_at - now

    def note(self, *, is_there: bool | None) -> None:
        """Note whether the endpoint is there, by a request that passed; None where the request does not show it."""
        with self._lock:
            if is_there:
                self._in_a_row, self._next_at = 0, None
            elif is_there is False:
                self._in_a_row += 1
                if self._next_at is not None or 0 < self._most <= self._in_a_row:
                    self._next_at = self._clock() + self._reset_s


@dataclass(frozen=True, slots=True)
class ChainMember:
    """One endpoint of the chain: *name* for the log (a host, never a whole URL), and its breaker."""

    name: str
    endpoint: HttpModel
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

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Answering[TextChunk]:
        """Yield the pieces of the first endpoint that begins to answer, then one `Ending`; see `ports.Model`."""
        attempts: list[Callable[[float], Answering[TextChunk]]] = [
            partial(_guarded, link, partial(link.endpoint.generate, prompt, is_streamed=is_streamed))
            for link in self._links
        ]
        if (last := self._last) is not None:
            attempts.append(lambda until: last.generate(prompt, is_streamed=is_streamed))
        return self._in_turn(attempts, within_s=prompt.within_s, waiting=lambda wait_s: TextChunk("", wait_s=wait_s))

    def relay(self, body: Mapping[str, object], *, is_streamed: bool) -> Answering[Mapping[str, object]]:
        """Relay to the first endpoint that takes it; see `ports.Relay`. The last model takes no foreign bodies."""
        relays = [(link, partial(link.endpoint.relay, body, is_streamed=is_streamed)) for link in self._links]
        return self._in_turn([partial(_guarded, link, relay) for link, relay in relays])

    def breakers(self) -> Sequence[tuple[str, bool]]:
        """Return each endpoint's name, in order, and whether its breaker is open; sends no request."""
        return [(link.name, link.breaker.is_open) for link in self._links]

    def close(self) -> None:
        """Close the idle connections of all endpoints; running answers continue."""
        for link in self._links:
            link.endpoint.close()

    def _in_turn(
        self,
        attempts: Sequence[Callable[[float], Answering[T]]],
        *,
        within_s: float | None = None,
        waiting: Callable[[float], T] | None = None,
    ) -> Answering[T]:
        """
        Yield the first answer that is not to be passed on, each attempt retried; all tries count in its facts.

        *waiting* makes the piece that is yielded before a wait that a reader would notice.
        """
        total_s = self._limits.total_s
        until = self._clock() + (total_s if within_s is None else min(total_s, within_s))
        tries, failure = 0, Ending(None, ModelUnavailable(log="no endpoint"), UNKNOWN_MODEL)
        for number, attempt in enumerate(attempts, 1):
            limit = until if number == len(attempts) else min(until, self._clock() + WAIT_WITH_FALLBACK_S)
            for retry in range(1, self._limits.retries + 2):
                with closing(attempt(until)) as answering:
                    first = next(answering)
                    facts = first.facts if isinstance(first, Ending | TextChunk) else None
                    tries += 1 if facts is None else facts.tries
                    error = first.failure if isinstance(first, Ending) else None
                    # Another endpoint filters the same content; and an answer that is nothing is an answer.
                    if not isinstance(error, ModelError) or isinstance(error, ContentFiltered):
                        yield counted(first, tries, is_fallback=number > 1)
                        for piece in answering:
                            # The facts come with the first piece and the last.
                            has_facts = isinstance(piece, Ending | TextChunk) and piece.facts is not None
                            yield counted(piece, tries, is_fallback=number > 1) if has_facts else piece
                        return
                failure = Ending(None, error, replace(facts or UNKNOWN_MODEL, tries=tries, is_fallback=number > 1))
                wait_s = retry_wait_s(error, retry, left_s=limit - self._clock(), chance=self._chance)
                if wait_s is None or retry > self._limits.retries:
                    break
                if waiting is not None and wait_s >= NOTICED_S:
                    yield waiting(wait_s)
                self._sleep(wait_s)
        yield failure


def _guarded(link: ChainMember, attempt: Callable[..., Answering[T]], until: float) -> Answering[T]:
    """
    Yield what *attempt* yields, unless the endpoint's breaker is open; report to the breaker how it ended.

    Connection errors, 5xx and time-outs say that the endpoint is not there; 4xx, 429, garbled and filtered answers show
    that it is. A time-out that a slow reader or the endpoint before this one caused says nothing.
    """
    if (wait_s := link.breaker.wait_s()) > 0:
        failure = ModelUnavailable(log=f"breaker open for {link.name}", retry_after_s=max(1.0, round(wait_s, 1)))
        yield Ending(None, failure, replace(UNKNOWN_MODEL, tries=0))
        return
    is_there: bool | None = None
    try:
        with closing(attempt(until=until)) as answering:
            for piece in answering:
                if isinstance(piece, Ending):
                    error, is_there = piece.failure, True
                    if error is not None:
                        log.warning("model %s failed: %s %s", link.name, error.label, error.log)
                    if isinstance(error, ModelTimeout):
                        is_there = None if error.is_blameless else False
                    elif isinstance(error, ModelUnavailable):
                        is_there = error.status is not None and error.status < 500
                yield piece
    finally:
        link.breaker.note(is_there=is_there)


def counted(piece: T | Ending, tries: int, *, is_fallback: bool) -> T | Ending:
    """Return *piece* with the number of tries in its facts, where it has facts."""
    if isinstance(piece, Ending | TextChunk) and piece.facts is not None:
        return replace(piece, facts=replace(piece.facts, tries=tries, is_fallback=is_fallback))
    return piece


def chain_for(
    rag: RagSettings,
    llm: LlmSettings,
    tls: Tls,
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
        ValueError: an endpoint's URL or a PEM file of *tls* cannot be used.
    """
    limits = llm.limits
    links: list[ChainMember] = []
    last = None
    for endpoint in endpoints_for(rag, llm, tls):
        if endpoint.url == BUILTIN_MODEL:
            last = extractive
            break
        model = HttpModel(replace(endpoint, headers=headers), template=rag.template, limits=limits, machine=machine)
        breaker = Breaker(limits.breaker_failures, limits.breaker_reset_s, machine.monotonic)
        links.append(ChainMember(urlsplit(endpoint.url).hostname or "", model, breaker))
    return ModelChain(
        links, last=last, limits=limits, clock=machine.monotonic, sleep=machine.sleep, chance=machine.chance
    )


def endpoints_for(rag: RagSettings, llm: LlmSettings, tls: Tls) -> tuple[Endpoint, ...]:
    """Return all endpoints in order; a fallback without its own token is sent none."""
    endpoints = [Endpoint(rag.model_url, rag.api_token, None, tls, llm.proxy, server=llm.server, body=llm.body)]
    complete = completed if rag.template == "openai" else str
    # Tokens without an endpoint are an error of the settings, which questions are told; nothing is sent with them.
    for address, token in zip(llm.fallback, chain(llm.fallback_tokens, repeat("")), strict=False):
        url, _, model = address.partition("#")
        endpoints.append(Endpoint(complete(url), token, model or None, tls, llm.proxy))
    return tuple(endpoints)


class ExtractiveModel:
    """A `ports.Model` that needs no server and knows only the extracts of the prompt."""

    def __init__(self, offload: Offload = inline) -> None:
        """Look for sentences in long texts *offload*."""
        self._aside = offload

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Answering[TextChunk]:
        """Yield the answer, sentence by sentence when it is streamed, then an `Ending` with "stop"."""
        facts = ModelFacts(name=BUILTIN_MODEL)
        asked = prompt.sought or prompt.question
        work = partial(pieces, asked, prompt.extracts, language=prompt.language, answer_format=prompt.answer_format)
        try:
            parts = self._aside(work, sum(len(extract.text) for extract in prompt.extracts))
        except RagError as error:
            yield Ending(None, error, facts)
            return
        for text in parts if is_streamed else ("".join(parts),):
            yield TextChunk(text, facts)
        yield Ending("stop", facts=facts)
