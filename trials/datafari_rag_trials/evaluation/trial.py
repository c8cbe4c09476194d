"""
One question through the line itself, several times: what was found, what the model would see, what it says.

`run` takes a course of questions over one variant of the settings, in several processes.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar
from zlib import crc32

from msgspec import structs

from datafari_rag.adapters.machine import new_nonce
from datafari_rag.adapters.model.chain import ExtractiveModel
from datafari_rag.adapters.reranker import EndpointReranker
from datafari_rag.adapters.settings.file import snapshot_of
from datafari_rag.adapters.token_counters import EstimatedTokens
from datafari_rag.adapters.vectors.factory import meaning_for
from datafari_rag.bootstrap import model_for, retriever_for
from datafari_rag.core.access import ANONYMOUS, Filter, User, is_visible
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Citation, Document, Extract, Passage
from datafari_rag.core.errors import NoAnswer, NoDocuments, RagError
from datafari_rag.core.events import Answer, Failed, Sources
from datafari_rag.core.evidence.choice import Chosen, Limit, choose
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.evidence.gate import evidence_of, signals_in
from datafari_rag.core.evidence.scoring import Weighed, weigh
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.language import detect
from datafari_rag.core.text.sizes import cut_at
from datafari_rag.pipeline import answer, collect, found_for
from datafari_rag.ports import Retriever
from datafari_rag.retrieval import Dependencies
from datafari_rag_trials.evaluation.measures import BUDGETS, UNFOUND, Trial, holds
from datafari_rag_trials.evaluation.questions import LeakReader, Question

NEEDED = ("solr.", "security.", "rag.", "llm.", "token.", "embeddings.", "retrieval.")

_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings to measure: the file *conf* with *changes* on top; *with_model* asks its model, else the built-in."""

    name: str
    conf: Path
    changes: Mapping[str, str]
    with_model: bool = False


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What is asked, with which access *tokens*, and for whom leaks are counted."""

    questions: tuple[Question, ...]
    tokens: frozenset[str] = frozenset()
    readers: tuple[LeakReader, ...] = ()
    rights: Rights | None = None


def plan_of(plan: EvaluationPlan, variant: Variant, *, baselines: bool) -> str:
    """Return what tells a run from one with other questions or settings; where the engine listens is no part of it."""
    conf = variant.conf.read_text(encoding="utf-8") if variant.conf.exists() else ""
    changes = {key: value for key, value in variant.changes.items() if key != "solr.url"}
    questions = [(question.group, question.id, question.text) for question in plan.questions]
    facts = [variant.name, conf, sorted(changes.items()), variant.with_model, baselines, sorted(plan.tokens), questions]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def run(plan: EvaluationPlan, variant: Variant, *, jobs: int, baselines: bool) -> Iterator[Trial]:
    """
    Yield the trial of every question, in order.

    Raises:
        StartRefused: the settings cannot be used.
        RagError, CannotMeasure: search, rights or model fail.
    """
    setup = bench_for(variant, plan, baselines=baselines)
    if jobs == 1:
        yield from (tried(question, setup) for question in plan.questions)
        return
    # Spawned, not forked: clients and indexes of this process are not for sharing.
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), _begin, (variant, replace(plan, questions=()), baselines)
    ) as pool:
        try:
            yield from pool.map(_try, plan.questions, chunksize=_CHUNK)
        except BrokenProcessPool as error:
            raise CannotMeasure(f"{variant.name}: a process that asked the questions ended early") from error


def bench_for(variant: Variant, plan: EvaluationPlan, *, baselines: bool) -> TrialSetup:
    """Return what the questions are tried on. Raises: StartRefused, RagError."""
    conf = variant.conf if variant.conf.exists() else None
    snapshot = snapshot_of(conf, environ=os.environ, overrides=variant.changes)
    snapshot.require(*NEEDED)
    settings = snapshot.settings
    asks = User("eval", plan.tokens) if plan.tokens else ANONYMOUS
    if not variant.with_model:
        settings = structs.replace(settings, rag=structs.replace(settings.rag, api_endpoint=BUILTIN_MODEL))
    retriever = retriever_for(settings)
    dependencies = Dependencies(
        retriever=retriever,
        meaning=None if settings.retrieval.method == "bm25" else meaning_for(settings, retriever),
        reranker=EndpointReranker(settings.rerank, settings.tls.rerank, time.monotonic)
        if settings.rerank.endpoint
        else None,
        model=model_for(settings) if variant.with_model else ExtractiveModel(),
        counter=EstimatedTokens(),
        instructions=snapshot.instructions,
        new_nonce=new_nonce,
        clock=time.monotonic,
    )
    return TrialSetup(settings, dependencies, asks, plan.readers, plan.rights, baselines)


class CannotMeasure(Exception):
    """Search, rights or model failed in another process; the message says at which question."""


class _ProcessState:
    """The bench of one process."""

    benches: ClassVar[list[TrialSetup]] = []


def _begin(variant: Variant, plan: EvaluationPlan, baselines: bool) -> None:
    _ProcessState.benches.append(bench_for(variant, plan, baselines=baselines))


def _try(question: Question) -> Trial:
    try:
        return tried(question, _ProcessState.benches[-1])
    except RagError as error:
        # An error with keyword arguments does not survive the way between processes.
        raise CannotMeasure(f"{question.id}: {error.label} {error.log or error.reason}") from error


Rights = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Document id → its ACL fields."""


