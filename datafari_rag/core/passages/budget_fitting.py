"""
From the candidates to what the model sees of them: within files, characters and the model's window (contract §6).

No evidence, no guess: below the threshold of `rag.evidence.min` nothing is answered. The number is the chance, fitted
to questions with known answers and to questions about other subjects, that the documents are about what is asked. It
looks at which words of the question the best place of a document lacks, at names that no document has, at words that
follow each other there as in the question, at the languages, and where passages were compared by meaning at how far the
nearest one stands out. A question of the same subject that the documents happen not to answer looks like one that they
do: that is beyond a threshold (docs/quality.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from operator import mul
from statistics import median

from datafari_rag.core.ask import Ask, TokenBudget
from datafari_rag.core.documents import Candidate, Document, Extract, Passage, stored_span
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.passages.reranking import NEAR_CHARS, ONCE, Ranked, events_of, followed, fullest
from datafari_rag.core.passages.selection import Limit, Selection, WeighedDocuments, choose, head, nodes, weigh
from datafari_rag.core.passages.stored_parts import in_parts
from datafari_rag.core.passages.term_matching import Term
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.answers import RagSettings
from datafari_rag.core.settings.table import Settings

NO_EVIDENCE = "no evidence"
"""Verdict on documents that were found and did not pass."""

UNIT_CHARS, LEAST_UNITS = 120.0, 50
"""
Length of the stretches in which a word is rare or frequent among what was found, and how many there are at least: less
text says little of which words are rare.
"""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each of `Signals` counts, on the scale of a logarithm of chance."""

    base: float
    missing: float
    fullness: float
    pairs: float
    other_language: float
    compared: float
    outstanding: float
    unnamed: float


WEIGHTS = Weights(
    base=1.58,
    missing=-0.94,
    fullness=0.74,
    pairs=1.13,
    other_language=-2.45,
    compared=-3.25,
    outstanding=1.49,
    unnamed=-1.1,
)
AUTO, FEW = 0.22, 0.59
"""
The fitted numbers, and the threshold `auto`: *AUTO*, one for all sets and languages. Below *FEW* an answer says that
there are few words. Calibration fits them, prints them, and writes into docs/quality.md what they keep and stop.
"""


@dataclass(frozen=True, slots=True)
class Signals:
    """
    What is looked at of the documents that an answer is made of.

    *fullness* is what the best `NEAR_CHARS` characters of a document hold of the question's words: a word that nothing
    found has counts 1, a frequent one little. *share* is the share of the question that they lack, 0 to 1. *units* is
    how many stretches of text were looked through. *pairs* counts neighbours of the question that follow each other in
    a document. *is_other_language* says that no document is known to be in the question's language, and all are known
    to be in another. *outstanding* is how far the nearest passage stands out among all that were compared by meaning,
    in spreads of the model; None where none was. *unnamed* is the share of the question that is names which none of the
    documents has.
    """

    fullness: float
    share: float
    units: float
    pairs: float
    is_other_language: bool
    outstanding: float | None
    unnamed: float


def signals_in(weighed: WeighedDocuments, *, language: str, most: int) -> Signals | None:
    """
    Return what the *most* best of the documents *weighed* (0: all) hold of the question in *language*.

    None without a document or without a word to look for: there is no evidence.
    """
    best = weighed.order[:most] if most else weighed.order
    if not best or not weighed.terms:
        return None
    documents = [result.document for result in weighed.order]
    # The end of the stored text that is known of: of a long one only parts may have been read.
    units = max(LEAST_UNITS, sum(stored_span(doc, 0, len(doc.text))[1] for doc in documents) / UNIT_CHARS)
    rarity = _rarity(weighed, units)
    fullness = max(fullest(events_of(result.traces, rarity), rarity, NEAR_CHARS, ONCE) for result in best)
    total = sum(rarity)
    languages = [result.document.language for result in best]
    cosines = [near.cosine for document in documents for near in document.near]
    return Signals(
        fullness=fullness,
        share=1 - fullness / total,
        units=units,
        pairs=max(_pairs(result, weighed) for result in best),
        is_other_language=all(code is not None and code != language for code in languages),
        outstanding=max(cosines) - median(cosines) if cosines else None,
        unnamed=_unnamed(best, weighed.terms, rarity) / total,
    )


