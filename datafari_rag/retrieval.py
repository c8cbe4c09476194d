"""
The search of the line: by words and by meaning at the same time, joined to one list, then read as far as is needed.

Every search here is under the filter that the line hands in. What is found by meaning alone is looked up again in the
collection of documents. A failed search by meaning is not an error: words alone give an answer, and the reply says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from datafari_rag.core.access import Filter
from datafari_rag.core.answer.reasoning_steps import SearchAttempt
from datafari_rag.core.documents import Document, Reranking
from datafari_rag.core.errors import EmbeddingError, NotFound, SearchError
from datafari_rag.core.events import NOT_FOUND, SkippedDocument
from datafari_rag.core.evidence.parts import in_parts
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.meaning.reranker import (
    MAX_PASSAGES,
    Reranker,
    RerankFailure,
    passages_in_order,
    sent_text,
    with_scores,
)
from datafari_rag.core.meaning.result_list import (
    ADDED,
    WINDOW,
    Pulled,
    arranged,
    asked_by_meaning,
    behind,
    far_of,
    head_of,
    ids_with_words,
    is_arranged,
    joined,
    near_search_for,
    no_words,
    others_of,
    pulled_of,
    same_words,
    uses_meaning,
    widened,
)
from datafari_rag.core.meaning.spread import scaled
from datafari_rag.core.query.plan import content_words, steps_for
from datafari_rag.core.query.proposals import (
    Relaxation,
    count_of_all,
    counts_of_each,
    documents_on,
    latest_search,
    total_of,
)
from datafari_rag.core.search_request import STORED, Browse, Content, Search, SearchResult, Step
from datafari_rag.core.settings.table import RagSettings, SolrSettings, fields_of
from datafari_rag.ports import Both, DrawPage, Meaning, Model, Offload, Retriever, TokenCounter, in_turn, inline

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """
    The parts that belong to one snapshot of the settings, and that every answer is made with.

    *instructions* is the text of `rag-instructions.txt`; *new_nonce* makes an unguessable word; *clock* gives
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
    """What searches by meaning; None where there are no vectors, or `retrieval.method` is bm25."""
    both: Both = in_turn
    """How the searches by words and by meaning are made."""
    indexes: Mapping[str, Retriever] = field(default_factory=dict)
    """The indexes of `openai.indexes` by name, where one of them is not that of `solr.url`."""
    apart: frozenset[str] = frozenset()
    """Names of those that are not: they have no vectors."""
    reranker: Reranker | None = None
    """What puts the found passages into order; None where nothing is sent anywhere for it."""
    draw_page: DrawPage | None = None
    """What shows documents as their files look; None where they are shown as text alone."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The *result*, the steps that were *tried*, and the *last* search by words, None when there was no word."""

    result: SearchResult
    tried: tuple[SearchAttempt, ...] = ()
    last: Search | None = None
    skipped: tuple[SkippedDocument, ...] = ()
    """Named documents that are not there for this user."""


_Near = tuple[NearSearch, tuple[Document, ...]]
"""What was asked by meaning, and the nearest documents."""


def searched(searches: Iterable[Search], access: Filter, dependencies: Dependencies) -> Searched:
    """
    Run the steps of the plan until one finds something, and the search by meaning in parallel.

    Of long documents there are only the parts that answer best, whatever the engine returned. Raises:
        SearchError: the search by words failed.
    """
    plan = list(searches)
    whole = _searched(plan, access, dependencies)
    last = whole.last or (plan[0] if plan else None)
    if last is None or last.is_whole or last.content == "highlighting":
        return whole
    read = read_in_parts(whole, last.question, last.language, dependencies.offload)
    return read if dependencies.reranker is None else _reranked(read, last, dependencies.reranker, dependencies.offload)


def _reranked(whole: Searched, search: Search, reranker: Reranker, offload: Offload) -> Searched:
    """Return *whole* with what *reranker* says of its best passages; as it is where it fails."""
    result = whole.result
    ordered = partial(passages_in_order, search.question, result.documents, search.language)
    passages = offload(ordered, sum(len(document.text) for document in result.documents))
    if not passages:
        return whole
    texts = [sent_text(*pair) for pair in passages[:MAX_PASSAGES]]
    scores = reranker.scores(search.question, texts)
    if isinstance(scores, RerankFailure):
        return replace(whole, result=replace(result, reranking=Reranking(len(texts), scores.label)))
    documents = with_scores(result.documents, passages, scores)
    return replace(whole, result=replace(result, documents=documents, reranking=Reranking(len(texts))))


