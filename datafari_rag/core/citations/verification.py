"""
What one document says of a claim: proved, close to it, the contrary, or nothing.

*verified*: all of the claim is one stretch of a place. *supported*: the same, with something left out between that may
be. *contradicted*: one difference, of a kind that contradicts. *near*: neither, and most of its words are together in
the document, with all its numbers; it is a likeness, never a proof.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice, pairwise

from rapidfuzz.distance import LCSseq

from datafari_rag.core.citations.alignment import Alignment, UnitRow, aligned, cells
from datafari_rag.core.citations.places import SourceSentence, SourceText, is_cut
from datafari_rag.core.citations.units import Unit, marked, units_in
from datafari_rag.core.documents import Extract
from datafari_rag.core.text.folding import folded
from datafari_rag.core.text.language import Language, spoken, spoken_in, written_languages
from datafari_rag.core.text.sentences import spans
from datafari_rag.core.text.words import FUNCTION_WORDS, Remembered

VERIFIED, SUPPORTED, NEAR = "verified", "supported", "near"
CONTRADICTED, UNSUPPORTED = "contradicted", "unsupported"
PROVED = frozenset((VERIFIED, SUPPORTED))

LEAST_WORDS = 3
"""Fewer words that say something by themselves are together in any text: they are like none."""

LEAST_UNITS = 3
"""A claim of fewer is a name or a fragment: it states nothing."""

NEAR_LIKENESS = 0.52
"""The least likeness that is called near: one in fifteen wrong claims has it (docs/grounding.md)."""

ALTERED = 0.7
"""From this share of a claim's units in the order of one sentence on, it is taken from that sentence."""

STITCHED = 0.8
"""From this share of a claim's steps from word to word that the sentences make too, it is put together of them."""

WINDOW = 3
"""So many sentences are looked at together for a likeness."""

RUN_REACH = 2
"""So many sentences before the one with a word of a claim's first sentence may that be in several lines."""

MAX_WORDS = 40
"""So many words of a claim, the longest, lead to its places."""

MAX_LOOKED = 40
"""So many places of a document are aligned with a claim, and MAX_WINDOWS compared for a likeness."""

MAX_WINDOWS = 8

RAREST = 6
"""So many of a claim's words, those that the document has least often, lead to what is like it."""

_WORD = re.compile(r"\w")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ClaimFinding:
    """What a document says of a claim: a status, the *place* in its stored text, and the *likeness*, 0 to 1."""

    status: str
    place: Span | None = None
    likeness: float = 0.0


NOTHING = ClaimFinding(UNSUPPORTED)


class WorkIsOver(Exception):
    """The work of a text is done: nothing more of it is compared."""


class Work:
    """Counts the work of one text, in characters looked through and cells aligned, up to *most*."""

    def __init__(self, most: int | None = None) -> None:
        """Count from nothing; None: without a bound."""
        self.done, self._most = 0, most

    @property
    def is_over(self) -> bool:
        """Say whether no more may be done."""
        return self._most is not None and self.done > self._most

    def add(self, units: int) -> None:
        """Count *units* of work. Raises: WorkIsOver, where no more may be done."""
        self.done += units
        if self.is_over:
            raise WorkIsOver


class ClaimText:
    """One sentence of a text as it is compared: its units in each language that documents are in."""

    def __init__(self, text: str, language: str) -> None:
        """Hold *text*, without the sign of a list; *language* is what the caller says of it, and may be empty."""
        self.text = text[marked(text) :]
        self.codes = (language, spoken_in(text))
        self._rows: dict[tuple[str, ...], UnitRow] = {}

    def row(self, language: Language, names: tuple[str, ...]) -> UnitRow:
        """Return the units, without a frame that only says where something is written: "according to the manual"."""
        key = (language.code, *names)
        if key not in self._rows:
            units = units_in(self.text, 0, len(self.text), language)
            named = [[one.word for one in units_in(name, 0, len(name), language)] for name in names]
            own = unframed(units, [name for name in named if name])
            self._rows[key] = UnitRow(own, language, ends=not is_cut(self.text))
        return self._rows[key]


