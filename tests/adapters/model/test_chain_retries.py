"""What is asked again, how long is waited for it, and when that ends."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from datafari_rag.adapters.model.chain import Breaker, ChainMember, ModelChain
from datafari_rag.adapters.retries import FIRST_WAIT_S, LONGEST_WAIT_S
from datafari_rag.core.errors import ContentFiltered, ModelBusy, ModelTimeout, ModelUnavailable, NoAnswer, RagError
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import ModelLimits
from datafari_rag.ports import Ending, TextChunk

PROMPT = Prompt(question="q", extracts=(), instructions=None, nonce="n")
AGAIN = ModelUnavailable(status=503, can_repeat=True)
DONE = [TextChunk("a", ModelFacts("m")), TextChunk("b"), Ending("stop", facts=ModelFacts("m"))]


class Attempts:
    """Attempts that yield the given lists, one after the other; the last one forever."""

    def __init__(self, *scripts: list[TextChunk | Ending]) -> None:
        self.scripts = list(scripts)
        self.made = self.closed = 0

    def generate(
        self, prompt: Prompt, *, is_streamed: bool, until: float | None = None
    ) -> Generator[TextChunk | Ending, None, None]:
        self.made += 1
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        try:
            yield from script
        finally:
            self.closed += 1


def failed(error: RagError) -> list[TextChunk | Ending]:
    return [Ending(None, error)]


def chain_of(attempts: Attempts, slept: list[float], *, limits: ModelLimits, jitter: float = 1.0) -> ModelChain:
    link = ChainMember("a", attempts, Breaker(0, 1, lambda: 0.0))  # type: ignore[arg-type] # a fake
    return ModelChain([link], limits=limits, clock=lambda: 0.0, sleep=slept.append, chance=lambda: jitter)


def run(
    attempts: Attempts, *, retries: int = 2, left_s: float = 100.0, jitter: float = 1.0
) -> tuple[list[TextChunk | Ending], list[float]]:
    slept: list[float] = []
    chain = chain_of(attempts, slept, limits=ModelLimits(retries=retries, total_s=left_s), jitter=jitter)
    return list(chain.generate(PROMPT, is_streamed=True)), slept


def test_what_may_succeed_is_asked_again_and_the_tries_are_counted() -> None:
    attempts = Attempts(failed(AGAIN), failed(AGAIN), DONE)
    said, slept = run(attempts)
    assert len(slept) == 2
    assert (attempts.made, attempts.closed) == (3, 3)
    assert said == [
        TextChunk("a", ModelFacts("m", tries=3)),
        TextChunk("b"),
        Ending("stop", facts=ModelFacts("m", tries=3)),
    ]


@pytest.mark.parametrize(
    "error",
    [ModelTimeout(), ModelUnavailable(status=500), ModelUnavailable(), ContentFiltered(), NoAnswer()],
    ids=lambda error: f"{error.label} {getattr(error, 'status', '')}",
)
def test_what_a_repeat_cannot_help_is_asked_once(error: RagError) -> None:
    attempts = Attempts(failed(error))
    run(attempts)
    assert attempts.made == 1


def test_nothing_is_repeated_after_the_first_piece() -> None:
    attempts = Attempts([TextChunk("a"), Ending(None, AGAIN)])
    said, slept = run(attempts)
    assert (attempts.made, slept) == (1, [])
    assert said[0] == TextChunk("a")


def test_the_wait_doubles_and_chance_takes_at_most_half_of_it() -> None:
    assert (
        run(Attempts(failed(AGAIN)), retries=8, jitter=1.0)[1]
        == [FIRST_WAIT_S * factor for factor in (1, 2, 4, 8, 16)] + [LONGEST_WAIT_S] * 3
    )
    assert run(Attempts(failed(AGAIN)), retries=2, jitter=0.0)[1] == [FIRST_WAIT_S / 2, FIRST_WAIT_S]


def test_retry_after_is_respected() -> None:
    busy = ModelBusy(status=429, can_repeat=True, retry_after_s=7)
    assert run(Attempts(failed(busy), DONE), jitter=0.0)[1] == [7]


def test_a_retry_after_past_the_deadline_is_not_waited_for() -> None:
    busy = ModelBusy(status=429, can_repeat=True, retry_after_s=7)
    attempts = Attempts(failed(busy), DONE)
    said, slept = run(attempts, left_s=6.9)
    assert (attempts.made, slept) == (1, [])
    assert said == [Ending(None, busy)]


def test_a_reader_who_leaves_closes_the_attempt() -> None:
    attempts = Attempts(DONE)
    answering = chain_of(attempts, [], limits=ModelLimits()).generate(PROMPT, is_streamed=True)
    assert next(answering) == TextChunk("a", ModelFacts("m"))
    assert attempts.closed == 0
    answering.close()
    assert attempts.closed == 1
