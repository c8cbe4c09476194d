"""
An answer without a model: the sentences of the documents that most likely answer, word for word and cited.

It says nothing of its own but that it found nothing. How likely a sentence answers is a linear sum whose weights were
fitted to questions with known answers and rounded (docs/quality.md); the sentences taken are those with the greatest
chance for their length. Where passages were compared by meaning, a sentence counts by its nearness, too, as far as the
words of the question are missing.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from datafari_rag.core.ask import AnswerFormat
from datafari_rag.core.documents import HIGHLIGHTING, Extract, OffsetMap, OffsetRun
from datafari_rag.core.passages.extracts import bounds_in
from datafari_rag.core.passages.reranking import Gain, Ranked, freedom, ranked
from datafari_rag.core.passages.term_matching import (
    Cue,
    Leads,
    Term,
    cue_of,
    is_heading,
    leads_of,
    sentence_scores,
    terms_of,
    weights_in,
)
from datafari_rag.core.proof.sources import Source, Work
from datafari_rag.core.text.folding import clean
from datafari_rag.core.text.language import detect, sentence_in
from datafari_rag.core.text.structure import begins_with_row, ends_with_row

MAX_CHARS = 400
"""Longest answer, marks and all."""

MAX_SENTENCES = 3

MAX_WHOLE_CHARS = 700
"""Longest answer where no statement fits: nothing is said in part, for an exception may stand in the rest."""

LEAST_ROOM_CHARS = 60
"""With less room left nothing more is said."""

EVIDENCE, DOCUMENT, COVERAGE, CUE = 7.2, 0.9, 2.2, 1.7
ANSWERING, HEADED, FRAGMENT, INTRODUCING = 3.0, -1.1, -0.8, -0.6
"""
Weights, on the scale of a logarithm of chance, of: the evidence in and around a sentence, its document's score, the
share of the question's words in it, holding the kind of thing asked for; standing behind a question, standing right
under a heading, beginning in lower case, ending with a colon.
"""

NEARNESS = 0.29
"""
Weight of one spread that a sentence is nearer, as far as the words of the question are missing: where the best document
by words holds all of them, words find the sentence. Nearness finds the one that names the document, as questions about
a contract do. Of its document only what words say counts: that of the nearest sentence is often not the one that
answers a question that needs two.
"""

LENGTH = 0.8
"""How much of its chance a sentence gives back for being e times as long."""

CUT = 4.0
"""
How far below the best sentence another one may be: what is farther below only fills the answer (docs/quality.md).
"""

SHORT_CHARS = 40
"""What is shorter gains nothing by that: numbers of lists, single words."""

_QUOTES = {"fr": ("« ", " »"), "de": ("„", "“"), "es": ("«", "»")}
_PLAIN_QUOTES = ("“", "”")
_QUOTE_ENDS = " \xa0\"'»”“’)"
_WORD = re.compile(r"\w")
_QUOTATION_MARK = re.compile('[«»„“”"]')

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
    said: str = ""
    """The whole statements that it is in, as they are said."""
    is_alone: bool = False
    """It is an item or a row, which is not joined with its neighbour."""


def answer(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> str:
    """Return at most 400 characters: verbatim sentences with the mark of their document, or that there are none."""
    return "".join(pieces(question, extracts, language=language, answer_format=answer_format))


def nothing_found(language: str) -> str:
    """Return the sentence that says, in the *language* of the answer, that the documents do not answer."""
    return sentence_in(language, "nothing_found")


def pieces(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> tuple[str, ...]:
    """
    Return the answer quotation by quotation; joined they are `answer`. Never empty.

    *language* is the answer's: how it quotes, and how it says that there is nothing. Sentences are chosen by the
    words of the question in the question's own language.
    """
    code = language.lower().split("-")[0]
    sources = [SeenText(extract, code) for extract in extracts]
    sentences = best(question, sources, answered_in=code)
    if not sentences:
        return (nothing_found(code),)
    return tuple(_formatted(item, number, answer_format) for number, item in enumerate(sentences, 1))


def _words(text: str) -> str:
    return " ".join(clean(text, is_full=False)[0].split())


def best(question: str, sources: Sequence[SeenText], *, answered_in: str) -> tuple[Sentence, ...]:
    """
    Return what to say, the likeliest first; neighbours are one, nothing is said twice.

    Headings and questions are only said when there is nothing else, and no sentence far below the best one. Where none
    fits, the best one is said all the same. *answered_in* is the language of the answer. Empty when nothing holds a
    word of the question.
    """
    language = detect(question) or answered_in
    likeliest = sorted(_scored(question, sources, language), key=_rate, reverse=True)
    chosen = _chosen(likeliest, sources, MAX_CHARS) or _chosen(likeliest, sources, MAX_WHOLE_CHARS)[:1]
    return _joined(chosen, sources)


def _chosen(likeliest: Sequence[Sentence], sources: Sequence[SeenText], room: int) -> list[Sentence]:
    chosen: list[Sentence] = []
    earlier: set[str] = set()
    for sentence in likeliest:
        if len(chosen) == MAX_SENTENCES or room < LEAST_ROOM_CHARS or _rate(sentence) < _rate(likeliest[0]) - CUT:
            break
        whole = sources[sentence.place].whole(sentence)
        words = whole.said.rpartition("[")[0].casefold()
        if words not in earlier and len(whole.said) <= room:
            chosen.append(whole)
            room -= len(whole.said)
        earlier.add(words)
    return chosen


def _scored(question: str, sources: Sequence[SeenText], language: str) -> list[Sentence]:
    terms = terms_of(question, language)
    documents = [replace(own.extract.document, id=str(place), text=own.text) for place, own in enumerate(sources)]
    sentences: list[Sentence] = []
    order = ranked(question, documents, language=language, terms=terms)
    missing = freedom(max(order, key=attrgetter("by_words")).coverage) - 1 if order else 0.0
    for result in order:
        nearness = _nearness(result.gain, sources[int(result.document.id)], NEARNESS * missing)
        if nearness is not None or any(result.traces.hits):
            sentences.extend(_sentences(question, result, terms, nearness))
    return [sentence for sentence in sentences if not _is_asking(sentence, sources)] or sentences


@dataclass(frozen=True, slots=True)
class _CutDocument:
    """A document cut into sentences: the *scores* of all, which of the question's *terms* each holds, their *leads*."""

    hit: Ranked
    bounds: Sequence[tuple[int, int]]
    leads: Leads
    term_sets: Sequence[set[int]]
    terms: int
    cue: Cue | None
    nearness: Callable[[int], float] | None

    def chance(self, index: int, score: float, own: set[int]) -> float:
        """Return what rows and sentences have in common."""
        start, end = self.bounds[index]
        is_cued = self.cue is not None and self.cue.search(self.hit.document.text, start, end) is not None
        near = 0.0 if self.nearness is None else self.nearness(start)
        return EVIDENCE * score + near + DOCUMENT * self.hit.by_words + COVERAGE * len(own) / self.terms + CUE * is_cued


