"""
"Nothing was found" and "the model said nothing" as answers, for dialects whose readers are in a conversation.

contract §4: on the chat paths these two are an answer without documents, in the answer's language. All else that
fails stays a failure.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing

from datafari_rag.core.errors import NoAnswer, NoDocuments, RagError
from datafari_rag.core.events import Delta, Event, Failed, Finished, Sources, taken_until
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


def answered(
    events: Generator[Event, None, None], softened: tuple[type[RagError], ...], *, language: str
) -> Generator[Event, None, None]:
    """
    Yield *events*, with a failure in *softened* replaced by an answer that explains it.

    Sources are held back until the first words, since such an answer has none; *language* is used when the line
    failed before it knew the answer's. Closing the generator closes *events*.
    """
    with closing(events):
        first_events = taken_until(
            events,
            lambda event: not (isinstance(event, Sources) or (isinstance(event, Delta) and not event.text.strip())),
        )
        last = first_events[-1] if first_events else None
        if isinstance(last, Failed) and isinstance(last.error, softened):
            sources = _sources(first_events, language)
            text = sentence_for(last.error, sources.language)
            yield Sources((), sources.thoughts, sources.language, sources.timings_ms)
            yield Delta(text)
            yield Finished(text, facts=last.facts, timings_ms=sources.timings_ms)
            return
        yield from first_events
        yield from events


def _sources(events: list[Event], language: str) -> Sources:
    return next((event for event in events if isinstance(event, Sources)), Sources((), language=language))
