"""
One question's search in steps: further searches by rule, by the model's plan, or by its tools, within a budget.

Every search goes through `retrieval.searched` under the filter that the line hands in; no filter is made here. What a
step finds competes with what all others found. A further step that fails ends the steps and never the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from datafari_rag.core.access import Filter
from datafari_rag.core.answer.text_check import checked_against
from datafari_rag.core.ask import (
    LEVELS,
    Activity,
    ActivityStep,
    Ask,
    ChatMessage,
    Effort,
    StepBudget,
    StepKind,
    budget_for,
    spent_on,
)
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelTimeout, ModelUnavailable, RagError, SearchError
from datafari_rag.core.events import Event, Finished, ModelFacts, StepBegun, StepEnded, StepEvent
from datafari_rag.core.model.prompt import Prompt, fitted, tokens_in
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.passages.selection import Limit, choose, weigh
from datafari_rag.core.query.plan import content_words, is_wanted, query_prompt_for, searches_for, with_query
from datafari_rag.core.search_request import STORED, Search, SearchResult, Step
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.answers import RagSettings
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.steps import (
    LEAST_TOKENS,
    MAX_TOKENS,
    PIECE_CHARS,
    Lead,
    Planner,
    ToolCall,
    call_in,
    is_done,
    lead_from,
    plan_prompt,
    pooled,
    queries_in,
    tools_prompt,
)
from datafari_rag.ports import Ending, Model, Offload
from datafari_rag.retrieval import Engines, Searched, read_in_parts, searched, searched_in

log = logging.getLogger(__name__)

T = TypeVar("T")

MORE_DOCUMENTS = 2
"""By how many documents further searches raise `rag.maxFiles`, so that there is room for what they brought."""

LOOK_CHARS, LOOK_DOCUMENTS = 3000, 5
"""What the model sees of what was found when it plans again."""

THOUGHT_TOKEN_CHARS = 4
"""Characters of a thought that count as a token where the server counts none."""

Steps = Generator[StepEvent, None, None]


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
        """Say whether one more search is within the budget; not after a step that failed."""
        is_well = not any(step.failure for step in self.steps if step.searches)
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

    def end(self, start: tuple[StepBegun, float], step: ActivityStep, result: str = "") -> StepEnded:
        """Take *step* into the account, with the time since its *start*, and return its event."""
        event, at = start
        step = replace(step, kind=event.kind, name=event.name, elapsed_ms=(self._clock() - at) * 1000)
        self.steps = (*self.steps, step)
        return StepEnded(event.id, step, result)


class StepWalk:
    """One question's search as far as it has come; lives as long as its request."""

    def __init__(self, ask: Ask, access: Filter, meter: StepMeter, *, settings: Settings, parts: StepParts) -> None:
        """Search nothing yet."""
        self.ask, self._access, self.meter, self._settings, self._parts = ask, access, meter, settings, parts
        self._question = ask.search_text or ask.question
        self.language = "en"
        self._plan: Sequence[Search] = ()
        self._first = Searched(SearchResult((), 0))
        self._further: list[Searched] = []
        self._leads: list[Lead] = []
        self._pool: tuple[Document, ...] = ()

    def first(self, plan: Sequence[Search]) -> Steps:
        """Search for the question itself, relaxed no oftener than the budget allows. Raises: SearchError."""
        self._plan = plan[: self.meter.budget.searches]
        start = self.meter.begin("search", self._question)
        yield start[0]
        self._first = self._searched(self._plan)
        if self._plan:
            self.language = self._plan[0].language
        if self._first.last is not None:
            self._question = self._first.last.question
        yield self.meter.end(start, _step_of(self._question, self._first))

    def planned(self, calls: int) -> Steps:
        """Let the model plan up to *calls* times, and search for what it names; after the first time it sees texts."""
        for number in range(calls):
            # Nothing is searched for where the model may not be called, fails or has enough.
            earlier = (self._question, *(step.text for step in self.meter.steps))
            prompt = plan_prompt(self.ask, self.extracts() if number else (), self.planner())
            reply = yield from self.called(prompt, partial(queries_in, former=earlier))
            queries = () if reply is None or reply.failure else queries_in(reply.text, earlier)
            for query in queries:
                yield from self.search_also(query, query, content_words(query, self.language))
            if not queries:
                return

    def followed(self, most: int) -> Steps:
        """Search up to *most* times for the names that the best documents bring, one document after the other."""
        read: set[str] = set()
        while len(read) < most and self.meter.may_search():
            document = next((other for other in self.order()[: most + 1] if other.id not in read), None)
            if document is None:
                return
            read.add(document.id)
            lead = self.aside(partial(lead_from, self._question, document, language=self.language), (document,))
            if lead.words:
                self._leads.append(lead)
                yield from self.search_also(" ".join(lead.words), self._question, lead.words)

    def result(self, effort: Effort) -> Stepped:
        """Return all that was found, in one order, with room for what the further searches brought."""
        all_of = (self._first, *self._further)
        documents = self.order() if self._further else self._first.result.documents
        result = replace(
            self._first.result,
            documents=documents,
            total=max(len(documents), *(search.result.total for search in all_of)),
            is_partial=any(search.result.is_partial for search in all_of),
        )
        whole = Searched(result, tuple(tried for search in all_of for tried in search.tried), self._first.last)
        fruitful = sum(bool(search.result.documents) for search in self._further)
        is_free = self.ask.max_documents is None and fruitful > 0
        most = self._settings.rag.max_files + min(fruitful, MORE_DOCUMENTS)
        ask = replace(self.ask, max_documents=most) if is_free else self.ask
        return Stepped(whole, ask, Activity(effort, self.meter.steps))

    def search_also(
        self, text: str, question: str, words: Sequence[str], *, tool: str = ""
    ) -> Generator[StepEvent, None, tuple[Document, ...] | None]:
        """
        Search for any of *words*, nearest in meaning to *question*, and report it as *text*.

        Returns what was found, None where no search was possible.
        """
        if not self.meter.may_search() or not self._plan or not words:
            return None
        search = replace(self._plan[0], question=question, step=Step("further", tuple(words), "OR"))
        start = self.meter.begin("tool" if tool else "search", text, name=tool)
        yield start[0]
        try:
            result = self._searched((search,))
        except SearchError as error:
            log.warning("a further search failed: label=%s cause=%r", error.label, error.log or error.reason)
            yield self.meter.end(start, ActivityStep("search", text, searches=1, failure=error.label))
            return None
        self._further.append(result)
        self._pool = ()
        yield self.meter.end(start, _step_of(text, result), f"{len(result.result.documents)} documents")
        return result.result.documents

    def fetched(self, document: Document) -> Document | None:
        """Return *document* whole, as its user may see it now; it counts as found by a search. Raises: SearchError."""
        field = STORED[self._settings.rag.solr_field]
        whole = self._parts.engines.retriever.fetch(document.id, field, self._access)
        if whole is not None:
            self._further.append(Searched(SearchResult((replace(document, score=1.0),), 1)))
            self._pool = ()
        return whole

    def _searched(self, plan: Sequence[Search]) -> Searched:
        return searched(plan, self._access, settings=self._settings, engines=self._parts.engines)

    def order(self) -> tuple[Document, ...]:
        """Return the documents of all searches so far, best first; made once for each state."""
        if not self._pool:
            results = [search.result.documents for search in (self._first, *self._further)]
            ranked = partial(pooled, self._question, results, leads=tuple(self._leads), language=self.language)
            self._pool = self.aside(ranked, [document for documents in results for document in documents])
        return self._pool

    def extracts(self) -> tuple[Extract, ...]:
        """Return what the model is shown of what was found."""
        documents = self.order()[:LOOK_DOCUMENTS]
        weighed = self.aside(partial(weigh, self._question, documents, language=self.language), documents)
        return extracts_for(choose(weighed, Limit(LOOK_CHARS, LOOK_DOCUMENTS)).chosen, is_cleaned=True)

    def planner(self) -> Planner:
        """Return what a call of the model is made with; its nonce is new each time."""
        return Planner(self._settings.rag.model, self._parts.new_nonce(), self.language)

    def called(
        self, prompt: Prompt, read: Callable[[str], tuple[str, ...]]
    ) -> Generator[StepEvent, None, ModelReply | None]:
        """Return the model's reply to *prompt*, None if it may not be called; *read* returns what is noted of it."""
        input_tokens = tokens_in(prompt, self._parts.count)
        free = self.meter.tokens_left(input_tokens)
        rest = min(MAX_TOKENS, free)
        is_model = self._settings.rag.api_endpoint != BUILTIN_MODEL
        if not is_model or rest < LEAST_TOKENS or not self.meter.may_search():
            return None
        start = self.meter.begin("plan")
        yield start[0]
        prompt = replace(prompt, max_tokens=rest, within_s=self.meter.left_s)
        prompt = sendable(prompt, self._settings, self._parts.count, most=input_tokens + free)
        reply = reply_of(self._parts.model, prompt, count=self._parts.count, is_over=lambda: self.meter.left_s <= 0)
        queries = () if reply.failure else read(reply.text)
        step = ActivityStep("plan", queries=queries, model_calls=1, failure=reply.failure)
        yield self.meter.end(start, replace(step, input_tokens=input_tokens, output_tokens=reply.tokens))
        return reply

    def aside(self, work: Callable[[], T], documents: Sequence[Document]) -> T:
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


