"""
Which words of an answer each of its marks belongs to.

A mark speaks for the words before it, back to the mark before or the beginning of its sentence; where there are none,
for what the mark before it speaks for, or for the words that follow. Brackets in code, in links' targets and in words
that the answer quotes are no marks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter, itemgetter

from datafari_rag.core.citations.markers import MAX_MARK_CHARS, DocumentLabels
from datafari_rag.core.citations.quotations import QUOTATION_MARK, quotations
from datafari_rag.core.text.code_spans import code_spans
from datafari_rag.core.text.sentences import spans

MAX_MARKS = 500
"""So many marks of an answer are resolved; those behind them are text."""

MAX_BRACKETS = 2000
"""So many brackets are looked at: as many as the filter of links lets through."""

_OPENER = re.compile(r"[\[【［]")
_CLOSERS = {"[": "]", "【": "】", "［": "］"}
_BRACKET_OR_END = re.compile(r"[\[\]【】［］\n]")
_TARGET = re.compile(r"\((?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)")
_NO_MARK = re.compile(r"\W*|[xX]|sic|\w{1,2}(?<!\d)|[ivxlc]+", re.IGNORECASE)
_JOINING = re.compile(r"[\s,;&/+\-–]*(?:(?:and|et|und|y|e|en|и|和|及)[\s,]*)?")
_STOP = re.compile(r"[.!?…。！？\n\r:;]")


@dataclass(frozen=True, slots=True)
class Mark:
    """A bracket of the answer: its place there, what is *inside*, and the documents it names, counted from 0."""

    start: int
    end: int
    inside: str
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """
    The claim of a mark: its words, those of them in quotation marks, and *around*, the others.

    Quotation marks that cannot be paired are taken for the document's own, inside of one quotation from the first to
    the last of them.
    """

    text: str
    quotes: tuple[str, ...] = ()
    around: str = ""


def marks_in(answer: str, labels: DocumentLabels, is_quoted: Callable[[str], bool]) -> tuple[Mark, ...]:
    """
    Return the first `MAX_MARKS` marks of *answer* in order, unknown ones too; none behind `MAX_BRACKETS` brackets.

    *is_quoted* says whether a document has these words: brackets in words quoted from one are the document's own. In
    other quotations, which may be a document's words with a link or a tag less, those are that a document has too.
    """
    if _OPENER.search(answer) is None:
        return ()
    code = code_spans(answer)
    quotes = [span for span in quotations(answer) if _OPENER.search(answer, *span)]
    own = [span for span in quotes if is_quoted(answer[slice(*span)])]
    closings = _closings(answer)
    found: list[Mark] = []
    at = 0
    for opener in islice(_OPENER.finditer(answer), MAX_BRACKETS):
        start = opener.start()
        if start < at or len(found) == MAX_MARKS:
            continue
        inside = _span_around(code, start) or _span_around(own, start)
        if inside:
            at = inside[1]
        elif (mark := _mark_at(answer, start, closings, labels)) is not None:
            at = mark.end
            if not (_span_around(quotes, start) and is_quoted(answer[start : mark.end])):
                found.append(mark)
    return tuple(found)


def claims_of(answer: str, marks: Sequence[Mark], has_content: Callable[[str], bool]) -> tuple[Claim, ...]:
    """Return the claim of each mark; *has_content* says whether some words state anything."""
    if not marks:
        return ()
    quotes = tuple(span for span in quotations(answer) if not _has_mark(marks, *span))
    page = _AnswerText(answer, tuple(marks), quotes, tuple(spans(_masked(answer, marks, quotes))))
    claims: list[Claim] = []
    for number in range(len(marks)):
        claims.append(_claim(page, number, claims, has_content))
    return tuple(claims)


def stated_in(
    text: str, labels: Sequence[str], has_content: Callable[[str], bool]
) -> tuple[tuple[tuple[int, int], Claim | None], ...]:
    """
    Return each sentence of *text*: its place there, and its claim, marks left out; None where it states nothing.

    *labels* are those that a mark may name; *has_content* is as in `claims_of`.
    """
    marks = marks_in(text, DocumentLabels(labels), lambda words: False)
    plain = _masked(text, marks, ())
    quotes = tuple(quotations(plain))
    page = _AnswerText(plain, (), quotes, tuple(spans(_masked(plain, (), quotes))))
    return tuple((span, _claim_in(page, span) if has_content(plain[slice(*span)]) else None) for span in page.sentences)


@dataclass(frozen=True, slots=True)
class _AnswerText:
    """An answer with what was found in it; sentences are spans without white space around them."""

    answer: str
    marks: tuple[Mark, ...]
    quotes: tuple[tuple[int, int], ...]
    sentences: tuple[tuple[int, int], ...]


def _claim(page: _AnswerText, number: int, earlier: Sequence[Claim], has_content: Callable[[str], bool]) -> Claim:
    before, after = _before(page, number), _after(page, number)
    if before is not None and has_content(page.answer[slice(*before)]):
        claim = _claim_in(page, before)
        if not claim.quotes and after is not None and _is_last(page, number, after):
            following = _claim_in(page, after)
            return replace(claim, quotes=following.quotes, around=f"{claim.text} {following.around}")
        return claim
    if earlier and _is_in_a_row(page, number):
        return earlier[-1]
    if after is not None and has_content(page.answer[slice(*after)]):
        return _claim_in(page, after)
    return earlier[-1] if earlier else Claim("")


def _has_mark(marks: Sequence[Mark], start: int, end: int) -> bool:
    """Return whether one of *marks*, which are in order, is from *start* to *end* or reaches into that."""
    place = bisect_left(marks, end, key=attrgetter("start")) - 1
    return place >= 0 and marks[place].end > start


def _claim_in(page: _AnswerText, region: tuple[int, int]) -> Claim:
    start, end = region
    text = page.answer[start:end]
    inside = page.quotes[bisect_left(page.quotes, (start, 0)) : bisect_left(page.quotes, (end + 1, 0))]
    spans_ = [(a - start, b - start) for a, b in inside if b <= end]
    around = _around(text, spans_)
    if QUOTATION_MARK.search(around) is not None:
        marks = [match.start() for match in QUOTATION_MARK.finditer(text)]
        spans_ = [(marks[0] + 1, marks[-1])] if len(marks) > 1 else []
        around = _around(text, spans_)
    return Claim(text.strip(), tuple(text[a:b] for a, b in spans_), around)


def _around(text: str, quotes: Sequence[tuple[int, int]]) -> str:
    """Return *text* without the quotations and their marks."""
    pieces, at = [], 0
    for start, end in quotes:
        pieces.append(text[at : start - 1])
        at = end + 1
    return " ".join((*pieces, text[at:]))


def _before(page: _AnswerText, number: int) -> tuple[int, int] | None:
    """Return the words from the mark before, or from the sentence's beginning, to the mark; None at a beginning."""
    mark, place = page.marks[number], _sentence_at(page, page.marks[number].start)
    if place is None:
        return None
    start, end = page.sentences[place]
    last = page.marks[number - 1].end if number else 0
    if mark.start >= end and "\n" in page.answer[end : mark.start]:
        return None
    stop = mark.start
    leading = page.answer[start:stop].rstrip()[-1:]
    if leading in ".!?" and page.answer[mark.end : mark.end + 2].strip()[:1].islower():
        return None
    return (max(start, last), stop) if last <= stop else None


