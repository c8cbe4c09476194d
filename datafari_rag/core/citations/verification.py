"""
Where the text that the model saw of one document says what an answer claims.

Two questions, each answered by a place or by None: are these quoted words there, and does a sentence, or two that
stand together, carry this claim. Places are stretches of the stored text. In doubt the answer is None.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise

from datafari_rag.core.citations.altered_copies import is_altered, is_scattered
from datafari_rag.core.citations.claim_facts import ClaimFacts
from datafari_rag.core.citations.contradiction import contradicts
from datafari_rag.core.citations.statements import (
    DENYING_WORD,
    NEGATING_CHARACTERS,
    SentenceFacts,
    Terms,
    carries,
    facts_of,
    is_negation,
    tokens_of,
)
from datafari_rag.core.citations.term_relations import agrees
from datafari_rag.core.documents import Extract
from datafari_rag.core.passages.extracts import HIGHLIGHTING
from datafari_rag.core.text.folding import Folded, aligned, fold, folded
from datafari_rag.core.text.sentences import MAX_CHARS, bounds_around, index_at, spans
from datafari_rag.core.text.stemmer import stem
from datafari_rag.core.text.tables import is_row, named_cells

MAX_PLACES = 200
MAX_COMPARED_CHARS = 20_000
"""How many places of a quotation are looked at, and how many characters of them are compared."""

MAX_WINDOWS = 80
"""How many places of a claim's rarest word are looked around."""

MAX_ALIGNED = 12
"""How many places that have all the words of a claim are compared with it word for word."""

ALIGNING = 10
"""What comparing word for word costs, in comparisons of what is stated (measured: about 20 and 200 microseconds)."""

NEAR_CHARS = 2 * MAX_CHARS + 200
"""Around a place, in the folded text: its sentence and a neighbour are within, and what folding can make longer."""

WHOLE_CHARS = 6_000
"""A text up to this length is cut into its sentences as a whole: that costs less than three places in it."""

CELL_CHARS = 500
"""Length of the stretches whose sentences are cut together."""

LEAST_DIGITS = 3
"""A claim of nothing but numbers is only looked for when one of them is not just any number."""

MAX_SPELLED_WORDS = 150
"""Longest quotation that is looked for word by word."""

PLAIN_CUT_CHARS = 25
"""A quotation at least this long may begin or end inside a word; a shorter one may not."""

_WORDS = re.compile(r"\w+")
_BETWEEN = r"(?:[\s.,;:!?|'\"()\[\]]|<(?=[^\W\d])|(?<=[^\W\d])>){1,6}"
"""Signs that an answer may spell otherwise; angle brackets around an address are taken out of it (contract §5)."""

_WORD_BEFORE = re.compile(rf"(?P<word>{DENYING_WORD})[\s\"'“”«»‘’]*$")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]*\Z")
_LETTERS_AFTER = re.compile(r"[^\W\d_]*")
_DIGITS_BEFORE = re.compile(r"(?:\d[.,/]?|(?:^|(?<=[\s(]))[-−–+]\s?)\Z")
_DIGITS_AFTER = re.compile(r"[.,/]?\d|[²³¹⁰⁴-⁹¼-¾⅐-⅞]")
_PREFIX_WORDS = "un in im il ir dis non mis anti de a an dés dé mal ohn miss ent ab"
_TURNING_PREFIXES = frozenset(_PREFIX_WORDS.split())
_TURNING_SUFFIXES = frozenset(("less", "los", "lose", "losen", "loser", "loses", "frei", "freie", "freien", "free"))
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


def is_statement(words: str, language: str) -> bool:
    """Say whether *words* state anything, and do not only point at a source."""
    return bool(facts_of(words, language))


Window = tuple[tuple[int, int], ...]
"""A sentence, two neighbours, or a cell of a table with the names of its row and its column."""


