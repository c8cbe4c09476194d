"""
The summary of one document: by a model piece after piece or part by part, else with its own central sentences.

Every sentence has a mark that is proved against the piece it was made from, in the stored text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.answer.support_policy import SupportPolicy
from datafari_rag.core.documents import Citation, Document, Extract
from datafari_rag.core.errors import NoAnswer, NotFound
from datafari_rag.core.events import UNKNOWN_MODEL, Delta, Finished, ModelFacts, Progress, Sources, Support, WorkEvent
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.stopwatch import Stopwatch
from datafari_rag.core.text.language import detect
from datafari_rag.core.whole import prompts
from datafari_rag.core.whole.central_sentences import WeighedText, chosen, said
from datafari_rag.core.whole.failures import EmptyDocument
from datafari_rag.core.whole.pieces import PieceLimit, piece_extract, piece_spans
from datafari_rag.core.whole.proved_summary import ProvedSummary, provable, proved
from datafari_rag.core.whole.work import SENTENCES, WorkEstimate
from datafari_rag.ports import IsWanted, compared_units
from datafari_rag.whole_documents.run import ModelText, WorkRun

GENERATION = "generation"
"""The step in which the model writes."""


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
    own_language = detect(document.text, "en")
    weighed = run.weighed(document, own_language)
    passages = chosen(weighed, SENTENCES[run.work.length])
    shown = extracts_for([(document, passages)], is_cleaned=run.settings.rag_clean, has_paths=False)
    if not shown:
        raise EmptyDocument
    language = run.ask.language or own_language
    limit = run.limit(
        prompts.SUMMARY,
        chars=run.settings.prompt_max_request_size,
        pieces=run.settings.summarization_chunks_number,
    )
    subject = Subject(document, weighed, piece_spans(weighed, limit), limit, language)
    stopwatch.lap("passages")
    yield Sources(shown, (), language, stopwatch.ms, estimate=_estimate(run, subject))
    if run.work.is_estimate:
        yield Finished("", extracts=shown)
        return
    if run.has_model:
        parts = STRATEGIES[run.settings.prompt_chunking_strategy](run, subject)
    else:
        own = replace(subject, language=own_language)
        parts = _extractive(run, own, [said(document.text, one) for one in passages], shown)
    with closing(parts):
        yield from _joined(parts, shown, stopwatch)


def _estimate(run: WorkRun, subject: Subject) -> WorkEstimate:
    chars, pieces = len(subject.document.text), len(subject.spans)
    if not run.has_model:
        return WorkEstimate(0, pieces, chars, "extractive")
    strategy = run.settings.prompt_chunking_strategy
    is_merged = strategy == "mapreduce" and pieces > 1
    return WorkEstimate(pieces + is_merged, pieces, chars, strategy)


def _joined(parts: Parts, shown: tuple[Extract, ...], stopwatch: Stopwatch) -> Iterator[WorkEvent]:
    text, citations = "", list[Citation]()
    reason, facts, support = "stop", UNKNOWN_MODEL, Support(0, 0)
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
        extracts=shown,
        support=proof,
    )


def _extractive(run: WorkRun, subject: Subject, sentences: Sequence[str], shown: tuple[Extract, ...]) -> Parts:
    safe = [run.filtered(one, shown) for one in sentences]
    prove = partial(provable, safe, shown, language=subject.language)
    for one in run.dependencies.offload(prove, sum(map(len, safe))):
        yield SummaryPart(one, gap=" ", is_own=True)


def _refined(run: WorkRun, subject: Subject) -> Parts:
    """Yield the summary piece after piece: each call knows the text so far, and continues it."""
    total, so_far = len(subject.spans), ""
    for number, span in enumerate(subject.spans, 1):
        extract = _seen(run, subject, span)
        if extract is not None:
            most = _share(run, total)
            question = prompts.next_question(number, total, most, so_far) if so_far else None
            question = question or prompts.part_question(number, total, most)
            written = run.written(_prompt(run, subject, question, (extract,)))
            if written.text.strip():
                so_far = f"{so_far}\n{written.text.strip()}".strip()
                yield from _parts(run, subject, written, (extract,))
        yield Progress(GENERATION, number, total)


def _mapped_and_reduced(run: WorkRun, subject: Subject) -> Parts:
    """Yield one summary of the summaries of all pieces, which are made in parallel."""
    seen = [extract for span in subject.spans if (extract := _seen(run, subject, span)) is not None]
    total = len(seen)
    works = [partial(_part_written, run, subject, extract, (number, total)) for number, extract in enumerate(seen, 1)]
    written: list[ModelText] = []
    with closing(run.dependencies.several(works, run.settings.summarization_parallel)) as results:
        for number, one in enumerate(results, 1):
            written.append(one)
            yield Progress(GENERATION, number, total + (total > 1))
    summaries = [one for one in written if one.text.strip()]
    if len(summaries) > 1:
        parts = tuple(_of_part(subject.document, number, one.text) for number, one in enumerate(summaries, 1))
        question = prompts.merge_question(len(parts), SENTENCES[run.work.length])
        summaries = [run.written(_prompt(run, subject, question, parts))]
        yield Progress(GENERATION, total + 1, total + 1)
    if summaries and summaries[0].text.strip():
        yield from _parts(run, subject, summaries[0], tuple(seen))


def _part_written(
    run: WorkRun, subject: Subject, extract: Extract, place: tuple[int, int], is_wanted: IsWanted
) -> ModelText:
    number, total = place
    question = prompts.part_question(number, total, _share(run, total))
    return run.written(_prompt(run, subject, question, (extract,)), is_wanted)


def _of_part(document: Document, number: int, text: str) -> Extract:
    """Return the summary of a part as the model sees it: data as a document's own words are."""
    return Extract(number, f"Part {number}", replace(document, text=text), (), text)


def _prompt(run: WorkRun, subject: Subject, question: str, extracts: tuple[Extract, ...]) -> Prompt:
    instructions = prompts.instructed_in(prompts.SUMMARY, subject.language)
    return run.prompt(question, extracts, instructions=instructions, language=subject.language)


def _seen(run: WorkRun, subject: Subject, span: tuple[int, int]) -> Extract | None:
    choose = partial(
        piece_extract,
        subject.document,
        subject.weighed,
        span,
        limit=subject.limit,
        is_cleaned=run.settings.rag_clean,
    )
    return run.dependencies.offload(choose, span[1] - span[0])


def _share(run: WorkRun, total: int) -> int:
    """Return how many sentences one of *total* pieces has in the summary."""
    return -(-SENTENCES[run.work.length] // total)


def _parts(run: WorkRun, subject: Subject, written: ModelText, extracts: tuple[Extract, ...]) -> Parts:
    """Yield what the model wrote as the policy of all answers shows it, or what takes its place."""
    policy = SupportPolicy.of(run.settings)
    prove = partial(proved, written.text, extracts, language=subject.language, policy=policy)
    units = compared_units(len(written.text), [len(extract.text) for extract in extracts])
    summary = run.dependencies.offload(prove, units)
    yield SummaryPart(summary, written.finish_reason, written.facts)
    if summary.support.replaced == "extractive":
        seen = replace(subject.document, text="\n".join(extract.text for extract in extracts))
        own = detect(subject.document.text, "en")
        weighed = run.weighed(seen, own)
        sentences = [said(seen.text, one) for one in chosen(weighed, _share(run, len(subject.spans)))]
        yield from _extractive(run, replace(subject, language=own), sentences, extracts)


STRATEGIES: Mapping[str, Callable[[WorkRun, Subject], Parts]] = {
    "refine": _refined,
    "mapreduce": _mapped_and_reduced,
}
