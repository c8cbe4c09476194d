"""
Work on whole documents: a search alone, the summary of one document, the synthesis of several.

Documents are read through the pipeline, which attaches the user's filter; nothing here searches of itself. What a work
costs is known before the model is called, and its calls are bounded. Every sentence of a summary has a mark that is
proved against the piece it was made from, in the stored text. As the pipeline it knows ports alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from datafari_rag.core import whole
from datafari_rag.core.access import User
from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.answer.reasoning_steps import ranked
from datafari_rag.core.ask import Ask, DocumentWork, WorkKind
from datafari_rag.core.documents import Citation, Document, Extract, Passage, stored_span
from datafari_rag.core.errors import NoAnswer, NoDocuments, NoRoomForDocuments, NotFound, RagError
from datafari_rag.core.events import (
    EMPTY,
    NOT_FOUND,
    OVER_LIMIT,
    UNKNOWN_MODEL,
    Delta,
    Failed,
    Finished,
    ModelFacts,
    Progress,
    SkippedDocument,
    Sources,
    Stopwatch,
    Support,
    Waiting,
    WorkEstimate,
    WorkEvent,
)
from datafari_rag.core.evidence.answer import pieces
from datafari_rag.core.evidence.budget import Selected, evidence_for
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.evidence.parts import in_parts
from datafari_rag.core.model.prompt import Prompt, fitted
from datafari_rag.core.proof.checking import resolve
from datafari_rag.core.query.plan import question_language_for
from datafari_rag.core.search_request import STORED
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.language import detect
from datafari_rag.core.whole import (
    SENTENCES,
    EmptyDocument,
    PieceLimit,
    ProvedSummary,
    WeighedText,
    chosen,
    condensed,
    piece_extract,
    piece_spans,
    provable,
    proved,
    weigh,
    weighed_in,
    words_at,
)
from datafari_rag.pipeline import Dependencies, fetch, proof_units, sources_for, speak
from datafari_rag.ports import reply_in

GENERATION = "generation"
"""The step in which the model writes."""

PIECES = 10
"""Most pieces of a document, each one call of the model; a longer document is sampled."""

REQUEST_CHARS = 40_000
"""Most characters of documents in one call, as in Datafari; the model's window may allow fewer."""

TOGETHER = 5
"""Most documents in one synthesis: they share one call, and more would be a sentence each."""


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Some sentences of a summary, proved."""

    summary: ProvedSummary
    finish_reason: str = "stop"
    facts: ModelFacts = UNKNOWN_MODEL
    gap: str = "\n\n"
    """The separator of these sentences and those before."""
    is_own: bool = False
    """Whether they are the document's own, and no model's."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is summarised: the *document*, its sentences, the *spans* that are a piece each, and in which *language*."""

    document: Document
    weighed: WeighedText
    spans: tuple[tuple[int, int], ...]
    limit: PieceLimit
    language: str


Parts = Generator[Progress | SummaryPart, None, None]


def summarised(run: WorkRun) -> Generator[WorkEvent, None, None]:
    """
    Yield the summary of the first of the ask's documents.

    Raises:
        NotFound: it is absent, or hidden from this user.
        EmptyDocument: it has no text.
        RagError: search, rights or model failed.
    """
    stopwatch = Stopwatch(run.dependencies.clock)
    document = run.read(run.ask.document_ids[0])
    if document is None:
        raise NotFound("There is no such document.")
    stopwatch.lap("search")
    own_language = detect(document.text)
    weighed = run.weighed(document, own_language)
    passages = chosen(weighed, SENTENCES[run.work.length])
    extracts = extracts_for([(document, passages)], is_cleaned=run.settings.rag.clean, has_paths=False)
    if not extracts:
        raise EmptyDocument
    language = run.ask.language or own_language
    limit = run.limit(whole.SUMMARY, chars=REQUEST_CHARS, pieces=PIECES)
    subject = Subject(document, weighed, piece_spans(weighed, limit), limit, language)
    stopwatch.lap("passages")
    yield Sources(extracts, (), language, stopwatch.ms, estimate=_estimate(run, subject))
    if run.work.is_estimate:
        yield Finished("", extracts=extracts)
        return
    if run.has_model:
        parts = _refined(run, subject)
    else:
        own = replace(subject, language=own_language)
        parts = _summary_of_sentences(run, own, [words_at(document.text, passage) for passage in passages], extracts)
    with closing(parts):
        yield from _joined(parts, extracts, stopwatch)


def _estimate(run: WorkRun, subject: Subject) -> WorkEstimate:
    chars, pieces = len(subject.document.text), len(subject.spans)
    if not run.has_model:
        return WorkEstimate(0, pieces, chars, "extractive")
    return WorkEstimate(pieces, pieces, chars, "refine")


