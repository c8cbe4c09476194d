"""
The line: ask → plan → search as that user → passages → prompt (`prepare`), then model → events (`speak`).

Every dialect runs this and nothing else. The user's filter is attached here and nowhere else. The line knows ports,
not the adapters behind them; it opens no file and no socket, and keeps nothing of a request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial

from datafari_rag.core.access import Filter, User, filter_for
from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.proved_output import ProvedOutput
from datafari_rag.core.answer.reasoning_steps import (
    SearchAttempt,
    Trace,
    page_in_ranks,
    ranked,
    thoughts_for,
    without_least_score,
)
from datafari_rag.core.ask import Activity, Ask
from datafari_rag.core.documents import Candidate, Document, Extract
from datafari_rag.core.errors import (
    ModelUnavailable,
    NoAnswer,
    NoDocuments,
    NoRoomForDocuments,
    RagError,
    SearchUnavailable,
)
from datafari_rag.core.events import (
    Answer,
    AnswerEvent,
    Delta,
    Event,
    Failed,
    Finished,
    ModelFacts,
    Sources,
    Stopwatch,
    UnsupportedPolicy,
    Waiting,
    taken_until,
)
from datafari_rag.core.evidence.answer import perhaps
from datafari_rag.core.evidence.budget import Selected, answering_for
from datafari_rag.core.evidence.gate import FEW
from datafari_rag.core.model.prompt import Prompt, Window, fitted
from datafari_rag.core.model.replies import header_value
from datafari_rag.core.query.plan import bare_prompt_for, language_for, planned, prompt_for, question_language_for
from datafari_rag.core.search_request import Browse, SearchResult
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import LlmSettings, RagSettings, SecuritySettings, Settings
from datafari_rag.core.text.language import greeting_in
from datafari_rag.ports import Ending, TokenCounter, compared_units
from datafari_rag.retrieval import Dependencies as Dependencies
from datafari_rag.retrieval import browsed
from datafari_rag.stepping import answer_step, rewritten, stepped

log = logging.getLogger(__name__)


def log_model(ending: Ending, chars: int, rag: RagSettings) -> None:
    """Log the line of the model's step: who, how often it was tried, how much came and how it ended."""
    if rag.enable_logs:
        outcome = ending.finish_reason if ending.failure is None else ending.failure.label
        log.info("model %s chars=%d ended=%r", header_value(ending.facts), chars, outcome)


def log_steps(result: SearchResult, tried: tuple[SearchAttempt, ...], selected: Selected) -> None:
    """Log one line for each step: counts, sizes and names of steps, never a word of anybody (`rag.enable.logs`)."""
    for step in tried:
        log.info("search step=%r found=%d", step.name, step.total)
    took_ms = 0.0 if result.took_ms is None else result.took_ms
    log.info("documents ids=%r took_ms=%.1f", [document.id for document in result.documents], took_ms)
    log.info("passages documents=%d chars=%d", len(selected.extracts), sum(len(e.text) for e in selected.extracts))


@dataclass(frozen=True, slots=True)
class Prepared:
    """
    What an answer is made of: the *sources*, and the *prompt* for the model, None where nothing can be sent.

    *failure* is why nothing can; *activity* is the account of the steps, None where there were none.
    """

    sources: Sources
    prompt: Prompt | None = None
    failure: RagError | None = None
    activity: Activity | None = None
    candidates: tuple[Candidate, ...] = ()
    """All that was looked at, with why it is in or out."""

    def required_prompt(self) -> Prompt:
        """Return the prompt. Raises: RagError, the failure."""
        if self.prompt is None:
            raise self.failure or NoDocuments()
        return self.prompt


