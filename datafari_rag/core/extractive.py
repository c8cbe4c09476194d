"""
An answer without a model: the sentences of the documents that hold most of the question, word for word and cited.

It says nothing of its own but that it found nothing. Which sentences are best is `evidence`'s to say, as for the
passages; here it is chosen how many of them make a short answer, and how they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datafari_rag.core.ask import AnswerFormat
from datafari_rag.core.documents import Extract
from datafari_rag.core.evidence import sentence_scores, terms_of, traces_of, weights_in
from datafari_rag.core.extracts import JOINT
from datafari_rag.core.sentences import spans

MAX_CHARS = 400
"""Longest answer, marks and all."""

MAX_SENTENCES = 3
PRIOR = 0.8
"""How much a document's own score counts beside a sentence's."""

_NOTHING = {
    "en": "I found no answer to this question in the documents.",
    "fr": "Je n'ai trouvé aucune réponse à cette question dans les documents.",
    "de": "Ich habe in den Dokumenten keine Antwort auf diese Frage gefunden.",
    "es": "No he encontrado ninguna respuesta a esta pregunta en los documentos.",
}
_QUOTES = {"fr": ("« ", " »"), "de": ("„", "“"), "es": ("«", "»")}
_PLAIN_QUOTES = ("“", "”")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that may be said: its text, of which document (counted from 0), where, and how good it is."""

    extract: int
    start: int
    text: str
    score: float


def answer(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> str:
    """Return at most 400 characters: verbatim sentences with the mark of their document, or that there are none."""
    return "".join(pieces(question, extracts, language=language, answer_format=answer_format))


def pieces(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> tuple[str, ...]:
    """Return the answer sentence by sentence; joined they are `answer`. Never empty."""
    chosen = best(question, extracts, language)
    if not chosen:
        return (_NOTHING.get(language.lower().split("-")[0], _NOTHING["en"]),)
    return tuple(
        _written(sentence, extracts[sentence.extract].number, number, language=language, answer_format=answer_format)
        for number, sentence in enumerate(chosen, 1)
    )


def best(question: str, extracts: Sequence[Extract], language: str) -> tuple[Sentence, ...]:
    """Return the sentences that make the answer, best first; empty when none holds a word of the question."""
    ranked = sorted(_scored(question, extracts, language), key=lambda one: (-one.score, one.extract, one.start))
    chosen: list[Sentence] = []
    room = MAX_CHARS
    for sentence in ranked:
        cost = len(sentence.text) + 12
        if cost <= room and len(chosen) < MAX_SENTENCES:
            chosen.append(sentence)
            room -= cost
    return tuple(chosen)


def _scored(question: str, extracts: Sequence[Extract], language: str) -> list[Sentence]:
    terms = terms_of(question, language)
    top = max((extract.document.score for extract in extracts), default=0.0) or 1.0
    found: list[Sentence] = []
    for number, extract in enumerate(extracts):
        traces = traces_of(terms, extract.text, language)
        if not any(traces.hits):
            continue
        bounds = _bounds(extract.text)
        scores = sentence_scores(bounds, traces, weights_in(terms, traces))
        prior = PRIOR * extract.document.score / top
        found.extend(
            Sentence(number, start, extract.text[start:end], score + prior)
            for (start, end), score in zip(bounds, scores, strict=True)
            if score > 0
        )
    return found


def _bounds(text: str) -> list[tuple[int, int]]:
    """Return the sentences of *text*; none reaches over a joint."""
    bounds: list[tuple[int, int]] = []
    at = 0
    for piece in text.split(JOINT):
        bounds.extend((at + start, at + end) for start, end in spans(piece))
        at += len(piece) + len(JOINT)
    return bounds


def _written(sentence: Sentence, place: int, number: int, *, language: str, answer_format: AnswerFormat | None) -> str:
    opening, closing = _QUOTES.get(language.lower().split("-")[0], _PLAIN_QUOTES)
    words = f"{opening}{sentence.text}{closing} [{place}]"
    if answer_format == "bulletpoint":
        return ("\n" if number > 1 else "") + f"- {words}"
    if answer_format == "stepbystep":
        return ("\n" if number > 1 else "") + f"{number}. {words}"
    return (" " if number > 1 else "") + words
