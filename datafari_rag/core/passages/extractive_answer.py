"""
An answer without a model: the sentences of the documents that most likely answer, word for word and cited.

It says nothing of its own but that it found nothing. How likely a sentence answers is a linear sum whose weights were
fitted to questions with known answers and rounded (docs/quality.md); the sentences taken are those with the greatest
chance for their length. Where passages were compared by meaning, a sentence counts by its words and its nearness
together, as it does where passages are chosen.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.ask import AnswerFormat
from datafari_rag.core.citations.quotations import QUOTATION_MARK
from datafari_rag.core.citations.units import BULLET
from datafari_rag.core.documents import Extract
from datafari_rag.core.meaning.fusion import Gain
from datafari_rag.core.passages.answer_types import Cue, cue_of
from datafari_rag.core.passages.extracts import HIGHLIGHTING, bounds_in, clipped
from datafari_rag.core.passages.leads import Leads, leads_of
from datafari_rag.core.passages.reranking import Ranked, ranked
from datafari_rag.core.passages.term_matching import Term, is_heading, sentence_scores, terms_of, weights_in
from datafari_rag.core.text.folding import clean
from datafari_rag.core.text.language import detect
from datafari_rag.core.text.structure import begins_with_row, cells_of, ends_with_row, named_cells

MAX_CHARS = 400
"""Longest answer, marks and all."""

MAX_SENTENCES = 3

MAX_HEADER_CHARS = 130
"""A longer header is not said before a row: it would take the room of the rows."""

LEAST_CLIP_CHARS = 60
"""A sentence that does not fit is clipped only when this much of it can be said."""

EVIDENCE, DOCUMENT, COVERAGE, CUE = 7.2, 0.9, 2.2, 1.7
ANSWERING, HEADED, FRAGMENT, INTRODUCING = 3.0, -1.1, -0.8, -0.6
"""
Weights, on the scale of a logarithm of chance, of: the evidence in and around a sentence, its document's score, the
share of the question's words in it, holding the kind of thing asked for; standing behind a question, standing right
under a heading, beginning in lower case, ending with a colon.
"""

NEARNESS = 3.6
"""
Weight of what a sentence gains by meaning. Of its document only what words say counts then: a sentence has its own
nearness, and the document of the nearest one is often not the one that answers a question that needs two.
"""

LENGTH = 0.8
"""How much of its chance a sentence gives back for being e times as long."""

CUT = 4.0
"""
How far below the best sentence another one may be: what is farther below only fills the answer (docs/quality.md).
"""

SHORT_CHARS = 40
"""What is shorter gains nothing by that: numbers of lists, single words."""

_NOTHING = {
    "en": "I found no answer to this question in the documents.",
    "fr": "Je n'ai trouvé aucune réponse à cette question dans les documents.",
    "de": "Ich habe in den Dokumenten keine Antwort auf diese Frage gefunden.",
    "es": "No he encontrado ninguna respuesta a esta pregunta en los documentos.",
}
_QUOTES = {"fr": ("« ", " »"), "de": ("„", "“"), "es": ("«", "»")}
_PLAIN_QUOTES = ("“", "”")
_EDGES = " \t|"

_GAP = "\n\n"
"""Stands between stretches that do not touch: an empty line, so that no sentence reaches over it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """
    A sentence that may be said: of which document (counted from 0), where in what the model saw of it, how likely.

    *chance* is a logarithm, only good for comparing.
    """

    place: int
    start: int
    end: int
    chance: float
    is_row: bool = False
    header: tuple[int, int] | None = None
    """Where the names of the columns stand when this is a row of a table that has some."""