class CheckedExtract:
    """What the model saw of one document, made ready once for all the claims of a text."""

    def __init__(self, extract: Extract, language: str, work: Work | None = None) -> None:
        """Remember *extract*; *language* is what the caller says that the text is in. *work* is shared by all."""
        self.extract = extract
        self._source = SourceText(extract)
        self._code = language
        self._work = work or Work()
        self._claims: dict[str, list[ClaimText]] = {}
        self._proofs: dict[str, ClaimFinding] = {}
        self._findings: dict[str, ClaimFinding] = {}
        self._names = tuple(dict.fromkeys((extract.label, extract.document.title or extract.label)))

    @property
    def stored(self) -> str:
        """Return the text that places are of."""
        return self._source.text

    def has(self, words: str) -> bool:
        """Say whether the text has *words*, at whatever place, but for case and typography."""
        return self._source.has(words)

    @property
    def is_over(self) -> bool:
        """Say whether something was not looked for, since the work was too much."""
        return self._work.is_over

    def is_claim(self, text: str) -> bool:
        """Say whether *text* states something that can be proved: a bare name and a fragment do not."""
        return any(not self._is_fragment(self._row(part)) for part in self._parts(text))

    def finding(self, claim: str) -> ClaimFinding:
        """
        Return what the document says of *claim*, one or more sentences: proved only if each of them is.

        The place is all of them where they stand together, else that of the longest. Where the work was too much, the
        document says nothing.
        """
        if claim not in self._findings:
            self._findings[claim] = self._weakest(claim, self._finding)
        return self._findings[claim]

    def proving(self, claim: str) -> ClaimFinding:
        """Return `finding` where it is a proof, and else `NOTHING`: what is no proof is not looked for."""
        return self._weakest(claim, self._proof)

    def nearest(self, claim: str) -> list[tuple[float, Span]]:
        """Return stretches of neighbouring sentences with words of *claim*, each with its likeness; the best first."""
        try:
            return sorted((one for part in self._parts(claim) for one in self._windows(part)), reverse=True)
        except WorkIsOver:
            return []

    def _weakest(self, claim: str, finding_of: Callable[[ClaimText], ClaimFinding]) -> ClaimFinding:
        try:
            found = [finding_of(part) for part in self._parts(claim)]
            run = self._run(claim) if any(one.status != VERIFIED for one in found) else None
        except WorkIsOver:
            return NOTHING
        if run is not None:
            return ClaimFinding(VERIFIED, run, 1.0)
        weakest = max(found, key=lambda one: _RANK[one.status], default=NOTHING)
        places = [one.place for one in found if one.place is not None]
        if len(found) < 2 or len(places) < len(found):
            return weakest
        status, likeness = weakest.status, min(one.likeness for one in found)
        if all(self._are_together(*neighbours) for neighbours in pairwise(places)):
            return ClaimFinding(status, (places[0][0], places[-1][1]), likeness)
        # Sentences that do not stand together are one stretch with something left out.
        longest = max(places, key=lambda one: one[1] - one[0])
        return ClaimFinding(SUPPORTED if status == VERIFIED else status, longest, likeness)

    def _run(self, claim: str) -> Span | None:
        """Return the place of whole sentences, one behind the other, that *claim* is; None where it is not."""
        whole = ClaimText(claim, self._code)
        row = self._row(whole)
        if self._is_fragment(row) or (len(self._parts(claim)) == 1 and "\n" not in claim):
            return None
        # One word stands anywhere: the first sentence that states something leads there.
        said = next((one for one in map(self._row, self._parts(claim)) if not self._is_fragment(one)), row)
        for block, number in self._candidates(said, 0):
            for begin in range(max(0, number - RUN_REACH), number + 1):
                self._work.add(len(row.units))
                place = self._source.run(row, whole.text, block, begin)
                if place is not None and self._source.is_seen(*place):
                    return place
        return None

    def _are_together(self, one: Span, other: Span) -> bool:
        """Say whether nothing but signs is between *one* and *other*, or they are the same row."""
        return one == other or (one[1] <= other[0] and _WORD.search(self.stored, one[1], other[0]) is None)

    def _is_fragment(self, row: UnitRow) -> bool:
        # "Asia | sg.example.org" and "Opened: 1904" say something of something.
        return len(row.units) < LEAST_UNITS and not any(unit.before in (":", "|") for unit in row.units[1:])

    @cached_property
    def _document_code(self) -> str | None:
        return spoken_in(self._source.text)

    def _parts(self, claim: str) -> list[ClaimText]:
        if claim not in self._claims:
            self._claims[claim] = [ClaimText(claim[a:b], self._code) for a, b in spans(claim)]
        return self._claims[claim]

    def _row(self, claim: ClaimText) -> UnitRow:
        return claim.row(spoken(*claim.codes, self._document_code), self._names)

    def _finding(self, claim: ClaimText) -> ClaimFinding:
        proof = self._proof(claim)
        row = self._row(claim)
        if proof.status in PROVED or self._is_fragment(row):
            return proof
        against = self._aligned(row, edits=1)
        if against is not None and against[0].edits:
            return ClaimFinding(CONTRADICTED, against[1])
        if len(content(row)) < LEAST_WORDS:
            return NOTHING
        likeness, place = next(iter(self._windows(claim)), (0.0, None))
        is_near = likeness >= NEAR_LIKENESS and not self._is_altered(row)
        return ClaimFinding(NEAR, place, likeness) if is_near else ClaimFinding(UNSUPPORTED, None, likeness)

    def _proof(self, claim: ClaimText) -> ClaimFinding:
        """Return the proof of *claim*, `NOTHING` without one; looked for once."""
        if claim.text not in self._proofs:
            row = self._row(claim)
            found = None if self._is_fragment(row) else self._aligned(row, edits=0)
            status = SUPPORTED if found is not None and found[0].gaps else VERIFIED
            self._proofs[claim.text] = NOTHING if found is None else ClaimFinding(status, found[1], 1.0)
        return self._proofs[claim.text]

    def _aligned(self, claim: UnitRow, *, edits: int) -> tuple[Alignment, Span] | None:
        """Return the best alignment of *claim* with a place of the document, and that place; None without one."""
        best: tuple[Alignment, Span] | None = None
        for block, number in self._candidates(claim, edits):
            rows = self._source.rows(block, number, claim.language)
            for row in (*rows, *(self._source.pairs(block, number, claim.language) if not edits else ())):
                if len(row.units) < len(claim.units) - edits:
                    continue
                self._work.add(cells(claim, row))
                found = aligned(claim, row, edits=edits)
                if found is None or (best is not None and found.gaps >= best[0].gaps):
                    continue
                place = self._place(row, found, self._source.sentences(block)[number])
                if place is not None:
                    best = found, place
            if best is not None and not best[0].gaps:
                break
        return best

    def _place(self, row: UnitRow, found: Alignment, sentence: SourceSentence) -> Span | None:
        """Return the stretch that *found* covers of what the model saw; a row of a table as a whole."""
        is_whole = found.first == 0 and found.last + 1 == len(row.units) and not row.is_pair
        if is_whole or sentence.is_row:
            start, end = sentence.mark, sentence.end
        else:
            covered = row.units[found.first : found.last + 1]
            start, end = min(one.start for one in covered), max(one.end for one in covered)
            start = max(start, sentence.start) if not row.is_pair else start
        return (start, end) if self._source.is_seen(start, end) else None

    def _candidates(self, row: UnitRow, edits: int) -> Iterator[tuple[int, int]]:
        """Yield the sentences that may say what *row* does: those with its rarest word that have the others too."""
        # A number may be spelled otherwise there, and begins many others.
        needed = [one for one in row.roots_needed(edits)[:MAX_WORDS] if one[0].isalpha()]
        words = [folded(one) for one in needed or row.roots_needed(0)]
        if needed and not all(self._count(one) or one in self._source.names for one in words):
            return
        for place in self._places(words):
            if not needed or self._source.may_say(*place, words):
                yield place

    def _places(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the sentences that have the rarest of *words*, folded, and those whose label has it."""
        seen: set[tuple[int, int]] = set()
        for rarest in sorted(filter(self._count, words), key=self._count):
            is_name = False
            for block, first in map(self._source.sentence_at, self._source.around(rarest, words)):
                is_name = is_name or self._source.names_columns(block, first)
                for number in islice(self._source.under(block, first), MAX_LOOKED):
                    if (block, number) not in seen and len(seen) < MAX_LOOKED:
                        seen.add((block, number))
                        yield block, number
            # The name of a column is said with each of its rows, and stands above them alone.
            if not is_name:
                return

    def _count(self, word: str) -> int:
        """Return how often the document has *word*, folded: to count it is work once."""
        self._work.add(1 if self._source.has_counted(word) else len(self._source.text) // 100 + 1)
        return self._source.count(word)

    def _windows(self, claim: ClaimText) -> list[tuple[float, Span]]:
        """Return the stretches of up to `WINDOW` sentences that are most like *claim*, the best first."""
        row = self._row(claim)
        wanted = content(row)
        names = [folded(one) for one, unit in zip(row.roots, row.units, strict=True) if unit.is_name]
        is_named = all(self._count(one) or one in self._source.names for one in names)
        found: dict[Span, float] = {}
        for block, number in self._richest(wanted):
            sentences = self._source.sentences(block)[max(0, number - WINDOW // 2) : number + WINDOW // 2 + 1]
            start, end = sentences[0].start, sentences[-1].end
            if (start, end) not in found and self._source.is_seen(start, end):
                self._work.add(end - start)
                place = UnitRow(units_in(self._source.text, start, end, row.language), row.language)
                found[start, end] = likeness(row, wanted, place) if is_named else 0.0
        return sorted(((grade, place) for place, grade in found.items()), reverse=True)

    def _richest(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Return the sentences with most of *words* in or beside them, counting the rarest."""
        there = [one for one in map(folded, words) if self._count(one)]
        rare = sorted(there, key=lambda one: (self._count(one), one))[:RAREST]
        votes: Counter[tuple[int, int]] = Counter()
        for one in rare:
            for block, number in {self._source.sentence_at(at) for at in self._source.around(one)}:
                for neighbour in range(max(0, number - WINDOW // 2), number + WINDOW // 2 + 1):
                    votes[block, neighbour] += 1 + (neighbour == number)
        ordered = (place for place, _ in votes.most_common() if place[1] < len(self._source.sentences(place[0])))
        return list(islice(ordered, MAX_WINDOWS))

    def _is_altered(self, claim: UnitRow) -> bool:
        """Say whether *claim* is sentences of the document with something altered: it is no likeness then."""
        steps: set[tuple[str, str]] = set()
        is_taken = False
        for block, number in self._richest(content(claim)):
            for row in self._source.rows(block, number, claim.language):
                self._work.add(len(row.roots) + len(claim.roots))
                altered = is_altered(claim, row)
                if altered:
                    return True
                is_taken = is_taken or altered is not None
                steps.update(pairwise(row.roots))
        copied = sum([step in steps for step in pairwise(claim.roots)])
        return not is_taken and copied >= STITCHED * (len(claim.roots) - 1)


_RANK = {VERIFIED: 0, SUPPORTED: 1, NEAR: 2, UNSUPPORTED: 3, CONTRADICTED: 4}


def content(row: UnitRow) -> list[str]:
    """Return the roots of the words of *row* that say something by themselves, each once."""
    common = _COMMON[row.language.code]
    pairs = zip(row.words, row.roots, strict=True)
    return list(dict.fromkeys([one for word, one in pairs if word not in common and word[0].isalnum()]))


def _common_of(code: str) -> frozenset[str]:
    """Return the words that say nothing by themselves in the languages of *code*."""
    return frozenset().union(*[FUNCTION_WORDS[one] for one in code.split("+")])


_COMMON = Remembered(_common_of, 64)


def likeness(claim: UnitRow, wanted: Sequence[str], place: UnitRow) -> float:
    """
    Return how much of *claim* is in *place*, 0 to 1; 0 where a number or a word that turns is not.

    Half of it is the share of *wanted*, its words by their length, and half the share of all its units in their order.
    """
    needed = {unit.key for unit in claim.units if unit.is_number}
    if not needed.issubset([unit.key for unit in place.units]) or not claim.turned.issubset(place.words):
        return 0.0
    words = sum([len(one) for one in wanted if one in place.places]) / sum(map(len, wanted))
    in_order = LCSseq.similarity(claim.roots, place.roots) / len(claim.roots)
    return (words + in_order) / 2


def is_altered(claim: UnitRow, place: UnitRow) -> bool | None:
    """
    Say whether *claim* is taken from *place* with one thing changed, two exchanged, or a word that turns left out.

    None where it is not taken from there. What is only cut out of it is not altered, nor is what is said in other words
    in several places.
    """
    blocks = [one for one in LCSseq.opcodes(claim.roots, place.roots) if one.tag == "equal"]
    aligned_units = sum(one.src_end - one.src_start for one in blocks)
    if aligned_units < ALTERED * len(claim.roots):
        return None
    if place.turned - claim.turned:
        return True
    begun = not _COMMON[claim.language.code].issuperset(claim.words[: blocks[0].src_start])
    changes = len(blocks) - 1 + begun + (blocks[-1].src_end < len(claim.roots))
    known = Counter(claim.roots) & Counter(place.roots)
    return changes == 1 or (changes == 2 and known.total() > aligned_units)


def states(text: str, language: str) -> bool:
    """Say whether *text* states anything: a word that only names a source, and a question, do not; a denial does."""
    spoken_here = spoken(language, spoken_in(text))
    row = UnitRow(unframed(units_in(text, 0, len(text), spoken_here), ()), spoken_here)
    if not row.units or text.rstrip("\"'»”’)*_ ").endswith(("?", "？", "؟")):
        return False
    if spoken_here.denial.places(row.words):
        return True
    return not _naming().issuperset(content(row))


def unframed(units: Sequence[Unit], names: Sequence[Sequence[str]]) -> list[Unit]:
    """
    Return *units* without what only says where something is written, and without the document's name beside it.

    An answer may speak of its source in another language than it quotes from it: frames of all languages are taken off.
    """
    units = _without_source(units, names)
    words = [one.word for one in units]
    for language in written_languages():
        source = _source_at(words, 0, language, names)
        for frame in language.frames:
            if not (source if frame[0] == "*" else words[:1] == [frame[0]]):
                continue
            size = _framed((units, words), frame, language, names)
            # A frame that names no source is a word of assent: "Yes, …".
            if 0 < size < len(units) and ("*" in frame or units[size].before):
                return _from(units, size)
    named = (len(name) for name in names if words[: len(name)] == name)
    return next((_from(units, size) for size in named if size < len(units) and units[size].before), list(units))


def _from(units: Sequence[Unit], place: int) -> list[Unit]:
    return [units[place]._replace(before="", is_first=True), *units[place + 1 :]]


def _without_source(units: Sequence[Unit], names: Sequence[Sequence[str]]) -> Sequence[Unit]:
    """Return *units* without brackets at their end that only name a source: "(see the handbook)"."""
    start = len(units)
    while start and units[start - 1].is_aside:
        start -= 1
    if start in (0, len(units)):
        return units
    naming = _naming().union(*names)
    return units[:start] if all(one.word in naming for one in units[start:]) else units


@cache
def _naming() -> frozenset[str]:
    """Return the words that name a source or point at one."""
    languages = written_languages()
    sources = (phrase for one in languages for phrase in one.sources.all)
    return frozenset().union(*sources, *(one.pointers | one.articles for one in languages))


def _framed(
    claim: tuple[Sequence[Unit], Sequence[str]],
    frame: Sequence[str],
    language: Language,
    names: Sequence[Sequence[str]],
) -> int:
    """Return how many units of *claim*, with their words, the *frame* has at their beginning; 0 where it does not."""
    (units, words), at = claim, 0
    for one in frame:
        if one != "*" and (at == len(words) or words[at] != one):
            return 0
        size = _source_at(words, at, language, names) if one == "*" else 1
        # The mark that named the source is taken out already: "According to [1], …".
        if not size and not (at and at < len(units) and units[at].before == ","):
            return 0
        at += size
    return at


def _source_at(words: Sequence[str], at: int, language: Language, names: Sequence[Sequence[str]]) -> int:
    """Return how many of *words* from *at* on name a source, articles in front of it included; 0 where none do."""
    start = at
    while start < len(words) and words[start] in language.articles:
        start += 1
    sizes = [len(name) for name in names if list(words[start : start + len(name)]) == name]
    size = max((*sizes, language.sources.at(words, start) if start < len(words) else 0))
    return start - at + size if size else 0
