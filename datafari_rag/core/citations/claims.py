"""
Which words of an answer each of its marks belongs to.

A mark speaks for its whole sentence: the one that it stands in, else the one before it. Only a mark that begins a
paragraph speaks for what follows. Brackets in code, in links' targets and in words that the answer quotes are no marks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from operator import attrgetter, itemgetter

from datafari_rag.core.citations.labels import MAX_MARK_CHARS, DocumentLabels
from datafari_rag.core.citations.quotations import quotations
from datafari_rag.core.text.sentences import code_spans, small_sentences, spans

MAX_MARKS = 500
"""So many marks of an answer are resolved; those behind them are text."""

MAX_BRACKETS = 2000
"""So many brackets are looked at: as many as the filter of links lets through."""

_OPENER = re.compile(r"[\[【［]")
_CLOSERS = {"[": "]", "【": "】", "［": "］"}
_BRACKET_OR_END = re.compile(r"[\[\]【】［］\n]")
_TARGET = re.compile(r"\((?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)")
_NO_MARK = re.compile(r"\W*|[xX]|sic|\w{1,2}(?<!\d)|[ivxlc]+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]")
_EMPTY_LINE = re.compile(r"\n[^\S\n]*\n")
_STRIKE = re.compile(r"(?<![~\\])(?P<tildes>~{1,2})(?!~)|<(?P<ends>/)?(?:s|del|strike)\b[^<>]*>", re.IGNORECASE)
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
    """The claim of a mark: its words."""

    text: str


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
    marks: list[Mark] = []
    at = 0
    for opener in islice(_OPENER.finditer(answer), MAX_BRACKETS):
        start = opener.start()
        if start < at or len(marks) == MAX_MARKS or _span_around(code, start) or _span_around(own, start):
            continue
        mark = _mark_at(answer, start, closings, labels)
        if mark is not None:
            at = mark.end
            if not (_span_around(quotes, start) and is_quoted(answer[start : mark.end])):
                marks.append(mark)
    return tuple(marks)


def claims_of(answer: str, marks: Sequence[Mark], has_content: Callable[[str], bool]) -> tuple[Claim, ...]:
    """
    Return the claim of each of *marks*, those of *answer* in order: empty where its sentence states nothing.

    *has_content* says whether some words state anything.
    """
    if not marks:
        return ()
    page = _Sentences(answer, marks)
    worded = [span for span in page.spans if _WORD.search(answer, *span)]
    spans_ = [_sentence_of(mark, answer, worded) for mark in marks]
    claims = {span: span and page.claim(span, has_content) for span in dict.fromkeys(spans_)}
    return tuple(claims[span] or Claim("") for span in spans_)


def stated_in(
    text: str, labels: Sequence[str], has_content: Callable[[str], bool]
) -> tuple[tuple[tuple[int, int], Claim | None], ...]:
    """
    Return each sentence of *text*: its place there, and its claim, marks left out; None where it states nothing.

    *labels* are those that a mark may name; *has_content* is as in `claims_of`.
    """
    page = _Sentences(text, marks_in(text, DocumentLabels(labels), lambda words: False))
    return tuple((span, page.claim(span, has_content)) for span in page.spans)


class _Sentences:
    """The sentences of a text, as *spans* without white space around them, and what each claims."""

    def __init__(self, text: str, marks: Sequence[Mark]) -> None:
        self._text, self._marks, self._struck = text, marks, _struck(text)
        masked = _masked(text, marks, [span for span in quotations(text) if not _marks_between(marks, *span)])
        # However long: what is cut off could turn what is left.
        self.spans = small_sentences(masked, spans(masked, longest=len(text)))

    def claim(self, span: tuple[int, int], has_content: Callable[[str], bool]) -> Claim | None:
        """Return the claim of the sentence *span*, None where it states nothing."""
        words = _without(self._text, _marks_between(self._marks, *span), *span)
        if not has_content(words):
            return None
        # With words struck out it says one thing where these are, and another where a reader sees the signs.
        return Claim("") if any(self._struck[slice(*span)]) else Claim(words)


def _struck(text: str) -> bytearray:
    """Return one for each character of *text* that is struck out, in Markdown or HTML and not in code, else zero."""
    stretches: list[slice] = []
    code = code_spans(text)
    opened: dict[str, int] = {}
    for sign in _STRIKE.finditer(text):
        kind = sign["tildes"] or "<"
        start = opened.get(kind)
        if _span_around(code, sign.start()):
            continue
        if start is not None and (sign["ends"] or _may_end(text, sign)):
            stretches.append(slice(start, sign.end()))
            del opened[kind]
        elif start is None and not sign["ends"] and not text[sign.end() : sign.end() + 1].isspace():
            opened[kind] = sign.start()
    if "<" in opened:
        stretches.append(slice(opened["<"], None))
    struck = bytearray(len(text))
    for stretch in stretches:
        struck[stretch] = b"\1" * len(struck[stretch])
    return struck


def _may_end(text: str, tildes: re.Match[str]) -> bool:
    """Say whether *tildes* may close what is struck out: there is a word or a sign before, and no blank."""
    before, after = text[tildes.start() - 1], text[tildes.end() : tildes.end() + 1]
    return before.isalnum() or not (before.isspace() or after.isalnum())


def _sentence_of(mark: Mark, text: str, sentences: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """
    Return which of *sentences*, those with words, *mark* belongs to; None where no words are before it.

    Between two of them it belongs to the first, unless it begins a paragraph in which words follow on its line.
    """
    place = bisect_right(sentences, mark.start, key=itemgetter(0))
    before = sentences[place - 1] if place else None
    following = sentences[place] if place < len(sentences) else None
    if following is None or "\n" in text[mark.end : following[0]]:
        return before
    is_beginning = before is None or _EMPTY_LINE.search(text, before[1], mark.start) is not None
    return following if is_beginning else before


def _marks_between(marks: Sequence[Mark], start: int, end: int) -> Sequence[Mark]:
    """Return those of *marks*, which are in order and apart, that are from *start* to *end* or reach into that."""
    first = bisect_right(marks, start, key=attrgetter("end"))
    return marks[first : bisect_left(marks, end, lo=first, key=attrgetter("start"))]


def _without(text: str, marks: Sequence[Mark], start: int, end: int) -> str:
    """Return the text from *start* to *end* without *marks* and the blanks in front of each."""
    pieces, at = [], start
    for mark in marks:
        pieces.append(text[at : mark.start].rstrip())
        at = mark.end
    return "".join((*pieces, text[at:end])).strip()


def _masked(answer: str, marks: Sequence[Mark], quotes: Sequence[tuple[int, int]]) -> str:
    """
    Return *answer* without marks, and without what would end a sentence inside of a quotation; offsets stay.

    A quotation with its marks is a sentence of its own where another quotation follows.
    """
    pieces = list(answer)
    for start, end in quotes:
        pieces[start : end - 1] = _STOP.sub("x", answer[start : end - 1])
    for mark in marks:
        pieces[mark.start : mark.end] = " " * (mark.end - mark.start)
    for (_, end), (start, _) in pairwise(quotes):
        between = slice(end + 1, start - 1)
        if answer[between].strip() and not "".join(pieces[between]).strip():
            pieces[end + 1 : end + 3] = "\n\n"
    return "".join(pieces)


def _closings(answer: str) -> dict[int, int]:
    """Return for each opening bracket where it is closed on its line, brackets of one kind within each other."""
    closings: dict[int, int] = {}
    waiting: dict[str, list[int]] = {closer: [] for closer in _CLOSERS.values()}
    for bracket in _BRACKET_OR_END.finditer(answer):
        sign = bracket.group()
        if sign == "\n":
            waiting = {closer: [] for closer in _CLOSERS.values()}
        elif sign in _CLOSERS:
            waiting[_CLOSERS[sign]].append(bracket.start())
        elif waiting[sign]:
            closings[waiting[sign].pop()] = bracket.start()
    return closings


def _mark_at(answer: str, at: int, closings: Mapping[int, int], labels: DocumentLabels) -> Mark | None:
    """Return the mark that opens at *at*, None where none does: one that names a document may be a link's text."""
    end = closings.get(at)
    if end is None or end - at > MAX_MARK_CHARS + 1:
        return None
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
    place = bisect_right(spans_, at, key=itemgetter(0)) - 1
    return spans_[place] if place >= 0 and at < spans_[place][1] else None
