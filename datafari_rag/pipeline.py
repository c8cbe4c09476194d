"""
The line: ask → plan → search as that user → passages → prompt → model → events, and the two folds over them.

Every dialect runs this and nothing else. The user's filter is attached here and nowhere else. The line knows ports,
not what stands behind them; it opens no file and no socket of its own, and keeps nothing of a request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from datafari_rag.core.access import Filter, User, filter_for
from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.answer.ranks import page_in_ranks, ranked, without_least_score
from datafari_rag.core.answer.reasoning_steps import SearchAttempt, Trace, thoughts_for
from datafari_rag.core.answer.window_fitting import fitted
from datafari_rag.core.ask import Ask
from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import Citation, Document, Extract
from datafari_rag.core.errors import (
    ModelUnavailable,
    NoAnswer,
    NoDocuments,
    NoRoomForDocuments,
    RagError,
    SearchUnavailable,
)
from datafari_rag.core.events import Answer, Delta, Event, Failed, Finished, ModelFacts, Sources, Thought, taken_until
from datafari_rag.core.model.replies import header_value
from datafari_rag.core.passages.budget_fitting import Selected, evidence_for
from datafari_rag.core.passages.evidence_threshold import is_passed, stopped
from datafari_rag.core.query.plan import bare_prompt_for, language_for, prompt_for, question_language_for, searches_for
from datafari_rag.core.query.rewriting import is_wanted, with_query
from datafari_rag.core.query.rewriting import prompt_for as query_prompt
from datafari_rag.core.query.search_request import Browse, SearchResult
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.stopwatch import Stopwatch
from datafari_rag.ports import Both, Ending, Meaning, Model, Offload, Retriever, TokenCounter, in_turn, inline
from datafari_rag.retrieval import Engines, Searched, browsed, searched

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """
    What one snapshot of the settings stands on.

    *instructions* is the text of `rag.instructions.file`; *new_nonce* makes an unguessable word; *clock* gives
    seconds that never go back; *endpoint* names the model's server for administrators.
    """

    retriever: Retriever
    model: Model
    counter: TokenCounter
    instructions: str
    new_nonce: Callable[[], str]
    clock: Callable[[], float]
    endpoint: str = ""
    offload: Offload = inline
    """Where long texts are worked through: documents, attachments, answers."""
    meaning: Meaning | None = None
    """What searches by meaning; None where there are no vectors."""
    both: Both = in_turn
    """How the searches by words and by meaning are made."""


def answer(ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies) -> Generator[Event, None, None]:
    """
    Yield `Sources`, then deltas, then exactly one `Finished` or `Failed`; closing the generator frees the model.

    A failure before the model is asked is a lone `Failed`. Nothing is raised but what is a defect. Scores are for
    administrators: nobody else's events have one, whatever a dialect makes of them.
    """
    stopwatch = Stopwatch(dependencies.clock)
    asked = ask if user.is_admin else without_least_score(ask)
    # What an open stream holds is what its own steps still need: the user's tokens end with the first of them.
    prompted = _prompted(asked, user, settings=settings, dependencies=dependencies, stopwatch=stopwatch)
    events = _answered(asked, prompted, settings=settings, dependencies=dependencies, stopwatch=stopwatch)
    return events if user.is_admin else _ranked(events)


def _ranked(events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    with closing(events):
        for event in events:
            yield ranked(event)


def _answered(
    ask: Ask,
    prompted: Generator[Event, None, Prompt],
    *,
    settings: Settings,
    dependencies: Dependencies,
    stopwatch: Stopwatch,
) -> Generator[Event, None, None]:
    try:
        prompt = yield from prompted
        yield from _spoken(ask, prompt, settings=settings, dependencies=dependencies, stopwatch=stopwatch)
    except RagError as error:
        yield Failed(error)


def worded(ask: Ask, *, settings: Settings, dependencies: Dependencies) -> Generator[Event, None, None]:
    """
    Yield what the model says to *ask* as it stands: no search and no documents; events as `answer` yields them.

    For requests that a program makes about a conversation, such as its title. Nothing is raised but what is a defect.
    """
    stopwatch = Stopwatch(dependencies.clock)
    prompt = bare_prompt_for(ask, model=settings.rag_model, nonce=dependencies.new_nonce())
    try:
        yield Sources(())
        yield from _spoken(ask, prompt, settings=settings, dependencies=dependencies, stopwatch=stopwatch)
    except RagError as error:
        yield Failed(error)


def browse(plain: Browse, user: User, *, settings: Settings, dependencies: Dependencies) -> Mapping[str, object]:
    """Return Solr's own JSON for a plain search as *user*, ranks for scores. Raises: SearchError, NotAuthenticated."""
    engines = Engines(dependencies.retriever, dependencies.meaning)
    page = browsed(plain, _access(user, settings), settings=settings, engines=engines)
    return page if user.is_admin else page_in_ranks(page, plain.start)


def fetch(
    document_id: str, field: str, user: User, *, settings: Settings, dependencies: Dependencies
) -> Document | None:
    """Return one document as *user* may see it, None when absent or hidden. Raises: SearchError, NotAuthenticated."""
    return dependencies.retriever.fetch(document_id, field, _access(user, settings))


