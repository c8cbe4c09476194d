"""
One question's search in steps: further searches by rule or by the model's plan, within a budget.

Every search goes through `retrieval.searched` under the filter that the line hands in; no filter is made here. What a
step finds competes with what all others found. A further step that fails ends the steps and never the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from datafari_rag.core.access import Filter
from datafari_rag.core.ask import (
    LEVELS,
    Activity,
    ActivityStep,
    Ask,
    Effort,
    StepBudget,
    budget_for,
    spent_on,
)
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import ModelTimeout, ModelUnavailable, SearchError
from datafari_rag.core.events import Finished, ModelFacts
from datafari_rag.core.model.prompt import Prompt, fitted, tokens_in
from datafari_rag.core.query.plan import content_words, is_rewritten, query_prompt_for, searches_for, with_query
from datafari_rag.core.search_request import Search, SearchResult, Step
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import ChatSettings, LlmSettings, RagSettings
from datafari_rag.core.steps import LEAST_TOKENS, MAX_TOKENS, Lead, lead_from, plan_prompt, pooled, queries_in
from datafari_rag.ports import Ending, Model, reply_in
from datafari_rag.retrieval import Dependencies, Searched, read_in_parts, searched, searched_in

log = logging.getLogger(__name__)

T = TypeVar("T")

MORE_DOCUMENTS = 2
"""By how many documents further searches raise `rag.maxFiles`, so that there is room for what they brought."""

THOUGHT_TOKEN_CHARS = 4
"""Characters of a thought that count as a token where the server counts none."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """What all searches found together, the *ask* as the answer is made from it, and what was done."""

    searched: Searched
    ask: Ask
    activity: Activity | None = None


class StepMeter:
    """The account of one answer's steps: what they took, and whether another one is within the budget."""

    def __init__(self, budget: StepBudget, clock: Callable[[], float]) -> None:
        """Start now."""
        self.budget, self._clock, self._began = budget, clock, clock()
        self._step_began = self._began
        self.steps: tuple[ActivityStep, ...] = ()

    @property
    def left_s(self) -> float:
        """Return the seconds that are left, 0 or less when there are none."""
        return self.budget.seconds - (self._clock() - self._began)

    def may_search(self) -> bool:
        """Say whether one more search is within the budget; not after a step that failed."""
        is_well = not any(step.failure for step in self.steps if step.searches)
        return is_well and self.left_s > 0 and spent_on(self.steps).searches < self.budget.searches

    def tokens_left(self, input_tokens: int) -> int:
        """Return how many tokens the reply to a call with *input_tokens* may have; 0 when none may be made."""
        spent = spent_on(self.steps)
        if self.left_s <= 0 or spent.model_calls >= self.budget.model_calls:
            return 0
        return max(0, self.budget.tokens - spent.tokens - input_tokens)

    def begin(self) -> None:
        """Begin a step now."""
        self._step_began = self._clock()

    def end(self, step: ActivityStep) -> None:
        """Take *step* into the account, with the time since it began."""
        self.steps = (*self.steps, replace(step, elapsed_ms=(self._clock() - self._step_began) * 1000))