def evidence_of(signals: Signals | None, weights: Weights = WEIGHTS) -> float:
    """Return how much evidence *signals* are, 0 to 1; a question all of whose words stand together passes `auto`."""
    if signals is None:
        return 0.0
    return 1 / (1 + math.exp(-sum(map(mul, parts_of(signals), astuple(weights)))))


def parts_of(signals: Signals) -> tuple[float, ...]:
    """Return what each of `Weights` is multiplied with, in their order."""
    is_compared = signals.outstanding is not None
    return (
        1.0,
        # The more text there is, the likelier some of the words stand in it by chance.
        signals.share * math.log(signals.units),
        signals.fullness,
        signals.pairs,
        signals.share * signals.is_other_language,
        float(is_compared),
        signals.outstanding or 0.0,
        signals.unnamed,
    )


def least_evidence(rag: RagSettings) -> float:
    """Return the threshold of *settings*, 0 where everything passes: without a number it is the model that guesses."""
    least = rag.evidence_min
    if least is None:
        least = "auto" if rag.api_endpoint == BUILTIN_MODEL else 0.0
    return AUTO if least == "auto" else least


def _rarity(weighed: WeighedDocuments, units: float) -> list[float]:
    """Return what each term is worth: BM25's idf over the stretches of all that was found, 1 for what is nowhere."""
    counts = [min(units, sum(len(hit.traces.hits[at]) for hit in weighed.order)) for at in range(len(weighed.terms))]
    return [
        term.share * math.log(1 + (units - count + 0.5) / (count + 0.5)) / math.log(1 + (units + 0.5) / 0.5)
        for term, count in zip(weighed.terms, counts, strict=True)
    ]


def _unnamed(results: Sequence[Ranked], terms: Sequence[Term], rarity: Sequence[float]) -> float:
    """Return what those of *terms* are worth that are names which none of *results* has."""
    return sum(
        worth
        for at, (term, worth) in enumerate(zip(terms, rarity, strict=True))
        if term.is_name and not any(result.traces.hits[at] for result in results)
    )


def _pairs(result: Ranked, weighed: WeighedDocuments) -> float:
    shares = [term.share for term in weighed.terms]
    pairs = range(len(shares) - 1)
    return sum(min(shares[at : at + 2]) for at in pairs if followed(result.traces, at, weighed.terms))


Count = Callable[[str], int]
"""Tokens of a text."""

Node = tuple[Document, Passage]

FRAME_TOKENS = 60
"""What label, number and fences of one document cost in the prompt, at most."""

SAMPLES, SAMPLE_CHARS = 6, 300
"""Stretches of a document that show how many characters a token has; reading all of it would take longer."""

SAMPLED_DOCUMENTS = 3

SPARE = 0.95
"""Share of the characters reckoned with where not all fit: one choice in place of two costs half as much CPU."""

NODES_AT_LEAST = 3
"""How many nodes a token budget holds at least, where it holds any."""

LEAST_TOKENS = 64
"""Below this many tokens for the documents nothing of use fits."""

LEAST_NODE_TOKENS = 16
"""Of fewer tokens there is no node: not even a short sentence."""

LEAST_CHARS = 4 * LEAST_TOKENS
"""About as many characters as that, in the languages that have most of them in a token."""


@dataclass(frozen=True, slots=True)
class Selected:
    """
    What was chosen and why; *extracts* may be empty, and the caller decides what that means.

    *is_without_room* says that there were texts, and that the model's window had no room for any of them. *evidence*
    is how much there is for the question, 0 to 1; None where `rag.evidence.min` asks for none.
    """

    extracts: tuple[Extract, ...]
    candidates: tuple[Candidate, ...] = ()
    is_without_room: bool = False
    evidence: float | None = None


def answering_for(
    ask: Ask, documents: Sequence[Document], *, language: str, settings: Settings, count: Count
) -> Selected:
    """Return what `evidence_for` returns, nothing where there is less evidence than `rag.evidence.min` wants."""
    least = least_evidence(settings.rag)
    if least <= 0:
        return evidence_for(ask, documents, language=language, settings=settings, count=count)
    candidates = _candidates(ask, documents, settings.rag)
    text, most = ask.search_text or ask.question, _max_documents(ask, settings.rag.max_files)
    weighed = by_words = weigh(text, candidates, language=language)
    if any(document.reranked for document in candidates):
        # What words and vectors found is the evidence: a bad reranker may spoil the order, not hide what is there.
        by_words = weigh(text, [replace(doc, reranked=(), rated=None) for doc in candidates], language=language)
    evidence = evidence_of(signals_in(by_words, language=language, most=most))
    if evidence < least:
        stopped = [Candidate(doc.id, rank, doc.score, NO_EVIDENCE) for rank, doc in enumerate(candidates, 1)]
        return Selected((), tuple(stopped), evidence=evidence)
    ask = replace(ask, question_language=language)
    selected = _evidence(ask, documents, (candidates, weighed), settings=settings, count=count)
    return replace(selected, evidence=evidence)


