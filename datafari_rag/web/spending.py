"""
The model and the reranker of one request, counted: reserved before each call, settled by what the call took.

Everything that calls a model goes through these two, whatever it is for: answers, steps, summaries, program prompts. A
call that its reader breaks off is settled with what had come by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from datafari_rag.core.accounts import (
    CostRow,
    Price,
    Spender,
    TokenCaps,
    TokenUse,
    accounted_for,
    capped_accounts,
    period_at,
    price_of,
    use_in,
)
from datafari_rag.core.errors import AccountsUnavailable, BudgetSpent, RagError
from datafari_rag.core.meaning.reranker import Reranker, RerankFailure
from datafari_rag.core.model.prompt import Prompt, tokens_in
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.ports import Ending, Ledger, Model, Relay, TextChunk
from datafari_rag.web.runtime import ServiceSnapshot

log = logging.getLogger(__name__)

Chunk = TypeVar("Chunk", TextChunk, Mapping[str, object])

USUAL_ANSWER_TOKENS = 1_000
"""What an answer without a limit of its own is taken to be before it is there."""

RERANKER = "reranker"
"""The model under which the reranker is accounted."""


@dataclass(slots=True)
class OneCall:
    """One call on its way: the *model* that was asked, then the one that answered, and what it took."""

    model: str
    use: TokenUse


@dataclass(frozen=True, slots=True)
class Spending:
    """What a request may spend, and where that is written."""

    ledger: Ledger
    caps: TokenCaps
    prices: Mapping[str, Price]
    spender: Callable[[], Spender]
    """For whom; a call that needs to know has proved who asks."""
    now: Callable[[], float]
    count: Callable[[str], int]
    """Tokens of a text, for what the model's server does not say."""
    on_cost: Callable[[CostRow], None] = field(default=lambda row: None)

    @contextmanager
    def call(self, model: str, estimate: TokenUse) -> Iterator[OneCall]:
        """
        Reserve *estimate* for a call of *model*; what the call's `use` says at the end is settled.

        Raises:
            BudgetSpent: a cap is reached; it says when the next period begins.
            AccountsUnavailable: nothing can be counted, and there is a cap to keep to.
        """
        spender, now_s = self.spender(), self.now()
        accounts = capped_accounts(spender, self.caps, now_s)
        full = self.ledger.reserve(accounts, estimate.total)
        if full is not None:
            raise BudgetSpent.until(full.ends_s, now_s=now_s, log=f"cap of {full.name.partition(' ')[0]}")
        call = OneCall(model, replace(estimate, output=0, is_estimate=True))
        try:
            yield call
        finally:
            use, price = call.use, Price() if call.model == BUILTIN_MODEL else price_of(call.model, self.prices)
            money = None if price is None else price.of(use)
            day, estimated = period_at(now_s, "day"), int(use.is_estimate)
            rows = [
                CostRow(day, subject, name, call.model, spender.protocol, 1, estimated, use, money)
                for subject, name in accounted_for(spender, self.caps)
            ]
            self.on_cost(rows[0])
            try:
                self.ledger.settle(accounts, estimate.total, rows)
            except AccountsUnavailable as error:
                # The answer is there, and its reader has it: what was reserved for it stays counted.
                log.warning("a call of the model is not in the accounts: %s", error.log)


class CountedModel:
    """A `Model` whose calls are in the accounts; at a cap *instead* answers, where there is one."""

    def __init__(self, model: Model, spending: Spending, *, instead: Model | None = None) -> None:
        """Count nothing yet."""
        self._model, self._spending, self._instead = model, spending, instead

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        """Yield what the model says; a cap that is reached is an ending like any other failure."""
        spending = self._spending
        estimate = TokenUse(tokens_in(prompt, spending.count), 0, prompt.max_tokens or USUAL_ANSWER_TOKENS)
        try:
            with spending.call(prompt.model, estimate) as call:
                answer = self._model.generate(prompt, is_streamed=is_streamed)
                yield from _noted(
                    answer, call, estimate, lambda all_: spending.count("".join(chunk.text for chunk in all_))
                )
        except BudgetSpent as error:
            if self._instead is None or not spending.caps.has_fallback:
                yield Ending(None, error)
                return
            for chunk in self._instead.generate(prompt, is_streamed=is_streamed):
                facts = chunk.facts
                yield chunk if facts is None else replace(chunk, facts=replace(facts, is_fallback=True))
        except RagError as error:
            yield Ending(None, error)


def _noted(
    chunks: Generator[Chunk | Ending, None, None],
    call: OneCall,
    estimate: TokenUse,
    size_of: Callable[[Sequence[Chunk]], int],
) -> Generator[Chunk | Ending, None, None]:
    """Yield *chunks*, and note in *call* what it takes, however it ends; *size_of* are the tokens of what came."""
    pieces: list[Chunk] = []
    reported: TokenUse | None = None
    try:
        with closing(chunks):
            for chunk in chunks:
                facts = chunk.facts if isinstance(chunk, TextChunk | Ending) else None
                if facts is not None:
                    call.model = facts.name or call.model
                    reported = use_in(facts.extras.get("usage")) or reported
                if not isinstance(chunk, Ending):
                    pieces.append(chunk)
                elif chunk.failure is not None and not pieces and reported is None:
                    # Refused, or never reached: no tokens were made.
                    reported = TokenUse()
                yield chunk
    finally:
        call.use = reported or replace(estimate, output=size_of(pieces), is_estimate=True)


class CountedReranker:
    """A `Reranker` whose questions and passages are in the accounts; at a cap it says nothing."""

    def __init__(self, reranker: Reranker, spending: Spending) -> None:
        """Count nothing yet."""
        self._reranker, self._spending = reranker, spending

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | RerankFailure:
        """Return the scores; an outcome is a value, so nothing is raised."""
        # The model reads the question again with each of the texts.
        size = len(texts) * self._spending.count(question) + sum(map(self._spending.count, texts))
        estimate = TokenUse(size, is_estimate=True)
        try:
            with self._spending.call(RERANKER, estimate) as call:
                call.use = estimate
                return self._reranker.scores(question, texts)
        except RagError as error:
            return RerankFailure("rerankerUnavailable", error.log)


class CountedRelay:
    """A `Relay` whose replies are in the accounts."""

    def __init__(self, relay: Relay, spending: Spending, model: str) -> None:
        """Count nothing yet; *model* is the one that a body without a name is for."""
        self._relay, self._spending, self._model = relay, spending, model

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        """Yield the reply; a cap that is reached is an ending like any other failure."""
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        most = limit if isinstance(limit, int) and limit > 0 else USUAL_ANSWER_TOKENS
        estimate = TokenUse(self._spending.count(str(body.get("messages"))), 0, most)
        try:
            with self._spending.call(str(body.get("model") or self._model), estimate) as call:
                # A chunk of a stream is about a token; a whole reply says what it took.
                yield from _noted(self._relay.relay(body, is_streamed=is_streamed), call, estimate, len)
        except RagError as error:
            yield Ending(None, error)


def counted(snapshot: ServiceSnapshot, spending: Spending) -> ServiceSnapshot:
    """Return *snapshot* with all that calls models writing to the accounts."""
    parts = snapshot.dependencies
    reranker = None if parts.reranker is None else CountedReranker(parts.reranker, spending)
    relay = None if snapshot.relay is None else CountedRelay(snapshot.relay, spending, snapshot.settings.rag.model)
    model = CountedModel(parts.model, spending, instead=snapshot.extractive)
    return replace(snapshot, dependencies=replace(parts, model=model, reranker=reranker), relay=relay)