def sendable(prompt: Prompt, settings: Settings, count: Callable[[str], int], *, most: int | None = None) -> Prompt:
    """
    Return *prompt*, which words something for a step, as the settings let it be sent.

    Within the model's window, and within *most* tokens with the reply: what is free is room for thoughts. Where an
    administrator sends no temperature, none is sent here.
    """
    window = settings.llm.context_window if most is None else min(settings.llm.context_window, most)
    temperature = None if settings.rag.temperature is None else prompt.temperature
    return fitted(replace(prompt, temperature=temperature), window=window, count=count)


def _step_of(text: str, result: Searched) -> ActivityStep:
    return ActivityStep("search", text, count=len(result.result.documents), searches=len(result.tried))


MAX_USELESS = 2
"""How many replies without a call, or with one that was made before, end the loop."""

NO_CALL, REPEATED, NO_SUCH_DOCUMENT, OVER_BUDGET = "noToolCall", "repeatedToolCall", "noSuchDocument", "overBudget"
"""What the activity calls a reply that moved nothing."""

Outcome = Generator[StepEvent, None, str]
"""What a tool does: its events, then its result for the model."""


class ToolLoop:
    """The calls of one question; lives as long as its request."""

    def __init__(self, walk: StepWalk) -> None:
        """Call nothing yet."""
        self._walk = walk
        self._messages: list[ChatMessage] = []
        self._extracts: tuple[Extract, ...] = ()
        self._pieces: dict[str, tuple[Document, int]] = {}
        self._calls: set[str] = set()
        self._useless = 0

    def run(self) -> Generator[StepEvent, None, None]:
        """Let the model call tools until it has enough, moves nothing, or the budget is spent."""
        while self._useless < MAX_USELESS:
            self._extracts = tuple(self._with_piece(extract) for extract in self._walk.extracts())
            prompt = tools_prompt(self._walk.ask, self._extracts, self._messages, self._walk.planner())
            reply = yield from self._walk.called(prompt, _noted)
            if reply is None or reply.failure is not None or is_done(reply.text):
                return
            call = call_in(reply.text)
            if call is None:
                yield from self._rejected_call(NO_CALL, "", "That was no call of a tool.")
                continue
            self._messages.append(ChatMessage("assistant", call.line))
            if call.line in self._calls and call.name != "readNext":
                yield from self._rejected_call(REPEATED, call.name, "You have made this call before.")
                continue
            self._calls.add(call.line)
            result = yield from TOOL_TABLE[call.name](self, call)
            self._messages.append(ChatMessage("user", f"Result: {result}"))

    def _rejected_call(self, failure: str, name: str, sentence: str) -> Generator[StepEvent, None, None]:
        self._useless += 1
        self._messages.append(ChatMessage("user", f"Result: {sentence}"))
        start = self._walk.meter.begin("tool", name=name)
        yield start[0]
        yield self._walk.meter.end(start, ActivityStep("tool", failure=failure), sentence)

    def search(self, call: ToolCall) -> Outcome:
        """Search for the words of *call*."""
        before = {document.id for document in self._walk.order()}
        documents = yield from self._walk.search_also(
            call.text, call.text, content_words(call.text, self._walk.language), tool=call.name
        )
        if documents is None:
            return "The search is not possible now."
        new = sum(document.id not in before for document in documents)
        return f"{len(documents)} documents, {new} of them new."

    def fetch(self, call: ToolCall) -> Outcome:
        """Read the beginning of a document that was shown."""
        extract = next((other for other in self._extracts if other.number == call.number), None)
        start = self._walk.meter.begin("tool", call.text, name=call.name)
        yield start[0]
        if extract is None or not self._walk.meter.may_search():
            failure = NO_SUCH_DOCUMENT if extract is None else OVER_BUDGET
            yield self._walk.meter.end(start, ActivityStep("tool", call.text, failure=failure))
            return "There is no such document." if extract is None else "No document can be read now."
        try:
            document = self._walk.fetched(extract.document)
        except RagError as error:
            yield self._walk.meter.end(start, ActivityStep("tool", call.text, searches=1, failure=error.label))
            return "The document cannot be read now."
        step = ActivityStep("tool", call.text, count=int(document is not None), searches=1)
        if document is not None:
            self._pieces[document.id] = (document, 0)
        result = "There is no such document." if document is None else self._place(document, 0)
        yield self._walk.meter.end(start, step, result)
        return result

    def read_next(self, call: ToolCall) -> Outcome:
        """Read on in a document that was fetched."""
        extract = next((other for other in self._extracts if other.number == call.number), None)
        start = self._walk.meter.begin("tool", call.text, name=call.name)
        yield start[0]
        document, at = self._pieces.get("" if extract is None else extract.document.id, (None, 0))
        if document is None or at + PIECE_CHARS >= len(document.text):
            self._useless += 1
            result = "That document was not fetched." if document is None else "That was the end of the document."
            yield self._walk.meter.end(start, ActivityStep("tool", call.text, count=0), result)
            return result
        self._pieces[document.id] = (document, at + PIECE_CHARS)
        result = self._place(document, at + PIECE_CHARS)
        yield self._walk.meter.end(start, ActivityStep("tool", call.text, count=1), result)
        return result

    def check(self, call: ToolCall) -> Outcome:
        """Check a statement against the documents that were shown."""
        start = self._walk.meter.begin("tool", call.text, name=call.name)
        yield start[0]
        documents = [extract.document for extract in self._extracts]
        try:
            checked = self._walk.aside(partial(checked_against, call.text, documents, is_cleaned=True), documents)
        except RagError as error:
            yield self._walk.meter.end(start, ActivityStep("tool", call.text, failure=error.label))
            return "This cannot be checked."
        statuses = [sentence.status for sentence in checked.sentences if sentence.status is not None]
        result = ", ".join(statuses) or "It states nothing that a document could prove."
        yield self._walk.meter.end(start, ActivityStep("tool", call.text, count=len(statuses)), result)
        return result

    def _place(self, document: Document, at: int) -> str:
        end = min(len(document.text), at + PIECE_CHARS)
        return f"Characters {at} to {end} of {len(document.text)} are below."

    def _with_piece(self, extract: Extract) -> Extract:
        """Return *extract* with the part of the document that was read last, where one was."""
        document, at = self._pieces.get(extract.document.id, (None, 0))
        return extract if document is None else replace(extract, text=document.text[at : at + PIECE_CHARS], paths=())