def evidence_for(
    ask: Ask, documents: Sequence[Document], *, language: str, settings: Settings, count: Count
) -> Selected:
    """
    Return the extracts of the best documents, best first.

    Files sent along come before what was found and count like it. What does not fit `rag.chars`, `rag.maxJsonLength`,
    or the window with the answer's space kept free, is cut or left out, the weakest first.
    """
    ask = replace(ask, question_language=language)
    candidates = _candidates(ask, documents, settings.rag)
    return _evidence(ask, documents, (candidates, None), settings=settings, count=count)


def _evidence(
    ask: Ask,
    documents: Sequence[Document],
    read: tuple[Sequence[Document], WeighedDocuments | None],
    *,
    settings: Settings,
    count: Count,
) -> Selected:
    """Return what `evidence_for` returns; *read* are the candidates, and their weights where their texts were read."""
    candidates, weighed = read
    if ask.token_budget is not None:
        most = ask.token_budget.max_documents
        elsewhere = _shown_elsewhere(ask, documents, most, settings=settings, count=count) if most else []
        return _nodes(ask, elsewhere or candidates, budget=ask.token_budget, is_cleaned=settings.rag.clean, count=count)
    room = _room(ask, settings, count)
    most = _max_documents(ask, settings.rag.max_files)
    framed = room - FRAME_TOKENS * min(most or len(candidates), len(candidates))
    bound = min(settings.rag.max_json_length, settings.rag.chars or settings.rag.max_json_length)
    limit = Limit(max_chars=min(bound, _chars_in(framed, candidates, count)), max_documents=most)
    choose_within = _chooser(ask, candidates, weighed, is_head=settings.rag.extract == "head")
    while True:
        selection = choose_within(limit)
        extracts = extracts_for(selection.chosen, is_cleaned=settings.rag.clean)
        size = sum(_tokens(extract, count) for extract in extracts)
        if size <= room or not extracts:
            has_texts = any(candidate.text.strip() for candidate in candidates)
            is_narrow = limit.max_chars < min(LEAST_CHARS, bound)
            return Selected(extracts, selection.candidates, not extracts and has_texts and is_narrow)
        # In proportion to what is too much, and by a tenth more: always less than before.
        chars = sum(len(extract.text) for extract in extracts)
        limit = replace(limit, max_chars=int(chars * room / size * 0.9))


def _chooser(
    ask: Ask, candidates: Sequence[Document], weighed: WeighedDocuments | None, *, is_head: bool
) -> Callable[[Limit], Selection]:
    """Return what chooses within a limit; the texts are read once, however many limits are tried."""
    if is_head:
        return partial(head, candidates)
    text, language = ask.search_text or ask.question, ask.question_language or "en"
    return partial(choose, weighed or weigh(text, candidates, language=language))


def _tokens(extract: Extract, count: Count) -> int:
    headings = "\n".join(path for _, path in extract.paths)
    return count(extract.text) + FRAME_TOKENS + count(headings) + 2 * len(extract.paths)


def _room(ask: Ask, settings: Settings, count: Count) -> int:
    """Return how many tokens the documents may take: the window less the answer's space and all else that is sent."""
    used_tokens = count(ask.question) + sum(count(turn.text) + 8 for turn in ask.history)
    answer = settings.answer_tokens if ask.max_tokens is None else ask.max_tokens
    if ask.has_whole_history:
        # On /v1 max_tokens is an upper bound, lowered to what the documents leave: it takes no room from them.
        answer = min(answer, settings.answer_tokens)
    return settings.llm.context_window - answer - used_tokens - settings.openai.limits.reserve_tokens