def answer(
    ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies
) -> Generator[AnswerEvent, None, None]:
    """
    Yield `Sources`, then deltas, then exactly one `Finished` or `Failed`; closing the generator frees the model.

    Before the first delta each wait for another try of the model is a `Waiting`.
    A failure before the model is called is a lone `Failed`. Nothing is raised but what is a defect. Scores are for
    administrators: other users' events have none, whatever a dialect makes of them.
    """
    stopwatch = Stopwatch(dependencies.clock)
    greeting = None if ask.attachments else greeting_in(ask.question)
    if greeting is not None:
        yield Sources(())
        yield from _unproved(greeting, ())
        return
    try:
        prepared = prepare(ask, user, settings=settings, dependencies=dependencies, stopwatch=stopwatch)
        yield prepared.sources if user.is_admin else ranked(prepared.sources)
        prompt = prepared.required_prompt()
        if prepared.sources.has_few_words and settings.rag.api_endpoint == BUILTIN_MODEL:
            passages = perhaps(prompt.sought or prompt.question, prompt.extracts, language=prompt.language)
            events: Generator[AnswerEvent, None, None] = _unproved(passages, prompt.extracts)
        else:
            events = speak(
                ask,
                prompt,
                rag=settings.rag,
                policy=settings.answer.unsupported,
                dependencies=dependencies,
                stopwatch=stopwatch,
            )
        began_s = dependencies.clock()
        with closing(events):
            for event in events:
                if isinstance(event, Finished) and prepared.activity is not None:
                    step = answer_step(event, prompt, dependencies.counter.count)
                    step = replace(step, elapsed_ms=(dependencies.clock() - began_s) * 1000)
                    event = replace(event, activity=prepared.activity.plus(step))
                yield ranked(event) if isinstance(event, Finished) and not user.is_admin else event
    except RagError as error:
        yield Failed(error)


def _unproved(text: str, extracts: tuple[Extract, ...]) -> Generator[AnswerEvent, None, None]:
    """Yield the events of what is no answer: it states nothing, and nothing of it is checked."""
    facts = ModelFacts(name=BUILTIN_MODEL)
    yield Delta(text, facts)
    yield Finished(text, facts=facts, extracts=extracts)


def worded(ask: Ask, *, settings: Settings, dependencies: Dependencies) -> Generator[AnswerEvent, None, None]:
    """
    Yield the model's reply to the unchanged *ask*, without search or documents; events as `answer` yields them.

    For requests that a program makes about a conversation, such as its title. Nothing is raised but what is a defect.
    """
    stopwatch = Stopwatch(dependencies.clock)
    prompt = bare_prompt_for(ask, model=settings.rag.model, nonce=dependencies.new_nonce())
    try:
        yield Sources(())
        yield from speak(
            ask,
            prompt,
            rag=settings.rag,
            policy=settings.answer.unsupported,
            dependencies=dependencies,
            stopwatch=stopwatch,
        )
    except RagError as error:
        yield Failed(error)


def browse(plain: Browse, user: User, *, settings: Settings, dependencies: Dependencies) -> Mapping[str, object]:
    """Return Solr's own JSON for a plain search as *user*, ranks for scores. Raises: SearchError, NotAuthenticated."""
    page = browsed(
        plain,
        _access(user, settings.security),
        rag=settings.rag,
        solr=settings.solr,
        dependencies=dependencies,
    )
    return page if user.is_admin else page_in_ranks(page, plain.start)


def fetch(
    document_id: str,
    field: str,
    user: User,
    *,
    security: SecuritySettings,
    dependencies: Dependencies,
    index: str | None = None,
) -> Document | None:
    """
    Return one document as *user* may see it, None when absent or hidden, or when there is no such *index*.

    Without *index* the first index that has it counts, that of `solr.url` first. Raises: SearchError, NotAuthenticated.
    """
    retriever = dependencies.retriever if index is None else dependencies.indexes.get(index)
    return None if retriever is None else retriever.fetch(document_id, field, _access(user, security))


def found_for(ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies) -> SearchResult:
    """Return the documents that an answer to *ask* would be chosen from. Raises: SearchError, NotAuthenticated."""
    access, ask = _access(user, settings.security), planned(ask)
    language = question_language_for(ask)
    steps = stepped(ask, access, language=language, rag=settings.rag, llm=settings.llm, dependencies=dependencies)
    return steps.searched.result


def sources_for(ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies) -> Sources:
    """
    Return what an answer to *ask* would be made from; no model is called, unless it words the search.

    Raises:
        NoDocuments: nothing usable was found.
        RagError: the search or the rights failed.
    """
    stopwatch = Stopwatch(dependencies.clock)
    prepared = prepare(ask, user, settings=settings, dependencies=dependencies, stopwatch=stopwatch)
    prepared.required_prompt()
    return prepared.sources if user.is_admin else ranked(prepared.sources)


def _access(user: User, security: SecuritySettings) -> Filter:
    return filter_for(user, mode=security.mode, anonymous=security.anonymous)


