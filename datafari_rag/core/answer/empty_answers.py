"""
"Nothing was found" and "the model said nothing" as answers, for dialects whose readers are in a conversation.

contract §4: on the chat paths these two are an answer without documents, in the answer's language. All else that
fails stays a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafari_rag.core.errors import NoAnswer, NoDocuments, RagError
from datafari_rag.core.events import Delta, Event, Failed, Finished, Sources
from datafari_rag.core.text.language import sentence_in

_SENTENCES: Mapping[type[RagError], Mapping[str, str]] = {
    NoDocuments: {"fr": "Aucune réponse n'est possible, car aucun document associé n'a été trouvé."},
    NoAnswer: {"fr": "Le modèle n'a pas pu fournir de réponse."},
}
"""Sentences of their own; other languages say that nothing was found, as an answer without a model does."""


def sentence_for(error: RagError, language: str) -> str:
    """Return the sentence for the reader in *language* where there is one, else in English."""
    code = language.lower().split("-")[0]
    own = _SENTENCES.get(type(error), {}).get(code)
    if own is None and isinstance(error, NoDocuments):
        translated = sentence_in(code, "nothing_found")
        own = None if translated == sentence_in("en", "nothing_found") else translated
    return own or error.sentence


def is_awaited(event: Event) -> bool:
    """Say whether *event* may still come before such an answer, which has no documents: sources, and blank words."""
    return isinstance(event, Sources) or (isinstance(event, Delta) and not event.text.strip())


def empty_answer(held: Sequence[Event], failed: Failed, language: str) -> list[Event]:
    """
    Return the answer that says why *failed* ended it, in place of the events *held*.

    *language* is used when the line failed before it knew the answer's.
    """
    known = next((event for event in held if isinstance(event, Sources)), Sources((), language=language))
    text = sentence_for(failed.error, known.language)
    return [
        Sources((), known.thoughts, known.language, known.timings_ms),
        Delta(text),
        Finished(text, facts=failed.facts, timings_ms=known.timings_ms),
    ]
