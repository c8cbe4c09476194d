"""
The places of one document: sentences, items of lists, rows of tables, each with what belongs to it.

A document is cut around the words that are looked for, never as a whole where it is long. What a place says begins at
its own beginning: a label before a colon belongs to every item behind it, the first cell to every cell of its row, and
neighbours are only joined where they are sentences of one paragraph.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, islice, pairwise, repeat, takewhile
from operator import attrgetter

from datafari_rag.core.citations.alignment import UnitRow
from datafari_rag.core.citations.units import BULLET, Unit, same, units_in
from datafari_rag.core.documents import HIGHLIGHTING, Extract
from datafari_rag.core.text.folding import Folded, aligned, fold, folded
from datafari_rag.core.text.language import Language
from datafari_rag.core.text.sentences import first_spans, small_sentences, spans
from datafari_rag.core.text.structure import (
    cells_of,
    has_tables,
    header_above,
    headings_in,
    is_row,
    named_cells,
    path_among,
)

BLOCK_CHARS = 4_000
"""So much of a text is cut into its places together; a sentence begins a block where one is near."""

MAX_BLOCK_CHARS = 6_000

SHORT_LINE_CHARS = 30
"""
A line that ends sooner, before its sentence does, was not wrapped: what follows is something else. Where a sentence
goes on in small letters to its full stop it was: links and code are left on lines of their own.
"""

MAX_FOUND, MAX_VISITED = 60, 5_000
"""So many occurrences of a word lead to a place in one document, and so many are looked at for that."""

NEAR_CHARS = 1_500
"""Around a word, in the folded text: its sentence and a neighbour, and what folding can make longer."""

MAX_SCAN_CHARS = 20_000
"""So much text is looked through in one call, which nothing can interrupt."""

MAX_MARKS = 4
"""A letter may have so many accents and vowel signs apart from it, less one."""

_FIRST_UNSPACED = "\u0e00"
"""From here on there are scripts in which a word may begin anywhere."""

MAX_LABEL_UNITS = 40
HEADING_REACH_CHARS = 4_000

_NUMBERED = re.compile(r"\(?[^\W_]{1,3}[.)]\s")
_LINE_END = re.compile(r"(?<![ \t\r])[ \t\r]*+\n++[ \t]*+")
_CUT_BEFORE = re.compile(r"(?<!\w)(?:…|\.\.\.)\s*\Z")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SourceSentence:
    """A sentence, an item or a row from *start* to *end*; *mark* is where its words begin, behind a bullet."""

    start: int
    end: int
    mark: int
    is_item: bool = False
    is_row: bool = False


class SourceText:
    """One document as it is looked into: its stored *text*, and the words and places that were found so far."""

    def __init__(self, extract: Extract) -> None:
        """Remember *extract*; nothing is read yet."""
        self.extract = extract
        self.text = extract.text if extract.document.field == HIGHLIGHTING else extract.document.text
        self.title = extract.document.title or ""
        self.names = folded(self.title)
        self._units: dict[tuple[int, str], list[Unit]] = {}
        self._cut: dict[int, list[SourceSentence]] = {}
        self._torn: set[int] = set()  # where a sentence that is longer than a block is cut
        self._folds: dict[tuple[int, int], str] = {}
        self._rows: dict[tuple[int, int, str, str], list[UnitRow]] = {}

    def has(self, words: str) -> bool:
        """Say whether the text has *words*, at whatever place, but for case and typography."""
        return self.count(folded(words)) > 0

    def count(self, word: str) -> int:
        """Return how often *word*, folded, stands in the text, inside of other words too."""
        text = self._folded.text
        return sum([text.count(word, *stretch) for stretch in _scanned(word, text)])

    def around(self, word: str, words: Sequence[str] = ()) -> Iterator[int]:
        """
        Yield where a word begins with *word*, with all of *words* near it or in the title; all folded.

        At most `MAX_FOUND` places. Of an item or a row what belongs to it may be far above: there nothing need be near.
        """
        text, room = self._folded.text, MAX_FOUND
        for at in islice(_occurrences(word, text), MAX_VISITED):
            if at and word[0].isalnum() and word[0] < _FIRST_UNSPACED and text[at - 1].isalnum():
                continue
            near = text[max(0, at - NEAR_CHARS) : at + NEAR_CHARS] if words else ""
            is_there = all(other in near or other in self.names for other in words)
            stored = self._stored(at)
            if stored is not None and (is_there or self._is_apart(stored)):
                yield stored
                room -= 1
                if not room:
                    return

    def sentence_at(self, at: int) -> tuple[int, int]:
        """Return the number of the block and of the sentence in it that *at* is in or behind."""
        block = bisect_right(self._blocks, at) - 1
        # A text may begin with blanks.
        return block, max(0, bisect_right(self.sentences(block), at, key=attrgetter("start")) - 1)

    def sentences(self, block: int) -> list[SourceSentence]:
        """Return the sentences of a block, in order."""
        if block not in self._cut:
            ends = [*self._blocks[1:], len(self.text)]
            self._cut[block] = list(self._sentences(self._blocks[block], ends[block]))
        return self._cut[block]

    def names_columns(self, block: int, number: int) -> bool:
        """Say whether the sentence is the first row of a table."""
        sentence = self.sentences(block)[number]
        return sentence.is_row and header_above(self.text, sentence.start) is None

    def may_say(self, block: int, number: int, words: Sequence[str]) -> bool:
        """
        Say whether the sentence and its neighbours have all of *words*, folded.

        What names the subject of an item, a row or a value may be far above: these may say anything.
        """
        sentences = self.sentences(block)
        sentence = sentences[number]
        if sentence.is_item or sentence.is_row or ":" in self.text[sentence.start : sentence.end]:
            return True
        near_text = self.folded_text(block, self.beside(block, number, 1))
        return all(word in near_text or word in self.names for word in words)

    def beside(self, block: int, number: int, reach: int) -> range:
        """Return the numbers of the sentence and of its neighbours in the block, *reach* on each side."""
        return range(max(0, number - reach), min(len(self.sentences(block)), number + reach + 1))

    def folded_text(self, block: int, numbers: Sequence[int]) -> str:
        """Return the sentences *numbers*, folded: what is not in there none of them says."""
        # Blanks part them: no word is put together of two.
        return " ".join([self._fold_of(block, number) for number in numbers])

    def is_seen(self, start: int, end: int) -> bool:
        """Say whether the model saw all from *start* to *end*."""
        return any(low <= start and end <= high for low, high in self._stretches)

    def rows(self, block: int, number: int, language: Language) -> list[UnitRow]:
        """Return what the sentence says, as rows of units: alone, as cells, with its label, under its heading."""
        key = (block, number, "own", language.code)
        if key not in self._rows:
            self._rows[key] = [row for row in self._own_rows(block, number, language) if row.units]
        return self._rows[key]

    def pairs(self, block: int, number: int, language: Language) -> list[UnitRow]:
        """Return the sentence together with each neighbour in its paragraph, two sentences a row."""
        key = (block, number, "pair", language.code)
        if key not in self._rows:
            sentences = self.sentences(block)
            pairs = pairwise(self.beside(block, number, 1))
            self._rows[key] = [
                self._joined(sentences[place], sentences[other], language)
                for place, other in pairs
                if self._are_neighbours(sentences[place], sentences[other])
            ]
        return self._rows[key]

    def window(self, block: int, numbers: Sequence[int], language: Language) -> UnitRow:
        """Return all that the sentences *numbers* say, as one row."""
        sentences = self.sentences(block)
        return UnitRow([unit for number in numbers for unit in self.own_units(sentences[number], language)], language)

    def under(self, block: int, number: int) -> Iterator[int]:
        """Yield the sentence, and those behind it whose label it is."""
        yield number
        label, last = self.sentences(block)[number], len(self.sentences(block))
        if self._is_label(label):
            yield from takewhile(lambda other: self._label(block, other) is label, range(number + 1, last))

    def label_at(self, at: int) -> str:
        """Return the label, with its colon, under which what begins at *at* stands; empty without one."""
        label = self._label(*self.sentence_at(at))
        return "" if label is None else self.text[label.mark : label.end]

    def lines(self, start: int, end: int) -> list[Span]:
        """Return what is from *start* to *end*, without the line ends at which it is several sentences or items."""
        stretches: list[Span] = []
        begin = start
        for sentence in self.sentences(self.sentence_at(start)[0]):
            if sentence.start < end:
                above, line_end, indent = self.text[begin : sentence.start].rpartition("\n")
                if line_end and not indent.strip():
                    stretches.append((begin, begin + len(above)))
                    begin = sentence.start
        return [*stretches, (begin, end)]

    def run(self, claim: UnitRow, text: str, block: int, first: int) -> Span | None:
        """
        Return the place of the whole sentences from *first* on that *claim*, the units of *text*, is one by one.

        Where one of them ends its line *text* has a line end as well: neighbours of a list are no sentence. None where
        it is not so, and under a label, which belongs to the first of them.
        """
        sentences, count = self.sentences(block), 0
        if self._label(block, first) is not None:
            return None
        for before, sentence in pairwise((sentences[first], *sentences[first:])):
            own = self.own_units(sentence, claim.language)
            there = claim.units[count : count + len(own)]
            if (
                self._is_torn(sentence)
                or len(there) < len(own)
                or not all(map(same, there, own, repeat(claim.language)))
            ):
                return None
            if (
                count
                and own
                and ("\n" in self.text[before.end : sentence.start])
                != ("\n" in text[claim.units[count - 1].end : there[0].start])
            ):
                return None
            count += len(own)
            if count == len(claim.units):
                return sentences[first].mark, sentence.end
        return None

    def own_units(self, sentence: SourceSentence, language: Language) -> list[Unit]:
        """Return the units of one sentence, item or row."""
        key = sentence.mark, language.code
        if key not in self._units:
            self._units[key] = units_in(self.text, sentence.mark, sentence.end, language)
        return self._units[key]

    @cached_property
    def _folded(self) -> Folded:
        return self._in_place or fold(self.text)

    @cached_property
    def _in_place(self) -> Folded | None:
        return aligned(self.text)

    @cached_property
    def _stretches(self) -> tuple[Span, ...]:
        if self.extract.document.field == HIGHLIGHTING:
            return ((0, len(self.text)),)
        return self.extract.origins.stretches()

    @cached_property
    def _blocks(self) -> list[int]:
        """Return where the blocks begin."""
        starts, at = [0], 0
        while len(self.text) - at > MAX_BLOCK_CHARS:
            low, high = at + BLOCK_CHARS, at + MAX_BLOCK_CHARS
            paragraph = self.text.find("\n\n", low, high) + 1
            stretches = [] if paragraph else first_spans(self.text[low:high], 2, longest=len(self.text))
            if paragraph or len(stretches) == 2:
                at = paragraph or low + stretches[1][0]
            else:
                words, _, behind = self.text[low:high].partition(" ")
                at = high - len(behind.lstrip())
                self._torn.update((low + len(words), at))
            starts.append(at)
        return starts

    def _is_torn(self, sentence: SourceSentence) -> bool:
        return not self._torn.isdisjoint((sentence.start, sentence.end))

    def _fold_of(self, block: int, number: int) -> str:
        if (block, number) not in self._folds:
            sentence = self.sentences(block)[number]
            self._folds[block, number] = folded(self.text[sentence.start : sentence.end])
        return self._folds[block, number]

    def _stored(self, at: int) -> int | None:
        """Return where the character *at* of the folded text stands; None where it is not one by itself."""
        if self._in_place is not None:
            return at
        spans_ = (self._folded.span(at, at + marks + 1) for marks in range(MAX_MARKS))
        return next((span[0] for span in spans_ if span is not None), None)

    def _is_apart(self, at: int) -> bool:
        """Say whether the line at *at* may be an item of a list or a row of a table."""
        before, behind = self.text[max(0, at - NEAR_CHARS) : at], self.text[at : at + NEAR_CHARS]
        line = before.rpartition("\n")[2] + behind.partition("\n")[0]
        return "|" in line or "\t" in line or BULLET.match(line) is not None or _NUMBERED.match(line) is not None

    def _sentences(self, low: int, high: int) -> Iterator[SourceSentence]:
        may_have_rows = has_tables(self.text, low, high)
        # However long: what is cut off could turn what is left.
        for start, end in spans(self.text[low:high], longest=len(self.text)):
            start, end = start + low, end + low
            if may_have_rows and is_row(self.text[start:end]):
                yield SourceSentence(start, end, start, is_row=True)
                continue
            lines = self._lines(start, end) if "\n" in self.text[start:end] else ((start, end),)
            has_stops = "." in self.text[start:end].rstrip(".")
            for first, last in small_sentences(self.text, lines) if has_stops else lines:
                bullet = BULLET.match(self.text, first, last)
                mark = bullet.end() if bullet else first
                is_item = mark > first or _NUMBERED.match(self.text, first, last) is not None
                yield SourceSentence(first, last, mark, is_item)

    def _lines(self, start: int, end: int) -> Iterator[Span]:
        """Yield the parts of a sentence that stand on lines of their own: those of wrapped lines are one."""
        begin, line = start, self.text.rfind("\n", 0, start) + 1
        is_prose = self.text[end - 1] in ".!?" and ":" not in self.text[start:end]
        for match in _LINE_END.finditer(self.text, start, end):
            is_short = match.start() - line < SHORT_LINE_CHARS
            line = match.end()
            is_short = is_short and not (is_prose and self.text[line].islower())
            if is_short or BULLET.match(self.text, line, end):
                yield begin, match.start()
                begin = line
        yield begin, end

    def _own_rows(self, block: int, number: int, language: Language) -> Iterator[UnitRow]:
        sentence = self.sentences(block)[number]
        asking = ("?", "？", "؟", ";") if language.code == "el" else ("?", "？", "؟")
        if self.text[sentence.mark : sentence.end].rstrip("\"'»”’) ").endswith(asking):
            return
        if sentence.is_row:
            for cells in self._cells(sentence, language):
                yield UnitRow(cells, language)
            return
        own = self.own_units(sentence, language)
        if not own:
            return
        begins, ends = self._edges(sentence)
        above = self._label(block, number)
        label = self.own_units(above, language)[-MAX_LABEL_UNITS:] if above is not None else []
        if label:
            yield UnitRow([*label, own[0]._replace(before=":", is_first=True), *own[1:]], language, ends=ends)
            return
        yield UnitRow(own, language, begins=begins, ends=ends)
        subject = self._subject(block, number, own, language)
        if subject:
            yield UnitRow(
                [*subject, *own[1:]] if own[0].word in language.pronouns else [*subject, *own], language, ends=ends
            )

    def _cells(self, row: SourceSentence, language: Language) -> Iterator[list[Unit]]:
        """Yield the cells of a row as units, without and with the names of their columns."""
        cells = cells_of(self.text, row.start, row.end)
        yield [unit for span in cells for unit in _with_before(units_in(self.text, *span, language), "|")]
        named = named_cells(self.text, row.start, row.end)
        if named:
            key = units_in(self.text, *cells[0], language)
            rest = [
                unit
                for *_, name, cell in named
                for unit in (
                    *_with_before(units_in(self.text, *name, language), "|"),
                    *_with_before(units_in(self.text, *cell, language), ":"),
                )
            ]
            yield [*key, *rest]

    def _edges(self, sentence: SourceSentence) -> tuple[bool, bool]:
        """Say whether *sentence* begins and ends where its sentence does: a snippet may be cut out of one."""
        # Dots that end a word end its sentence: those that stand apart were put for what is cut off.
        is_torn = self._is_torn(sentence)
        begins = not is_torn and not _CUT_BEFORE.search(self.text, max(0, sentence.start - 5), sentence.start)
        ends = not is_torn and not is_cut(self.text[sentence.start : sentence.end])
        if self.extract.document.field == HIGHLIGHTING:
            first, last = self.text[sentence.mark], self.text[sentence.end - 1]
            return begins and not first.islower(), ends and not last.isalnum()
        return begins, ends

    def _label(self, block: int, number: int) -> SourceSentence | None:
        """Return the label that the sentence stands under, None where there is none."""
        sentences = self.sentences(block)
        above = reversed(sentences[:number])
        label = next(dropwhile(attrgetter("is_item"), above) if sentences[number].is_item else above, None)
        is_under = label is not None and self._is_label(label) and not sentences[number].is_row
        return label if is_under else None

    def _is_label(self, sentence: SourceSentence) -> bool:
        return self.text[sentence.start : sentence.end].rstrip("*_ ").endswith((":", "："))

    def _subject(self, block: int, number: int, own: Sequence[Unit], language: Language) -> list[Unit]:
        """
        Return the units of the heading, else of the title, that says what the sentence is about; empty for most.

        A sentence has one that begins with a pronoun right behind the heading, and so has a line "key: value".
        """
        sentence = self.sentences(block)[number]
        line = self.text[sentence.mark : sentence.end]
        is_value = ":" in line and "\n" not in line and ":" in [unit.before for unit in own]
        if not is_value and own[0].word not in language.pronouns:
            return []
        low = sentence.start - HEADING_REACH_CHARS
        low = self.text.find("\n", low, sentence.start) + 1 if low > 0 else 0
        path = path_among(headings_in(self.text, low, sentence.start), sentence.start)
        above = self.text[path[-1].end if path else 0 : sentence.start].strip(" \n#")
        if above and not is_value:
            return []
        units = (
            units_in(self.text, path[-1].start, path[-1].end, language)
            if path
            else units_in(self.title, 0, len(self.title), language)
        )
        return [unit._replace(start=sentence.start, end=sentence.start) for unit in units]

    def _joined(self, sentence: SourceSentence, other: SourceSentence, language: Language) -> UnitRow:
        first, second = self.own_units(sentence, language), self.own_units(other, language)
        begins, ends = self._edges(sentence)[0], self._edges(other)[1]
        return UnitRow([*first, *_with_before(second, ",")], language, begins=begins, ends=ends, is_pair=True)

    def _are_neighbours(self, sentence: SourceSentence, other: SourceSentence) -> bool:
        between = self.text[sentence.end : other.start]
        is_prose = not (sentence.is_row or other.is_row or sentence.is_item or other.is_item)
        return is_prose and "\n" not in between and self.text[sentence.end - 1] not in ":?："


def is_cut(text: str) -> bool:
    """Say whether *text* ends with dots, which stand for what is left out."""
    return text.rstrip(" )]\"'»”’“").endswith(("…", "..."))


def _scanned(word: str, text: str) -> Iterator[Span]:
    """Yield the stretches of *text* in which *word* is looked for one by one: it begins in the first characters."""
    # A word of nothing but invisible characters stands nowhere.
    for start in range(0, len(text), MAX_SCAN_CHARS) if word else ():
        yield start, start + MAX_SCAN_CHARS + len(word) - 1


def _occurrences(word: str, text: str) -> Iterator[int]:
    """Yield where *word* stands in *text*."""
    for start, end in _scanned(word, text):
        at = text.find(word, start, end)
        while at >= 0:
            yield at
            at = text.find(word, at + 1, end)


def _with_before(units: Sequence[Unit], before: str) -> list[Unit]:
    """Return *units* with *before* in front of the first."""
    return [units[0]._replace(before=before), *units[1:]] if units else []
