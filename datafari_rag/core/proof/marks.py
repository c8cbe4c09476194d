"""
The sentences of an answer and their marks: a mark belongs to the sentence that it ends.

In code, formulas and array indexes a bracket is no mark, nor in words that the answer quotes with their brackets.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, itemgetter

from datafari_rag.core.proof.labels import MAX_MARK_CHARS, DocumentLabels
from datafari_rag.core.proof.statements import EMPTY_LINE, STOPS, Statement, statements
from datafari_rag.core.text.sentences import code_spans
from datafari_rag.core.text.structure import cells_of

MAX_MARKS = 500
"""Marks behind these are text."""

MAX_BRACKETS = 2_000
"""Brackets that are looked at."""

MAX_QUOTATION_CHARS = 2_000

QUOTATION = re.compile(
    rf"“[^“”]{{1,{MAX_QUOTATION_CHARS}}}”|„[^„“”]{{1,{MAX_QUOTATION_CHARS}}}[“”]|«[^«»]{{1,{MAX_QUOTATION_CHARS}}}»"
    rf"|「[^「」]{{1,{MAX_QUOTATION_CHARS}}}」|『[^『』]{{1,{MAX_QUOTATION_CHARS}}}』|\"[^\"]{{1,{MAX_QUOTATION_CHARS}}}\""
)
_BRACKET = re.compile(rf"[\[【［]([^\[\]【】［］\n]{{1,{MAX_MARK_CHARS}}})[\]】］]")
_TARGET = re.compile(r"\((?:<[^<>\n]{0,2000}>|[^\s()]{0,2000})\)")
_NO_MARK = re.compile(r"\W*|[xX]|sic|\w{1,2}(?<!\d)|[ivxlc]+|0+", re.IGNORECASE)
_FORMULA = re.compile(
    r"\$\$[^$]{1,2000}\$\$|\\\((?:[^\\]|\\(?![()])){1,2000}\\\)|\\\[(?:[^\\]|\\(?![\[\]])){1,2000}\\\]"
    r"|(?<![\w$])\$(?=[^\s$\d])[^$\n]{1,300}(?<=\S)\$(?![\w$])"
)
_ARRAY = re.compile(
    r"(?<![\w.])(?:[A-Za-z]|\w*[_.\d]\w*|[a-z]+[A-Z]\w*|arr(?:ay)?|args|argv|list|items?|data|values?)\Z"
)
_INDEXED = re.compile(r"\s?(?:[-+*/]?=(?!=)|\.\w|\(|\[\w+\]\s?=|\+\+)")
_BOLD_LINE = re.compile(rf"\s*(?:\*\*|__)[^*_\n]*[^*_\n{STOPS}](?:\*\*|__)[:：]?\s*")
_STRIKE = re.compile(r"~(?!\d)|(?<=\S)~|<(?:\s*+/)?\s*+(?:s|del|strike)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]")

Span = tuple[int, int]


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
    A sentence of an answer from *start* to *end*: its *text* without marks, and its *marks*.

    *full* is the text with what introduces it, as a document would have it; empty where nothing does. A heading and a
    line that introduces others do not state anything by themselves (*states*). What *is_struck* out is not proved: it
    says one thing where words are, and another where a reader sees the signs.
    """

    start: int
    end: int
    text: str
    full: str
    marks: tuple[Mark, ...]
    states: bool
    is_struck: bool


def marks_in(answer: str, labels: DocumentLabels, is_quoted: Callable[[str], bool]) -> tuple[Mark, ...]:
    """
    Return the first `MAX_MARKS` marks of *answer* in order, unknown ones too.

    *is_quoted* says whether a document has these words: brackets in a quotation from one are the document's own.
    """
    found: list[Mark] = []
    brackets = list(islice(_BRACKET.finditer(answer), MAX_BRACKETS))
    if not brackets:
        return ()
    apart = sorted([*code_spans(answer), *map(re.Match.span, _FORMULA.finditer(answer))])
    quotes = [match.span() for match in QUOTATION.finditer(answer)]
    for bracket in brackets:
        start, end = bracket.span()
        if len(found) == MAX_MARKS:
            break
        if _around(apart, start) or _is_index(answer, start, end):
            continue
        mark = _mark(answer, bracket, labels)
        quote = _around(quotes, start)
        if mark is not None and not (quote and is_quoted(answer[slice(*quote)])):
            found.append(mark)
    return tuple(found)


def _mark(answer: str, bracket: re.Match[str], labels: DocumentLabels) -> Mark | None:
    """Return the mark that *bracket* is, None where it is none: one that names a document may be a link's text."""
    start, end = bracket.span()
    places = labels.places(bracket[1])
    target = _TARGET.match(answer, end)
    if places:
        return Mark(start, target.end() if target else end, bracket[1], places)
    is_link = target is not None or answer[max(0, start - 1) : start] == "!"
    return None if is_link or _NO_MARK.fullmatch(bracket[1].strip()) else Mark(start, end, bracket[1], ())