def prepare(ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies, stopwatch: Stopwatch) -> Prepared:
    """
    Search and choose for *ask*; return what the answer will be made of.

    Raises:
        RagError: the rights or the search failed, or the conversation leaves no room for a document.
    """
    ask = planned(ask if user.is_admin else without_least_score(ask))
    access = _access(user, settings.security)
    language, asked_in = language_for(ask), question_language_for(ask)
    dependencies = replace(dependencies, counter=_CountedOnce(dependencies.counter))
    ask = rewritten(ask, language, rag=settings.rag, llm=settings.llm, chat=settings.chat, dependencies=dependencies)
    steps = stepped(ask, access, language=asked_in, rag=settings.rag, llm=settings.llm, dependencies=dependencies)
    ask, result = steps.ask, steps.searched
    reply, tried = result.result, result.tried
    ask = ask if result.last is None else replace(ask, search_text=result.last.question)
    stopwatch.lap("search")
    selected = _selected(
        ask,
        reply.documents,
        language=asked_in,
        rag=settings.rag,
        window=settings.window,
        dependencies=dependencies,
    )
    stopwatch.lap("passages")
    prompt, failure = None, None
    if selected.extracts:
        framing = (dependencies.instructions, dependencies.new_nonce())
        prompt = prompt_for(ask, selected.extracts, language=language, rag=settings.rag, framing=framing)
        prompt = _fitted(prompt, settings.llm, dependencies)
        stopwatch.lap("prompt")
        if settings.rag.enable_logs:
            log_steps(reply, tried, selected)
    else:
        problem = dependencies.retriever.probe() if user.is_admin else None
        failure = _nothing_in(reply, selected, problem, is_in_other_language=_are_foreign(reply.documents, asked_in))
    extracts = () if prompt is None else prompt.extracts
    trace = Trace(
        ask=ask,
        language=language,
        tried=tried,
        extracts=extracts,
        prompt=prompt,
        candidates=selected.candidates,
        access=repr(access),
        endpoint=dependencies.endpoint,
        timings_ms=stopwatch.ms,
        found_by=reply.by,
        reranking=reply.reranking,
    )
    sources = Sources(
        extracts,
        thoughts_for(trace, is_admin=user.is_admin),
        language,
        stopwatch.ms,
        is_partial=reply.is_partial,
        has_few_words=prompt is not None and selected.evidence is not None and selected.evidence < FEW,
        is_in_other_language=_are_foreign([extract.document for extract in extracts], asked_in),
        found_by=reply.by,
        reranking=reply.reranking,
        skipped=result.skipped,
    )
    return Prepared(sources, prompt, failure, steps.activity, selected.candidates)


def _are_foreign(documents: Sequence[Document], asked_in: str) -> bool:
    """Say whether the languages of question and documents are known, and none of *documents* is in the question's."""
    spoken = {document.language for document in documents} - {None, ""}
    return bool(asked_in and spoken) and asked_in not in spoken


def _nothing_in(
    result: SearchResult, selected: Selected, problem: str | None, *, is_in_other_language: bool
) -> RagError:
    """Return why there is nothing to answer from; *problem* is what an administrator has to know of the search."""
    # The contents of a missing shard are unknown: "nothing was found" would be a guess.
    if result.is_partial:
        return SearchUnavailable(log="a part of the collection did not answer")
    if selected.is_without_room:
        return NoRoomForDocuments()
    hint = "What was found is in another language than the question." if is_in_other_language else None
    return NoDocuments(" ".join(filter(None, (NoDocuments.sentence, hint, problem))))


class _CountedOnce:
    """Counts for one answer: its documents are measured when they are chosen, and again in the whole prompt."""

    def __init__(self, counter: TokenCounter) -> None:
        self.count: Callable[[str], int] = cache(counter.count)


def _fitted(prompt: Prompt, llm: LlmSettings, dependencies: Dependencies) -> Prompt:
    """Return *prompt* within the model's window. Raises: NoDocuments, where the conversation leaves no room for one."""
    within = fitted(prompt, window=llm.context_window, count=dependencies.counter.count)
    if not within.extracts:
        raise NoDocuments
    if within.max_tokens != prompt.max_tokens:
        log.warning("max_tokens lowered from %s to %s for the documents", prompt.max_tokens, within.max_tokens)
    return within


