"""From the candidates to what the model sees of them: within files, characters and the model's window (SPEC.md §7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.ask import Ask, Attachment, TokenBudget
from datafari_rag.core.documents import Candidate, Document, Extract, Passage
from datafari_rag.core.extracts import extracts_for
from datafari_rag.core.passages import Limit, Selection, head, nodes, select
from datafari_rag.core.settings import Settings

Count = Callable[[str], int]
"""Tokens of a text."""

FRAME_TOKENS = 60
"""What label, number and fences of one document cost in the prompt, at most."""

SAMPLE_CHARS = 1000
"""Beginning of a document that tells how many characters a token has; a look at all of it would take longer."""

LEAST_TOKENS = 64
"""Below this many tokens for the documents nothing of use fits."""


@dataclass(frozen=True, slots=True)
class Selected:
    """What was chosen and why; *extracts* may be empty, and the caller decides what that means."""

    extracts: tuple[Extract, ...]
    candidates: tuple[Candidate, ...] = ()


def evidence_for(
    ask: Ask, documents: Sequence[Document], *, language: str, settings: Settings, count: Count
) -> Selected:
    """
    Return the extracts of the best documents, best first.

    Files sent along come before what was found and count like it. What does not fit `rag.maxJsonLength`, or the
    window with the answer's space kept free, is cut or left out, the weakest first.
    """
    best = max((document.score for document in documents), default=0.0)
    sent_along = [_attached(file, rank, score=best + 1.0) for rank, file in enumerate(ask.attachments)]
    candidates = [*sent_along, *documents]
    if ask.token_budget is not None:
        return _nodes(ask, candidates, budget=ask.token_budget, settings=settings, count=count)
    room = _room(ask, settings, count)
    max_chars = min(settings.rag_max_json_length, _chars_in(room, candidates, count))
    limit = Limit(max_chars=max_chars, max_documents=_max_documents(ask, settings))
    while True:
        selection = _select(ask, candidates, limit=limit, language=language, settings=settings)
        extracts = extracts_for(selection.chosen, is_cleaned=settings.rag_clean)
        taken = sum(count(extract.text) + FRAME_TOKENS for extract in extracts)
        if taken <= room or not extracts:
            return Selected(extracts, selection.candidates)
        limit = _narrowed(limit, extracts, taken=taken, room=room)


def _select(ask: Ask, documents: Sequence[Document], *, limit: Limit, language: str, settings: Settings) -> Selection:
    if settings.rag_extract == "head":
        return head(documents, limit)
    return select(ask.search_text or ask.question, documents, limit=limit, language=language)


def _room(ask: Ask, settings: Settings, count: Count) -> int:
    """Return how many tokens the documents may take: the window less the answer's space and all else that is sent."""
    said = count(ask.question) + sum(count(turn.text) + 8 for turn in ask.history)
    answer = ask.max_tokens if ask.max_tokens is not None else settings.rag_max_tokens
    return settings.llm_context_window - answer - said - settings.openai_reserve_tokens


def _chars_in(room: int, documents: Sequence[Document], count: Count) -> int:
    """Return about how many characters of *documents* fit *room* tokens, told from a sample of the best of them."""
    sample = "".join(document.text[:SAMPLE_CHARS] for document in documents[:3])
    tokens = count(sample)
    return int(max(room, 0) * len(sample) / tokens) if tokens else 0


def _narrowed(limit: Limit, extracts: Sequence[Extract], *, taken: int, room: int) -> Limit:
    """Return a limit that is sure to be smaller: in proportion to what is too much, and by a tenth more."""
    chars = sum(len(extract.text) for extract in extracts)
    if room < LEAST_TOKENS:
        return replace(limit, max_chars=0)
    return replace(limit, max_chars=min(int(chars * room / taken * 0.9), chars - 1))


def _max_documents(ask: Ask, settings: Settings) -> int:
    wanted = settings.rag_max_files if ask.max_documents is None else ask.max_documents
    return wanted + len(ask.attachments)


def _attached(file: Attachment, rank: int, *, score: float) -> Document:
    return Document(id=f"attachment:{rank + 1}", text=file.text, title=file.name, score=score)


def _nodes(
    ask: Ask, documents: Sequence[Document], *, budget: TokenBudget, settings: Settings, count: Count
) -> Selected:
    """Take the best passages whatever document they are of; one that does not fit is skipped (seed 004)."""
    ranked = nodes(ask.search_text or ask.question, documents, node_size=budget.node, size_of=count)
    left = budget.documents
    kept: dict[str, tuple[Document, list[Passage]]] = {}
    for document, passage in ranked:
        is_new = document.id not in kept
        cost = count(document.text[passage.start : passage.end])
        if cost > left or (is_new and budget.max_documents and len(kept) >= budget.max_documents):
            continue
        left -= cost
        kept.setdefault(document.id, (document, []))[1].append(passage)
    chosen = tuple(
        (document, tuple(sorted(passages, key=lambda passage: passage.start))) for document, passages in kept.values()
    )
    return Selected(extracts_for(chosen, is_cleaned=settings.rag_clean))
