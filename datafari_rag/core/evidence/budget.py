"""
From the candidates to what the model sees of them: within files, characters and the model's window (contract §6).

No evidence, no guess: below the threshold of `rag.evidence.min` nothing is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.ask import Ask, TokenBudget
from datafari_rag.core.documents import Candidate, Document, Extract, Passage
from datafari_rag.core.evidence.choice import Limit, choose, nodes
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.evidence.gate import evidence_of, least_evidence, signals_in
from datafari_rag.core.evidence.parts import in_parts
from datafari_rag.core.evidence.scoring import Weighed, weigh
from datafari_rag.core.model.prompt import Window
from datafari_rag.core.search_request import CANDIDATES
from datafari_rag.core.settings.table import RagSettings

NO_EVIDENCE = "no evidence"
"""Verdict on documents that were found and did not pass."""

Count = Callable[[str], int]
"""Tokens of a text."""

Node = tuple[Document, Passage]

FRAME_TOKENS = 60
"""What label, number and fences of one document cost in the prompt, at most."""

SAMPLES, SAMPLE_CHARS, SAMPLED_DOCUMENTS = 6, 300, 3
"""Stretches of the best documents that show how many characters a token has; reading all of it would take longer."""

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
    ask: Ask, documents: Sequence[Document], *, language: str, rag: RagSettings, window: Window, count: Count
) -> Selected:
    """Return what `evidence_for` returns, nothing where there is less evidence than `rag.evidence.min` wants."""
    least = least_evidence(rag)
    ask = replace(ask, question_language=language)
    candidates = _candidates(ask, documents)
    weighed = weigh(ask.search_text or ask.question, candidates, language=language)
    if least <= 0:
        return _evidence(ask, candidates, weighed, rag=rag, window=window, count=count)
    by_words = weighed
    if any(document.reranked for document in candidates):
        # What words and vectors found is the evidence: a bad reranker may spoil the order, not hide what is there.
        plain = [replace(document, reranked=(), rated=None) for document in candidates]
        by_words = weigh(ask.search_text or ask.question, plain, language=language)
    evidence = evidence_of(signals_in(by_words, language=language, most=_max_documents(ask, rag)))
    if evidence < least:
        stopped = [Candidate(doc.id, rank, doc.score, NO_EVIDENCE) for rank, doc in enumerate(candidates, 1)]
        return Selected((), tuple(stopped), evidence=evidence)
    return replace(_evidence(ask, candidates, weighed, rag=rag, window=window, count=count), evidence=evidence)


def evidence_for(
    ask: Ask, documents: Sequence[Document], *, language: str, rag: RagSettings, window: Window, count: Count
) -> Selected:
    """
    Return the extracts of the best documents, best first.

    Files sent along come before what was found and count like it. What does not fit `rag.chars`, `rag.maxJsonLength`,
    or the window with the answer's space kept free, is cut or left out, the weakest first.
    """
    ask = replace(ask, question_language=language)
    candidates = _candidates(ask, documents)
    weighed = weigh(ask.search_text or ask.question, candidates, language=language)
    return _evidence(ask, candidates, weighed, rag=rag, window=window, count=count)


def _evidence(
    ask: Ask, candidates: Sequence[Document], weighed: Weighed, *, rag: RagSettings, window: Window, count: Count
) -> Selected:
    if ask.token_budget is not None:
        most = ask.token_budget.max_documents
        shown = candidates
        if most:
            # One question has the same documents everywhere (contract §1): nodes are taken out of what others show.
            plain = replace(ask, token_budget=None, max_tokens=None, max_documents=most, history=())
            documents = candidates[len(ask.attachments) :]
            looked_at = documents[: max(most, CANDIDATES)]
            elsewhere = evidence_for(
                plain, looked_at, language=ask.question_language or "en", rag=rag, window=window, count=count
            )
            shown = [extract.document for extract in elsewhere.extracts] or list(documents[:most])
        return _nodes(ask, shown, budget=ask.token_budget, is_cleaned=rag.clean, count=count)
    room = _room(ask, window, count)
    most = _max_documents(ask, rag)
    framed = room - FRAME_TOKENS * min(most or len(candidates), len(candidates))
    bound = min(rag.max_json_length, rag.chars or rag.max_json_length)
    limit = Limit(min(bound, _chars_in(framed, candidates, count)), most)
    while True:
        selection = choose(weighed, limit)
        extracts = extracts_for(selection.chosen, is_cleaned=rag.clean)
        size = sum(_tokens(extract, count) for extract in extracts)
        if size <= room or not extracts:
            has_texts = any(candidate.text.strip() for candidate in candidates)
            is_narrow = limit.max_chars < min(LEAST_CHARS, bound)
            return Selected(extracts, selection.candidates, not extracts and has_texts and is_narrow)
        # In proportion to what is too much, and by a tenth more: always less than before.
        limit = replace(limit, max_chars=int(sum(len(extract.text) for extract in extracts) * room / size * 0.9))


def _tokens(extract: Extract, count: Count) -> int:
    headings = "\n".join(path for _, path in extract.paths)
    return count(extract.text) + FRAME_TOKENS + count(headings) + 2 * len(extract.paths)


def _room(ask: Ask, window: Window, count: Count) -> int:
    """Return how many tokens the documents may take: the window less the answer's space and all else that is sent."""
    used_tokens = count(ask.question) + sum(count(turn.text) + 8 for turn in ask.history)
    answer = window.answer if ask.max_tokens is None else ask.max_tokens
    if ask.has_whole_history:
        # On /v1 max_tokens is an upper bound, lowered to what the documents leave: it takes no room from them.
        answer = min(answer, window.answer)
    return window.size - answer - used_tokens - window.reserved


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


def _max_documents(ask: Ask, rag: RagSettings) -> int:
    most = rag.max_files if ask.max_documents is None else ask.max_documents
    return most + len(ask.attachments)


def _candidates(ask: Ask, documents: Sequence[Document]) -> list[Document]:
    best = max((document.score for document in documents), default=0.0)
    files = [
        Document(id=f"attachment:{rank}", text=file.text, title=file.name, score=best + 1.0)
        for rank, file in enumerate(ask.attachments, 1)
    ]
    return [*in_parts(files, ask.search_text or ask.question, ask.question_language or "en"), *documents]


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
        chars, cost = passage.end - passage.start, count(document.text[passage.start : passage.end])
        # A few words of a longer text are what is left over where a sentence had to be cut.
        is_crumb = chars < LEAST_NODE_TOKENS and chars < len(document.text.strip())
        if cost > room or (cost < LEAST_NODE_TOKENS and is_crumb):
            continue
        room -= cost
        by_id.setdefault(document.id, (document, []))[1].append(passage)
    chosen = sorted(by_id.values(), key=lambda entry: places.get(entry[0].id, 0))
    in_order = [(document, tuple(sorted(some, key=lambda passage: passage.start))) for document, some in chosen]
    # The budget is of tokens of the passages alone.
    return Selected(extracts_for(in_order, is_cleaned=is_cleaned, has_paths=False))


def _in_turns(ranked: Iterable[Node], places: Mapping[str, int]) -> list[Node]:
    """Return *ranked* with the best passage of each document in front, the documents in the order of *places*."""
    first: dict[str, Node] = {}
    others = [node for node in ranked if first.setdefault(node[0].id, node) is not node]
    return sorted(first.values(), key=lambda node: places[node[0].id]) + others
