"""
An answer without a model: the whole statements of the documents that most likely answer, word for word and cited.

It says nothing of its own but that it found nothing. A heading, a question, and a line of one or two words are no
answer: they name what is said elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log

from datafari_rag.core.ask import AnswerFormat
from datafari_rag.core.documents import HIGHLIGHTING, Extract
from datafari_rag.core.evidence.matching import Hits, hits_in, terms_of
from datafari_rag.core.evidence.passages import Piece, is_heading
from datafari_rag.core.evidence.scoring import LEAST_COVERAGE, fullest, named_in, near_of, nearness_of, piece_scores
from datafari_rag.core.proof.sources import Source, is_prose
from datafari_rag.core.text.cleaning import clean
from datafari_rag.core.text.language import detect, sentence_in
from datafari_rag.core.text.sentences import STOPS, texts_of
from datafari_rag.core.text.tokens import tokens

MAX_CHARS, MAX_WHOLE_CHARS = 400, 700
"""Longest answer, marks and all; and longest where no statement fits: nothing is said in part."""

MAX_STATEMENTS = 3

LEAST_WORDS = 3

COVERED, HEADED, DOCUMENT, LENGTH, BEGINS, OPENS, DEFINES = 0.5, 0.4, 0.5, 0.05, 0.1, 0.4, 0.8
"""
Weights of the share of the question's words that a statement has with what introduces it and the line that it stands
under, of standing soon behind a heading or a question with these words, of each place that its document is farther
down, of being e times as long, of having one of the words near its beginning, of being a short line of its own or
ending with a colon, and of being the first of its document that begins with the only word, beside what it and what
stands around it hold of the question.
"""

DECAY, LEAST_HEADED = 0.8, 0.01
"""What a heading still says of the next statement under it, and when it says nothing any more."""

NEARNESS = 0.08
"""Weight of one spread that a statement is nearer in meaning, as far as the words of the question are missing."""

BEGINNING_CHARS = 20
"""How near to its beginning a statement says what it is about."""

SHORT_CHARS = 40
"""What is shorter gains nothing by that."""

FAR = 0.6
"""How far below the best statement another one may be: what is farther below only fills the answer."""

_QUOTES = {"fr": ("« ", " »"), "de": ("„", "“"), "es": ("«", "»")}
_PLAIN_QUOTES = ("“", "”")
_QUOTATION_MARK = re.compile('[«»„“”"]')


@dataclass(frozen=True, slots=True)
class Quotation:
    """The statements *first* to *last* of the source with that *place*, and how likely they answer."""

    place: int
    first: int
    last: int
    chance: float


def nothing_found(language: str) -> str:
    """Return the sentence that says, in the *language* of the answer, that the documents do not answer."""
    return sentence_in(language, "nothing_found")


def answer(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> str:
    """Return at most 400 characters: verbatim statements with the mark of their document, or that there are none."""
    return "".join(pieces(question, extracts, language=language, answer_format=answer_format))


def pieces(
    question: str, extracts: Sequence[Extract], *, language: str, answer_format: AnswerFormat | None = None
) -> tuple[str, ...]:
    """
    Return the answer quotation by quotation; joined they are `answer`. Never empty.

    *language* is the answer's: how it quotes, and how it says that there is nothing. Statements are chosen by the
    words of the question in the question's own language.
    """
    code = language.lower().split("-")[0]
    sources = [Source(extract) for extract in extracts]
    likeliest = sorted(_quotations(question, sources, detect(question) or code), key=lambda one: -one.chance)
    chosen = _chosen(likeliest, sources, code, MAX_CHARS) or _chosen(likeliest, sources, code, MAX_WHOLE_CHARS)[:1]
    if not chosen:
        return (nothing_found(code),)
    joined = _joined([quotation for quotation, _ in chosen], sources)
    return tuple(
        _formatted(*_said(sources[one.place], one, code), number, answer_format) for number, one in enumerate(joined, 1)
    )


def perhaps(question: str, extracts: Sequence[Extract], *, language: str) -> str:
    """
    Return the best statements where too little speaks for any of them: as passages, each with the name of its document.

    They have no marks, so that nobody takes them for an answer.
    """
    code = language.lower().split("-")[0]
    said = pieces(question, extracts, language=language)
    labels = {str(extract.number): extract.label for extract in extracts}
    shown: list[str] = []
    for each in said:
        words, _, number = each.strip().removesuffix(".").removesuffix("]").rpartition(" [")
        shown += [f"- {labels[number]}: {words}"] if words else []
    return "\n".join([sentence_in(code, "perhaps"), "", *shown]) if shown else nothing_found(code)


def _quotations(question: str, sources: Sequence[Source], language: str) -> Iterator[Quotation]:
    """Yield the statements that hold something of the question, stand under what does or are near it."""
    terms = terms_of(question, language)
    worth = [term.share for term in terms]
    total = sum(worth) or 1.0
    hits = [hits_in(source.text, terms, language) for source in sources]
    covered = max((fullest(own, worth)[0] for own in hits), default=0.0) / total
    # As far as words find the place, nearness has no say: it finds the statement that names the subject.
    weight = NEARNESS * (max(covered, LEAST_COVERAGE) ** -2 - 1)
    near = [near_of(source.extract.document) for source in sources]
    nearest = max((part.cosine for own in near for part in own), default=0.0)
    named = named_in([source.extract.document for source in sources], terms, language)
    for place, source in enumerate(sources):
        numbers = {one.start: number for number, one in enumerate(source.statements)}
        cut = [
            Piece(one.start, one.end, numbers[one.above[0].start] if one.above else -1, one.kind == "row")
            for one in source.statements
        ]
        pairs = pairwise(source.blocks)
        behind_gap = {after.region.start for before, after in pairs if before.region.end < after.region.start}
        firsts = {
            block.statements[0] for block in source.blocks if block.region.start in behind_gap and block.statements
        }
        held, are_snippets = _held(cut, hits[place]), source.extract.document.field == HIGHLIGHTING
        asked, under = sum(value for value, is_there in zip(worth, named[place], strict=True) if is_there) / total, 0
        heading: set[int] = set()
        is_defined = False
        for number, score in enumerate(piece_scores(cut, hits[place], terms)):
            one = source.statements[number]
            above = [held[numbers[line.start]] for line in one.above]
            own = sum(worth[term] for term in held[number].union(*above)) / total
            with_heading = sum(worth[term] for term in heading.union(held[number], *above)) / total
            is_line = one.kind == "sentence" and not one.above and is_heading(source.text, one.start, one.end)
            if one in firsts:
                asked, heading = 0.0, set()
            headed, under = asked**2 * DECAY**under, under + 1
            if is_line or one.is_question or one.kind == "heading":
                asked, under, heading = own, 0, held[number]
            # What is no whole statement is none to answer with; of snippets nobody knows.
            if one.is_question or one.kind == "heading" or (one.is_part and (one.kind == "row" or not are_snippets)):
                continue
            distance = nearest - nearness_of(near[place], cut[number]) if near[place] else 0.0
            if own or headed > LEAST_HEADED or (weight and near[place]):
                length = log(min(max(one.end - one.start, SHORT_CHARS), MAX_CHARS) / SHORT_CHARS)
                chance = score + COVERED * with_heading + HEADED * headed - DOCUMENT * place - LENGTH * length
                begins = any(0 <= at - one.start <= BEGINNING_CHARS for places in hits[place] for at in places)
                is_opening = is_line or source.text.startswith((":", "："), one.end - 1)
                if len(held[number]) == len(terms) == 1 and source.text[one.end - 1] in STOPS and not is_defined:
                    is_defined = any(one.start in places for places in hits[place])
                    chance += DEFINES * is_defined
                chance += BEGINS * begins - OPENS * is_opening - weight * distance
                yield Quotation(place, number, number, chance)


def _held(cut: Sequence[Piece], hits: Hits) -> list[set[int]]:
    """Return for each piece which of the terms stand in it."""
    held: list[set[int]] = [set() for _ in cut]
    starts = [piece.start for piece in cut]
    for term, places in enumerate(hits):
        for at in places:
            number = bisect_right(starts, at) - 1
            if number >= 0 and at < cut[number].end:
                held[number].add(term)
    return held


def _may_answer(source: Source, number: int) -> bool:
    """Say whether the model would have seen the statement with *number*, and it is a row or has enough words."""
    one, extract = source.statements[number], source.extract
    seen = ((0, len(source.text)),) if extract.document.field == HIGHLIGHTING else extract.origins.stretches()
    is_seen = any(start < one.end and one.start < end for start, end in seen)
    return is_seen and (one.kind == "row" or len(tokens(source.text[one.start : one.end])) >= LEAST_WORDS)


def _chosen(
    likeliest: Sequence[Quotation], sources: Sequence[Source], language: str, room: int
) -> list[tuple[Quotation, str]]:
    """Return those that fit *room* characters, without much less likely and repeated ones, each as it is said."""
    chosen: list[tuple[Quotation, str]] = []
    least = -inf
    for one in likeliest:
        if len(chosen) == MAX_STATEMENTS or one.chance < least:
            break
        if not _may_answer(sources[one.place], one.first):
            continue
        least = max(least, one.chance - FAR)
        said = _said(sources[one.place], one, language)[0]
        if len(said) <= room and said.rpartition(" [")[0] not in [other.rpartition(" [")[0] for _, other in chosen]:
            chosen.append((one, said))
            room -= len(said)
    return chosen


def _joined(chosen: Sequence[Quotation], sources: Sequence[Source]) -> list[Quotation]:
    """Return *chosen* with neighbouring sentences of one paragraph made one, in the place of the better of them."""
    joined: list[Quotation] = []
    for one in chosen:
        for at, other in enumerate(joined):
            first, last = min(one.first, other.first), max(one.last, other.last)
            is_next = one.first == other.last + 1 or other.first == one.last + 1
            if (
                one.place == other.place
                and is_next
                and is_prose(sources[one.place].text, sources[one.place].statements[first : last + 1])
            ):
                joined[at] = Quotation(one.place, first, last, other.chance)
                break
        else:
            joined.append(one)
    return joined


def _said(source: Source, one: Quotation, language: str) -> tuple[str, bool]:
    """Return the quotation with its mark, and whether it begins a paragraph, as rows and what is introduced do."""
    mark, text = f"[{source.extract.number}]", source.text
    found = source.statements[one.first : one.last + 1]
    *above, last = map(_words, texts_of(text, found[0]))
    if found[0].kind == "row" and above:
        cells = [*above, last]
        named = zip(cells[::2], cells[1::2], strict=True)
        return f"{'; '.join(f'{name}: {cell}' for name, cell in named)} {mark}.", True
    opening, closing = _QUOTES.get(language, _PLAIN_QUOTES)
    words = _words(" ".join(text[each.start : each.end] for each in found))
    # A quotation mark among the words does not end the quotation.
    quoted = f"{opening}{_QUOTATION_MARK.sub(chr(34), words)}{closing} {mark}"
    return " ".join((*above, quoted)), not is_prose(text, found[:1])


def _words(text: str) -> str:
    return " ".join(clean(text, is_full=False)[0].split())


def _formatted(said: str, is_alone: bool, number: int, answer_format: AnswerFormat | None) -> str:
    match answer_format:
        case "bulletpoint":
            return f"{'' if number == 1 else chr(10)}- {said}"
        case "stepbystep":
            return f"{'' if number == 1 else chr(10)}{number}. {said}"
        case _:
            # What stands alone begins a paragraph: behind the mark before it, it would be one sentence with that.
            return f"{'' if number == 1 else (chr(10) * 2) if is_alone else ' '}{said}"