def _joined(parts: Parts, extracts: tuple[Extract, ...], stopwatch: Stopwatch) -> Iterator[WorkEvent]:
    text, citations = "", list[Citation]()
    reason, facts, support = "stop", UNKNOWN_MODEL, Support(0)
    for part in parts:
        if isinstance(part, Progress):
            yield part
            continue
        facts = facts if facts is not UNKNOWN_MODEL else part.facts
        reason = "length" if part.finish_reason == "length" else reason
        if part.summary.text and text:
            text += part.gap
            yield Delta(part.gap, facts)
        citations += part.summary.moved(len(text))
        # How much of what a model wrote is proved: the document's own sentences are not counted.
        support = support if part.is_own else support.joined(part.summary.support, len(text))
        text += part.summary.text
        yield from (Delta(sentence, facts) for sentence in part.summary.sentences())
    if not text:
        raise NoAnswer
    stopwatch.lap("model")
    proof = support if support.checked else None
    yield Finished(
        text,
        reason,
        tuple(citations),
        facts=facts,
        timings_ms=stopwatch.ms,
        extracts=extracts,
        support=proof,
    )


def _summary_of_sentences(
    run: WorkRun, subject: Subject, sentences: Sequence[str], extracts: tuple[Extract, ...]
) -> Parts:
    safe = [run.filtered(sentence) for sentence in sentences]
    prove = partial(provable, safe, extracts, language=subject.language)
    for summary in run.dependencies.offload(prove, proof_units(sum(map(len, safe)), extracts)):
        yield SummaryPart(summary, gap=" ", is_own=True)


def _refined(run: WorkRun, subject: Subject) -> Parts:
    """Yield the summary piece after piece: each call knows the text so far, and continues it."""
    total, so_far = len(subject.spans), ""
    for number, span in enumerate(subject.spans, 1):
        extract = _extract_of(run, subject, span)
        if extract is not None:
            most = _share(run, total)
            question = whole.next_question(number, total, most, so_far) if so_far else None
            question = question or whole.part_question(number, total, most)
            reply = run.model_text(_prompt(run, subject, question, (extract,)))
            if reply.text.strip():
                so_far = f"{so_far}\n{reply.text.strip()}".strip()
                yield from _parts(run, subject, reply, (extract,))
        yield Progress(GENERATION, number, total)


def _prompt(run: WorkRun, subject: Subject, question: str, extracts: tuple[Extract, ...]) -> Prompt:
    instructions = whole.instructed_in(whole.SUMMARY, run.ask.language, "the document")
    return run.prompt(question, extracts, instructions=instructions, language=subject.language)


def _extract_of(run: WorkRun, subject: Subject, span: tuple[int, int]) -> Extract | None:
    choose = partial(
        piece_extract,
        subject.document,
        subject.weighed,
        span,
        limit=subject.limit,
        is_cleaned=run.settings.rag.clean,
    )
    return run.dependencies.offload(choose, span[1] - span[0])