def _chars_in(room: int, documents: Sequence[Document], count: Count) -> int:
    """Return about how many characters of *documents* fit *room* tokens, estimated from a sample of the best."""
    texts = [document.text for document in documents]
    stretches: list[str] = []
    for text in texts[:SAMPLED_DOCUMENTS]:
        # Evenly apart: a beginning alone has headings that the rest has not. Of a short text it is all.
        step = max(SAMPLE_CHARS, (len(text) - SAMPLE_CHARS) // (SAMPLES - 1))
        stretches += [text[at : at + SAMPLE_CHARS] for at in range(0, step * SAMPLES, step)]
    sample = "".join(stretches)
    tokens = count(sample)
    chars = int(max(room, 0) * len(sample) / tokens) if tokens else 0
    return chars if sum(map(len, texts)) <= chars else int(chars * SPARE)


def _max_documents(ask: Ask, max_files: int) -> int:
    most = max_files if ask.max_documents is None else ask.max_documents
    return most + len(ask.attachments)


def _candidates(ask: Ask, documents: Sequence[Document], rag: RagSettings) -> list[Document]:
    best = max((document.score for document in documents), default=0.0)
    files = [
        Document(id=f"attachment:{rank}", text=file.text, title=file.name, score=best + 1.0)
        for rank, file in enumerate(ask.attachments, 1)
    ]
    if rag.extract == "passages":
        files = [*in_parts(files, ask.search_text or ask.question, ask.question_language or "en")]
    return [*files, *documents]


def _shown_elsewhere(
    ask: Ask, documents: Sequence[Document], most: int, *, settings: Settings, count: Count
) -> list[Document]:
    """
    Return the documents, at most *most*, that every other dialect would show, in its order.

    One question has the same documents everywhere (contract §1): the nodes of /v1 are taken out of these.
    """
    plain = replace(ask, token_budget=None, max_tokens=None, max_documents=most, history=())
    looked_at = documents[: max(most, settings.rag.search.candidates)]
    candidates = _candidates(plain, looked_at, settings.rag)
    selected = _evidence(plain, looked_at, (candidates, None), settings=settings, count=count)
    return [extract.document for extract in selected.extracts] or list(documents[:most])


def _nodes(ask: Ask, documents: Sequence[Document], *, budget: TokenBudget, is_cleaned: bool, count: Count) -> Selected:
    """
    Take the best passages, whatever document they are of; one that does not fit is skipped (KAITO's RAG service).

    Where the number of documents is bounded, the best passage of each comes before the second of any, so that a
    small budget drops the last documents and not the first.
    """
    if budget.documents < LEAST_NODE_TOKENS:
        return Selected(())
    # In a small budget smaller nodes: one that contains the answer must not be skipped because of the text around it.
    node_size = min(budget.node, max(budget.documents // NODES_AT_LEAST, min(LEAST_TOKENS, budget.documents)))
    text, language = ask.search_text or ask.question, ask.question_language or "en"
    ranked = nodes(text, documents, language=language, node_size=node_size, size_of=count)
    places = {document.id: place for place, document in enumerate(documents)} if budget.max_documents else {}
    room = budget.documents
    by_id: dict[str, tuple[Document, list[Passage]]] = {}
    for document, passage in _in_turns(ranked, places) if places else ranked:
        cost = count(document.text[passage.start : passage.end])
        if cost > room or (cost < LEAST_NODE_TOKENS and _is_crumb(document, passage)):
            continue
        room -= cost
        by_id.setdefault(document.id, (document, []))[1].append(passage)
    chosen = sorted(by_id.values(), key=lambda entry: places.get(entry[0].id, 0))
    return Selected(
        extracts_for(
            [(document, tuple(sorted(passages, key=lambda passage: passage.start))) for document, passages in chosen],
            is_cleaned=is_cleaned,
            # The budget is of tokens of the passages alone.
            has_paths=False,
        )
    )


def _is_crumb(document: Document, passage: Passage) -> bool:
    """Say whether *passage* is a few words of a longer text: what is left over where a sentence had to be cut."""
    chars = passage.end - passage.start
    return chars < LEAST_NODE_TOKENS and chars < len(document.text.strip())


def _in_turns(ranked: Iterable[Node], places: Mapping[str, int]) -> list[Node]:
    """Return *ranked* with the best passage of each document in front, the documents in the order of *places*."""
    first: dict[str, Node] = {}
    others = [node for node in ranked if first.setdefault(node[0].id, node) is not node]
    return sorted(first.values(), key=lambda node: places[node[0].id]) + others