def _nearness(gain: Gain | None, source: SeenText, weight: float) -> Callable[[int], float] | None:
    """Return what a sentence is worth by meaning, by its place in what the model saw; None where that is nothing."""
    return None if gain is None or not weight else lambda place: weight * gain.distance(source.stored(place))


def _sentences(
    question: str, result: Ranked, terms: Sequence[Term], nearness: Callable[[int], float] | None
) -> Iterator[Sentence]:
    text = result.document.text
    weights = weights_in(terms, result.traces)
    bounds = bounds_in(text, MAX_CHARS, result.tables)
    leads = leads_of(text, bounds)
    read = _CutDocument(result, bounds, leads, _term_sets(bounds, result), len(terms), cue_of(question), nearness)
    for index, score in enumerate(sentence_scores(bounds, result.traces, weights, text=text, leads=leads)):
        if score <= 0 and nearness is None:
            continue
        if leads.tables and leads.tables[index]:
            yield from _row(read, index, score)
        else:
            yield _sentence(read, index, score)


def _sentence(read: _CutDocument, index: int, score: float) -> Sentence:
    text, (start, end) = read.hit.document.text, read.bounds[index]
    chance = read.chance(index, score, read.term_sets[index])
    chance += FRAGMENT * text[start].islower() + INTRODUCING * (text[end - 1] in ":：")
    if index:
        before = read.bounds[index - 1]
        chance += ANSWERING * (text[before[1] - 1] in "?？؟") + HEADED * is_heading(text, *before)
    return Sentence(int(read.hit.document.id), start, end, chance)


def _row(read: _CutDocument, index: int, score: float) -> Iterator[Sentence]:
    """Yield the row at *index* when it holds something of the question itself; a header is only said with a row."""
    start, end = read.bounds[index]
    headers = read.leads.needs.get(index, ())
    own = read.term_sets[index]
    if not own or (index in read.leads.members and not headers):
        return
    chance = read.chance(index, score, own.union(*(read.term_sets[header] for header in headers)))
    yield Sentence(int(read.hit.document.id), start, end, chance)


def _term_sets(bounds: Sequence[tuple[int, int]], result: Ranked) -> list[set[int]]:
    """Return for each sentence which of the question's terms stand in it."""
    starts = [start for start, _ in bounds]
    ends = [0, *(end for _, end in bounds)]
    term_sets: list[set[int]] = [set() for _ in range(len(bounds) + 1)]
    for term, hits in enumerate(result.traces.hits):
        # Of a long text only parts are cut into sentences: the text between them is counted at 0.
        for after in {after if hit < ends[after] else 0 for hit in hits for after in (bisect_right(starts, hit),)}:
            term_sets[after].add(term)
    return term_sets[1:]


