"""
The text that the model saw of one document, and the stored text behind it, made ready for looking into.

All of it is made when it is first needed: most documents prove nothing of most claims, and are only searched for words.
"""

from __future__ import annotations

import re
from functools import cached_property

from datafari_rag.core.citations.proof.wording import Wording
from datafari_rag.core.documents import Extract
from datafari_rag.core.passages.extracts import HIGHLIGHTING
from datafari_rag.core.text.folding import Folded, aligned, fold, folded, folds_in_place
from datafari_rag.core.text.sentences import bounds_around, index_at, spans
from datafari_rag.core.text.tables import has_tables, is_row, named_cells

WHOLE_CHARS = 6_000
"""A text up to this length is cut into its sentences as a whole: that costs less than three places in it."""

CELL_CHARS = 500
"""Length of the stretches whose sentences are cut together."""

MAX_CUT_ALONE, MAX_CUT_CHARS = 8, 200_000
"""Where sentences are longer than such a stretch, and so many places were cut each alone, all of such a text is cut."""

MAX_LONG_CUT_ALONE = 80
"""So many places of a longer text are cut alone, and no more."""

UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""What may begin a word anywhere: scripts that put no spaces between words, or join endings to them."""

Span = tuple[int, int]

Window = tuple[Span, ...]
"""A sentence, two neighbours, or a cell of a table with the names of its row and its column: of the stored text."""


class SeenText:
    """
    One document's text: *extract* as the model saw it, *stored* as it is kept.

    Places are those of the stored text, unless they are said to be of the text seen.
    """

    def __init__(self, extract: Extract, language: str) -> None:
        """Remember *extract*; *language* is the answer's."""
        self.extract = extract
        self.stored = extract.text if extract.document.field == HIGHLIGHTING else extract.document.text
        self.language = language
        self._cut_alone = 0
        self._cells: dict[int, list[Span]] = {}
        self._wordings: dict[Window, Wording] = {}
        self._rows: dict[Span, list[Window]] = {}
        self._row_of: dict[Window, Span] = {}

    @cached_property
    def folded(self) -> Folded:
        """Return the text seen, folded."""
        return fold(self.extract.text)

    @cached_property
    def sought(self) -> Folded:
        """Return the text in which words are looked for: what does not ask for signs and blanks need not be folded."""
        return aligned(self.extract.text) or self.folded

    @cached_property
    def names(self) -> Wording:
        """Return label and title."""
        names = dict.fromkeys((self.extract.label, self.extract.document.title or ""))
        return Wording(" ".join(names), self.language)

    @cached_property
    def folded_names(self) -> tuple[str, str]:
        """Return label and title, folded."""
        return folded(self.extract.label), folded(self.extract.document.title or "")

    @cached_property
    def known(self) -> frozenset[str]:
        """Return the words of title and label, which a sentence of the document need not repeat."""
        return frozenset(self.names.facts.words)

    def lacks(self, beginning: str, word: str) -> bool:
        """Say whether no sentence can hold *word*, in any form, which begins so, and the title does not know it."""
        return beginning not in self.sought.text and not (beginning in self.names.folded and word in self.known)

    @cached_property
    def label(self) -> str:
        """Return the label in small letters."""
        return self.extract.label.casefold()

    @cached_property
    def has_rows(self) -> bool:
        """Say whether there may be a table at all."""
        return has_tables(self.stored, 0, len(self.stored))

    def wording(self, window: Window) -> Wording:
        """Return the words of *window*: of neighbours with what stands between them, of cells line by line."""
        if window not in self._wordings:
            start, end = window[0][0], window[-1][1]
            if self.is_cell(window):
                text, plain = "\n".join(self.stored[low:high] for low, high in window), None
            else:
                text, plain = self.stored[start:end], self.plain(start, end)
            self._wordings[window] = Wording(text, self.language, plain)
        return self._wordings[window]

    def plain(self, start: int, end: int) -> str | None:
        """Return the folded words from *start* to *end* where they can be cut out of a text that is folded already."""
        if not self._is_in_place:
            return None
        found = self.sought.text[start:end]
        return None if "  " in found else found

    def rough(self, start: int, end: int) -> str:
        """Return the words from *start* to *end* as they are looked for: blanks in a row may stay."""
        return self.sought.text[start:end] if self._is_in_place else self.wording(((start, end),)).folded

    def stored_place(self, at: int) -> int | None:
        """Return where the character *at* of the text that is searched stands; None where it stands nowhere."""
        if self._is_in_place:
            return at
        span = self.sought.span(at, at + 1)
        return None if span is None else self.extract.origins.at(span[0])

    def bounds_at(self, at: int) -> tuple[list[Span], int]:
        """
        Return the sentence at *at* with its neighbours, as far as the model saw them, and its number among them.

        None where finding them takes too much work.
        """
        low, high = next((found for found in self._stretches if found[0] <= at < found[1]), (at, at))
        is_short = len(self.stored) <= WHOLE_CHARS
        bounds = self._sentences if is_short else self._near(at)
        own = index_at(bounds, at)
        if not is_short and not 2 <= own < len(bounds) - 2:  # a neighbour may be cut, or a sentence longer than most
            bounds = self._around(at)
            own = index_at(bounds, at)
        clipped = [(max(start, low), min(end, high)) for start, end in bounds[max(0, own - 1) : own + 2]]
        seen = [(start, end) for start, end in clipped if start < end]
        return seen, index_at(seen, at)

    def cells_at(self, row: Span) -> list[Window]:
        """Return each cell of a row of a table with the names of its row and its column; nothing for a sentence."""
        if not self.has_rows or not is_row(self.stored[slice(*row)]):
            return []
        if row not in self._rows:
            self._rows[row] = [tuple(window) for window in named_cells(self.stored, *row)]
            self._row_of.update(dict.fromkeys(self._rows[row], row))
        return self._rows[row]

    def is_cell(self, window: Window) -> bool:
        """Say whether *window* is a cell that `cells_at` returned."""
        return window in self._row_of

    def place_of(self, window: Window) -> Span:
        """Return what is cited of *window*: the row of a cell, else all of it."""
        return self._row_of.get(window, (window[0][0], window[-1][1]))

    def are_rows(self, window: Window) -> bool:
        """Say whether *window* is rows of a table, each about something else."""
        return self.has_rows and all(is_row(self.stored[start:end]) for start, end in window)

    def is_whole_row(self, place: Span) -> bool:
        """Say whether *place* is the whole row of a table, however few words that has."""
        first, end = self.stored.rfind("\n", 0, place[0]) + 1, self.stored.find("\n", place[1])
        line = self.stored[first : end if end >= 0 else len(self.stored)]
        return is_row(line) and line.strip(" \t|\r") == self.stored[slice(*place)].strip(" \t|\r")

    @cached_property
    def _stretches(self) -> tuple[Span, ...]:
        return self.extract.origins.stretches()

    @cached_property
    def _sentences(self) -> list[Span]:
        return spans(self.stored)

    @cached_property
    def _is_in_place(self) -> bool:
        """Say whether each character of the text that is searched stands where it does in the stored text."""
        runs = self.extract.origins.runs
        is_whole = len(runs) == 1 and runs[0].start == runs[0].stored == 0 and runs[0].length == len(self.stored)
        return is_whole and len(self.extract.text) == len(self.stored) and folds_in_place(self.extract.text)

    def _near(self, at: int) -> list[Span]:
        """Return the sentences of the stretch that *at* is in, with some around it; cut once for all places in it."""
        cell = at // CELL_CHARS
        if cell not in self._cells:
            start = cell * CELL_CHARS
            self._cells[cell] = bounds_around(self.stored, start, start + CELL_CHARS, CELL_CHARS)
        return self._cells[cell]

    def _around(self, at: int) -> list[Span]:
        """Return the sentences around *at*: cut for this place alone, or of the whole text where that is cut anyway."""
        self._cut_alone += 1
        if self._cut_alone > MAX_CUT_ALONE and len(self.stored) <= MAX_CUT_CHARS:
            return self._sentences
        return [] if self._cut_alone > MAX_LONG_CUT_ALONE else bounds_around(self.stored, at, at + 1)
