"""
The sentences of an answer and their marks: a mark belongs to the sentence that it ends.

In code, formulas and array indexes a bracket is no mark, nor in words that the answer quotes with their brackets.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter, itemgetter

from datafari_rag.core.proof.judging import QUOTATION
from datafari_rag.core.proof.labels import MAX_MARK_CHARS, DocumentLabels
from datafari_rag.core.text.sentences import EMPTY_LINE, STOPS, Statement, code_spans, statements, texts_of

MAX_MARKS, MAX_BRACKETS = 500, 2_000
"""Marks behind these are text, and brackets that are looked at."""

_BRACKET = re.compile(rf"[\[【［]([^\[\]【】［］\n]{{1,{MAX_MARK_CHARS}}})[\]】］]")
_TARGET = re.compile(r"(?:[ \t]{0,9}\xa0)?\((?:[<‹][^<>\n]{0,2000}>|[^\s()]{0,2000})\)|[ \t]?:[ \t]*+[a-z]+://")
"""What a bracket that is a link stands before, also where a blank was put between the two."""

_NO_MARK = re.compile(r"\W*|[xX]|sic|\w{1,2}(?<!\d)|[ivxlc]+|0+", re.IGNORECASE)
_FORMULA = re.compile(
    r"\$\$[^$]{1,2000}\$\$|\\\((?:[^\\]|\\(?![()])){1,2000}\\\)|\\\[(?:[^\\]|\\(?![\[\]])){1,2000}\\\]"
    r"|(?<![\w$])\$(?=[^\s$\d])[^$\n]{1,300}(?<=\S)\$(?![\w$])"
)
_ARRAY = re.compile(
    r"(?<![\w.])(?:[A-Za-z]|\w*[_.\d]\w*|[a-z]+[A-Z]\w*|arr(?:ay)?|args|argv|list|items?|data|values?)\Z"
)
_INDEXED = re.compile(r"\s?(?:[-+*/]?=(?!=)|\.\w|\(|\[\w+\]\s?=|\+\+)")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_BOLD_LINE = re.compile(rf"\s*(?:\*\*|__)[^*_\n]*[^*_\n{STOPS}](?:\*\*|__)[:：]?\s*")
_INNER_STOP = re.compile(rf"[{STOPS}](?=.{{3}})|\n", re.DOTALL)
_SIGNS = re.compile(r"[^\w\[\]]+")
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
    line that introduces others do not state anything by themselves (*states*).
    """

    start: int
    end: int
    text: str
    full: str
    marks: tuple[Mark, ...]
    states: bool


def marks_in(answer: str, labels: DocumentLabels, texts: Sequence[str] = ()) -> tuple[Mark, ...]:
    """
    Return the first `MAX_MARKS` marks of *answer* in order, unknown ones too.

    Brackets in a quotation that one of *texts* has are the document's own.
    """
    brackets = list(islice(_BRACKET.finditer(answer), MAX_BRACKETS))
    if not brackets:
        return ()
    code_or_formulas = sorted([*code_spans(answer), *map(re.Match.span, _FORMULA.finditer(answer))])
    quotes = [match.span() for match in QUOTATION.finditer(answer) if _BRACKET.search(match[0])]
    bare_texts = [_SIGNS.sub("", text) for text in texts] if quotes else []
    quoted_brackets = [
        span for span in quotes if any(_SIGNS.sub("", answer[slice(*span)]) in text for text in bare_texts)
    ]
    found = (
        _mark(answer, bracket, labels)
        for bracket in brackets
        if not (
            _around(code_or_formulas, bracket.start())
            or _around(quoted_brackets, bracket.start())
            or _is_index(answer, *bracket.span())
        )
    )
    return tuple(islice(filter(None, found), MAX_MARKS))


def _mark(answer: str, bracket: re.Match[str], labels: DocumentLabels) -> Mark | None:
    """Return the citation mark, None for a link, image or plain bracket; one that names a document always counts."""
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
    masked = _masked(answer, marks)
    sentences = [one for one in statements(masked) if _WORD.search(masked, one.start, one.end)]
    owned: dict[int, list[Mark]] = {}
    for mark in marks if sentences else ():
        owned.setdefault(_owner(mark, answer, sentences), []).append(mark)
    return [
        Claim(
            one.start,
            one.end,
            _without(answer, owned.get(place, ()), one),
            " ".join(texts_of(masked, one)) if one.above else "",
            tuple(owned.get(place, ())),
            states=place in owned or _may_state(masked[one.start : one.end], one),
        )
        for place, one in enumerate(sentences)
    ]


def _owner(mark: Mark, answer: str, sentences: Sequence[Statement]) -> int:
    """Return which sentence *mark* belongs to: it ends it, or stands in it, or before the first of a paragraph."""
    place = max(0, bisect_right(sentences, mark.start, key=attrgetter("start")) - 1)
    one, following = sentences[place], sentences[place + 1 : place + 2]
    is_first = mark.start >= one.end and EMPTY_LINE.search(answer, one.end, mark.start) is not None
    return place + 1 if is_first and following and "\n" not in answer[mark.end : following[0].start] else place


def _without(answer: str, marks: Sequence[Mark], one: Statement) -> str:
    """Return the sentence without its *marks* and the blanks in front of each."""
    pieces, at = [], one.start
    for mark in marks:
        if one.start <= mark.start < one.end:
            pieces.append(answer[at : mark.start].rstrip())
            at = mark.end
    return "".join((*pieces, answer[at : one.end])).strip()


def _may_state(line: str, one: Statement) -> bool:
    """Say whether a sentence may need proof: a heading, a header and a line that introduces a list do not."""
    is_title = one.kind == "heading" or line.startswith("#") or _BOLD_LINE.fullmatch(line) is not None
    return not (is_title or (one.is_part and (one.kind == "row" or line.rstrip(" *_").endswith((":", "：")))))


def _masked(answer: str, marks: Sequence[Mark]) -> str:
    """Return *answer* without marks and blocks of code, and without stops inside its quotations; places are kept."""
    pieces = list(answer)
    for mark in marks:
        before = answer[max(0, mark.start - 3) : mark.start].rstrip()[-1:]
        after = answer[mark.end : mark.end + 3].lstrip()[:1]
        # “…” [1] “…” [2]
        is_end = before in '”“»」』"' and after in '“„«「『"' and bool(before and after)
        pieces[mark.start : mark.end] = ("\n" if is_end else " ") * (mark.end - mark.start)
    for start, end in code_spans(answer):
        if _FENCE.match(answer, start):
            pieces[start:end] = "\n" * (end - start)
    starts = [mark.start for mark in marks]
    for match in QUOTATION.finditer("".join(pieces)):
        start, end = match.span()
        if "\n\n" not in match[0] and bisect_left(starts, start) == bisect_left(starts, end):
            pieces[start:end] = _INNER_STOP.sub(" ", match[0])
    return "".join(pieces)


def _around(spans: Sequence[Span], at: int) -> bool:
    """Say whether *at* is in one of *spans*, which are in order."""
    place = bisect_right(spans, at, key=itemgetter(0)) - 1
    return place >= 0 and at < spans[place][1]