def found_for(ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies) -> SearchResult:
    """Return the documents that an answer to *ask* would be chosen from. Raises: SearchError, NotAuthenticated."""
    language = question_language_for(ask)
    return _search(ask, language, _access(user, settings), settings=settings, dependencies=dependencies).found


def sources_for(ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies) -> Sources:
    """
    Return what an answer to *ask* would be made from; no model is called, unless it words the search.

    Raises:
        NoDocuments: nothing usable was found.
        RagError: the search or the rights failed.
    """
    with closing(answer(ask, user, settings=settings, dependencies=dependencies)) as events:
        first = next(events)
        if isinstance(first, Sources) and first.extracts:
            return first
        # Without them the line ends in a failure, which is raised here.
        return collect(chain([first], events)).sources


def collect(events: Iterator[Event]) -> Answer:
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
            case Delta():
                continue
    raise NoAnswer


@dataclass(frozen=True, slots=True)
class StartedAnswer:
    """
    An answer whose first words are there: what is known so far, and *events*, all of them from the start.

    *close* frees the model even when nobody ever read the events: a generator that never began has no end to run.
    """

    sources: Sources
    facts: ModelFacts | None
    events: Generator[Event, None, None]
    close: Callable[[], None]


def started(events: Generator[Event, None, None]) -> StartedAnswer:
    """
    Wait for the answer's first words.

    What fails before them is raised, so that it can still be a status.

    Raises:
        RagError: the answer failed before its first words.
    """
    taken = taken_until(events, lambda event: not isinstance(event, Sources))
    last = taken[-1] if taken else Failed(NoAnswer())
    if not isinstance(last, Delta | Finished):
        events.close()
        raise last.error if isinstance(last, Failed) else NoAnswer()
    sources = next((event for event in taken if isinstance(event, Sources)), Sources(()))
    return StartedAnswer(sources, last.facts, _resumed(taken, events), events.close)