def read_in_parts(whole: Searched, question: str, language: str, offload: Offload) -> Searched:
    """Return *whole* with what of its documents may be looked at; long texts are looked through *offload*."""
    documents = whole.result.documents
    cut = partial(in_parts, documents, question, language)
    read = offload(cut, sum(len(document.text) for document in documents))
    return replace(whole, result=replace(whole.result, documents=read))


def _searched(plan: Sequence[Search], access: Filter, dependencies: Dependencies) -> Searched:
    meaning = dependencies.meaning
    if meaning is None or not plan:
        return _by_words(plan, access, dependencies.retriever)
    if not uses_meaning(plan[0], meaning.embedder.model, apart=dependencies.apart):
        return _by_words(plan, access, dependencies.retriever)
    is_bare = meaning.passages.reads_texts(plan[0])
    bare = [replace(search, is_bare=is_bare) for search in plan]
    words, near = dependencies.both(
        partial(_by_words, bare, access, dependencies.retriever),
        partial(_nearest, plan[0], access, meaning),
    )
    last = words.last or plan[0]
    if near is not None and last.question != plan[0].question:
        near = _nearest(last, access, meaning)
    fused = None if near is None else _fused(words.result, near, last, access, meaning)
    if fused is not None:
        return replace(words, result=fused)
    if is_bare and words.result.documents:
        # The texts were left to the search by meaning.
        return replace(words, result=dependencies.retriever.search(replace(last, is_bare=False), access))
    return words


def searched_in(ids: Sequence[str], access: Filter, *, content: Content, retriever: Retriever) -> Searched:
    """
    Return the documents with *ids* that *access* lets through, in their order, and the names of the others.

    Raises:
        NotFound: this user can see none of them.
        SearchError: the search failed.
    """
    read = {document_id: retriever.fetch(document_id, STORED[content], access) for document_id in ids}
    documents = tuple(document for document in read.values() if document is not None)
    if not documents:
        # One sentence for what is not there and for what is not theirs.
        raise NotFound("There is no such document.")
    skipped = tuple(SkippedDocument(doc_id, NOT_FOUND) for doc_id, document in read.items() if document is None)
    return Searched(SearchResult(documents, len(documents)), skipped=skipped)


def browsed(
    plain: Browse, access: Filter, *, rag: RagSettings, solr: SolrSettings, dependencies: Dependencies
) -> Mapping[str, object]:
    """
    Return the page of a plain search, relaxed step by step as an answer's search is where *plain* wants that.

    Its first hits are in the order of words and meaning together, where there are vectors; documents that meaning alone
    finds are counted under `meaning`. A relaxed page says under `relaxation` how it was searched, and which words no
    document has. Raises: SearchError.
    """
    text, language, retriever = plain.text, plain.language, dependencies.retriever
    arrange = _arranger(plain, access, fields_of(solr.fields).id, dependencies)
    steps = steps_for(text or "", language=language, operator=rag.operator) if plain.is_relaxed else ()
    if not steps:
        return _listed(plain, access, retriever, arrange)
    page: Mapping[str, object] = {}
    for step in steps:
        page = _listed(replace(plain, step=step), access, retriever, arrange)
        if total_of(page):
            break
    relaxation = Relaxation(step.name)
    if not _has_all_words(page, step, plain, access, retriever):
        relaxation = _relaxation(total_of(page), step, plain, access, retriever)
    return {**page, "relaxation": relaxation.wire()}


@dataclass(frozen=True, slots=True)
class _Arranger:
    """What arranges a list: *cosines* of the nearest documents by id, and the field that has the ids of its rows."""

    cosines: Callable[[], Mapping[str, float]]
    id_field: str


def _arranger(plain: Browse, access: Filter, id_field: str, dependencies: Dependencies) -> _Arranger | None:
    """Return what finds the nearest documents, once for all steps; None where words alone make the list."""
    meaning, search = dependencies.meaning, asked_by_meaning(plain)
    if meaning is None or not is_arranged(plain):
        return None
    if not uses_meaning(search, meaning.embedder.model, apart=dependencies.apart):
        return None

    @cache
    def cosines() -> Mapping[str, float]:
        near = _nearest(search, access, meaning)
        if near is None or not (spread := near[0].spread):
            return {}
        return {document.id: max(piece.cosine for piece in document.near) / spread for document in near[1]}

    return _Arranger(cosines, id_field)