def _noted(reply: str) -> tuple[str, ...]:
    call = call_in(reply)
    return () if call is None or is_done(reply) else (call.line,)


TOOL_TABLE: Mapping[str, Callable[[ToolLoop, ToolCall], Outcome]] = {
    "search": ToolLoop.search,
    "fetch": ToolLoop.fetch,
    "readNext": ToolLoop.read_next,
    "check": ToolLoop.check,
}
"""What each tool does."""


def rewritten(ask: Ask, language: str, *, settings: Settings, parts: StepParts) -> Ask:
    """
    Return *ask* with the search query that the model wrote, where that is on; unchanged when it could not.

    With an effort no query is written here: `minimal` calls no model, and the plan of the others is in their budget.
    """
    is_enabled = settings.chat.query_rewriting_enabled and _effort_of(ask, settings.rag) == "none"
    if not is_wanted(ask, is_enabled=is_enabled):
        return ask
    prompt = query_prompt_for(ask, model=settings.rag.model, nonce=parts.new_nonce(), language=language)
    prompt = sendable(prompt, settings, parts.count)
    words: list[str] = []
    with closing(parts.model.generate(prompt, is_streamed=False)) as said_by_model:
        for piece in said_by_model:
            if isinstance(piece, Ending):
                return ask if piece.failure is not None else with_query(ask, "".join(words))
            words.append(piece.text)
    return ask


