"""
Several endpoints as one model: each guarded by its breaker and retried within limits, then the next one.

Passing on happens only before the first word. What is tried, and how it fails, is decided by the outcomes that the
endpoints give; nothing here uses HTTP. The log has names, numbers and labels.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from datafari_rag.adapters.machine import pause
from datafari_rag.adapters.model.breaker import Breaker, BreakerVerdict
from datafari_rag.adapters.model.learned import LearnedNeeds
from datafari_rag.adapters.model.retries import Answering, StartedAttempt, begin, counted, retried
from datafari_rag.adapters.retries import RetryPolicy
from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.errors import ContentFiltered, ModelError, ModelTimeout, ModelUnavailable, RagError
from datafari_rag.core.events import UNKNOWN_MODEL
from datafari_rag.core.model.timeouts import ModelLimits
from datafari_rag.ports import Ending, Model, TextChunk

log = logging.getLogger(__name__)

T = TypeVar("T")
Attempt = Callable[[float], Answering[T]]
"""Asks once; takes the time at which the answer must be there."""

Turn = Callable[[float, bool], StartedAttempt[T]]
"""Tries one endpoint with retries. Arguments: the deadline, and whether it is the last endpoint."""

WAIT_WITH_FALLBACK_S = 2.0
"""Longest time spent on one endpoint's retries while another one is left to ask."""


class ChainEndpoint(Protocol):
    """What a link needs of an endpoint: `HttpModel` has it."""

    @property
    def learned(self) -> LearnedNeeds:
        """What its refusals taught."""
        ...

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
    asked: ChainEndpoint
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

        def by(asked: ChainEndpoint) -> Attempt[TextChunk]:
            return lambda until: asked.generate(prompt, is_streamed=is_streamed, until=until)

        turns = [self._turn(link, by(link.asked)) for link in self._links]
        last = self._last
        if last is not None:
            turns.append(lambda until, is_last: begin(last.generate(prompt, is_streamed=is_streamed)))
        return self._in_turn(turns, within_s=prompt.within_s)

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        """Relay to the first endpoint that takes it; see `ports.Relay`. The last model takes no foreign bodies."""

        def by(asked: ChainEndpoint) -> Attempt[Mapping[str, object]]:
            return lambda until: asked.relay(body, is_streamed=is_streamed, until=until)

        return self._in_turn([self._turn(link, by(link.asked)) for link in self._links])

    def breakers(self) -> Sequence[tuple[str, bool]]:
        """Return each endpoint's name, in order, and whether its breaker is open; sends no request."""
        return [(link.name, link.breaker.is_open) for link in self._links]

    def learned(self) -> Sequence[str]:
        """Return what refusals of the first endpoint taught, in sentences."""
        texts = self._links[0].asked.learned.texts().values() if self._links else ()
        return [text for one in texts for text in one]

    def close(self) -> None:
        """Close the idle connections of all endpoints; running answers continue."""
        for link in self._links:
            link.asked.close()

    def _turn(self, link: ChainMember, attempt: Attempt[T]) -> Turn[T]:
        def turn(until: float, is_last: bool) -> StartedAttempt[T]:
            most = until if is_last else min(until, self._clock() + WAIT_WITH_FALLBACK_S)
            patient = RetryPolicy(self._limits.retries, lambda: most - self._clock(), self._sleep, self._chance)
            return retried(lambda: _guarded(link, attempt, until), patient)

        return turn

    def _in_turn(self, turns: Sequence[Turn[T]], *, within_s: float | None = None) -> Answering[T]:
        """Yield what the first turn yields that is not to be passed on; with all tries counted in its facts."""
        total_s = self._limits.total_s
        until = self._clock() + (total_s if within_s is None else min(total_s, within_s))
        tries = 0
        for number, turn in enumerate(turns, 1):
            is_last = number == len(turns)
            begun = turn(until, is_last)
            tries += begun.tries
            with closing(begun.rest):
                if not is_last and _is_passed_on(begun.first):
                    continue
                yield counted(begun.first, tries, is_fallback=number > 1)
                for said in begun.rest:
                    yield counted(said, tries, is_fallback=number > 1) if isinstance(said, Ending) else said
                return
        yield Ending(None, ModelUnavailable(log="no endpoint"), UNKNOWN_MODEL)


def _guarded(link: ChainMember, attempt: Attempt[T], until: float) -> Answering[T]:
    """Yield what *attempt* yields, unless the endpoint's breaker is open; report to the breaker how it ended."""
    verdict = link.breaker.verdict()
    if verdict.wait_s > 0:
        failure = ModelUnavailable(log=f"breaker open for {link.name}", retry_after_s=round(verdict.wait_s, 1))
        yield Ending(None, failure, replace(UNKNOWN_MODEL, tries=0))
        return
    report: Callable[[BreakerVerdict], None] = link.breaker.gave_up
    try:
        with closing(attempt(until)) as answering:
            for said in answering:
                if isinstance(said, Ending):
                    report = _report(link, said.failure)
                yield said
    finally:
        report(verdict)


def _report(link: ChainMember, failure: RagError | None) -> Callable[[BreakerVerdict], None]:
    """
    Return what an ending means for the breaker.

    Connection errors, 5xx and time-outs count; 4xx, 429, garbled and filtered answers show that the server is there. A
    time-out that a slow reader or the endpoint before this one caused says nothing.
    """
    if failure is None:
        return link.breaker.passed
    log.warning("model %s failed: %s %s", link.name, failure.label, failure.log)
    if isinstance(failure, ModelTimeout):
        return link.breaker.gave_up if failure.is_blameless else link.breaker.failed
    if isinstance(failure, ModelUnavailable) and (failure.status is None or failure.status >= 500):
        return link.breaker.failed
    return link.breaker.answered


def _is_passed_on(first: object) -> bool:
    """Say whether another endpoint may do better: not when the content was filtered, or when the answer is nothing."""
    if not isinstance(first, Ending) or first.failure is None:
        return False
    return isinstance(first.failure, ModelError) and not isinstance(first.failure, ContentFiltered)