class StepWalk:
    """One question's search as far as it has come; lives as long as its request."""

    def __init__(
        self,
        ask: Ask,
        access: Filter,
        meter: StepMeter,
        *,
        rag: RagSettings,
        llm: LlmSettings,
        dependencies: Dependencies,
    ) -> None:
        """Search nothing yet."""
        self._ask, self._access, self._meter, self._parts = ask, access, meter, dependencies
        self._rag, self._llm = rag, llm
        self._question = ask.search_text or ask.question
        self._language = "en"
        self._plan: Sequence[Search] = ()
        self._first = Searched(SearchResult((), 0))
        self._further: list[Searched] = []
        self._leads: list[Lead] = []
        self._pool: tuple[Document, ...] = ()

    def first(self, plan: Sequence[Search]) -> None:
        """Search for the question itself, relaxed no oftener than the budget allows. Raises: SearchError."""
        self._plan = plan[: self._meter.budget.searches]
        self._meter.begin()
        self._first = self._searched(self._plan)
        if self._plan:
            self._language = self._plan[0].language
        if self._first.last is not None:
            self._question = self._first.last.question
        self._meter.end(_step_of(self._question, self._first))

    def planned(self) -> None:
        """Let the model plan, and search for what it names; nothing where it may not be called or fails."""
        nonce = self._parts.new_nonce()
        prompt = plan_prompt(self._ask, self._language, model=self._rag.model, nonce=nonce)
        input_tokens = tokens_in(prompt, self._parts.counter.count)
        free = self._meter.tokens_left(input_tokens)
        rest = min(MAX_TOKENS, free)
        is_model = self._rag.api_endpoint != BUILTIN_MODEL
        if not is_model or rest < LEAST_TOKENS or not self._meter.may_search():
            return
        self._meter.begin()
        prompt = replace(prompt, max_tokens=rest, within_s=self._meter.left_s)
        prompt = sendable(prompt, self._rag, self._llm, self._parts.counter.count, most=input_tokens + free)
        reply = reply_of(
            self._parts.model, prompt, count=self._parts.counter.count, is_over=lambda: self._meter.left_s <= 0
        )
        queries = () if reply.failure else queries_in(reply.text, (self._question,))
        step = ActivityStep("plan", queries=queries, model_calls=1, failure=reply.failure)
        self._meter.end(replace(step, input_tokens=input_tokens, output_tokens=reply.tokens))
        for query in queries:
            self._search_also(query, query, content_words(query, self._language))

    def followed(self, most: int) -> None:
        """Search up to *most* times for the names that the best documents bring, one document after the other."""
        read: set[str] = set()
        while len(read) < most and self._meter.may_search():
            document = next((other for other in self._order()[: most + 1] if other.id not in read), None)
            if document is None:
                return
            read.add(document.id)
            lead = self._aside(partial(lead_from, self._question, document, language=self._language), (document,))
            if lead.words:
                self._leads.append(lead)
                self._search_also(" ".join(lead.words), self._question, lead.words)

    def result(self, effort: Effort) -> Stepped:
        """Return all that was found, in one order, with room for what the further searches brought."""
        all_of = (self._first, *self._further)
        documents = self._order() if self._further else self._first.result.documents
        result = replace(
            self._first.result,
            documents=documents,
            total=max(len(documents), *(search.result.total for search in all_of)),
            is_partial=any(search.result.is_partial for search in all_of),
        )
        whole = Searched(result, tuple(tried for search in all_of for tried in search.tried), self._first.last)
        fruitful = sum(bool(search.result.documents) for search in self._further)
        is_free = self._ask.max_documents is None and fruitful > 0
        most = self._rag.max_files + min(fruitful, MORE_DOCUMENTS)
        ask = replace(self._ask, max_documents=most) if is_free else self._ask
        return Stepped(whole, ask, Activity(effort, self._meter.steps))

    def _search_also(self, text: str, question: str, words: Sequence[str]) -> None:
        """Search for any of *words*, nearest in meaning to *question*, as *text*, where a search is possible."""
        if not self._meter.may_search() or not self._plan or not words:
            return
        search = replace(self._plan[0], question=question, step=Step("further", tuple(words), "OR"))
        self._meter.begin()
        try:
            result = self._searched((search,))
        except SearchError as error:
            log.warning("a further search failed: label=%s cause=%r", error.label, error.log or error.reason)
            self._meter.end(ActivityStep("search", text, searches=1, failure=error.label))
            return
        self._further.append(result)
        self._pool = ()
        self._meter.end(_step_of(text, result))

    def _searched(self, plan: Sequence[Search]) -> Searched:
        return searched(plan, self._access, self._parts)

    def _order(self) -> tuple[Document, ...]:
        """Return the documents of all searches so far, best first; made once for each state."""
        if not self._pool:
            results = [search.result.documents for search in (self._first, *self._further)]
            ranked = partial(pooled, self._question, results, leads=tuple(self._leads), language=self._language)
            self._pool = self._aside(ranked, [document for documents in results for document in documents])
        return self._pool

    def _aside(self, work: Callable[[], T], documents: Sequence[Document]) -> T:
        """Return what *work* on the texts of *documents* returns, in a place where it does not delay other requests."""
        return self._parts.offload(work, sum(len(document.text) for document in documents))


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What the model said in a step before the answer, its *tokens*, and the label of a *failure*."""

    text: str
    tokens: int
    failure: str | None = None


def reply_of(model: Model, prompt: Prompt, *, count: Callable[[str], int], is_over: Callable[[], bool]) -> ModelReply:
    """Return what *model* says to *prompt*, and no more than its `max_tokens`, however much is sent."""
    words: list[str] = []
    tokens, most = 0, prompt.max_tokens or 0
    with closing(model.generate(prompt, is_streamed=True)) as pieces:
        for piece in pieces:
            if is_over():
                return ModelReply("", tokens, ModelTimeout.label)
            if isinstance(piece, Ending):
                tokens += piece.facts.thought_tokens or piece.facts.thought_chars // THOUGHT_TOKEN_CHARS
                return ModelReply("".join(words), tokens, None if piece.failure is None else piece.failure.label)
            size = count(piece.text)
            if tokens + size > most:
                # Some servers send the reply in one part, or ignore the limit: the part that fits is a plan as well.
                return ModelReply("".join(words), most) if words else ModelReply(piece.text[:most], most)
            tokens += size
            words.append(piece.text)
    return ModelReply("", tokens, ModelUnavailable.label)


def sendable(
    prompt: Prompt, rag: RagSettings, llm: LlmSettings, count: Callable[[str], int], *, most: int | None = None
) -> Prompt:
    """
    Return *prompt*, which words something for a step, as the settings let it be sent.

    Within the model's window, and within *most* tokens with the reply: what is free is room for thoughts. Where an
    administrator sends no temperature, none is sent here.
    """
    window = llm.context_window if most is None else min(llm.context_window, most)
    temperature = None if rag.temperature is None else prompt.temperature
    return fitted(replace(prompt, temperature=temperature), window=window, count=count)


def _step_of(text: str, result: Searched) -> ActivityStep:
    return ActivityStep("search", text, count=len(result.result.documents), searches=len(result.tried))


def rewritten(
    ask: Ask, language: str, *, rag: RagSettings, llm: LlmSettings, chat: ChatSettings, dependencies: Dependencies
) -> Ask:
    """
    Return *ask* with the search query that the model wrote, where that is on; unchanged when it could not.

    With an effort no query is written here: `minimal` calls no model, and the plan of the others is in their budget.
    """
    if not is_rewritten(ask, rag, chat):
        return ask
    prompt = query_prompt_for(ask, model=rag.model, nonce=dependencies.new_nonce(), language=language)
    prompt = sendable(prompt, rag, llm, dependencies.counter.count)
    text, ending = reply_in(dependencies.model.generate(prompt, is_streamed=False))
    # What answers in place of a failed model words no search.
    is_usable = ending.failure is None and ending.facts.name != BUILTIN_MODEL
    return with_query(ask, text, language) if is_usable else ask


def stepped(
    ask: Ask, access: Filter, *, language: str, rag: RagSettings, llm: LlmSettings, dependencies: Dependencies
) -> Stepped:
    """
    Search for *ask*, in as many steps as its effort and budget allow.

    Raises:
        SearchError: the search for the question itself failed.
        NotFound: the ask names documents, and this user can see none of them.
    """
    if ask.document_ids:
        result = searched_in(ask.document_ids, access, content=rag.solr_field, retriever=dependencies.retriever)
        return Stepped(read_in_parts(result, ask.search_text or ask.question, language, dependencies.offload), ask)
    effort = rag.effort if ask.effort is None else ask.effort
    searches = searches_for(ask, language=language, rag=rag)
    if effort == "none":
        return Stepped(searched(searches, access, dependencies), ask)
    meter = StepMeter(budget_for(effort, ask.limits, StepBudget()), dependencies.clock)
    walk = StepWalk(ask, access, meter, rag=rag, llm=llm, dependencies=dependencies)
    walk.first(list(searches))
    if LEVELS[effort].model_calls:
        walk.planned()
    walk.followed(LEVELS[effort].follows)
    return walk.result(effort)


def answer_step(finished: Finished, prompt: Prompt, count: Callable[[str], int]) -> ActivityStep:
    """Return the step of the answer to *prompt*: the built-in model is no call."""
    if finished.facts.name == BUILTIN_MODEL:
        return ActivityStep("answer")
    took = _usage(finished.facts) or (tokens_in(prompt, count), count(finished.text))
    return ActivityStep("answer", model_calls=1, input_tokens=took[0], output_tokens=took[1])


def _usage(facts: ModelFacts) -> tuple[int, int] | None:
    """Return the tokens that the model's server counted, None where it does not say."""
    usage = facts.extras.get("usage")
    numbers = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")] if isinstance(usage, Mapping) else []
    whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool) and number >= 0]
    return (whole[0], whole[1]) if len(whole) == 2 else None
