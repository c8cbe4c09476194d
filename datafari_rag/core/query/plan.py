"""From the ask and the settings to the searches and the prompt."""

from __future__ import annotations

from collections.abc import Iterator

from datafari_rag.core.answer.prompt import Prompt, instructions_for
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Extract
from datafari_rag.core.model.caller_errors import CONVERSATION
from datafari_rag.core.query.chat_overrides import instructed
from datafari_rag.core.query.search_request import Search
from datafari_rag.core.query.steps import steps_for
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.language import detect

LEAST_NODE_HITS = 100
"""Hits ranked for /v1 before the token budget decides (KAITO's RAG service)."""

FOLLOWUP_INSTRUCTIONS = (
    "\nAfter the answer, propose three very short questions that the reader may want to ask next, each between double "
    "angle brackets, like <<What does it cost?>>. Write nothing after them."
)


def language_for(ask: Ask) -> str:
    """Return the answer's language: the one the caller chose, else the question's (contract §8)."""
    return ask.language or question_language_for(ask)


def question_language_for(ask: Ask) -> str:
    """
    Return the language that the question is written in: its own, else the browser's first, else en.

    The language that the caller chose for the answer has no say here: a page sends its own, and the search would use
    the stop words of another language than the question's.
    """
    return ask.question_language or detect(ask.question, _first_language(ask.accept_language))


def searches_for(ask: Ask, *, language: str, settings: Settings) -> Iterator[Search]:
    """Yield the searches to try in turn, at least one, each weaker than the one before."""
    yield from _searches(ask, ask.search_text or ask.question, language=language, settings=settings)
    is_loose = settings.rag_query_relax or settings.rag_operator == "OR"  # else "nothing" says little of the words
    if ask.earlier_text is not None and is_loose:
        yield from _searches(ask, ask.earlier_text, language=language, settings=settings)


def _searches(ask: Ask, text: str, *, language: str, settings: Settings) -> Iterator[Search]:
    steps = steps_for(text, language=language, operator=settings.rag_operator, is_relaxed=settings.rag_query_relax)
    for step in steps:
        yield Search(
            question=text,
            step=step,
            rows=_rows(ask, max_files=settings.rag_max_files, candidates=settings.rag_candidates),
            content="highlighting" if ask.wants_captions else settings.rag_solr_field,
            fragment_chars=settings.rag_hl_fragsize,
            language=language,
            restrictions=ask.restrictions,
            min_score=settings.rag_score_min if ask.min_score is None else ask.min_score,
            index=ask.index,
        )


def prompt_for(
    ask: Ask, extracts: tuple[Extract, ...], *, language: str, settings: Settings, written: tuple[str, str]
) -> Prompt:
    """
    Return the prompt.

    *written* holds the text of the instructions file and the nonce of this request's fences.
    """
    instructions, nonce = written
    text = instructions_for(
        instructed(ask.prompt_template, instructions), language=language, answer_format=ask.answer_format
    ) + (FOLLOWUP_INSTRUCTIONS if ask.wants_followups else "")
    is_told = settings.rag_template == "openai" or settings.rag_add_instructions
    return Prompt(
        question=ask.question,
        extracts=extracts,
        instructions=text if is_told else None,
        nonce=nonce,
        history=ask.history,
        answer_format=ask.answer_format,
        language=language,
        model=settings.rag_model if ask.model is None else ask.model,
        temperature=settings.rag_temperature if ask.temperature is None else ask.temperature,
        max_tokens=_max_tokens(ask, settings.rag_max_tokens),
        sampling=ask.sampling,
        chosen=chosen_in(ask),
    )


def bare_prompt_for(ask: Ask, *, model: str, nonce: str) -> Prompt:
    """Return *ask* unchanged for the model, without documents and instructions; *model* is the default."""
    return Prompt(
        question=ask.question,
        extracts=(),
        instructions=None,
        nonce=nonce,
        history=ask.history,
        model=model if ask.model is None else ask.model,
        temperature=ask.temperature,
        max_tokens=ask.max_tokens,
        sampling=ask.sampling,
        chosen=chosen_in(ask),
    )


def chosen_in(ask: Ask) -> frozenset[str]:
    """Return the names of the parameters that the caller set himself, as they are sent to the model."""
    named = {
        "model": ask.model,
        "temperature": ask.temperature,
        "max_tokens": ask.max_tokens,
        CONVERSATION: ask.has_whole_history or None,
    }
    return frozenset([*(name for name, value in named.items() if value is not None), *ask.sampling])


def _max_tokens(ask: Ask, most: int | None) -> int | None:
    """On /v1 an absent max_tokens is not sent (contract §3); elsewhere the setting is."""
    if ask.max_tokens is not None or ask.token_budget is not None:
        return ask.max_tokens
    return most


def _rows(ask: Ask, *, max_files: int, candidates: int) -> int:
    if ask.token_budget is not None:
        return LEAST_NODE_HITS
    return max(ask.max_documents or max_files, candidates)


def _first_language(accept_language: str | None) -> str:
    first = (accept_language or "").split(",")[0].split(";")[0].strip().lower()
    return first.split("-")[0] if first[:2].isalpha() else "en"