def _after(page: _AnswerText, number: int) -> tuple[int, int] | None:
    """Return the words from the mark to the next one or the sentence's end; None when nothing follows on the line."""
    mark = page.marks[number]
    limit = page.marks[number + 1].start if number + 1 < len(page.marks) else len(page.answer)
    place = bisect_right(page.sentences, mark.end, key=itemgetter(1))
    if place == len(page.sentences):
        return None
    start, end = page.sentences[place]
    if "\n" in page.answer[mark.end : max(start, mark.end)]:
        return None
    return (max(start, mark.end), min(end, limit)) if max(start, mark.end) < limit else None


def _is_in_a_row(page: _AnswerText, number: int) -> bool:
    """Return whether only joining words and signs are between the mark before, if any, and this one."""
    between = page.answer[page.marks[number - 1].end : page.marks[number].start]
    return _JOINING.fullmatch(between) is not None


def _is_last(page: _AnswerText, number: int, after: tuple[int, int]) -> bool:
    """Say whether no later mark can claim the words that follow in the sentence."""
    return number + 1 == len(page.marks) or page.marks[number + 1].start > after[1]


def _sentence_at(page: _AnswerText, offset: int) -> int | None:
    """Return the number of the last sentence that begins before *offset*."""
    place = bisect_right(page.sentences, (offset, -1)) - 1
    return place if place >= 0 else None


def _masked(answer: str, marks: Sequence[Mark], quotes: Sequence[tuple[int, int]]) -> str:
    """Return *answer* without what would end a sentence in a quotation, and without marks; offsets stay."""
    pieces = list(answer)
    for start, end in quotes:
        pieces[start:end] = _STOP.sub("x", answer[start:end])
    for mark in marks:
        pieces[mark.start : mark.end] = " " * (mark.end - mark.start)
    return "".join(pieces)


def _closings(answer: str) -> dict[int, int]:
    """Return for each opening bracket where it is closed on its line, brackets of one kind within each other."""
    found: dict[int, int] = {}
    waiting: dict[str, list[int]] = {closer: [] for closer in _CLOSERS.values()}
    for bracket in _BRACKET_OR_END.finditer(answer):
        sign = bracket.group()
        if sign == "\n":
            waiting = {closer: [] for closer in _CLOSERS.values()}
        elif sign in _CLOSERS:
            waiting[_CLOSERS[sign]].append(bracket.start())
        elif waiting[sign]:
            found[waiting[sign].pop()] = bracket.start()
    return found


def _mark_at(answer: str, at: int, closings: Mapping[int, int], labels: DocumentLabels) -> Mark | None:
    """Return the mark that opens at *at*: the widest bracket that names a document, else a plain one."""
    end = closings.get(at)
    return None if end is None or end - at > MAX_MARK_CHARS + 1 else _mark_between(answer, at, end, labels)


def _mark_between(answer: str, at: int, end: int, labels: DocumentLabels) -> Mark | None:
    inside = answer[at + 1 : end]
    places = labels.places(inside)
    target = _TARGET.match(answer, end + 1)
    if places:
        return Mark(at, target.end() if target else end + 1, inside, places)
    is_link = target is not None or answer[at - 1 : at] == "!"
    is_nested = _OPENER.search(inside) is not None
    if is_link or is_nested or _NO_MARK.fullmatch(inside.strip()):
        return None
    return Mark(at, end + 1, inside, ())


def _span_around(spans_: Sequence[tuple[int, int]], at: int) -> tuple[int, int] | None:
    """Return the one of *spans_*, in order and apart, that *at* is in."""
    place = bisect_right(spans_, at, key=lambda span: span[0]) - 1
    return spans_[place] if place >= 0 and at < spans_[place][1] else None
