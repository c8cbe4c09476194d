"""
Search in steps: the question first, then what the first passages or the model lead to, within a budget.

Every search goes through `retrieval.searched` under the filter that the line hands in; no filter is made here. What a
step finds competes with what all others found. A further step that fails ends the steps and never the answer: the
activity says so. Nothing of a question is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from datafari_rag.core.access import Filter
from datafari_rag.core.answer.prompt import Prompt, document_message
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelTimeout, ModelUnavailable, SearchError
from datafari_rag.core.events import Event, Finished, ModelFacts, Progress, StepBegun, StepEnded
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.passages.selection import Limit, choose, weigh
from datafari_rag.core.query.plan import searches_for
from datafari_rag.core.query.rewriting import is_wanted, with_query
from datafari_rag.core.query.rewriting import prompt_for as query_prompt
from datafari_rag.core.query.search_request import Search, SearchResult, Step
from datafari_rag.core.query.steps import content_words
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.steps import planning
from datafari_rag.core.steps.activity import Activity, ActivityStep, StepKind, spent_on
from datafari_rag.core.steps.budgets import LEVELS, Effort, StepBudget, budget_for
from datafari_rag.core.steps.following import Lead, lead_from
from datafari_rag.core.steps.planning import plan_prompt, queries_in
from datafari_rag.core.steps.pooling import pooled
from datafari_rag.ports import Ending, Model, Offload
from datafari_rag.retrieval import Engines, Searched, searched

log = logging.getLogger(__name__)

T = TypeVar("T")

MORE_DOCUMENTS = 2
"""By how many documents further searches raise `rag.maxFiles`, so that there is room for what they brought."""

LOOK_CHARS, LOOK_DOCUMENTS = 3000, 5
"""What the model sees of what was found when it plans again."""

MESSAGE_TOKENS = 8
"""What a message costs besides its text, at most."""

Steps = Generator[Progress, None, None]


@dataclass(frozen=True, slots=True)
class StepParts:
    """What the steps are made with: the line's own."""

    engines: Engines
    model: Model
    count: Callable[[str], int]
    clock: Callable[[], float]
    new_nonce: Callable[[], str]
    offload: Offload


@dataclass(frozen=True, slots=True)
class Stepped:
    """What all searches found together, the *ask* as the answer is made from it, and what was done."""

    searched: Searched
    ask: Ask
    activity: Activity | None = None


def rewritten(ask: Ask, language: str, *, settings: Settings, parts: StepParts) -> Ask:
    """Return *ask* with the search query that the model wrote, where that is on; unchanged when it could not."""
    if not is_wanted(ask, is_enabled=settings.chat_query_rewriting_enabled):
        return ask
    prompt = query_prompt(ask, model=settings.rag_model, nonce=parts.new_nonce(), language=language)
    words: list[str] = []
    with closing(parts.model.generate(prompt, is_streamed=False)) as said_by_model:
        for said in said_by_model:
            if isinstance(said, Ending):
                return ask if said.failure is not None else with_query(ask, "".join(words))
            words.append(said.text)
    return ask


def stepped(
    ask: Ask, access: Filter, *, language: str, settings: Settings, parts: StepParts
) -> Generator[Progress, None, Stepped]:
    """
    Search for *ask*, in as many steps as its effort and budget allow, and tell of each.

    Raises:
        SearchError: the search for the question itself failed.
    """
    effort = settings.rag_effort if ask.effort is None else ask.effort
    searches = searches_for(ask, language=language, settings=settings)
    if effort == "none":
        return Stepped(searched(searches, access, settings=settings, engines=parts.engines), ask)
    allowed = StepBudget(
        settings.rag_effort_max_searches,
        settings.rag_effort_max_model_calls,
        settings.rag_effort_max_tokens,
        settings.rag_effort_max_seconds,
    )
    meter = StepMeter(budget_for(effort, ask.limits, allowed), parts.clock)
    walk = StepWalk(ask, access, meter, settings=settings, parts=parts)
    yield from walk.first(list(searches))
    yield from walk.planned(LEVELS[effort].model_calls)
    yield from walk.followed(LEVELS[effort].follows)
    return walk.result(effort)


