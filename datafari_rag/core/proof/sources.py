"""
One document as it is looked into: cut into statements once, with the words that lead to each.

Only what stands around the parts that the model saw is cut. What a statement would be beyond an edge that is no edge
of the stored text is not known: there it is a part.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import NamedTuple

from datafari_rag.core.documents import HIGHLIGHTING, NO_ORIGINS, Extract
from datafari_rag.core.proof.statements import EMPTY_LINE, Statement, statements
from datafari_rag.core.proof.words import ROOTS, joined, line_of, root, rough_words
from datafari_rag.core.text.structure import cells_of
from datafari_rag.core.text.tokens import Token, tokens

WHOLE_CHARS, REACH_CHARS = 40_000, 2_000
"""A longer text is cut into statements only this far around what the model saw."""

MAX_WORK = 2_000_000
"""Words read for one text, and places that they lead to: some seconds."""

PLACES_OF_WORD = 16
"""Places that are counted at the price of one word read."""

PREVIEW = "preview_content"
"""The field of documents whose text is the beginning of the stored one."""

_JOINT = re.compile(r"\s…\s")

QUESTIONS = "?"
"""The key of the questions of a document among its places."""


class Work:
    """Counts what the documents of one text cost together, up to *most*; behind that nothing is proved."""

    def __init__(self, most: int = MAX_WORK) -> None:
        """Count from nothing."""
        self.left = most

    def take(self, units: int) -> bool:
        """Count *units*, and say whether they may be spent."""
        self.left -= units
        return self.left >= 0


class Region(NamedTuple):
    """A stretch of a text that is cut: *is_begun* and *is_ended* say whether its edges are edges of the stored text."""

    start: int
    end: int
    is_begun: bool
    is_ended: bool


class Source:
    """The statements of one document, those that stand together next to each other."""

    def __init__(self, extract: Extract, work: Work) -> None:
        """Remember *extract*; nothing is read yet."""
        self.extract, self.work = extract, work
        self.text = extract.text if extract.document.field == HIGHLIGHTING else extract.document.text
        self._tokens: dict[int, list[Token]] = {}
        self._lines: dict[int, str] = {}
        self._full: dict[int, str] = {}
        self._roots: dict[int, frozenset[str]] = {}
        self._near: dict[str, set[int]] = {}

    @cached_property
    def statements(self) -> Sequence[Statement]:
        """Return the statements in order."""
        return [one for run in self._runs for one in run]

    @cached_property
    def _runs(self) -> list[list[Statement]]:
        """Return the statements of each region."""
        runs, number = list[list[Statement]](), 0
        for region in self._regions():
            run = statements(self.text, region.start, region.end)
            moved = [one._replace(context=tuple(number + above for above in one.context)) for one in run]
            if not region.is_begun:
                # What introduces a list, or names the columns of a table, may stand above.
                for place, one in enumerate(run):
                    moved[place] = moved[place]._replace(is_part=True)
                    if one.kind in ("sentence", "heading"):
                        break
            if moved and not region.is_ended:
                moved[-1] = moved[-1]._replace(is_part=True)
            runs.append(moved)
            number += len(moved)
        return runs

    def _regions(self) -> Iterator[Region]:
        """Yield what is cut, in order: parts of the stored text that the model saw some of, or what is near that."""
        text, document = self.text, self.extract.document
        if document.field == HIGHLIGHTING:
            edges = [0, *(edge for joint in _JOINT.finditer(text) for edge in joint.span()), len(text)]
            yield from (Region(low, high, False, False) for low, high in zip(edges[::2], edges[1::2], strict=True))
            return
        parts = [Region(run.start, run.start + run.length, run.stored == 0, False) for run in document.origins.runs]
        if document.origins is NO_ORIGINS:
            parts = [Region(0, len(text), True, document.field != PREVIEW)]
        seen = sorted(self.extract.origins.stretches()) or [(0, len(text))]
        for part in parts:
            reached = part.start
            for start, end in seen:
                low, high = max(reached, start - REACH_CHARS), min(part.end, end + REACH_CHARS)
                if start >= part.end or end <= part.start or high <= reached:
                    continue
                if part.end - part.start <= WHOLE_CHARS:
                    low, high = part.start, part.end
                elif low > reached:
                    # A statement begins with a line, where one begins before what was seen.
                    low = text.find("\n", low, start) + 1 or low
                reached = high
                yield Region(low, high, part.is_begun and low == part.start, part.is_ended and high == part.end)

    def is_next(self, number: int) -> bool:
        """Say whether the statement with *number* and the one before it are neighbours."""
        return 0 < number < len(self.statements) and number not in self._firsts

    @cached_property
    def _firsts(self) -> frozenset[int]:
        return frozenset(accumulate(map(len, self._runs), initial=0))

    def near(self, word: str) -> Collection[int]:
        """Return the numbers of the statements that have *word*, a root, within one statement of them."""
        if word not in self._near:
            places = self.places.get(word, ())
            self._near[word] = {other for number in places for other in (number - 1, number, number + 1)}
        return self._near[word]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Return for each root of a rough word the numbers of the statements that have it, or what opens them has."""
        places: dict[str, list[int]] = {}
        own: list[frozenset[str]] = []
        for number, one in enumerate(self.statements):
            words = frozenset([ROOTS[word] for word in rough_words(self.text[one.start : one.end])])
            own.append(words)
            if one.is_question:
                words = frozenset((QUESTIONS,))
            elif one.context:
                words = words.union(*[own[above] for above in one.context])
            for word in words:
                if word in places:
                    places[word].append(number)
                else:
                    places[word] = [number]
        return places

    def number_at(self, at: int) -> int | None:
        """Return the number of the statement that the character *at* is in, None where it is in none."""
        number = bisect_right(self.statements, at, key=attrgetter("start")) - 1
        return number if number >= 0 and at < self.statements[number].end else None

    def text_of(self, number: int) -> str:
        """Return the text of a statement."""
        one = self.statements[number]
        return self.text[one.start : one.end]

    def tokens(self, number: int) -> list[Token]:
        """Return the words of a statement, their places counted from its start."""
        if number not in self._tokens:
            self._tokens[number] = tokens(self.text_of(number))
            self.work.take(len(self._tokens[number]))
        return self._tokens[number]

    def roots(self, number: int) -> frozenset[str]:
        """Return the roots of the words of a statement and of what introduces it; none of a question."""
        if number not in self._roots:
            one = self.statements[number]
            numbers = () if one.is_question else (*one.context, number)
            self._roots[number] = frozenset([root(token) for each in numbers for token in self.tokens(each)])
        return self._roots[number]

    def line(self, number: int) -> str:
        """Return the words of a statement in a line, as `line_of` has them."""
        if number not in self._lines:
            self._lines[number] = line_of(self.text_of(number), self.tokens(number))
        return self._lines[number]

    def full_line(self, number: int) -> str:
        """Return the words of a statement with what introduces it, the cells of a row behind the names of columns."""
        if number not in self._full:
            self._full[number] = joined([line_of(text, tokens(text)) for text in self.full_texts(number)])
        return self._full[number]

    def full_texts(self, number: int) -> list[str]:
        """Return what the words of a statement with what introduces it stand in, in their order."""
        cells = [text for pair in self.named_cells(number) for text in pair]
        context = self.statements[number].context if self.statements[number].kind != "row" else ()
        return cells or [self.text_of(each) for each in (*context, number)]

    def context(self, number: int) -> str:
        """Return what introduces a statement: lines above a list, the header of a table; empty where nothing does."""
        return "\n".join(map(self.text_of, self.statements[number].context))

    def named_cells(self, number: int) -> list[tuple[str, str]]:
        """Return the cells of a row, each with the name of its column before it; empty where those are not sure."""
        row = self.statements[number]
        if row.kind != "row" or not row.context:
            return []
        header = self.statements[row.context[0]]
        names, cells = cells_of(self.text, header.start, header.end), cells_of(self.text, row.start, row.end)
        if len(names) != len(cells):
            return []
        pairs = zip(names, cells, strict=True)
        return [(self.text[slice(*name)], self.text[slice(*cell)]) for name, cell in pairs if cell[0] < cell[1]]

    def is_whole(self, number: int) -> bool:
        """Say whether a statement is whole by itself: nothing introduces it, and it introduces nothing."""
        one = self.statements[number]
        return not (one.context or one.is_part or one.is_question)

    def is_prose(self, first: int, last: int) -> bool:
        """Say whether the statements *first* to *last* are sentences of one paragraph, each whole by itself."""
        numbers = range(first, last + 1)
        if not all(self.statements[number].kind == "sentence" and self.is_whole(number) for number in numbers):
            return False
        gaps = pairwise([self.statements[number] for number in numbers])
        is_apart = any(EMPTY_LINE.search(self.text, one.end, other.start) is not None for one, other in gaps)
        return not is_apart and all(map(self.is_next, numbers[1:]))