def answer(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> str:
    """Return at most 400 characters: verbatim sentences with the mark of their document, or that there are none."""
    return "".join(pieces(question, extracts, language=language, answer_format=answer_format))


def nothing_found(language: str) -> str:
    """Return the sentence that says, in the *language* of the answer, that the documents do not answer."""
    return _NOTHING.get(language.lower().split("-")[0], _NOTHING["en"])


def pieces(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> tuple[str, ...]:
    """
    Return the answer quotation by quotation; joined they are `answer`. Never empty.

    *language* is the answer's: how it quotes, and how it says that there is nothing. Sentences are chosen by the
    words of the question in the question's own language.
    """
    code = language.lower().split("-")[0]
    texts = [_seen(extract) for extract in extracts]
    said = best(question, extracts, texts, language=detect(question, code), overhead=len(_quoted("", 10, code)) + 4)
    if not said:
        return (nothing_found(code),)
    written, headers = [], set[tuple[int, tuple[int, int]]]()
    for number, one in enumerate(said, 1):
        words = _words(texts[one.place][one.start : one.end])
        quoted = _quoted(words, extracts[one.place].number, code)
        named = _named(texts[one.place], one) if one.header is not None else ""
        if named:
            quoted = f"{named} [{extracts[one.place].number}]."
        elif one.header is not None and (one.place, one.header) not in headers:
            headers.add((one.place, one.header))
            # On a line of its own: the mark of the row speaks for the row alone.
            quoted = f"{_header(texts[one.place], one.header)}:\n{quoted}"
        written.append(_formatted(quoted, number, answer_format))
    return tuple(written)


def _words(text: str) -> str:
    return " ".join(clean(text, is_full=False)[0].split())


def _named(text: str, row: Sentence) -> str:
    """Return the *row* as a sentence of its cells with the names of their columns; "" where those are not sure."""
    named = named_cells(text, row.start, row.end)
    cells = [f"{_words(text[slice(*name)])} {_words(text[slice(*cell)])}" for _, _, name, cell in named]
    key = _words(text[slice(*named[0][1])]) if named else ""
    return f"{key}: {', '.join(cells)}" if key else ""


def _header(text: str, header: tuple[int, int]) -> str:
    """Return the names of the columns as they are said before a row."""
    return " | ".join(_words(text[start:end]) for start, end in cells_of(text, *header))


def best(
    question: str, extracts: Sequence[Extract], texts: Sequence[str], *, language: str, overhead: int
) -> tuple[Sentence, ...]:
    """
    Return what to say, the likeliest first; neighbours are one, nothing is said twice.

    Headings and questions are only said when there is nothing else, and no sentence far below the best one.

    *texts* are what `Sentence` offsets count in; *overhead* is the characters that each quotation costs beside its
    words. Empty when nothing holds a word of the question.
    """
    terms, cue = terms_of(question, language), cue_of(question)
    room = MAX_CHARS
    chosen: list[Sentence] = []
    said: set[str] = set()
    likeliest = sorted(_scored(question, extracts, texts, language, terms), key=_rate, reverse=True)
    for one in likeliest:
        if len(chosen) == MAX_SENTENCES or room < LEAST_CLIP_CHARS or _rate(one) < _rate(likeliest[0]) - CUT:
            break
        text = texts[one.place][one.start : one.end]
        words = " ".join(text.casefold().split())
        if words in said:
            continue
        said.add(words)
        size = one.end - one.start + overhead
        if one.header is not None:
            # The names of a sentence stand in it, one by one; a blank and a comma take the place of the bar.
            names = len(_header(texts[one.place], one.header)) + 2
            one = one if names <= MAX_HEADER_CHARS and size + names <= room else replace(one, header=None)
            size += names if one.header is not None else 0
        if size > room:
            start, end = clipped(text, room - overhead, terms=terms, cue=cue, language=language)
            one = replace(one, start=one.start + start, end=one.start + end)
            size = end - start + overhead
        if one.end > one.start:
            chosen.append(one)
            room -= size
    return _joined(chosen, texts)


def _scored(
    question: str, extracts: Sequence[Extract], texts: Sequence[str], language: str, terms: tuple[Term, ...]
) -> list[Sentence]:
    documents = [
        replace(extract.document, id=str(place), text=text)
        for place, (extract, text) in enumerate(zip(extracts, texts, strict=True))
    ]
    found: list[Sentence] = []
    for one in ranked(question, documents, language=language, terms=terms):
        if one.gain is not None or any(one.traces.hits):
            found.extend(_sentences(question, one, terms, _nearness(one.gain, extracts[int(one.document.id)])))
    return [one for one in found if not _is_asking(one, texts)] or found


@dataclass(frozen=True, slots=True)
class _CutDocument:
    """A document cut into sentences: the *scores* of all, which of the question's *terms* each holds, their *leads*."""

    one: Ranked
    bounds: Sequence[tuple[int, int]]
    leads: Leads
    held: Sequence[set[int]]
    terms: int
    cue: Cue | None
    nearness: Callable[[int], float] | None

    def chance(self, index: int, score: float, held: set[int]) -> float:
        """Return what rows and sentences have in common."""
        start, end = self.bounds[index]
        is_cued = self.cue is not None and self.cue.search(self.one.document.text, start, end) is not None
        words = self.one.score - (0.0 if self.one.gain is None else self.one.gain.score)
        near = 0.0 if self.nearness is None else NEARNESS * self.nearness(start)
        return EVIDENCE * score + near + DOCUMENT * words + COVERAGE * len(held) / self.terms + CUE * is_cued


def _nearness(gain: Gain | None, extract: Extract) -> Callable[[int], float] | None:
    """Return what a sentence gains by meaning, by its place in what the model saw; None where nothing was compared."""
    stretches = _stretches(extract)
    if gain is None or not stretches:
        return None if gain is None else gain.of
    begins = [begin for begin, _, _ in stretches]

    def gain_at(place: int) -> float:
        begin, start, _ = stretches[max(0, bisect_right(begins, place) - 1)]
        return gain.of(start + place - begin)

    return gain_at


def _sentences(
    question: str, one: Ranked, terms: Sequence[Term], nearness: Callable[[int], float] | None
) -> Iterator[Sentence]:
    text = one.document.text
    weights = weights_in(terms, one.traces)
    bounds = bounds_in(text, MAX_CHARS, one.tables)
    leads = leads_of(text, bounds)
    read = _CutDocument(one, bounds, leads, _held(bounds, one), len(terms), cue_of(question), nearness)
    for index, score in enumerate(sentence_scores(bounds, one.traces, weights, text=text, leads=leads)):
        if score <= 0 and nearness is None:
            continue
        if leads.tables and leads.tables[index]:
            yield from _row(read, index, score)
        else:
            yield _sentence(read, index, score)


def _sentence(read: _CutDocument, index: int, score: float) -> Sentence:
    text, (start, end) = read.one.document.text, read.bounds[index]
    chance = read.chance(index, score, read.held[index])
    chance += FRAGMENT * text[start].islower() + INTRODUCING * (text[end - 1] in ":：")
    if index:
        before = read.bounds[index - 1]
        chance += ANSWERING * (text[before[1] - 1] in "?？؟") + HEADED * is_heading(text, *before)
    bullet = BULLET.match(text, start, end)
    return Sentence(int(read.one.document.id), start if bullet is None else bullet.end(), end, chance)


def _row(read: _CutDocument, index: int, score: float) -> Iterator[Sentence]:
    """Yield the row at *index* when it holds something of the question itself; a header is only said with a row."""
    text, (start, end) = read.one.document.text, read.bounds[index]
    headers = read.leads.needs.get(index, ())
    own = read.held[index]
    if not own or (index in read.leads.members and not headers):
        return
    chance = read.chance(index, score, own.union(*(read.held[header] for header in headers)))
    row = text[start:end]
    start, end = start + len(row) - len(row.lstrip(_EDGES)), start + len(row.rstrip(_EDGES))
    header = read.bounds[headers[0]] if headers else None
    yield Sentence(int(read.one.document.id), start, end, chance, is_row=True, header=header)


def _held(bounds: Sequence[tuple[int, int]], one: Ranked) -> list[set[int]]:
    """Return for each sentence which of the question's terms stand in it."""
    starts = [start for start, _ in bounds]
    ends = [0, *(end for _, end in bounds)]
    held: list[set[int]] = [set() for _ in range(len(bounds) + 1)]
    for term, hits in enumerate(one.traces.hits):
        # Of a long text only parts are cut into sentences: the text between them is counted at 0.
        for after in {after if hit < ends[after] else 0 for hit in hits for after in (bisect_right(starts, hit),)}:
            held[after].add(term)
    return held[1:]


def _rate(one: Sentence) -> float:
    return one.chance - LENGTH * math.log(min(max(one.end - one.start, SHORT_CHARS), MAX_CHARS))


def _is_asking(one: Sentence, texts: Sequence[str]) -> bool:
    """Say whether *one* is a heading or a question, which say what is told elsewhere."""
    text = texts[one.place]
    return text[one.end - 1] in "?？؟" or is_heading(text, one.start, one.end)


def _joined(chosen: Sequence[Sentence], texts: Sequence[str]) -> tuple[Sentence, ...]:
    """Return *chosen* with neighbours made one, in the place of the better of them; a row stays one by itself."""
    joined: list[Sentence] = []
    for one in chosen:
        near = [other for other in joined if _are_neighbours(one, other, texts)]
        if not near:
            joined.append(one)
            continue
        whole = replace(
            near[0],
            start=min(one.start, *(other.start for other in near)),
            end=max(one.end, *(other.end for other in near)),
        )
        joined = [whole if other is near[0] else other for other in joined if other is near[0] or other not in near]
    return tuple(joined)


def _are_neighbours(one: Sentence, other: Sentence, texts: Sequence[str]) -> bool:
    if one.place != other.place or one.is_row or other.is_row:
        return False
    text = texts[one.place]
    return _touch(text[other.end : one.start]) or _touch(text[one.end : other.start])


def _touch(between: str) -> bool:
    """Say whether what stands *between* two sentences is no more than a line's end: a gap is no neighbourhood."""
    return between.isspace() and between.count("\n") < len(_GAP)


def _seen(extract: Extract) -> str:
    """Return what the model saw of the document with the line ends that tell sentences apart."""
    return "".join(piece for _, _, piece in _stretches(extract)) or extract.text


def _stretches(extract: Extract) -> list[tuple[int, int, str]]:
    """Return where each stretch of the document begins in what `_seen` returns, where in the document, and its text."""
    found: list[tuple[int, int, str]] = []
    at, before = 0, ""
    for start, end in extract.origins.stretches() if extract.document.field != HIGHLIGHTING else ():
        piece = extract.document.text[start:end]
        gap = "" if not found else "\n" if ends_with_row(before) and begins_with_row(piece) else _GAP
        found.append((at + len(gap), start, gap + piece))
        at, before = at + len(gap) + len(piece), piece
    return found


def _quoted(words: str, number: int, language: str) -> str:
    """Return *words* as a quotation with its mark; a quotation mark among them does not end it."""
    opening, closing = _QUOTES.get(language, _PLAIN_QUOTES)
    inside = QUOTATION_MARK.sub('"', words)
    return f"{opening}{inside}{closing} [{number}]"


def _formatted(words: str, number: int, answer_format: AnswerFormat | None) -> str:
    match answer_format:
        case "bulletpoint":
            return f"{'' if number == 1 else chr(10)}- {words}"
        case "stepbystep":
            return f"{'' if number == 1 else chr(10)}{number}. {words}"
        case _:
            return f"{'' if number == 1 else ' '}{words}"
