"""
What one document says of a claim: proved, close to it, the contrary, or nothing.

*verified*: all of the claim is one stretch of a place. *supported*: the same, with something left out between that may
be. *contradicted*: one difference, of a kind that contradicts. *near*: neither, and most of its words are together in
the document, with all its numbers; it is a likeness, never a proof.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from datafari_rag.core.citations.alignment import COMMON, Alignment, UnitRow, aligned, cells
from datafari_rag.core.citations.places import MAX_VISITED, NEAR_CHARS, SourceSentence, SourceText, is_cut
from datafari_rag.core.citations.units import Unit, marked, units_in
from datafari_rag.core.documents import Extract
from datafari_rag.core.text.folding import folded
from datafari_rag.core.text.language import Language, Phrase, spoken, spoken_in, written_languages
from datafari_rag.core.text.sentences import spans
from datafari_rag.core.text.words import Remembered

VERIFIED, SUPPORTED, NEAR = "verified", "supported", "near"
CONTRADICTED, UNSUPPORTED = "contradicted", "unsupported"
PROVED = frozenset((VERIFIED, SUPPORTED))
_WEAKER = (VERIFIED, SUPPORTED, NEAR, UNSUPPORTED, CONTRADICTED)

LEAST_WORDS = 3
"""Fewer words that say something by themselves are together in any text: they are like none."""

LEAST_UNITS = 3
"""A claim of fewer is a name or a fragment: it states nothing."""

NEAR_LIKENESS = 0.495
"""The least likeness that is called near: one in thirteen wrong claims has it (docs/grounding.md)."""

ALTERED = 0.7
"""From this share of a claim's units in the order of one sentence on, it is taken from that sentence."""

STITCHED = 0.8
"""From this share of a claim's steps from word to word that the sentences make too, it is put together of them."""

WINDOW_REACH = 1
"""So many sentences on each side of one are looked at with it for a likeness."""

RUN_REACH = 2
"""So many sentences beside the one with a word of a claim's first sentence may that be in several lines."""

MAX_LOOKED, MAX_WINDOWS = 40, 8
"""So many places of a document are aligned with a claim, and so many compared for a likeness."""

MAX_CELLS = 20_000
"""So many cells an alignment may have: sentences of contracts have a few thousand, the same word over and over more."""

RAREST = 6
"""So many of a claim's words, those that the document has least often, lead to what is like it."""

MAX_COUNTED = 20_000
"""So many words are counted in a document before they are counted again: more than a text has."""

MAX_WORK = 2_000_000
"""Work, as `ComparedText` counts it, for one text: about a second. 20,000 copied characters take a tenth of it."""

SCANNED = 100
"""So many characters are looked through for a word in the time of one step of comparing."""

_WORD = re.compile(r"\w")

Span = tuple[int, int]
Sentence = tuple[int, int]
"""The number of a block of a document, and of the sentence in it."""

Names = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ClaimFinding:
    """What a document says of a claim: a status, the *place* in its stored text, and the *likeness*, 0 to 1."""

    status: str
    place: Span | None = None
    likeness: float = 0.0


NOTHING = ClaimFinding(UNSUPPORTED)


class SentenceWindow(NamedTuple):
    """Sentences that stand together: the *most* that their likeness can be, their *place*, and which they are."""

    most: float
    place: Span
    block: int
    numbers: range


class WorkIsOver(Exception):
    """The work of a text is done: nothing more of it is compared."""