def stepped(
    ask: Ask, access: Filter, *, language: str, settings: Settings, parts: StepParts
) -> Generator[StepEvent, None, Stepped]:
    """
    Search for *ask*, in as many steps as its effort and budget allow, and report each.

    Raises:
        SearchError: the search for the question itself failed.
        NotFound: the ask names documents, and this user can see none of them.
    """
    if ask.document_ids:
        result = searched_in(
            ask.document_ids, access, content=settings.rag.solr_field, retriever=parts.engines.retriever
        )
        if settings.rag.extract == "passages":
            result = read_in_parts(result, ask.search_text or ask.question, language, parts.offload)
        return Stepped(result, ask)
    effort = _effort_of(ask, settings.rag)
    searches = searches_for(ask, language=language, rag=settings.rag)
    if effort == "none":
        return Stepped(searched(searches, access, settings=settings, engines=parts.engines), ask)
    has_tools = ask.wants_tools and effort == "medium"
    meter = StepMeter(budget_for(effort, ask.limits, settings.rag.effort_limits, has_tools=has_tools), parts.clock)
    walk = StepWalk(ask, access, meter, settings=settings, parts=parts)
    yield from walk.first(list(searches))
    if has_tools:
        yield from ToolLoop(walk).run()
    else:
        yield from walk.planned(LEVELS[effort].model_calls)
    yield from walk.followed(LEVELS[effort].follows)
    return walk.result(effort)


