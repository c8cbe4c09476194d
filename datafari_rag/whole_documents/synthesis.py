"""
Several documents in one answer: of each its share of passages, together in one request; documents left out are named.

Each document gets the same share, however relevant it is to the question, so that none is lost. Without a model, each
contributes sentences of its text.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial

from datafari_rag.core.ask import Ask
from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.errors import NotFound
from datafari_rag.core.events import Delta, Finished, Progress, Sources, WorkEvent
from datafari_rag.core.passages.budget_fitting import evidence_for
from datafari_rag.core.passages.extractive_answer import pieces
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.query.plan import question_language_for
from datafari_rag.core.stopwatch import Stopwatch
from datafari_rag.core.text.language import detect
from datafari_rag.core.whole import prompts
from datafari_rag.core.whole.central_sentences import chosen, condensed, said
from datafari_rag.core.whole.failures import EmptyDocument
from datafari_rag.core.whole.pieces import PieceLimit
from datafari_rag.core.whole.work import EMPTY, NOT_FOUND, OVER_LIMIT, SkippedDocument, WorkEstimate
from datafari_rag.pipeline import spoken
from datafari_rag.ports import compared_units
from datafari_rag.whole_documents.run import WorkRun

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
    most = run.settings.synthesis_max_files
    ids, over = run.ask.document_ids[:most], run.ask.document_ids[most:]
    documents: list[Document] = []
    skipped: list[SkippedDocument] = []
    for number, one in enumerate(ids, 1):
        document = run.read(one)
        if document is None:
            skipped.append(SkippedDocument(one, NOT_FOUND))
        elif document.text.strip():
            documents.append(document)
        else:
            skipped.append(SkippedDocument(one, EMPTY))
        yield Progress(RETRIEVAL, number, len(ids))
    if not documents:
        raise EmptyDocument if any(one.reason == EMPTY for one in skipped) else NotFound("There is no such document.")
    skipped += [SkippedDocument(one, OVER_LIMIT) for one in over]
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
        yield from _by_model(run, extracts, language, stopwatch)
    else:
        yield from _extractive(run, extracts, language, stopwatch)


def _language(ask: Ask, documents: list[Document]) -> str:
    return question_language_for(ask) if ask.question else detect(documents[0].text, "en")


def _extracts(run: WorkRun, documents: list[Document]) -> tuple[Extract, ...]:
    share = run.settings.prompt_max_request_size // len(documents)
    limit = run.limit(prompts.SYNTHESIS, chars=share, pieces=1)
    limit = replace(limit, tokens=limit.tokens // len(documents))
    picked = [(one, _passages(run, one, limit)) for one in documents]
    extracts = extracts_for(picked, is_cleaned=run.settings.rag_clean, has_paths=False)
    if not extracts:
        raise EmptyDocument
    return extracts


def _passages(run: WorkRun, document: Document, limit: PieceLimit) -> tuple[Passage, ...]:
    """Return what is taken of *document*: the passages that answer the question, else its central sentences."""
    settings = run.settings
    if run.ask.question:
        ask = replace(run.ask, document_ids=(), history=(), max_documents=1)
        within = replace(
            settings, rag_max_json_length=limit.chars, llm_context_window=limit.tokens + _reserved_tokens(run)
        )
        choose = partial(
            evidence_for,
            ask,
            [document],
            language=question_language_for(ask),
            settings=within,
            count=limit.count,
        )
        found = run.dependencies.offload(choose, len(document.text))
        if found.extracts:
            return found.extracts[0].passages
    weighed = run.weighed(document, detect(document.text, "en"))
    chars = min(limit.chars, 2 * limit.tokens)
    return condensed(weighed, (0, len(document.text)), chars)


def _reserved_tokens(run: WorkRun) -> int:
    """Return what the choice of passages keeps free in a window that is only the documents' here."""
    count = run.dependencies.counter.count
    return run.settings.answer_tokens + run.settings.openai_reserve_tokens + count(run.ask.question)


def _by_model(
    run: WorkRun, extracts: tuple[Extract, ...], language: str, stopwatch: Stopwatch
) -> Generator[WorkEvent, None, None]:
    instructions = prompts.instructed_in(prompts.SYNTHESIS, language)
    question = run.ask.question or prompts.TOGETHER
    prompt = run.prompt(question, extracts, instructions=instructions, language=language)
    yield from spoken(run.ask, prompt, settings=run.settings, dependencies=run.dependencies, stopwatch=stopwatch)


def _extractive(
    run: WorkRun, extracts: tuple[Extract, ...], language: str, stopwatch: Stopwatch
) -> Generator[WorkEvent, None, None]:
    """Yield for each document its label, and below it some of its sentences with its mark."""
    written = ""
    for extract in extracts:
        section = run.filtered(f"{extract.label}:\n{_own_words(run, extract)}", extracts)
        written += (text := f"\n\n{section}" if written else section)
        yield Delta(text)
    units = compared_units(len(written), [len(extract.text) for extract in extracts])
    prove = partial(resolve, written, extracts, language=language)
    citations = run.dependencies.offload(prove, units)
    stopwatch.lap("citations")
    yield Finished(written, citations=citations, timings_ms=stopwatch.ms, extracts=extracts)


def _own_words(run: WorkRun, extract: Extract) -> str:
    language = detect(extract.document.text, "en")
    if run.ask.question:
        return "".join(pieces(run.ask.question, (extract,), language=run.ask.language or language))
    weighed = run.weighed(replace(extract.document, text=extract.text), language)
    sentences = chosen(weighed, OWN_SENTENCES)
    return " ".join(f"{said(extract.text, one)} [{extract.number}]" for one in sentences)