def returned_by(steps: Generator[Progress, None, Stepped]) -> Stepped:
    """Return what *steps* return at their end, and tell nobody of each."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            whole: Stepped = ended.value
            return whole


class StepMeter:
    """The account of one answer's steps: what they took, and whether another one is within the budget."""

    def __init__(self, budget: StepBudget, clock: Callable[[], float]) -> None:
        """Start now."""
        self.budget, self._clock, self._began = budget, clock, clock()
        self.steps: tuple[ActivityStep, ...] = ()
        self._number = 0

    @property
    def left_s(self) -> float:
        """Return the seconds that are left, 0 or less when there are none."""
        return self.budget.seconds - (self._clock() - self._began)

    def may_search(self) -> bool:
        """Say whether one more search is within the budget; none is after a step that failed."""
        is_well = not any(step.failure for step in self.steps if step.kind == "search")
        return is_well and self.left_s > 0 and spent_on(self.steps).searches < self.budget.searches

    def tokens_left(self, input_tokens: int) -> int:
        """Return how many tokens the reply to a call with *input_tokens* may have; 0 when none may be made."""
        spent = spent_on(self.steps)
        if self.left_s <= 0 or spent.model_calls >= self.budget.model_calls:
            return 0
        return max(0, self.budget.tokens - spent.tokens - input_tokens)

    def begin(self, kind: StepKind, text: str = "", *, name: str = "") -> tuple[StepBegun, float]:
        """Return the event of a step that begins now, and when that is."""
        self._number += 1
        return StepBegun(f"step-{self._number}", kind, name, text), self._clock()

    def end(self, begun: tuple[StepBegun, float], step: ActivityStep, result: str = "") -> StepEnded:
        """Take *step* into the account, with the time since it has *begun*, and return its event."""
        event, at = begun
        step = replace(step, kind=event.kind, name=event.name, elapsed_ms=(self._clock() - at) * 1000)
        self.steps = (*self.steps, step)
        return StepEnded(event.id, step, result)


class StepWalk:
    """One question's search as far as it has come; lives as long as its request."""

    def __init__(self, ask: Ask, access: Filter, meter: StepMeter, *, settings: Settings, parts: StepParts) -> None:
        """Search nothing yet."""
        self._ask, self._access, self._meter, self._settings, self._parts = ask, access, meter, settings, parts
        self._question = ask.search_text or ask.question
        self._language = "en"
        self._plan: Sequence[Search] = ()
        self._first = Searched(SearchResult((), 0))
        self._further: list[Searched] = []
        self._leads: list[Lead] = []
        self._pool: tuple[Document, ...] = ()

    def first(self, plan: Sequence[Search]) -> Steps:
        """Search for the question itself, relaxed no oftener than the budget allows. Raises: SearchError."""
        self._plan = plan[: self._meter.budget.searches]
        begun = self._meter.begin("search", self._question)
        yield begun[0]
        self._first = self._searched(self._plan)
        if self._plan:
            self._language = self._plan[0].language
        if self._first.last is not None:
            self._question = self._first.last.question
        yield self._meter.end(begun, _step_of(self._question, self._first))

    def planned(self, calls: int) -> Steps:
        """Let the model plan up to *calls* times, and search for what it names; after the first time it sees texts."""
        for number in range(calls):
            queries = yield from self._queries(self._seen() if number else ())
            for query in queries:
                yield from self._search_also(query, query, content_words(query, self._language))
            if not queries:
                return

    def followed(self, most: int) -> Steps:
        """Search up to *most* times for the names that the best documents bring, one document after the other."""
        read: set[str] = set()
        while len(read) < most and self._meter.may_search():
            document = next((one for one in self._order()[: most + 1] if one.id not in read), None)
            if document is None:
                return
            read.add(document.id)
            lead = self._aside(partial(lead_from, self._question, document, language=self._language), (document,))
            if lead.words:
                self._leads.append(lead)
                yield from self._search_also(" ".join(lead.words), self._question, lead.words)

    def result(self, effort: Effort) -> Stepped:
        """Return all that was found, in one order, with room for what the further searches brought."""
        all_of = (self._first, *self._further)
        documents = self._order() if self._further else self._first.found.documents
        found = replace(
            self._first.found,
            documents=documents,
            total=max(len(documents), *(one.found.total for one in all_of)),
            is_partial=any(one.found.is_partial for one in all_of),
        )
        whole = Searched(found, tuple(tried for one in all_of for tried in one.tried), self._first.last)
        brought = sum(bool(one.found.documents) for one in self._further)
        is_free = self._ask.max_documents is None and brought > 0
        most = self._settings.rag_max_files + min(brought, MORE_DOCUMENTS)
        ask = replace(self._ask, max_documents=most) if is_free else self._ask
        return Stepped(whole, ask, Activity(effort, self._meter.steps))

    def _search_also(self, text: str, question: str, words: Sequence[str]) -> Steps:
        """Search for any of *words*, nearest in meaning to *question*, and tell of it as *text*."""
        if not self._meter.may_search() or not self._plan:
            return
        search = replace(self._plan[0], question=question, step=Step("further", tuple(words), "OR"))
        begun = self._meter.begin("search", text)
        yield begun[0]
        try:
            found = self._searched((search,))
        except SearchError as error:
            log.warning("a further search failed: label=%s cause=%r", error.label, error.log or error.reason)
            yield self._meter.end(begun, ActivityStep("search", text, searches=1, failure=error.label))
            return
        self._further.append(found)
        self._pool = ()
        yield self._meter.end(begun, _step_of(text, found))

    def _searched(self, plan: Sequence[Search]) -> Searched:
        return searched(plan, self._access, settings=self._settings, engines=self._parts.engines)

    def _order(self) -> tuple[Document, ...]:
        """Return the documents of all searches so far, best first; made once for each state."""
        if not self._pool:
            results = [one.found.documents for one in (self._first, *self._further)]
            ranked = partial(pooled, self._question, results, leads=tuple(self._leads), language=self._language)
            self._pool = self._aside(ranked, [one for found in results for one in found])
        return self._pool

    def _seen(self) -> tuple[Extract, ...]:
        """Return what the model is shown of what was found."""
        documents = self._order()[:LOOK_DOCUMENTS]
        weighed = self._aside(partial(weigh, self._question, documents, language=self._language), documents)
        return extracts_for(choose(weighed, Limit(LOOK_CHARS, LOOK_DOCUMENTS)).chosen, is_cleaned=True)

    def _queries(self, seen: tuple[Extract, ...]) -> Generator[Progress, None, tuple[str, ...]]:
        """Return what the model wants to search for; nothing where it may not be called, fails or has enough."""
        planner = planning.Planner(self._settings.rag_model, self._parts.new_nonce(), self._language)
        prompt = plan_prompt(self._ask, seen, planner)
        input_tokens = tokens_in(prompt, self._parts.count)
        left = min(planning.MAX_TOKENS, self._meter.tokens_left(input_tokens))
        is_model = self._settings.rag_api_endpoint != BUILTIN_MODEL
        if not is_model or left < planning.LEAST_TOKENS or not self._meter.may_search():
            return ()
        begun = self._meter.begin("plan")
        yield begun[0]
        prompt = replace(prompt, max_tokens=left, within_s=self._meter.left_s)
        said = said_by(self._parts.model, prompt, count=self._parts.count, is_over=lambda: self._meter.left_s <= 0)
        known = (self._question, *(step.text for step in self._meter.steps))
        queries = () if said.failure else queries_in(said.text, known)
        step = ActivityStep("plan", queries=queries, model_calls=1, failure=said.failure)
        yield self._meter.end(begun, replace(step, input_tokens=input_tokens, output_tokens=said.tokens))
        return queries

    def _aside(self, work: Callable[[], T], documents: Sequence[Document]) -> T:
        return self._parts.offload(work, sum(len(document.text) for document in documents))


