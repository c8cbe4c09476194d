"""A chain of endpoints: who is asked, who answers, what the breaker learns and what the facts say."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from dataclasses import replace

import pytest

from datafari_rag.adapters.model.chain import Breaker, ChainMember, ModelChain
from datafari_rag.core.errors import (
    ContentFiltered,
    ModelBusy,
    ModelGarbled,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NoAnswer,
    RagError,
    RefusedByModel,
)
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import ModelLimits
from datafari_rag.ports import Ending, TextChunk
from tests.support.clock import Clock

PROMPT = Prompt(question="q", extracts=(), instructions=None, nonce="n")
GOOD = [TextChunk("a", ModelFacts("m")), Ending("stop", facts=ModelFacts("m"))]
AGAIN = ModelUnavailable(status=503, can_repeat=True)


class FakeEndpoint:
    """Fails with *error*, or answers; takes *takes_s* for each try."""

    def __init__(self, clock: Clock, error: RagError | None = None, *, takes_s: float = 0.0) -> None:
        self.clock, self.error, self.takes_s = clock, error, takes_s
        self.tries: list[float | None] = []
        self.is_closed = False

    def generate(
        self, prompt: Prompt, *, is_streamed: bool, until: float | None = None
    ) -> Generator[TextChunk | Ending, None, None]:
        self.tries.append(until)
        self.clock.now += self.takes_s
        yield from [Ending(None, self.error)] if self.error is not None else GOOD

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool, until: float | None = None
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        self.tries.append(until)
        if self.error is not None:
            yield Ending(None, self.error)
        else:
            yield {"choices": [], "body": body}
            yield Ending("stop", facts=ModelFacts("m"))

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


def chain(clock: Clock, *endpoints: FakeEndpoint, last: FakeEndpoint | None = None, failures: int = 0) -> ModelChain:
    links = [
        ChainMember(f"host{number}", endpoint, Breaker(failures, 30, clock))
        for number, endpoint in enumerate(endpoints)
    ]
    limits = ModelLimits(retries=2, total_s=300)
    return ModelChain(links, last=last, limits=limits, clock=clock, sleep=clock.sleep)


def told(model: ModelChain) -> list[TextChunk | Ending]:
    return list(model.generate(PROMPT, is_streamed=True))


@pytest.mark.parametrize(("within_s", "until"), [(None, 300.0), (2.5, 2.5), (1000.0, 300.0)])
def test_a_prompt_is_waited_for_no_longer_than_it_says(clock: Clock, within_s: float | None, until: float) -> None:
    first = FakeEndpoint(clock)
    list(chain(clock, first).generate(replace(PROMPT, within_s=within_s), is_streamed=True))
    assert first.tries == [until]


PASSED_ON = [
    ModelUnavailable(status=500),
    ModelRefused(status=404),
    ModelGarbled(),
    ModelTimeout(),
    ModelBusy(status=429),
]


@pytest.mark.parametrize("error", PASSED_ON, ids=lambda error: error.label)
def test_what_another_endpoint_may_do_better_is_passed_on(clock: Clock, error: RagError) -> None:
    first, second = FakeEndpoint(clock, error), FakeEndpoint(clock)
    said = told(chain(clock, first, second))
    assert said[-1] == Ending("stop", facts=ModelFacts("m", tries=2, is_fallback=True))
    assert said[0] == TextChunk("a", ModelFacts("m", tries=2, is_fallback=True))


@pytest.mark.parametrize("error", [ContentFiltered(), NoAnswer()], ids=lambda error: error.label)
def test_filtered_content_and_empty_answers_are_not(clock: Clock, error: RagError) -> None:
    first, second = FakeEndpoint(clock, error), FakeEndpoint(clock)
    assert told(chain(clock, first, second)) == [Ending(None, error)]
    assert second.tries == []


def test_the_last_failure_is_told_when_nobody_answers(clock: Clock) -> None:
    said = told(chain(clock, FakeEndpoint(clock, ModelTimeout()), FakeEndpoint(clock, AGAIN)))
    assert said == [Ending(None, AGAIN, ModelFacts(tries=4, is_fallback=True))]


def test_a_long_retry_after_is_not_waited_for_while_another_endpoint_is_left(clock: Clock) -> None:
    busy = ModelBusy(status=429, can_repeat=True, retry_after_s=20)
    told(chain(clock, FakeEndpoint(clock, busy), FakeEndpoint(clock)))
    assert clock.slept == []
    said = told(chain(clock, FakeEndpoint(clock, busy)))
    assert len(clock.slept) == 2
    assert [piece.wait_s for piece in said if isinstance(piece, TextChunk)] == clock.slept


def test_all_tries_share_one_deadline(clock: Clock) -> None:
    first, second = FakeEndpoint(clock, ModelTimeout(), takes_s=200), FakeEndpoint(clock)
    told(chain(clock, first, second))
    assert first.tries == second.tries == [300.0]


def test_the_last_model_needs_no_endpoint(clock: Clock) -> None:
    class Extractive:
        def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
            yield from GOOD

    said = told(chain(clock, FakeEndpoint(clock, AGAIN), last=Extractive()))
    assert said[-1] == Ending("stop", facts=ModelFacts("m", tries=4, is_fallback=True))
    alone = told(chain(clock, last=Extractive()))
    assert alone == GOOD


def test_no_endpoint_at_all_is_a_failure_in_the_value(clock: Clock) -> None:
    (ending,) = chain(clock).relay({}, is_streamed=False)
    assert isinstance(ending, Ending)
    assert isinstance(ending.failure, ModelUnavailable)


COUNTED = [ModelUnavailable(), ModelUnavailable(status=500), ModelTimeout()]
UNCOUNTED = [ModelUnavailable(status=408), ModelBusy(status=429), ModelRefused(status=400), ModelGarbled(), NoAnswer()]


@pytest.mark.parametrize("error", COUNTED, ids=lambda error: f"{error.label} {error.status}")
def test_connection_errors_5xx_and_timeouts_open_the_breaker(clock: Clock, error: RagError) -> None:
    endpoint = FakeEndpoint(clock, error)
    model = chain(clock, endpoint, failures=3)
    for _ in range(3):
        told(model)
    (ending,) = told(model)
    assert len(endpoint.tries) == 3
    assert isinstance(ending, Ending)
    assert isinstance(ending.failure, ModelUnavailable)
    assert (ending.failure.retry_after_s, ending.facts.tries) == (30.0, 0)


@pytest.mark.parametrize("error", UNCOUNTED, ids=lambda error: f"{error.label} {getattr(error, 'status', '')}")
def test_other_failures_do_not(clock: Clock, error: RagError) -> None:
    endpoint = FakeEndpoint(clock, error)
    model = chain(clock, endpoint, failures=1)
    for _ in range(5):
        told(model)
    assert len(endpoint.tries) == 5


def test_a_timeout_that_is_not_the_endpoints_fault_opens_no_breaker(clock: Clock) -> None:
    endpoint = FakeEndpoint(clock, ModelTimeout(is_blameless=True))
    breaker = Breaker(1, 30, clock)
    for _ in range(3):
        list(ModelChain([ChainMember("a", endpoint, breaker)], clock=clock).generate(PROMPT, is_streamed=True))
    assert len(endpoint.tries) == 3
    assert not breaker.is_open


def test_an_open_breaker_passes_on_at_once_and_a_probe_closes_it(clock: Clock) -> None:
    first = FakeEndpoint(clock, ModelTimeout())
    model = chain(clock, first, FakeEndpoint(clock), failures=1)
    assert [told(model)[-1].facts.tries for _ in range(3)] == [2, 1, 1]
    clock.now += 30
    first.error = None
    assert [told(model)[-1].facts.is_fallback for _ in range(2)] == [False, False]


def test_a_reader_who_leaves_a_probe_leaves_the_next_to_another_one(clock: Clock) -> None:
    endpoint = FakeEndpoint(clock, ModelTimeout())
    model = chain(clock, endpoint, failures=1)
    told(model)
    clock.now += 30
    endpoint.error = None
    said = model.generate(PROMPT, is_streamed=True)
    next(said)
    said.close()
    clock.now += 30
    assert told(model) == GOOD


def test_a_relay_is_passed_on_in_the_same_way(clock: Clock) -> None:
    said = list(chain(clock, FakeEndpoint(clock, AGAIN), FakeEndpoint(clock)).relay({"a": 1}, is_streamed=True))
    assert said == [{"choices": [], "body": {"a": 1}}, Ending("stop", facts=ModelFacts("m", tries=4, is_fallback=True))]


def test_what_the_model_says_of_a_relayed_body_is_not_passed_on(clock: Clock) -> None:
    second = FakeEndpoint(clock)
    said = list(chain(clock, FakeEndpoint(clock, RefusedByModel("no")), second).relay({}, is_streamed=False))
    assert [type(one.failure) for one in said if isinstance(one, Ending)] == [RefusedByModel]
    assert second.tries == []


def test_the_log_names_host_and_label_and_no_text(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        told(chain(clock, FakeEndpoint(clock, ModelTimeout("shown", log="status=1")), FakeEndpoint(clock)))
    assert [record.getMessage() for record in caplog.records] == ["model host0 failed: modelTimeout status=1"]


def test_closing_the_chain_closes_every_endpoint(clock: Clock) -> None:
    endpoints = FakeEndpoint(clock), FakeEndpoint(clock)
    chain(clock, *endpoints).close()
    assert [endpoint.is_closed for endpoint in endpoints] == [True, True]
