"""
The tokens of one request's calls of the language model: counted for its user, and refused at the cap.

Everything that calls the model goes through here, whatever it is for: answers, steps, summaries, program prompts. An
estimate is counted before a call, and what the call took in its place afterwards, also where its reader breaks it off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeVar

from datafari_rag.core.errors import AccountsUnavailable, BudgetSpent, RagError
from datafari_rag.core.model.prompt import Prompt, tokens_in
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.usage import day_of, next_day_s, tokens_of
from datafari_rag.ports import Ending, Model, Relay, TextChunk, UsageStore
from datafari_rag.web.runtime import ServiceSnapshot

log = logging.getLogger(__name__)

Chunk = TypeVar("Chunk", TextChunk, Mapping[str, object])

USUAL_ANSWER_TOKENS = 1_000
"""What an answer without a limit of its own is taken to be before it is there."""


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """
    Whose tokens a request takes, and where they are counted.

    *cap* is the most of *user* on a day, None without one. *count* returns the tokens of a text, for what the model's
    server does not say.
    """

    store: UsageStore
    user: str
    cap: int | None
    now: Callable[[], float]
    count: Callable[[str], int]

    def counted(
        self,
        call: Callable[[], Generator[Chunk | Ending, None, None]],
        *,
        sent: int,
        most: int | None,
        size_of: Callable[[Sequence[Chunk]], int],
    ) -> Generator[Chunk | Ending, None, None]:
        """
        Yield what *call* yields; a cap that is reached, or cannot be kept to, is an ending like any other failure.

        *sent* are the tokens of the prompt, *most* those of the longest answer, None where it has no limit. *size_of*
        returns the tokens of what came, for a call that does not report them.
        """
        now_s, reserved = self.now(), 0
        try:
            if self.cap is not None:
                reserved = sent + (most or USUAL_ANSWER_TOKENS)
                if not self.store.add(self.user, day_of(now_s), reserved, cap=self.cap):
                    raise BudgetSpent.until(next_day_s(now_s), now_s=now_s)
        except RagError as error:
            yield Ending(None, error)
            return
        pieces: list[Chunk] = []
        reported: int | None = None
        try:
            with closing(call()) as chunks:
                for chunk in chunks:
                    facts = chunk.facts if isinstance(chunk, TextChunk | Ending) else None
                    if facts is not None:
                        said = 0 if facts.name == BUILTIN_MODEL else tokens_of(facts.extras.get("usage"))
                        reported = reported if said is None else said
                    if not isinstance(chunk, Ending):
                        pieces.append(chunk)
                    elif chunk.failure is not None and not size_of(pieces) and reported is None:
                        reported = 0  # Refused, or never reached.
                    yield chunk
        finally:
            taken = sent + size_of(pieces) if reported is None else reported
            try:
                self.store.add(self.user, day_of(now_s), taken - reserved)
            except AccountsUnavailable as error:
                # The answer is there, and its reader has it: what was reserved for it stays counted.
                log.warning("a call of the model is not counted: %s", error.log)


@dataclass(frozen=True, slots=True)
class CountedModel:
    """A `Model` whose calls are counted."""

    model: Model
    usage: RequestUsage

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        """Yield what the model says, as `RequestUsage.counted`."""
        count = self.usage.count
        return self.usage.counted(
            lambda: self.model.generate(prompt, is_streamed=is_streamed),
            sent=tokens_in(prompt, count),
            most=prompt.max_tokens,
            size_of=lambda pieces: count("".join(piece.text for piece in pieces)),
        )


@dataclass(frozen=True, slots=True)
class CountedRelay:
    """A `Relay` whose replies are counted."""

    handed_on: Relay
    usage: RequestUsage

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        """Yield the reply, as `RequestUsage.counted`."""
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        return self.usage.counted(
            lambda: self.handed_on.relay(body, is_streamed=is_streamed),
            sent=self.usage.count(str(body.get("messages"))),
            most=limit if isinstance(limit, int) and limit > 0 else None,
            size_of=len,  # A chunk of a stream is about a token; a whole reply says what it took.
        )


def counted(snapshot: ServiceSnapshot, usage: RequestUsage) -> ServiceSnapshot:
    """Return *snapshot* with every call of its language model counted."""
    parts = snapshot.dependencies
    relay = None if snapshot.relay is None else CountedRelay(snapshot.relay, usage)
    return replace(snapshot, dependencies=replace(parts, model=CountedModel(parts.model, usage)), relay=relay)