def _share(run: WorkRun, total: int) -> int:
    """Return how many sentences one of *total* pieces has in the summary."""
    return -(-SENTENCES[run.work.length] // total)


def _parts(run: WorkRun, subject: Subject, reply: ModelText, extracts: tuple[Extract, ...]) -> Parts:
    """Yield what the model wrote as the policy of all answers shows it."""
    policy = run.settings.answer.unsupported
    prove = partial(proved, reply.text, extracts, language=subject.language, policy=policy)
    units = proof_units(len(reply.text), extracts)
    summary = run.dependencies.offload(prove, units)
    yield SummaryPart(summary, reply.finish_reason, reply.facts)


RETRIEVAL = "retrieval"
"""The step in which the documents are read."""

OWN_SENTENCES = 2
"""Sentences of each document without a question and without a model."""


def synthesised(run: WorkRun) -> Generator[WorkEvent, None, None]:
    """
    Yield what the documents of the ask say together.

    Raises:
        NotFound: this user can see none of them.
        EmptyDocument: those that are there have no text.
        RagError: search, rights or model failed.
    """
    stopwatch = Stopwatch(run.dependencies.clock)
    ids, over = run.ask.document_ids[:TOGETHER], run.ask.document_ids[TOGETHER:]
    documents: list[Document] = []
    skipped: list[SkippedDocument] = []
    for number, document_id in enumerate(ids, 1):
        document = run.read(document_id)
        if document is None:
            skipped.append(SkippedDocument(document_id, NOT_FOUND))
        elif document.text.strip():
            documents.append(document)
        else:
            skipped.append(SkippedDocument(document_id, EMPTY))
        yield Progress(RETRIEVAL, number, len(ids))
    if not documents:
        raise EmptyDocument if any(skip.reason == EMPTY for skip in skipped) else NotFound("There is no such document.")
    skipped += [SkippedDocument(document_id, OVER_LIMIT) for document_id in over]
    stopwatch.lap("search")
    extracts = _extracts(run, documents)
    stopwatch.lap("passages")
    language = run.ask.language or _language(run.ask, documents)
    chars = sum(len(document.text) for document in documents)
    cost = WorkEstimate(int(run.has_model), len(extracts), chars, "together" if run.has_model else "extractive")
    yield Sources(extracts, (), language, stopwatch.ms, skipped=tuple(skipped), estimate=cost)
    if run.work.is_estimate:
        yield Finished("", extracts=extracts)
    elif run.has_model:
        of = "the question" if run.ask.question else "the documents"
        instructions = whole.instructed_in(whole.SYNTHESIS, run.ask.language, of)
        question = run.ask.question or whole.TOGETHER
        prompt = run.prompt(question, extracts, instructions=instructions, language=language)
        events = speak(
            run.ask,
            prompt,
            rag=run.settings.rag,
            policy=run.settings.answer.unsupported,
            dependencies=run.dependencies,
            stopwatch=stopwatch,
        )
        with closing(events):
            yield from (event for event in events if not isinstance(event, Waiting))
    else:
        yield from _synthesis_of_sentences(run, extracts, language, stopwatch)


def _language(ask: Ask, documents: list[Document]) -> str:
    return question_language_for(ask) if ask.question else detect(documents[0].text)


def _extracts(run: WorkRun, documents: list[Document]) -> tuple[Extract, ...]:
    limit = run.limit(whole.SYNTHESIS, chars=REQUEST_CHARS // len(documents), pieces=1)
    limit = replace(limit, tokens=limit.tokens // len(documents))
    picked = [(document, _passages(run, document, limit)) for document in documents]
    extracts = extracts_for(picked, is_cleaned=run.settings.rag.clean, has_paths=False)
    if not extracts:
        raise EmptyDocument
    return extracts


def _passages(run: WorkRun, document: Document, limit: PieceLimit) -> tuple[Passage, ...]:
    """Return what is taken of *document*: the passages that answer the question, else its central sentences."""
    settings = run.settings
    if run.ask.question:
        ask = replace(run.ask, document_ids=(), history=(), max_documents=1)
        # What the choice of passages keeps free in a window, which is only the documents' here.
        window, rag = settings.window, settings.rag.replaced(chars=0, max_json_length=limit.chars)
        within = replace(window, size=limit.tokens + window.answer + window.reserved + limit.count(ask.question))
        language = question_language_for(ask)

        def choose() -> Selected:
            parts = in_parts([document], ask.question, language)
            return evidence_for(ask, parts, language=language, rag=rag, window=within, count=limit.count)

        selection = run.dependencies.offload(choose, len(document.text))
        if selection.extracts:
            read = selection.extracts[0]
            return tuple(Passage(*stored_span(read.document, p.start, p.end), p.score) for p in read.passages)
    weighed = run.weighed(document, detect(document.text))
    chars = min(limit.chars, 2 * limit.tokens)
    return condensed(weighed, (0, len(document.text)), chars)


def _synthesis_of_sentences(
    run: WorkRun, extracts: tuple[Extract, ...], language: str, stopwatch: Stopwatch
) -> Generator[WorkEvent, None, None]:
    """Yield for each document its label, and below it some of its sentences with its mark."""
    full_text = ""
    for extract in extracts:
        # An empty line: the label is no part of the first sentence, which is proved.
        section = run.filtered(f"{extract.label}:\n\n{_own_words(run, extract)}")
        full_text += (text := f"\n\n{section}" if full_text else section)
        yield Delta(text)
    units = proof_units(len(full_text), extracts)
    citations = run.dependencies.offload(partial(resolve, full_text, extracts, language=language), units)
    stopwatch.lap("citations")
    yield Finished(full_text, citations=citations, timings_ms=stopwatch.ms, extracts=extracts)


def _own_words(run: WorkRun, extract: Extract) -> str:
    language = detect(extract.document.text)
    if run.ask.question:
        return "".join(pieces(run.ask.question, (extract,), language=run.ask.language or language))
    # Of the stored text: in the extract's, which is cleaned, no line ends a heading or an item.
    sentences = chosen(weighed_in(run.weighed(extract.document, language), extract.passages), OWN_SENTENCES)
    return " ".join(f"{words_at(extract.document.text, passage)} [{extract.number}]" for passage in sentences)


FRAME_TOKENS = 200
"""Most tokens of question, label and fences of a request, without instructions and the summary so far."""

LEAST_ROOM_TOKENS = 100


@dataclass(frozen=True, slots=True)
class ModelText:
    """What the model wrote to one request, whole, with safe links; and how it ended."""

    text: str
    finish_reason: str = "stop"
    facts: ModelFacts = UNKNOWN_MODEL


@dataclass(frozen=True, slots=True)
class WorkRun:
    """One work with all that it needs; nothing is kept afterwards."""

    ask: Ask
    work: DocumentWork
    user: User
    settings: Settings
    dependencies: Dependencies

    @property
    def has_model(self) -> bool:
        """Whether a model writes; else sentences of the documents are taken."""
        return self.settings.rag.api_endpoint != BUILTIN_MODEL

    def read(self, document_id: str) -> Document | None:
        """Return one document as this user may see it, else None. Raises: SearchError, NotAuthenticated."""
        field = STORED[self.settings.rag.solr_field]
        return fetch(document_id, field, self.user, security=self.settings.security, dependencies=self.dependencies)

    def weighed(self, document: Document, language: str) -> WeighedText:
        """Return the sentences of *document* weighed, worked through aside when it is long."""
        work = partial(weigh, document.text, title=document.title or "", language=language)
        return self.dependencies.offload(work, len(document.text))

    def limit(self, instructions: str, *, chars: int, pieces: int) -> PieceLimit:
        """Return how large one request may be: *chars* at most, and what the model's window leaves."""
        settings, count = self.settings, self.dependencies.counter.count
        # The answer, and before it the summary so far, which is no longer than all answers may be.
        beside = count(instructions) + FRAME_TOKENS + 2 * settings.window.answer
        room = max(LEAST_ROOM_TOKENS, settings.llm.context_window - beside)
        return PieceLimit(pieces, min(chars, settings.rag.max_json_length), room, count)

    def prompt(self, question: str, extracts: tuple[Extract, ...], *, instructions: str, language: str) -> Prompt:
        """
        Return the prompt, within the model's window: what does not fit is left out from the end.

        Raises:
            NoRoomForDocuments: not even one of *extracts* fits.
        """
        settings = self.settings
        prompt = Prompt(
            question=question,
            extracts=extracts,
            instructions=instructions,
            nonce=self.dependencies.new_nonce(),
            language=language,
            model=settings.rag.model,
            temperature=settings.rag.temperature,
            max_tokens=settings.rag.max_tokens,
        )
        prompt = fitted(prompt, window=settings.llm.context_window, count=self.dependencies.counter.count)
        if not prompt.extracts:
            raise NoRoomForDocuments
        return prompt

    def filtered(self, text: str) -> str:
        """Return *text* without what would make a link, as every answer is shown."""
        output = OutputFilter(wants_followups=False)
        output.feed(text)
        output.end()
        return output.text

    def model_text(self, prompt: Prompt) -> ModelText:
        """Return what the model writes to *prompt*. Raises: ModelError."""
        # A stream, so that an abandoned work closes the connection at the next word.
        written, ending = reply_in(self.dependencies.model.generate(prompt, is_streamed=True))
        if ending.failure is not None:
            raise ending.failure
        return ModelText(self.filtered(written), ending.finish_reason or "stop", ending.facts)


MOST_FOUND = 10
"""Most documents of a search."""


def worked(
    ask: Ask, work: DocumentWork, user: User, *, settings: Settings, dependencies: Dependencies
) -> Generator[WorkEvent, None, None]:
    """
    Yield the events of *work*, as `pipeline.answer` yields those of a question, with `Progress` among them.

    Closing the generator ends the work: no further call of the model is begun. Nothing is raised but what is a defect.
    """
    run = WorkRun(ask, work, user, settings, dependencies)
    try:
        with closing(WORKS[work.kind](run)) as events:
            for event in events:
                yield event if user.is_admin or isinstance(event, Progress) else ranked(event)
    except RagError as error:
        yield Failed(error)


def _searched(run: WorkRun) -> Generator[WorkEvent, None, None]:
    """Yield the documents that an answer would be made from, and no answer."""
    ask = replace(run.ask, max_documents=MOST_FOUND)
    try:
        sources = sources_for(ask, run.user, settings=run.settings, dependencies=run.dependencies)
    except NoDocuments:
        sources = Sources(())
    yield sources
    yield Finished("", extracts=sources.extracts)


WORKS: Mapping[WorkKind, Callable[[WorkRun], Generator[WorkEvent, None, None]]] = {
    "search": _searched,
    "summarize": summarised,
    "synthesize": synthesised,
}