def returned_by(steps: Generator[StepEvent, None, T]) -> T:
    """Return the result of *steps* without reporting each."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result


def accounted(
    events: Generator[Event, None, None], activity: Activity, prompt: Prompt, parts: StepParts
) -> Generator[Event, None, None]:
    """Yield *events* of the answer to *prompt*, the last one with *activity* and what the answer itself took."""
    began = parts.clock()
    with closing(events):
        for event in events:
            if isinstance(event, Finished):
                step = replace(_answering(event, prompt, parts), elapsed_ms=(parts.clock() - began) * 1000)
                event = replace(event, activity=activity.plus(step))
            yield event


def _effort_of(ask: Ask, rag: RagSettings) -> Effort:
    return rag.effort if ask.effort is None else ask.effort


def _answering(finished: Finished, prompt: Prompt, parts: StepParts) -> ActivityStep:
    """Return the step of the answer: the built-in model is no call."""
    if finished.facts.name == BUILTIN_MODEL:
        return ActivityStep("answer")
    took = _usage(finished.facts) or (tokens_in(prompt, parts.count), parts.count(finished.text))
    return ActivityStep("answer", model_calls=1, input_tokens=took[0], output_tokens=took[1])


def _usage(facts: ModelFacts) -> tuple[int, int] | None:
    """Return the tokens that the model's server counted, None where it does not say."""
    usage = facts.extras.get("usage")
    numbers = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")] if isinstance(usage, Mapping) else []
    whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool) and number >= 0]
    return (whole[0], whole[1]) if len(whole) == 2 else None