def _is_index(answer: str, start: int, end: int) -> bool:
    """Say whether the bracket is the index of an array: "a[1]", "row_ids[2] =", not "5 euros[1]"."""
    before = answer[max(0, start - 40) : start]
    if not before[-1:].isalnum() or not before[-1:].isascii():
        return False
    return (_ARRAY.search(before) is not None and not before.isdigit()) or _INDEXED.match(answer, end) is not None


def claims_in(answer: str, marks: Sequence[Mark]) -> list[Claim]:
    """Return the sentences of *answer* in order, each with its marks."""
    masked, quotes = _masked(answer, marks)
    every = statements(masked)
    sentences = _joined([one for one in every if _WORD.search(masked, one.start, one.end)], quotes)
    owned: dict[int, list[Mark]] = {}
    for mark in marks:
        place = _owner(mark, answer, sentences)
        if place is not None:
            owned.setdefault(place, []).append(mark)
    struck = _struck(masked)
    return [
        Claim(
            one.start,
            one.end,
            _without(answer, owned.get(place, ()), one.start, one.end),
            _full(masked, every, one) if one.context else "",
            tuple(owned.get(place, ())),
            states=place in owned or _may_state(one, masked),
            is_struck=any(start < one.end and one.start < end for start, end in struck),
        )
        for place, one in enumerate(sentences)
    ]


def _owner(mark: Mark, answer: str, sentences: Sequence[Statement]) -> int | None:
    """Return which sentence *mark* belongs to, None where there is none: one that begins a paragraph to that."""
    place = bisect_right(sentences, mark.start, key=attrgetter("start")) - 1
    if place >= 0 and mark.start < sentences[place].end:
        return place
    following = place + 1 < len(sentences) and "\n" not in answer[mark.end : sentences[place + 1].start]
    if following and (place < 0 or EMPTY_LINE.search(answer, sentences[place].end, mark.start) is not None):
        return place + 1
    return place if place >= 0 else None


def _without(answer: str, marks: Sequence[Mark], start: int, end: int) -> str:
    """Return the sentence without its *marks* and the blanks in front of each."""
    pieces, at = [], start
    for mark in marks:
        if start <= mark.start < end:
            pieces.append(answer[at : mark.start].rstrip())
            at = mark.end
    return "".join((*pieces, answer[at:end])).strip()


def _full(text: str, every: Sequence[Statement], one: Statement) -> str:
    above = [every[number] for number in one.context]
    if one.kind != "row":
        return " ".join(text[each.start : each.end] for each in (*above, one))
    names, cells = cells_of(text, above[0].start, above[0].end), cells_of(text, one.start, one.end)
    return " ".join(text[slice(*span)] for pair in zip(names, cells, strict=False) for span in pair)


def _may_state(one: Statement, text: str) -> bool:
    """Say whether a sentence may need proof: a heading, a header and a line that introduces a list do not."""
    line = text[one.start : one.end]
    is_title = one.kind == "heading" or line.startswith("#") or _BOLD_LINE.fullmatch(line) is not None
    return not (is_title or (one.is_part and (one.kind == "row" or line.rstrip(" *_").endswith((":", "：")))))


def _joined(sentences: Sequence[Statement], quotes: Sequence[Span]) -> list[Statement]:
    """Return *sentences*, those of one of *quotes* as one."""
    joined: list[Statement] = []
    for one in sentences:
        quote = _around(quotes, one.start)
        if joined and quote and quote[0] < one.start and quote[0] < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=one.end)
        else:
            joined.append(one)
    return joined


def _struck(text: str) -> list[Span]:
    """Return the paragraphs of *text* in which a reader of Markdown may see words struck out."""
    found, at = list[Span](), 0
    for gap in [*EMPTY_LINE.finditer(text), None]:
        end = len(text) if gap is None else gap.start()
        if len(_STRIKE.findall(text, at, end)) > 1:
            found.append((at, end))
        at = end
    return found


def _masked(answer: str, marks: Sequence[Mark]) -> tuple[str, list[Span]]:
    """Return *answer* without marks and blocks of code, offsets kept, and its quotations without marks in them."""
    pieces = list(answer)
    for mark in marks:
        before = answer[max(0, mark.start - 3) : mark.start].rstrip()[-1:]
        after = answer[mark.end : mark.end + 3].lstrip()[:1]
        # “…” [1] “…” [2]
        is_end = before in '”“»」』"' and after in '“„«「『"' and bool(before and after)
        pieces[mark.start : mark.end] = ("\n" if is_end else " ") * (mark.end - mark.start)
    for start, end in code_spans(answer):
        if answer.startswith(("```", "~~~"), start + len(answer[start:end]) - len(answer[start:end].lstrip(" \t"))):
            pieces[start:end] = "\n" * (end - start)
    masked = "".join(pieces)
    starts = [mark.start for mark in marks]
    quotes = [
        match.span()
        for match in QUOTATION.finditer(masked)
        if "\n\n" not in match[0] and bisect_left(starts, match.start()) == bisect_left(starts, match.end())
    ]
    return masked, quotes


def _around(spans: Sequence[Span], at: int) -> Span | None:
    """Return the one of *spans*, in order, that *at* is in."""
    place = bisect_right(spans, at, key=itemgetter(0)) - 1
    return spans[place] if place >= 0 and at < spans[place][1] else None