def _rate(sentence: Sentence) -> float:
    return sentence.chance - LENGTH * math.log(min(max(sentence.end - sentence.start, SHORT_CHARS), MAX_CHARS))


def _is_asking(sentence: Sentence, sources: Sequence[SeenText]) -> bool:
    """Say whether *sentence* is a heading or a question, quoted or not, which say what is told elsewhere."""
    text = sources[sentence.place].text
    is_question = text[sentence.start : sentence.end].rstrip(_QUOTE_ENDS).endswith(("?", "？", "؟"))
    return is_question or is_heading(text, sentence.start, sentence.end)


def _joined(chosen: Sequence[Sentence], sources: Sequence[SeenText]) -> tuple[Sentence, ...]:
    """Return *chosen* with neighbours made one, in the place of the better of them; an item and a row stay so."""
    joined: list[Sentence] = []
    for sentence in chosen:
        near = [other for other in joined if _are_neighbours(sentence, other, sources)]
        if not near:
            joined.append(sentence)
            continue
        all_of = (sentence, *near)
        start, end = min(each.start for each in all_of), max(each.end for each in all_of)
        whole = sources[sentence.place].whole(replace(near[0], start=start, end=end))
        joined = [whole if other is near[0] else other for other in joined if other is near[0] or other not in near]
    return tuple(joined)


def _are_neighbours(sentence: Sentence, other: Sentence, sources: Sequence[SeenText]) -> bool:
    """Say whether nothing but blanks and a line's end stands between two sentences: a gap is no neighbourhood."""
    if sentence.place != other.place or sentence.is_alone or other.is_alone:
        return False
    text = sources[sentence.place].text
    between = (text[other.end : sentence.start], text[sentence.end : other.start])
    return any(blanks.isspace() and blanks.count("\n") < len(_GAP) for blanks in between)


class SeenText:
    """What the model saw of one *extract*: its *text*, with the line ends that tell sentences apart."""

    def __init__(self, extract: Extract, language: str) -> None:
        """Put together what was seen; *language* is the answer's: how it quotes."""
        self.extract, self._language = extract, language
        self._source = Source(extract, Work())
        stretches = extract.origins.stretches()
        if not stretches or extract.document.field == HIGHLIGHTING:
            self.text, self._places = extract.text, extract.origins
            return
        pieces, runs = [""], list[OffsetRun]()
        for start, end in stretches:
            piece = extract.document.text[start:end]
            gap = "\n" if ends_with_row(pieces[-1]) and begins_with_row(piece) else _GAP
            pieces += [gap if runs else "", piece]
            runs.append(OffsetRun(sum(map(len, pieces)) - len(piece), start, len(piece)))
        self.text, self._places = "".join(pieces), OffsetMap(tuple(runs))

    def stored(self, at: int) -> int:
        """Return where the character *at* stands in the document; the place itself where it has no way back."""
        stored = self._places.at(at)
        return at if stored is None else stored

    def whole(self, sentence: Sentence) -> Sentence:
        """
        Return *sentence* with what is said of it: the whole statements that it is in, with what introduces them.

        An introduction stands before a quotation, and the names of columns before their cells.
        """
        places = (self.stored(match.start()) for match in _WORD.finditer(self.text, sentence.start, sentence.end))
        found = list(dict.fromkeys(number for at in places if (number := self._source.number_at(at)) is not None))
        mark = f"[{self.extract.number}]"
        if not found:
            return replace(sentence, said=f"{self._quoted(self.text[sentence.start : sentence.end])} {mark}")
        if not self._source.is_prose(found[0], found[-1]):
            found = [max(found, key=lambda number: len(self._source.text_of(number)))]
        first = found[0]
        cells = self._source.named_cells(first)
        if cells:
            row = "; ".join(f"{_words(name)}: {_words(cell)}" for name, cell in cells)
            return replace(sentence, said=f"{row} {mark}.", is_alone=True)
        context = _words(self._source.context(first))
        quoted = self._quoted(" ".join(self._source.text_of(number) for number in found))
        said = f"{context} {quoted} {mark}" if context else f"{quoted} {mark}"
        return replace(sentence, said=said, is_alone=not self._source.is_prose(first, first))

    def _quoted(self, text: str) -> str:
        """Return *text* as a quotation; a quotation mark among its words does not end it."""
        opening, closing = _QUOTES.get(self._language, _PLAIN_QUOTES)
        return f"{opening}{_QUOTATION_MARK.sub(chr(34), _words(text))}{closing}"


def _formatted(item: Sentence, number: int, answer_format: AnswerFormat | None) -> str:
    match answer_format:
        case "bulletpoint":
            return f"{'' if number == 1 else chr(10)}- {item.said}"
        case "stepbystep":
            return f"{'' if number == 1 else chr(10)}{number}. {item.said}"
        case _:
            # What stands alone begins a paragraph: behind the mark before it, it would be one sentence with that.
            return f"{'' if number == 1 else _GAP if item.is_alone else ' '}{item.said}"