class CachingRetriever:
    """A retriever that calls another one once for the same search: each question runs with several budgets."""

    def __init__(self, inner: Retriever) -> None:
        """Remember nothing yet."""
        self._inner = inner
        self._results: dict[tuple[Search, Filter], SearchResult] = {}
        self.last = SearchResult((), 0)

    def search(self, search: Search, access: Filter) -> SearchResult:
        """Return what the other one found for the same search and filter. Raises: SearchError."""
        key = (search, access)
        if key not in self._results:
            self._results[key] = self._inner.search(search, access)
        self.last = self._results[key]
        return self.last

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Hand on. Raises: SearchError."""
        return self._inner.browse(browse, access)

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """Hand on. Raises: SearchError."""
        return self._inner.fetch(document_id, field, access)

    def probe(self) -> str | None:
        """Hand on."""
        return self._inner.probe()


@dataclass(frozen=True, slots=True)
class TrialSetup:
    """What all questions are tried on: the line, who *asks*, and who must not see what (*readers*, *rights*)."""

    settings: Settings
    dependencies: Dependencies
    asks: User = ANONYMOUS
    readers: tuple[LeakReader, ...] = ()
    rights: Rights | None = None
    baselines: bool = True


def tried(question: Question, setup: TrialSetup) -> Trial:
    """
    Return what *question* gives on *setup*.

    Raises:
        RagError: search, rights or model fail; nothing found and nothing answered are results, not failures.
    """
    memory = CachingRetriever(setup.dependencies.retriever)
    dependencies = replace(setup.dependencies, retriever=memory)
    ask = Ask(question.text)
    whole, replied = _replied(ask, setup, dependencies)
    by_words = _by_words(ask, memory, setup, dependencies)
    documents = found_for(ask, setup.asks, settings=setup.settings, dependencies=dependencies).documents
    extracts = whole.sources.extracts if whole else ()
    language = detect(question.text)
    weighed = weigh(question.text, documents, language=language)
    citations = whole.finished.citations if whole else ()
    return Trial(
        group=question.group,
        is_answerable=question.is_answerable,
        has_answer=bool(question.answers) and question.is_answerable,
        has_document=bool(question.document_ids),
        rank=_rank([result.document for result in weighed.order], question, documents),
        engine_rank=_rank(by_words, question, ()),
        hits=_hits(question, _roomy(setup, extracts), weighed, dependencies) if question.answers else {},
        is_in_reply=replied and whole is not None and holds([whole.finished.text], question.answers),
        has_replied=replied,
        citations=len(citations),
        proved=sum(_is_proved(citation) for citation in citations),
        right=sum(_is_proved(citation) and citation.document_id in question.document_ids for citation in citations),
        evidence=evidence_of(signals_in(weighed, language=language, most=setup.settings.rag.max_files)),
        leaks=_leaks(question, setup),
        is_whole=_is_whole(question, whole if replied else None),
        needs_all=question.needs_all,
        ms=dict((*whole.sources.timings_ms, *whole.finished.timings_ms)) if whole else {},
        id=question.id,
    )


def _by_words(ask: Ask, memory: CachingRetriever, setup: TrialSetup, dependencies: Dependencies) -> Sequence[Document]:
    """Return what the question's own search by words found, in the engine's order; the last one where it is alone."""
    if setup.settings.rag.effort != "none":
        found_for(replace(ask, effort="none"), setup.asks, settings=setup.settings, dependencies=dependencies)
    return memory.last.documents


def _roomy(setup: TrialSetup, extracts: Sequence[Extract]) -> TrialSetup:
    """Return *setup* with room for as many documents as the answer had: further searches raise their number."""
    most = max(setup.settings.rag.max_files, len(extracts))
    return replace(
        setup, settings=structs.replace(setup.settings, rag=structs.replace(setup.settings.rag, max_files=most))
    )


def _is_whole(question: Question, replied: Answer | None) -> bool | None:
    """Say whether the reply has the whole row, item or step that answers; None where the answer is none of these."""
    if not question.unit:
        return None
    return replied is not None and holds([replied.finished.text], [question.unit])


def _replied(ask: Ask, setup: TrialSetup, dependencies: Dependencies) -> tuple[Answer | None, bool]:
    """Return the whole answer with whether it says something; a sentence without citation says it found nothing."""
    try:
        with closing(answer(ask, setup.asks, settings=setup.settings, dependencies=dependencies)) as events:
            whole = collect(events)
    except (NoDocuments, NoAnswer):
        return None, False
    return whole, bool(whole.finished.citations) or setup.settings.rag.api_endpoint != BUILTIN_MODEL


def _rank(documents: Sequence[Document], question: Question, candidates: Sequence[Document]) -> int:
    """Return the right document's place; a document in *candidates* with the same text counts as well."""
    right = {document.text for document in candidates if document.text and document.id in question.document_ids}
    ranks = [rank for rank, doc in enumerate(documents) if doc.id in question.document_ids or doc.text in right]
    if question.needs_all:
        return ranks[-1] if ranks and len(ranks) == len(question.document_ids) else UNFOUND
    return ranks[0] if ranks else UNFOUND