class ComparedText:
    """
    What the documents share that one text is compared with: its sentences, each made ready once, and the work.

    The work is counted in characters looked through and cells aligned, up to *most*.
    """

    def __init__(self, language: str = "", most: int = MAX_WORK) -> None:
        """Count from nothing; *language* is what the caller says that the text is in."""
        self.work, self._language, self._most = 0, language, most
        self._sentences: dict[str, ClaimText] = {}
        self._parts: dict[str, list[ClaimText]] = {}

    @property
    def is_over(self) -> bool:
        """Say whether no more may be done."""
        return self.work > self._most

    def add(self, units: int) -> None:
        """Count *units* of work. Raises: WorkIsOver, where no more may be done."""
        self.work += units
        if self.is_over:
            raise WorkIsOver

    def scan(self, text: str) -> None:
        """Count *text* as looked through. Raises: WorkIsOver, where no more may be done."""
        self.add(len(text) // SCANNED + 1)

    def sentence(self, text: str) -> ClaimText:
        """Return *text* as it is compared."""
        if text not in self._sentences:
            self._sentences[text] = ClaimText(text, self._language)
        return self._sentences[text]

    def parts(self, claim: str) -> list[ClaimText]:
        """Return the sentences of *claim*."""
        if claim not in self._parts:
            self._parts[claim] = [self.sentence(claim[start:end]) for start, end in spans(claim)]
        return self._parts[claim]

    def states(self, text: str, language: str = "") -> bool:
        """
        Say whether *text* states anything: a word that only names a source, and a question, do not; a denial does.

        *language* is that of the text around it, where the caller says none: a few words show none.
        """
        sentence = self.sentence(text)
        row = sentence.row(spoken(language or self._language, sentence.own_language), ())
        if text.rstrip("\"'»”’)*_ ").endswith(("?", "？", "؟")):
            return False
        return bool(row.language.denial.places(row.words)) or not _naming().issuperset(row.content)


class ClaimText:
    """One sentence of a text as it is compared: its units in each language that documents are in."""

    def __init__(self, text: str, language: str) -> None:
        """Hold *text*, without the sign of a list; *language* is what the caller says of it, and may be empty."""
        self.text = text[marked(text) :]
        self.language, self.own_language = language, spoken_in(text)
        self._units: dict[str, list[Unit]] = {}
        self._rows: dict[tuple[str, Names], UnitRow] = {}

    def row(self, language: Language, names: Names) -> UnitRow:
        """
        Return the units, without a frame that only says where something is written: "according to the manual".

        *names* are the words of the names of the document.
        """
        if language.code not in self._units:
            self._units[language.code] = _all_units(self.text, language)
        units = self._units[language.code]
        # Most documents are not named: for all of them the row is the same.
        words = {unit.word for unit in units} if names else set()
        key = language.code, tuple([name for name in names if not words.isdisjoint(name)])
        if key not in self._rows:
            self._rows[key] = UnitRow(unframed(units, key[1]), language, ends=not is_cut(self.text))
        return self._rows[key]


def _all_units(text: str, language: Language) -> list[Unit]:
    return units_in(text, 0, len(text), language)


def _counted(source: SourceText, text: ComparedText, word: str) -> int:
    """Return how often the document has *word*, folded."""
    text.scan(source.text)
    return source.count(word)


class CheckedExtract:
    """What the model saw of one document, made ready once for all the claims of a text."""

    def __init__(self, extract: Extract, text: ComparedText) -> None:
        """Remember *extract*; *text* is what is compared with it, and shared by all documents."""
        self.extract = extract
        self._source = SourceText(extract)
        self.text = text
        self._proofs: dict[str, ClaimFinding] = {}
        self._claim_proofs: dict[str, ClaimFinding] = {}
        self._findings: dict[str, ClaimFinding] = {}
        self._names: dict[str, Names] = {}
        self._rows: dict[str, UnitRow] = {}
        # Not a method: what refers to itself is freed late, and a document's text with it.
        self._counts = Remembered(partial(_counted, self._source, text), MAX_COUNTED)

    @property
    def stored(self) -> str:
        """Return the text that places are of."""
        return self._source.text

    def has(self, words: str) -> bool:
        """Say whether the text has *words*, but for case and typography; none where the work was too much."""
        with suppress(WorkIsOver):
            self.text.scan(self._source.text)
            return self._source.has(words)
        return False

    def is_claim(self, text: str) -> bool:
        """Say whether *text* states something that can be proved: a bare name and a fragment do not."""
        return any(not self._is_fragment(self._row(part)) for part in self.text.parts(text))

    def finding(self, claim: str) -> ClaimFinding:
        """
        Return what the document says of *claim*, one or more sentences: proved only if each of them is.

        The place is all of them where they stand together, else that of the longest. Where the work was too much, the
        document says nothing.
        """
        if claim not in self._findings:
            result = self.proving(claim)
            if result.status not in PROVED and not self.text.is_over:
                with suppress(WorkIsOver):
                    result = self._weakest(claim, self._finding)
            self._findings[claim] = result
        return self._findings[claim]

    def proving(self, claim: str) -> ClaimFinding:
        """Return `finding` where it is a proof, and else `NOTHING`: what is no proof is not looked for."""
        if claim not in self._claim_proofs:
            try:
                proof = self._weakest(claim, self._proof)
                run = self._run(claim) if proof.status != VERIFIED else None
            except WorkIsOver:
                return NOTHING
            self._claim_proofs[claim] = proof if run is None else ClaimFinding(VERIFIED, run, 1.0)
        return self._claim_proofs[claim]

    def _weakest(self, claim: str, finding_of: Callable[[ClaimText], ClaimFinding]) -> ClaimFinding:
        findings = [finding_of(part) for part in self.text.parts(claim)]
        weakest = max(findings, key=lambda finding: _WEAKER.index(finding.status), default=NOTHING)
        places = [finding.place for finding in findings if finding.place is not None]
        if not places or len(places) < len(findings):
            return weakest
        status, likeness = weakest.status, min(finding.likeness for finding in findings)
        if all(self._are_together(*neighbours) for neighbours in pairwise(places)):
            return ClaimFinding(status, (places[0][0], places[-1][1]), likeness)
        # Sentences that do not stand together are one stretch with something left out.
        longest = max(places, key=lambda place: place[1] - place[0])
        return ClaimFinding(SUPPORTED if status == VERIFIED else status, longest, likeness)

    def _run(self, claim: str) -> Span | None:
        """Return the place of whole sentences, one behind the other, that *claim* is; None where it is not."""
        if len(self.text.parts(claim)) == 1 and "\n" not in claim:
            return None
        whole = self.text.sentence(claim)
        row = self._row(whole)
        if self._is_fragment(row):
            return None
        # One word stands anywhere: the first sentence that states something leads there.
        first_row = next((part for part in map(self._row, self.text.parts(claim)) if not self._is_fragment(part)), row)
        for block, number in self._candidates(first_row, 0):
            for begin in self._source.beside(block, number, RUN_REACH):
                self.text.add(len(row.units))
                place = self._source.run(row, whole.text, block, begin)
                if place is not None and self._source.is_seen(*place):
                    return place
        return None

    def _are_together(self, place: Span, other: Span) -> bool:
        """Say whether nothing but signs is between *place* and *other*, or they are the same row."""
        return place == other or (place[1] <= other[0] and _WORD.search(self.stored, place[1], other[0]) is None)

    def _is_fragment(self, row: UnitRow) -> bool:
        # "Asia | sg.example.org" and "Opened: 1904" say something of something.
        return len(row.units) < LEAST_UNITS and not any(unit.before in (":", "|") for unit in row.units[1:])

    @cached_property
    def _document_code(self) -> str | None:
        return spoken_in(self._source.text)

    def _row(self, claim: ClaimText) -> UnitRow:
        if claim.text in self._rows:
            return self._rows[claim.text]
        language = spoken(claim.language, claim.own_language, self._document_code)
        if language.code not in self._names:
            label, title = self.extract.label, self.extract.document.title
            words = [[unit.word for unit in _all_units(name, language)] for name in (label, title or "")]
            self._names[language.code] = tuple(map(tuple, filter(None, words)))
        row = self._rows[claim.text] = claim.row(language, self._names[language.code])
        return row

    def _finding(self, claim: ClaimText) -> ClaimFinding:
        proof = self._proof(claim)
        row = self._row(claim)
        if proof.status in PROVED or self._is_fragment(row):
            return proof
        against = self._aligned(row, edits=1)
        if against is not None and against[0].edits:
            return ClaimFinding(CONTRADICTED, against[1])
        if len(row.content) < LEAST_WORDS:
            return NOTHING
        richest = self._richest(row, NEAR_LIKENESS)
        likest = self._likest(row, richest)
        if likest is None or likest[0] < NEAR_LIKENESS or self._is_altered(row, richest):
            return NOTHING
        return ClaimFinding(NEAR, likest[1], likest[0])

    def _proof(self, claim: ClaimText) -> ClaimFinding:
        """Return the proof of *claim*, `NOTHING` without one; looked for once."""
        if claim.text not in self._proofs:
            row = self._row(claim)
            match = None if self._is_fragment(row) else self._aligned(row, edits=0)
            status = SUPPORTED if match is not None and match[0].gaps else VERIFIED
            self._proofs[claim.text] = NOTHING if match is None else ClaimFinding(status, match[1], 1.0)
        return self._proofs[claim.text]

    def _aligned(self, claim: UnitRow, *, edits: int) -> tuple[Alignment, Span] | None:
        """Return the best alignment of *claim* with a place of the document, and that place; None without one."""
        best: tuple[Alignment, Span] | None = None
        for block, number in self._candidates(claim, edits):
            kinds = (self._source.rows,) if edits else (self._source.rows, self._source.pairs)
            for row in (row for rows_of in kinds for row in rows_of(block, number, claim.language)):
                if len(row.units) < len(claim.units) - edits:
                    continue
                work = cells(claim, row)
                self.text.add(min(work, MAX_CELLS))
                alignment = aligned(claim, row, edits=edits) if work <= MAX_CELLS else None
                if alignment is None or (best is not None and alignment.gaps >= best[0].gaps):
                    continue
                place = self._place(row, alignment, self._source.sentences(block)[number])
                if place is not None:
                    best = alignment, place
                    if not alignment.gaps:
                        return best
        return best

    def _place(self, row: UnitRow, alignment: Alignment, sentence: SourceSentence) -> Span | None:
        """Return the stretch that *alignment* covers of what the model saw; a row of a table as a whole."""
        is_whole = alignment.first == 0 and alignment.last + 1 == len(row.units) and not row.is_pair
        if is_whole or sentence.is_row:
            start, end = sentence.mark, sentence.end
        else:
            covered = row.units[alignment.first : alignment.last + 1]
            start, end = min(unit.start for unit in covered), max(unit.end for unit in covered)
            start = max(start, sentence.start) if not row.is_pair else start
        return (start, end) if self._source.is_seen(start, end) else None

    def _candidates(self, row: UnitRow, edits: int) -> Iterator[tuple[int, int]]:
        """Yield the sentences that may say what *row* does: those with its rarest word that have the others too."""
        needed = row.words_needed(edits)
        if not self._has(needed):
            return
        for place in self._places(needed or list(dict.fromkeys(row.folded_roots))):
            if self._source.may_say(*place, needed):
                yield place

    def _places(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the sentences that have the rarest of *words*, folded, and those whose label has it."""
        places: set[tuple[int, int]] = set()
        counts = self._counts
        for rarest in sorted(filter(counts.__getitem__, words), key=counts.__getitem__):
            is_name = False
            self.text.add(min(counts[rarest], MAX_VISITED) * 2 * NEAR_CHARS // SCANNED)
            for block, first in map(self._source.sentence_at, self._source.around(rarest, words)):
                is_name = is_name or self._source.names_columns(block, first)
                for number in self._source.under(block, first):
                    if len(places) == MAX_LOOKED:
                        return
                    if (block, number) not in places:
                        places.add((block, number))
                        yield block, number
            # The name of a column is said with each of its rows, and stands above them alone.
            if not is_name:
                return

    def _has(self, words: Sequence[str]) -> bool:
        """Say whether the document has all of *words*, folded, or its title has."""
        return all(self._counts[word] or word in self._source.names for word in words)

    def _likest(self, row: UnitRow, richest: Sequence[Sentence]) -> tuple[float, Span] | None:
        """Return the greatest likeness of a stretch that may have `NEAR_LIKENESS`, and its place; None without one."""
        matches: list[tuple[float, Span]] = []
        for window in self._windows(row, richest, NEAR_LIKENESS):
            if not matches or max(matches) < (window.most, window.place):
                matches.append((self._likeness(row, window), window.place))
        return max(matches, default=None)

    def _likeness(self, row: UnitRow, window: SentenceWindow) -> float:
        start, end = window.place
        self.text.add(end - start)
        return likeness(row, self._source.window(window.block, window.numbers, row.language))

    def _windows(self, row: UnitRow, richest: Sequence[Sentence], least: float) -> list[SentenceWindow]:
        """Return the stretches around *richest* that may have a likeness of *least* or more, the most likely first."""
        windows: dict[Span, SentenceWindow] = {}
        for block, number in richest:
            numbers = self._source.beside(block, number, WINDOW_REACH)
            sentences = self._source.sentences(block)
            place = sentences[numbers[0]].start, sentences[numbers[-1]].end
            if self._source.is_seen(*place):
                most = row.most_likeness(self._source.folded_text(block, numbers).__contains__)
                windows[place] = SentenceWindow(most, place, block, numbers)
        return sorted([w for w in windows.values() if w.most >= least], reverse=True, key=attrgetter("most", "place"))

    def _richest(self, row: UnitRow, least: float) -> list[Sentence]:
        """
        Return the sentences with most of the words of *row* in or beside them, counting the rarest.

        None where the whole document has too few of them for a likeness of *least*, or a name is missing.
        """
        names = [root for root, unit in zip(row.folded_roots, row.units, strict=True) if unit.is_name]
        if not row.content or not self._has(names) or row.most_likeness(self._counts.__getitem__) < least:
            return []
        there = [(count, word) for word in map(folded, row.content) if (count := self._counts[word])]
        votes: Counter[Sentence] = Counter()
        for _, word in sorted(there)[:RAREST]:
            for block, number in {self._source.sentence_at(at) for at in self._source.around(word)}:
                for neighbour in self._source.beside(block, number, WINDOW_REACH):
                    votes[block, neighbour] += 1 + (neighbour == number)
        return [place for place, _ in votes.most_common(MAX_WINDOWS)]

    def _is_altered(self, claim: UnitRow, richest: Sequence[Sentence]) -> bool:
        """Say whether *claim* is sentences of the document with something altered: it is no likeness then."""
        steps: set[tuple[str, str]] = set()
        is_taken = False
        for block, number in richest:
            for row in self._source.rows(block, number, claim.language):
                self.text.add(len(row.roots) + len(claim.roots))
                altered = is_altered(claim, row)
                if altered:
                    return True
                is_taken = is_taken or altered is not None
                steps.update(pairwise(row.roots))
        copied = sum([step in steps for step in pairwise(claim.roots)])
        return not is_taken and copied >= STITCHED * (len(claim.roots) - 1)


def likeness(claim: UnitRow, place: UnitRow) -> float:
    """
    Return how much of *claim* is in *place*, 0 to 1; 0 where a number or a word that turns is not.

    Half of it is the share of its content, words by their length, and half the share of all its units in their order.
    """
    needed = {unit.key for unit in claim.units if unit.is_number}
    if not needed.issubset([unit.key for unit in place.units]) or not claim.turned.issubset(place.words):
        return 0.0
    words = sum(map(len, set(claim.content).intersection(place.roots))) / sum(map(len, claim.content))
    in_order = LCSseq.similarity(claim.roots, place.roots) / len(claim.roots)
    return (words + in_order) / 2


def is_altered(claim: UnitRow, place: UnitRow) -> bool | None:
    """
    Say whether *claim* is taken from *place* with one thing changed, two exchanged, or a word that turns left out.

    None where it is not taken from there. What is only cut out of it is not altered, nor is what is said in other words
    in several places.
    """
    blocks = [block for block in LCSseq.opcodes(claim.roots, place.roots) if block.tag == "equal"]
    aligned_units = sum(block.src_end - block.src_start for block in blocks)
    if aligned_units < ALTERED * len(claim.roots):
        return None
    if place.turned - claim.turned:
        return True
    has_beginning = not COMMON[claim.language.code].issuperset(claim.words[: blocks[0].src_start])
    changes = len(blocks) - 1 + has_beginning + (blocks[-1].src_end < len(claim.roots))
    common = Counter(claim.roots) & Counter(place.roots)
    return changes == 1 or (changes == 2 and common.total() > aligned_units)


def unframed(units: Sequence[Unit], names: Names) -> list[Unit]:
    """
    Return *units* without what only says where something is written, and without the document's name beside it.

    An answer may speak of its source in another language than it quotes from it: frames of all languages are taken off.
    """
    units = _without_source(units, names)
    words = tuple([unit.word for unit in units])
    for word in filter(_frames().__contains__, dict.fromkeys(words)):
        for frame, language in _frames()[word]:
            rest = _behind((units, words), frame, language, names)
            # A frame that names no source is a word of assent: "Yes, …", "Yes it is …".
            if rest and ("*" in frame or rest[0].before or rest[0].word in language.pronouns):
                return _sentence(rest)
    named = (units[len(name) :] for name in names if words[: len(name)] == name)
    return next((_sentence(rest) for rest in named if rest and rest[0].before), list(units))


def _sentence(units: Sequence[Unit]) -> list[Unit]:
    return [units[0]._replace(before="", is_first=True), *units[1:]]


def _without_source(units: Sequence[Unit], names: Names) -> Sequence[Unit]:
    """Return *units* without brackets at their end that only name a source: "(see the handbook)"."""
    start = len(units)
    while start and units[start - 1].is_aside:
        start -= 1
    is_source = all(any(unit.word in words for words in (_naming(), *names)) for unit in units[start:])
    return units[:start] if start and is_source else units


@cache
def _frames() -> Mapping[str, list[tuple[Phrase, Language]]]:
    """Return the frames of all languages by their first word."""
    frames: dict[str, list[tuple[Phrase, Language]]] = {}
    for language in written_languages():
        for frame in language.frames:
            frames.setdefault(next(word for word in frame if word != "*"), []).append((frame, language))
    return frames


@cache
def _naming() -> frozenset[str]:
    """Return the words that name a source or point at one."""
    languages = written_languages()
    sources = (phrase for language in languages for phrase in language.sources.all)
    return frozenset().union(*sources, *(language.pointers | language.articles for language in languages))


def _behind(claim: tuple[Sequence[Unit], Phrase], frame: Phrase, language: Language, names: Names) -> Sequence[Unit]:
    """Return the units of *claim*, given with their words, behind the *frame* at its beginning; none without it."""
    (units, words), at = claim, 0
    for word in frame:
        if at == len(words):
            return ()
        size = _source_at(words, at, language, names) if word == "*" else int(words[at] == word)
        # The mark that named the source is taken out already: "According to [1], …".
        if not size and not (word == "*" and at and units[at].before == ","):
            return ()
        at += size
    return units[at:]


def _source_at(words: Phrase, at: int, language: Language, names: Names) -> int:
    """Return how many of *words* from *at* on name a source, articles in front of it included; 0 where none do."""
    start = next((place for place in range(at, len(words)) if words[place] not in language.articles), at)
    sizes = [len(name) for name in names if words[start : start + len(name)] == name]
    size = max([*sizes, language.sources.at(words, start)])
    return start - at + size if size else 0