@dataclass(frozen=True, slots=True)
class SaidByModel:
    """What the model said in a step before the answer, its *tokens*, and the label of a *failure*."""

    text: str
    tokens: int
    failure: str | None = None


def said_by(model: Model, prompt: Prompt, *, count: Callable[[str], int], is_over: Callable[[], bool]) -> SaidByModel:
    """Return what *model* says to *prompt*, and no more than its `max_tokens`, however much is sent."""
    words: list[str] = []
    tokens, most = 0, prompt.max_tokens or 0
    with closing(model.generate(prompt, is_streamed=True)) as pieces:
        for piece in pieces:
            if is_over():
                return SaidByModel("", tokens, ModelTimeout.label)
            if isinstance(piece, Ending):
                return SaidByModel("".join(words), tokens, None if piece.failure is None else piece.failure.label)
            size = count(piece.text)
            if tokens + size > most:
                # A server that sends its whole reply at once, or heeds no limit: what fits is a plan as well.
                return SaidByModel("".join(words), most) if words else SaidByModel(piece.text[:most], most)
            tokens += size
            words.append(piece.text)
    return SaidByModel("", tokens, ModelUnavailable.label)


def tokens_in(prompt: Prompt, count: Callable[[str], int]) -> int:
    """Return the tokens of all that is sent with *prompt*."""
    texts = [prompt.instructions or "", *(turn.text for turn in prompt.history), prompt.question]
    texts += [document_message(extract, prompt.nonce) for extract in prompt.extracts]
    return sum(count(text) + MESSAGE_TOKENS for text in texts)


def accounted(
    events: Iterator[Event], activity: Activity, prompt: Prompt, parts: StepParts
) -> Generator[Event, None, None]:
    """Yield *events* of the answer to *prompt*, the last one with *activity* and what the answer itself took."""
    began = parts.clock()
    for event in events:
        if isinstance(event, Finished):
            step = ActivityStep("answer")
            if event.facts.name != BUILTIN_MODEL:
                took = _usage(event.facts) or (tokens_in(prompt, parts.count), parts.count(event.text))
                step = ActivityStep("answer", model_calls=1, input_tokens=took[0], output_tokens=took[1])
            event = replace(event, activity=activity.plus(replace(step, elapsed_ms=(parts.clock() - began) * 1000)))
        yield event


def _usage(facts: ModelFacts) -> tuple[int, int] | None:
    """Return the tokens that the model's server counted, None where it does not say."""
    usage = facts.extras.get("usage")
    numbers = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")] if isinstance(usage, Mapping) else []
    whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool) and number >= 0]
    return (whole[0], whole[1]) if len(whole) == 2 else None


def _step_of(text: str, found: Searched) -> ActivityStep:
    return ActivityStep("search", text, found=len(found.found.documents), searches=len(found.tried))