def _is_proved(citation: Citation) -> bool:
    return citation.status in ("verified", "quoted")


def _hits(
    question: Question, setup: TrialSetup, weighed: Weighed, dependencies: Dependencies
) -> dict[str, tuple[bool, ...]]:
    """
    Return for each way whether the answer is in the context at each budget, the window being no limit.

    Passages and heads are chosen as `fit` chooses them, from what one search found (of which *weighed* was made);
    snippets need a separate one.
    """
    most = setup.settings.rag.max_files
    order = sorted((result.document for result in weighed.order), key=lambda document: (-document.score, document.id))
    hits = {"passages": _at_budgets(question, most, lambda limit: choose(weighed, limit).chosen, setup)}
    if setup.baselines:
        hits["head"] = _at_budgets(question, most, partial(_heads, order), setup)
        rag = structs.replace(setup.settings.rag, solr_field="highlighting", evidence_min=0.0)
        snippets = structs.replace(setup.settings, rag=rag)
        extracts = _extracts(Ask(question.text), setup.asks, snippets, dependencies)
        hits["highlighting"] = (holds([extract.text for extract in extracts], question.answers),) * len(BUDGETS)
    return hits


def _at_budgets(
    question: Question, most: int, choose_within: Callable[[Limit], Chosen], setup: TrialSetup
) -> tuple[bool, ...]:
    return tuple(
        holds(
            [e.text for e in extracts_for(choose_within(Limit(budget, most)), is_cleaned=setup.settings.rag.clean)],
            question.answers,
        )
        for budget in BUDGETS
    )


def _heads(documents: Sequence[Document], limit: Limit) -> Chosen:
    """Return the beginnings of the first *documents*, each its equal share of *limit*, cut at a sentence end."""
    best, room = documents[: limit.max_documents], limit.max_chars
    chosen: list[tuple[Document, tuple[Passage, ...]]] = []
    for number, document in enumerate(best):
        end = cut_at(document.text, min(len(document.text), room // (len(best) - number)))
        if document.text[:end].strip():
            chosen.append((document, (Passage(0, end, document.score),)))
            room -= end
    return tuple(chosen)


def _extracts(ask: Ask, user: User, settings: Settings, dependencies: Dependencies) -> tuple[Extract, ...]:
    """Return what the model would see, without asking it; empty when nothing was found. Raises: RagError."""
    with closing(answer(ask, user, settings=settings, dependencies=dependencies)) as events:
        for event in events:
            if isinstance(event, Sources):
                return event.extracts
            if isinstance(event, Failed) and not isinstance(event.error, NoDocuments):
                raise event.error
            break
    return ()


def _leaks(question: Question, setup: TrialSetup) -> int:
    """
    Count the documents that a reader was given although they may not see them.

    Where a right document is not for everybody all readers ask, else one of them in turn: asking each of thousands of
    questions as everyone took two thirds of the time, and it is the answers from documents with rights that can leak.
    """
    if not setup.rights or not setup.readers or setup.settings.security.mode != "tokens":
        return 0
    is_delicate = any(setup.rights.get(identity) for identity in question.document_ids)
    turn = crc32(question.id.encode(errors="replace")) % len(setup.readers)
    count = 0
    for reader in setup.readers if is_delicate else setup.readers[turn : turn + 1]:
        user = User(reader.name, reader.tokens)
        for extract in _extracts(Ask(question.text), user, setup.settings, setup.dependencies):
            acl = setup.rights.get(extract.document.id)
            count += acl is not None and not is_visible(acl, reader.tokens)
    return count


def former(path: Path, plan: str) -> list[Trial]:
    """Return the trials in the file *path* that a run of the same *plan* left; none when it was of another plan."""
    try:
        head, *lines = path.read_text(encoding="utf-8").split("\n")
    except OSError:
        return []
    # What follows the last line end was cut off while it was written.
    return [_trial(line) for line in lines[:-1]] if head == plan else []


def keeping(path: Path, plan: str, trials: Iterable[Trial], count: int) -> Iterator[Trial]:
    """Yield *trials*, each one written to the file *path* behind its *count* lines; with none it begins with *plan*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if count:
        # What stands behind the trials that are done: half a line.
        lines = path.read_text(encoding="utf-8").split("\n")
        path.write_text("".join(f"{line}\n" for line in lines[: count + 1]), encoding="utf-8")
    with path.open("a" if count else "w", encoding="utf-8") as file:
        if not count:
            file.write(f"{plan}\n")
        for trial in trials:
            file.write(json.dumps(asdict(trial)) + "\n")
            file.flush()
            yield trial


def _trial(line: str) -> Trial:
    row = json.loads(line)
    return Trial(**{**row, "hits": {way: tuple(ranks) for way, ranks in row["hits"].items()}})