class CheckedExtract:
    """What the model saw of one document, made ready once for all the marks of an answer."""

    def __init__(self, extract: Extract, language: str, claims: ClaimFacts | None = None) -> None:
        """
        Remember *extract*, which is folded when first looked into; *language* is the answer's.

        *claims* is shared by all the extracts of an answer.
        """
        self._claims = ClaimFacts(language) if claims is None else claims
        self.extract = extract
        self.stored = extract.text if extract.document.field == HIGHLIGHTING else extract.document.text
        self._language = language
        self._facts: dict[Window, SentenceFacts] = {}
        self._texts: dict[Window, str] = {}
        self._rows: dict[Window, tuple[int, int]] = {}
        self._cells: dict[int, list[tuple[int, int]]] = {}

    @cached_property
    def _folded(self) -> Folded:
        return fold(self.extract.text)

    @cached_property
    def _sought(self) -> Folded:
        """Where words are looked for: what does not ask for signs and blanks need not wait for them."""
        return aligned(self.extract.text) or self._folded

    @cached_property
    def _known(self) -> frozenset[str]:
        names = dict.fromkeys((self.extract.label, self.extract.document.title or ""))
        return frozenset(facts_of(" ".join(names), self._language).words)

    @cached_property
    def _stretches(self) -> tuple[tuple[int, int], ...]:
        return self.extract.origins.stretches()

    @cached_property
    def _sentences(self) -> list[tuple[int, int]] | None:
        """Return the sentences of a short text, cut once; None for a long one, which is cut where it is looked at."""
        return spans(self.stored) if len(self.stored) <= WHOLE_CHARS else None

    def quoted(self, quote: str, *, around: str = "") -> tuple[int, int] | None:
        """
        Return where the stored text has the words *quote*, None when it has not, or not by themselves.

        Not by themselves: cut out of a number, or of a word that says the contrary, or from behind a negation that
        *around*, the words of the answer about it, leaves out.
        """
        wanted = folded(quote).strip(" ,;")
        if not any(map(str.isalnum, wanted)):
            return None
        for start, end in self._places(wanted):
            stored = self.extract.origins.span(start, end)
            if stored is None or folded(self.stored[slice(*stored)]) != wanted:
                continue
            if self._is_by_itself(start, end, around):
                return stored
        return None

    def spelled(self, quote: str, *, around: str = "") -> tuple[int, int] | None:
        """Return where the stored text has the words of *quote* in their order, whatever signs stand between them."""
        wanted = folded(quote)
        words = list(_WORDS.finditer(wanted))
        if not 2 < len(words) <= MAX_SPELLED_WORDS:
            return None
        between = [_between(wanted, one.end(), other.start()) for one, other in pairwise(words)]
        spelled = "".join(re.escape(word.group()) + sign for word, sign in zip(words, [*between, ""], strict=True))
        pattern = re.compile(rf"\b{spelled}\b")
        for match in islice(pattern.finditer(self._folded.text), MAX_PLACES):
            span = self._folded.span(*match.span())
            stored = None if span is None else self.extract.origins.span(*span)
            if span is not None and stored is not None and self._is_by_itself(*span, around):
                return stored
        return None

    def carrying(self, claim: str) -> tuple[int, int] | None:
        """Return the sentence of the stored text, or the two neighbours, that carry *claim*; None when none do."""
        stated = self._claims.of(_without(claim, self.extract.label))
        if not stated.words and not stated.pairs and max(map(len, stated.numbers), default=0) < LEAST_DIGITS:
            return None
        tried: set[Window] = set()
        pair: tuple[int, int] | None = None
        left = MAX_ALIGNED
        needed = self._claims.needed(stated, self._known)
        for window in self._windows(stated, needed):
            if window in tried:
                continue
            if not left:
                break
            tried.add(window)
            self._claims.compare()
            if not _has_all(self._text_at(window), needed):
                continue
            terms = Terms(self._language, self._known, is_pair=len(window) > 1)
            if not carries(stated, self._facts_at(window), terms):
                continue
            left -= 1
            self._claims.compare(ALIGNING)
            if self._agrees(claim, window):
                if len(window) == 1 or window in self._rows:
                    return self._rows.get(window, window[0])
                pair = pair or (window[0][0], window[-1][1])
        return pair

    def contradicting(self, claim: str) -> tuple[int, int] | None:
        """Return the sentence of the stored text that says *claim* with one thing otherwise; None when none does."""
        words = _without(claim, self.extract.label)
        stated = self._claims.of(words)
        # One word may be another there, no more: few documents have all the others, and fewer sentences.
        needed = self._claims.needed(stated, frozenset())
        if _missing(self._sought.text, needed) > 1:
            return None
        tried: set[Window] = set()
        for window in self._windows(stated, ()):
            if len(window) > 1 or window in self._rows or window in tried:
                continue
            if _missing(self._text_at(window), needed) > 1:
                continue
            tried.add(window)
            self._claims.compare(ALIGNING)
            if contradicts(self._stored_at(window), words, self._language):
                return window[0]
            if len(tried) == MAX_ALIGNED:
                break
        return None

    def _agrees(self, claim: str, window: Window) -> bool:
        # A cell and its names belong together in any order; the words of two sentences do not.
        apart = (window,) if window in self._rows else tuple((span,) for span in window)
        sentences = [self._stored_at(part) for part in apart]
        stated = _without(claim, self.extract.label)
        there = [tokens_of(sentence, self._language) for sentence in sentences]
        if window not in self._rows:
            said = tokens_of(claim, self._language)
            if any(is_altered(said, tokens, self._language) for tokens in there):
                return False
            if len(there) > 1 and is_scattered(said, [token for tokens in there for token in tokens], self._language):
                return False
        return agrees(stated, sentences, self._language, there=there)

    def is_statement(self, words: str) -> bool:
        """Say whether *words* state anything that the document's text would have to carry."""
        return is_statement(_without(words, self.extract.label), self._language)

    def is_row(self, place: tuple[int, int]) -> bool:
        """Say whether *place* is the whole row of a table, however few words that has."""
        first, end = self.stored.rfind("\n", 0, place[0]) + 1, self.stored.find("\n", place[1])
        line = self.stored[first : end if end >= 0 else len(self.stored)]
        return is_row(line) and line.strip(" \t|\r") == self.stored[slice(*place)].strip(" \t|\r")

    def has(self, words: str) -> bool:
        """Say whether the text seen has *words*, folded, at whatever place."""
        return folded(words) in self._folded.text

    def _places(self, wanted: str) -> Iterator[tuple[int, int]]:
        at, looked = self._folded.text.find(wanted), 0
        most = min(MAX_PLACES, MAX_COMPARED_CHARS // len(wanted) + 1)
        while at >= 0 and looked < most:
            span = self._folded.span(at, at + len(wanted))
            if span is not None:
                yield span
            at, looked = self._folded.text.find(wanted, at + 1), looked + 1

    def _is_by_itself(self, start: int, end: int, around: str) -> bool:
        text = self.extract.text
        before, after = text[max(0, start - 40) : start], text[end : end + 40]
        if text[start].isdigit() and _DIGITS_BEFORE.search(before):
            return False
        if text[end - 1].isdigit() and _DIGITS_AFTER.match(after):
            return False
        if before and before[-1] in NEGATING_CHARACTERS:
            return False
        is_long = end - start >= PLAIN_CUT_CHARS
        return (
            _is_uncut(text[start], _LETTERS_BEFORE, before, _TURNING_PREFIXES, is_long)
            and _is_uncut(text[end - 1], _LETTERS_AFTER, after, _TURNING_SUFFIXES, is_long)
            and (self._begins_row(start) or not self._is_denied(before, around))
        )

    def _begins_row(self, start: int) -> bool:
        """Say whether a row of a table begins at *start*: the cell before it, in another row, denies nothing."""
        text = self.extract.text
        first = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        return not text[first:start].strip(" \t|") and is_row(text[first : end if end >= 0 else len(text)])

    def _is_denied(self, before: str, around: str) -> bool:
        word = _WORD_BEFORE.search(before)
        if word is None or not is_negation(folded(word["word"]), self._language):
            return False
        return not facts_of(around, self._language).is_negated

    def _windows(self, stated: SentenceFacts, needed: Sequence[str]) -> Iterator[Window]:
        """
        Yield the stored sentences, and pairs of neighbours, that hold one of the claim's rarest words.

        Places are left out in whose surroundings not all of *needed* stand.
        """
        if not _has_all(self._sought.text, needed):
            return
        for anchor in self._anchors(stated):
            for at in self._places_of_word(anchor, needed):
                bounds = self._bounds_at(at)
                own = bisect_right([low for low, _ in bounds], at) - 1
                yield from self._under_header(bounds[own])
                if not _has_all(self._text_at((bounds[0], bounds[-1])), needed):
                    continue
                yield (bounds[own],)
                yield from (pair for pair in pairwise(bounds) if bounds[own] in pair and not self._are_rows(pair))

    def _are_rows(self, window: Window) -> bool:
        """Say whether *window* is two rows of a table, each about something else."""
        return all(is_row(self.stored[start:end]) for start, end in window)

    def _under_header(self, row: tuple[int, int]) -> Iterator[Window]:
        """Yield each cell of a row of a table with the names of its row and its column; nothing for a sentence."""
        if not is_row(self.stored[slice(*row)]):
            return
        for window in named_cells(self.stored, *row):
            self._rows[window] = row
            yield window

    def _bounds_at(self, at: int) -> list[tuple[int, int]]:
        """Return the sentence at *at* and its neighbours, as far as the model saw them."""
        low, high = next((found for found in self._stretches if found[0] <= at < found[1]), (at, at))
        whole = self._sentences
        bounds = self._near(at) if whole is None else whole
        own = index_at(bounds, at)
        if whole is None and not 2 <= own < len(bounds) - 2:  # a neighbour may be cut, or a sentence longer than most
            bounds = bounds_around(self.stored, at, at + 1)
            own = index_at(bounds, at)
        clipped = ((max(start, low), min(end, high)) for start, end in bounds[max(0, own - 1) : own + 2])
        return [(start, end) for start, end in clipped if start < end]

    def _near(self, at: int) -> list[tuple[int, int]]:
        """Return the sentences of the stretch that *at* is in, with some around it; cut once for all places in it."""
        cell = at // CELL_CHARS
        if cell not in self._cells:
            start = cell * CELL_CHARS
            self._cells[cell] = bounds_around(self.stored, start, start + CELL_CHARS, CELL_CHARS)
        return self._cells[cell]

    def _anchors(self, stated: SentenceFacts) -> list[str]:
        words = [stem(word, self._language) for word in stated.words if word not in self._known]
        words = words or [stem(word, self._language) for word in stated.words]
        counted = sorted((self._sought.text.count(word), word) for word in (*words, *stated.pairs) or stated.numbers)
        return [word for count, word in counted if count][:2]

    def _places_of_word(self, anchor: str, needed: Sequence[str]) -> Iterator[int]:
        text = self._sought.text
        at, found = text.find(anchor), 0
        while at >= 0 and found < MAX_WINDOWS:
            if at == 0 or not text[at - 1].isalnum() or _UNSPACED.match(anchor):
                found += 1
                if all(text.find(one, max(0, at - NEAR_CHARS), at + NEAR_CHARS) >= 0 for one in needed):
                    span = self._sought.span(at, at + 1)
                    stored = None if span is None else self.extract.origins.at(span[0])
                    if stored is not None:
                        yield stored
            at = text.find(anchor, at + 1)

    def _text_at(self, window: Window) -> str:
        if window not in self._texts:
            self._texts[window] = folded(self._stored_at(window))
        return self._texts[window]

    def _facts_at(self, window: Window) -> SentenceFacts:
        if window not in self._facts:
            self._facts[window] = facts_of(self._stored_at(window), self._language)
        return self._facts[window]

    def _stored_at(self, window: Window) -> str:
        if window in self._rows:
            return "\n".join(self.stored[start:end] for start, end in window)
        return self.stored[window[0][0] : window[-1][1]]


def _between(text: str, start: int, end: int) -> str:
    """Return the pattern of what may stand between two words instead of what does: between digits nothing else."""
    own = text[start:end]
    if text[start - 1].isdigit() and text[end].isdigit():
        return re.escape(own)
    # Atomic, for a word follows in any case: two ways to match the same signs would be tried in all combinations.
    return rf"(?>{re.escape(own)}(?=\w)|{_BETWEEN})"


def _has_all(text: str, beginnings_: Sequence[str]) -> bool:
    return all(one in text for one in beginnings_)


def _missing(text: str, beginnings_: Sequence[str]) -> int:
    return sum(one not in text for one in beginnings_)


def _is_uncut(edge: str, letters: re.Pattern[str], beside: str, turning: frozenset[str], is_long: bool) -> bool:
    """Say whether a quotation's edge is a word's, or cuts a long one where the word's rest does not turn its sense."""
    if not edge.isalpha() or _UNSPACED.match(edge):
        return True
    found = letters.search(beside)
    rest = "" if found is None else found.group()
    return not rest or (is_long and folded(rest) not in turning)


def _without(text: str, label: str) -> str:
    """Return *text* without *label*, which may be a number: of a longer one nothing is taken out."""
    if label.casefold() not in text.casefold():
        return text
    return re.sub(rf"(?<!\w){re.escape(label)}(?!\w)", " ", text, flags=re.IGNORECASE)