def _resumed(taken: Sequence[Event], events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    with closing(events):
        yield from taken
        yield from events


def _access(user: User, settings: Settings) -> Filter:
    return filter_for(user, mode=settings.security_mode, anonymous=settings.security_anonymous)


def _prompted(
    ask: Ask, user: User, *, settings: Settings, dependencies: Dependencies, stopwatch: Stopwatch
) -> Generator[Event, None, Prompt]:
    """Yield `Sources` and return what the model is told. Raises: RagError, when there is nothing to tell it."""
    access = _access(user, settings)
    language, asked_in = language_for(ask), question_language_for(ask)
    ask = _rewritten(ask, language, settings=settings, dependencies=dependencies)
    result = _search(ask, asked_in, access, settings=settings, dependencies=dependencies)
    found, tried = result.found, result.tried
    ask = ask if result.last is None else replace(ask, search_text=result.last.question)
    stopwatch.lap("search")
    selected = _selected(ask, found.documents, language=asked_in, settings=settings, dependencies=dependencies)
    text, least = ask.search_text or ask.question, settings.rag_evidence_min
    if not is_passed(text, selected.extracts, language=asked_in, least=least, documents=found.documents):
        selected = Selected((), stopped(selected.candidates))
    stopwatch.lap("passages")
    trace = Trace(
        ask=ask,
        language=language,
        tried=tried,
        extracts=selected.extracts,
        candidates=selected.candidates,
        access=repr(access),
        endpoint=dependencies.endpoint,
        timings_ms=stopwatch.ms,
    )
    if not selected.extracts:
        yield Sources((), _thoughts(trace, user, settings), language, stopwatch.ms, is_partial=found.is_partial)
        # What a missing shard holds nobody knows: "there is nothing" would be a guess.
        if found.is_partial:
            raise SearchUnavailable(log="a part of the collection did not answer")
        raise NoRoomForDocuments if selected.is_without_room else NoDocuments
    prompt = prompt_for(
        ask,
        selected.extracts,
        language=language,
        settings=settings,
        written=(dependencies.instructions, dependencies.new_nonce()),
    )
    prompt = _fitted(prompt, settings, dependencies)
    stopwatch.lap("prompt")
    if settings.rag_enable_logs:
        _log_steps(found, tried, selected)
    is_partial = found.is_partial
    trace = replace(trace, prompt=prompt, extracts=prompt.extracts, timings_ms=stopwatch.ms)
    thoughts = _thoughts(trace, user, settings)
    yield Sources(prompt.extracts, thoughts, language, stopwatch.ms, is_partial=is_partial, found_by=found.by)
    return prompt


def _fitted(prompt: Prompt, settings: Settings, dependencies: Dependencies) -> Prompt:
    """Return *prompt* within the model's window. Raises: NoDocuments, where the conversation leaves no room for one."""
    within = fitted(prompt, window=settings.llm_context_window, count=dependencies.counter.count)
    if not within.extracts:
        raise NoDocuments
    if within.max_tokens != prompt.max_tokens:
        log.warning("max_tokens lowered from %s to %s for the documents", prompt.max_tokens, within.max_tokens)
    return within


def _selected(
    ask: Ask, documents: Sequence[Document], *, language: str, settings: Settings, dependencies: Dependencies
) -> Selected:
    """Choose the passages; from long texts aside, so that other answers go on meanwhile."""
    sent = (ask.question, *(turn.text for turn in ask.history), *(file.text for file in ask.attachments))
    chars = sum(map(len, sent)) + sum(len(document.text) for document in documents)
    # The instructions may be longer than what is reserved for them: no document should have to go for that afterwards.
    reserved = max(settings.openai_reserve_tokens, dependencies.counter.count(dependencies.instructions))
    settings = replace(settings, openai_reserve_tokens=reserved)
    choose = partial(
        evidence_for, ask, documents, language=language, settings=settings, count=dependencies.counter.count
    )
    return dependencies.offload(choose, chars)


def _thoughts(trace: Trace, user: User, settings: Settings) -> tuple[Thought, ...]:
    """Return the steps that *user* may see, none where `chat.thoughts` keeps them back."""
    is_shown = settings.chat_thoughts == "all" or (settings.chat_thoughts == "admins" and user.is_admin)
    return thoughts_for(trace, is_admin=user.is_admin) if is_shown else ()


def _rewritten(ask: Ask, language: str, *, settings: Settings, dependencies: Dependencies) -> Ask:
    """Return *ask* with the search query that the model wrote, where that is on; unchanged when it could not."""
    if not is_wanted(ask, is_enabled=settings.chat_query_rewriting_enabled):
        return ask
    prompt = query_prompt(ask, model=settings.rag_model, nonce=dependencies.new_nonce(), language=language)
    words: list[str] = []
    with closing(dependencies.model.generate(prompt, is_streamed=False)) as said_by_model:
        for said in said_by_model:
            if isinstance(said, Ending):
                return ask if said.failure is not None else with_query(ask, "".join(words))
            words.append(said.text)
    return ask


def _search(ask: Ask, language: str, access: Filter, *, settings: Settings, dependencies: Dependencies) -> Searched:
    searches = searches_for(ask, language=language, settings=settings)
    return searched(
        searches,
        access,
        settings=settings,
        engines=Engines(dependencies.retriever, dependencies.meaning, dependencies.both),
    )


def _spoken(
    ask: Ask, prompt: Prompt, *, settings: Settings, dependencies: Dependencies, stopwatch: Stopwatch
) -> Iterator[Event]:
    """Yield the model's words with safe links and without follow-up marks, then how it ended."""
    output = OutputFilter(prompt.extracts, wants_followups=ask.wants_followups, links=settings.security_answer_links)
    ending = Ending(None, ModelUnavailable(log="the model ended without an ending"))
    known: ModelFacts | None = None
    with closing(dependencies.model.generate(prompt, is_streamed=ask.is_streamed)) as said_by_model:
        for said in said_by_model:
            if isinstance(said, Ending):
                ending = said
                break
            known = known or said.facts
            if text := dependencies.offload(partial(output.feed, said.text), len(said.text)):
                yield Delta(text, known)
    rest = output.end()
    _log_model(ending, len(output.text), settings)
    if ending.failure is not None:
        yield Failed(ending.failure, ending.facts)
        return
    if rest:
        yield Delta(rest, ending.facts)
    stopwatch.lap("model")
    if not output.text.strip():
        yield Failed(NoAnswer(), ending.facts)
        return
    chars = len(output.text) + sum(len(extract.text) for extract in prompt.extracts)
    citations = dependencies.offload(partial(resolve, output.text, prompt.extracts, language=prompt.language), chars)
    stopwatch.lap("citations")
    yield _finished(output, ending, prompt.extracts, citations, stopwatch.ms)


def _finished(
    output: OutputFilter,
    ending: Ending,
    extracts: tuple[Extract, ...],
    citations: tuple[Citation, ...],
    timings_ms: tuple[tuple[str, float], ...],
) -> Finished:
    return Finished(
        output.text,
        ending.finish_reason or "stop",
        citations,
        output.followups,
        facts=ending.facts,
        timings_ms=timings_ms,
        extracts=extracts,
    )


def _log_model(ending: Ending, chars: int, settings: Settings) -> None:
    """Log the line of the model's step: who, how often it was tried, how much came and how it ended."""
    if settings.rag_enable_logs:
        outcome = ending.finish_reason if ending.failure is None else ending.failure.label
        log.info("model %s chars=%d ended=%r", header_value(ending.facts), chars, outcome)


def _log_steps(found: SearchResult, tried: tuple[SearchAttempt, ...], selected: Selected) -> None:
    """Log one line for each step: counts, sizes and names of steps, never a word of anybody (`rag.enable.logs`)."""
    for step in tried:
        log.info("search step=%r found=%d", step.name, step.total)
    took_ms = 0.0 if found.took_ms is None else found.took_ms
    log.info("documents ids=%r took_ms=%.1f", [document.id for document in found.documents], took_ms)
    log.info("passages documents=%d chars=%d", len(selected.extracts), sum(len(e.text) for e in selected.extracts))