def _listed(plain: Browse, access: Filter, retriever: Retriever, arrange: _Arranger | None) -> Mapping[str, object]:
    """Return the page of *plain*; a list without any hit by words stays empty, so that fewer words are tried."""
    if arrange is None:
        return retriever.browse(plain, access)
    id_field = arrange.id_field
    is_far = plain.start >= WINDOW + ADDED
    page = retriever.browse(head_of(plain, id_field) if is_far else widened(plain, id_field), access)
    cosines = arrange.cosines() if total_of(page) else {}
    pulled = _pulled(others_of(page, cosines, id_field), plain, access, retriever, (page, id_field))
    if not is_far:
        return arranged(page, plain, cosines, id_field, pulled)
    return behind(retriever.browse(far_of(plain, pulled, id_field), access), page, plain, pulled)


def _pulled(
    ids: tuple[str, ...], plain: Browse, access: Filter, retriever: Retriever, first: tuple[Mapping[str, object], str]
) -> Pulled:
    """Return those of *ids* that come into the list, as *access* lets them through now."""
    page, id_field = first
    rows: tuple[Mapping[str, object], ...] = ()
    marked: Mapping[str, object] = {}
    with_words: set[str] = set()
    if ids and total_of(page) > WINDOW:
        with_words = {
            str(row.get(id_field)) for row in _rows_of(retriever.browse(ids_with_words(plain, ids, id_field), access))
        }
    farther, without = pulled_of(ids, with_words)
    if farther:
        there = retriever.browse(same_words(plain, farther, id_field), access)
        rows, marked = _rows_of(there), there.get("highlighting") or {}  # type: ignore[assignment]
    added = _rows_of(retriever.browse(no_words(plain, without, id_field), access)) if without else ()
    return Pulled((*rows, *added), marked, len(added))


def _rows_of(page: Mapping[str, Any]) -> tuple[Mapping[str, object], ...]:
    return tuple(page["response"]["docs"])


def _has_all_words(page: Mapping[str, object], step: Step, plain: Browse, access: Filter, retriever: Retriever) -> bool:
    """Say whether some document of *page* has all words; asked of the engine only where *step* wants fewer."""
    if not total_of(page):
        return False
    is_strict = step.operator == "AND" and step.min_match is None
    if is_strict or len(content_words(plain.text or "", plain.language)) == 1:
        return True
    return total_of(retriever.browse(count_of_all(plain), access)) > 0


def _relaxation(total: int, step: Step, plain: Browse, access: Filter, retriever: Retriever) -> Relaxation:
    counts = {word: total_of(retriever.browse(query, access)) for word, query in counts_of_each(plain).items()}
    missing = tuple(word for word, count in counts.items() if not count)
    latest = () if total else documents_on(retriever.browse(latest_search(), access))
    return Relaxation(step.name, total > 0, missing, latest)


def _by_words(plan: Sequence[Search], access: Filter, retriever: Retriever) -> Searched:
    result, tried, last = SearchResult((), 0), list[SearchAttempt](), None
    for search in plan:
        result, last = retriever.search(search, access), search
        query = result.query or f"{search.step.rule}: {' '.join(search.step.words)}"
        tried.append(SearchAttempt(search.step.name, query, result.total))
        if result.documents:
            break
    return Searched(result, tuple(tried), last)


def _nearest(search: Search, access: Filter, meaning: Meaning) -> _Near | None:
    """Return what is nearest to the question of *search*, None where that is unknown."""
    embedder, passages = meaning.embedder, meaning.passages
    try:
        spread = passages.spread(embedder.model)
        vector = embedder.embed([search.question], "query")[0]
        near = near_search_for(search, vector, model_key=embedder.model.key)
        near = replace(near, spread=spread)
        return near, passages.nearest(near, access)
    except (EmbeddingError, SearchError) as error:
        _note(error)
        return None


def _fused(result: SearchResult, near: _Near, last: Search, access: Filter, meaning: Meaning) -> SearchResult | None:
    """Return one list of what words *result* and what is near, read; None where that cannot be had."""
    search, nearest = near
    most = max(last.rows, len(result.documents))
    order = joined(result.documents, nearest, spread=search.spread, most=most)
    try:
        read = meaning.passages.compared(order, search, access)
    except (EmbeddingError, SearchError) as error:
        _note(error)
        return None
    documents = tuple(replace(document, near=scaled(document.near, search.spread)) for document in read)
    return replace(result, documents=documents, total=max(result.total, len(documents)), by="both")


def _note(error: EmbeddingError | SearchError) -> None:
    log.warning("no search by meaning: label=%s cause=%r", error.label, error.log or error.reason)
