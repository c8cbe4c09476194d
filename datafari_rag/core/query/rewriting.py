"""
Asking the model for the search query of a conversation (`chat.query.rewriting.enabled`), as values.

The model may only name words to search for, in the language of the question; anything else it says is not used, and
then the search runs as without it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from datafari_rag.core.answer.prompt import Prompt
from datafari_rag.core.ask import Ask
from datafari_rag.core.text.cleaning import visible

MAX_QUERY_CHARS = 300
MAX_TOKENS = 60

_INSTRUCTIONS = (
    "You write search queries. Read the conversation and the last question, and answer with one line: the words to "
    "search for so that documents which answer the last question are found, in the language of that question. No "
    "translation, no quotation marks, no explanation, no answer."
)
_DRESS = re.compile(r"^(?:search query|query|requête|recherche)\s*:\s*", re.IGNORECASE)


def is_wanted(ask: Ask, *, is_enabled: bool) -> bool:
    """Return whether a model is called: only for a conversation, and not on /v1, whose search is its user's words."""
    return is_enabled and bool(ask.history) and ask.token_budget is None


def prompt_for(ask: Ask, *, model: str, nonce: str, language: str) -> Prompt:
    """Return the messages for the model."""
    return Prompt(
        question=ask.question,
        extracts=(),
        instructions=_INSTRUCTIONS,
        nonce=nonce,
        history=ask.history,
        language=language,
        model=model,
        temperature=0.0,
        max_tokens=MAX_TOKENS,
    )


def with_query(ask: Ask, said: str) -> Ask:
    """Return *ask* with the model's words to search for; unchanged when *said* is not one line of a query's length."""
    lines = [line.strip() for line in visible(said).splitlines() if line.strip()]
    query = _DRESS.sub("", lines[0]).strip(" \"'«»“”") if len(lines) == 1 else ""
    if not 0 < len(query) <= MAX_QUERY_CHARS or not any(char.isalnum() for char in query):
        return ask
    return replace(ask, search_text=query, overrides={**ask.overrides, "query rewriting": "The model wrote the query."})