def _selected(
    ask: Ask,
    documents: Sequence[Document],
    *,
    language: str,
    rag: RagSettings,
    window: Window,
    dependencies: Dependencies,
) -> Selected:
    """Choose the passages; long texts in a worker thread, so that other answers continue."""
    texts = (ask.question, *(turn.text for turn in ask.history), *(file.text for file in ask.attachments))
    chars = sum(map(len, texts)) + sum(len(document.text) for document in documents)
    # The instructions may be longer than what is reserved for them: no document should have to go for that afterwards.
    count = dependencies.counter.count
    window = replace(window, reserved=max(window.reserved, count(dependencies.instructions)))
    choose = partial(answering_for, ask, documents, language=language, rag=rag, window=window, count=count)
    return dependencies.offload(choose, chars)


SHORT_UNITS = 1_000
"""Work that is done at once: far below what any worker hands to another thread."""


def proof_units(chars: int, extracts: Sequence[Extract]) -> int:
    """Return the units of proving *chars* characters of what a model wrote, or was taken out of a document."""
    # Every word is counted in all of the stored texts; what is read besides is little more than what the model saw.
    stored = [len(extract.document.text) for extract in extracts]
    return compared_units(chars, stored) - sum(stored) + sum([len(extract.text) for extract in extracts])


def speak(
    ask: Ask,
    prompt: Prompt,
    *,
    rag: RagSettings,
    policy: UnsupportedPolicy,
    dependencies: Dependencies,
    stopwatch: Stopwatch,
) -> Generator[AnswerEvent, None, None]:
    """Yield the model's words without what would make a link, and without follow-up marks, then how it ended."""
    output = ProvedOutput(prompt, OutputFilter(wants_followups=ask.wants_followups), policy)
    ending = Ending(None, ModelUnavailable(log="the model ended without an ending"))
    facts: ModelFacts | None = None
    with closing(dependencies.model.generate(prompt, is_streamed=ask.is_streamed)) as said_by_model:
        for piece in said_by_model:
            if isinstance(piece, Ending):
                ending = piece
                break
            if piece.wait_s is not None:
                yield Waiting(piece.wait_s)
                continue
            facts = facts or piece.facts
            units = len(piece.text)
            if output.is_live:
                units = proof_units(units + output.waiting_chars, prompt.extracts)
            # A token of a stream is not worth a question whether its work is long.
            is_short = units <= SHORT_UNITS
            text = (
                output.feed(piece.text) if is_short else dependencies.offload(partial(output.feed, piece.text), units)
            )
            if text:
                yield Delta(text, facts)
    if ending.failure is not None:
        log_model(ending, len(output.text), rag)
        yield Failed(ending.failure, ending.facts)
        return
    stopwatch.lap("model")
    units = proof_units(len(output.text) + output.waiting_chars, prompt.extracts)
    rest = dependencies.offload(output.end, units)
    log_model(ending, len(output.text), rag)
    if rest:
        yield Delta(rest, ending.facts)
    if output.is_blank:
        yield Failed(NoAnswer(), ending.facts)
        return
    stopwatch.lap("citations")
    yield Finished(
        output.text,
        ending.finish_reason or "stop",
        output.citations,
        output.followups,
        facts=ending.facts,
        timings_ms=stopwatch.ms,
        extracts=prompt.extracts,
        support=output.support,
    )


def collect(events: Iterator[AnswerEvent]) -> Answer:
    """
    Fold the events of one answer into the whole.

    Raises:
        RagError: the answer failed, before or after its first words.
    """
    sources = Sources(())
    for event in events:
        match event:
            case Sources():
                sources = event
            case Finished():
                return Answer(sources, event)
            case Failed():
                raise event.error
            case Delta() | Waiting():
                continue
    raise NoAnswer


def beginning_of(events: Generator[Event, None, None]) -> list[Event]:
    """
    Wait for the answer's first words; return the events up to them, or to a good end without words.

    What fails before them is raised, so that it can still be a status; *events* are closed then.

    Raises:
        RagError: the answer failed before its first words.
    """
    beginning = taken_until(events, lambda event: not isinstance(event, Sources))
    last = beginning[-1] if beginning else None
    if not isinstance(last, Delta | Finished):
        events.close()
        raise last.error if isinstance(last, Failed) else NoAnswer()
    return beginning
