"""
Whether a place of a document says a claim: unit by unit, and closed by default.

A difference between the two is no proof, whatever it is, unless it is one that is known to be harmless. There is no
list of what is wrong here, and none is needed: the only question is what has been shown to be the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from datafari_rag.core.citations.units import ROOTS, Unit, same
from datafari_rag.core.text.folding import folded
from datafari_rag.core.text.language import Language
from datafari_rag.core.text.words import FUNCTION_WORDS, MAX_LANGUAGES, Remembered

MAX_WORDS = 40
"""So many words of a claim, the longest, lead to its places."""

UNIT_CHARS = 3
"""The longest word behind a number that is taken for its unit, so that another one contradicts: mg, km, USD."""


COMMON: Remembered[str, frozenset[str]] = Remembered(
    lambda code: frozenset().union(*[FUNCTION_WORDS[part] for part in code.split("+")]), MAX_LANGUAGES
)
"""The words that say nothing by themselves in the languages of a code."""


class UnitRow:
    """
    A row of units of one place, with what is asked of it for every claim.

    *begins* and *ends* say whether its first and its last unit are edges: a cut text has none there. *is_pair*: it is
    two sentences, out of which nothing is left.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        language: Language,
        *,
        begins: bool = True,
        ends: bool = True,
        is_pair: bool = False,
    ) -> None:
        """Hold *units*, in *language*."""
        self.units, self.language = units, language
        self.begins, self.ends, self.is_pair = begins, ends, is_pair
        self.words = [unit.word for unit in units]
        self._needed: dict[int, list[str]] = {}
        self._skipped: dict[int, tuple[int, ...]] = {}

    @cached_property
    def roots(self) -> list[str]:
        """Return the root of each unit."""
        return [ROOTS[word, self.language.endings] for word in self.words]

    @cached_property
    def folded_roots(self) -> list[str]:
        """Return the root of each unit as it is looked for in folded text."""
        return [folded(root) for root in self.roots]

    @cached_property
    def content(self) -> list[str]:
        """Return the roots of the words that say something by themselves, each once."""
        common = COMMON[self.language.code]
        pairs = zip(self.words, self.roots, strict=True)
        return list(dict.fromkeys([root for word, root in pairs if word not in common and word[0].isalnum()]))

    def words_needed(self, edits: int) -> list[str]:
        """
        Return the words that a place must have to say this with *edits* differences, folded: the `MAX_WORDS` longest.

        Numbers are none of them: one may be spelled otherwise there, and begins many others.
        """
        if edits not in self._needed:
            there = {
                root: word
                for place, (root, word) in enumerate(zip(self.roots, self.folded_roots, strict=True))
                if root[0].isalpha() and (not edits or self._is_needed(place))
            }
            self._needed[edits] = [there[place] for place in sorted(there, key=len, reverse=True)[:MAX_WORDS]]
        return self._needed[edits]

    def most_likeness(self, has: Callable[[str], object]) -> float:
        """Return what the likeness of a text is at most; *has* says whether it has a folded word."""
        there = [share for word, share in self._shares.items() if not word or has(word)]
        chars, units = sum([chars for chars, _ in there]), sum([units for _, units in there])
        return (chars / sum(map(len, self.content)) + units / len(self.units)) / 2

    @cached_property
    def _shares(self) -> dict[str, tuple[int, int]]:
        """
        Return how many characters of content and units each folded word has, by which a likeness is measured.

        Numbers, which may be spelled otherwise, are counted as "".
        """
        content = set(self.content)
        shares: dict[str, tuple[int, int]] = {}
        for root, word in zip(self.roots, self.folded_roots, strict=True):
            key = word if root[0].isalpha() else ""
            chars, units = shares.get(key, (0, 0))
            shares[key] = chars + len(root) * (root in content), units + 1
            content.discard(root)
        return shares

    def _is_needed(self, place: int) -> bool:
        """Say whether nothing that stands for the unit at *place* contradicts it: see `_contradicts`."""
        unit = self.units[place]
        is_of_number = place > 0 and self.units[place - 1].is_number and len(unit.key) <= UNIT_CHARS
        denies = self.language.denial.at(self.words, place) == 1
        return not (unit.is_number or unit.is_name or is_of_number or denies)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Return where the units of each root are."""
        by_root: dict[str, list[int]] = {}
        for place, root in enumerate(self.roots):
            by_root.setdefault(root, []).append(place)
        return by_root

    def of(self, unit: Unit) -> Iterator[int]:
        """Yield where *unit* stands."""
        for place in self.places.get(ROOTS[unit.word, self.language.endings], ()):
            if same(unit, self.units[place], self.language):
                yield place

    @cached_property
    def starts(self) -> frozenset[int]:
        """
        Return where clauses begin: behind a sign, or behind a word or two that may be left out at a beginning.

        What is behind a colon or in a cell belongs to what is before it.
        """
        leading = (self.language.openers, self.language.anywhere) if self.language.is_known else ()
        places: set[int] = set()
        for place, unit in enumerate(self.units):
            if place == 0:
                is_start = self.begins
            elif unit.before:
                is_start = unit.before == ","
            else:
                ending = [phrases for phrases in leading if self.words[place - 1] in phrases.lasts]
                is_start = any(place - size in places for some in ending for size in some.before(self.words, place))
            if is_start:
                places.add(place)
        return frozenset(places)

    def is_end(self, place: int) -> bool:
        """Say whether a clause ends behind *place*."""
        if place + 1 == len(self.units):
            return self.ends
        if self.units[place + 1].before:
            return True
        opener = self.language.openers.at(self.words, place + 1)
        beyond = place + 1 + opener
        # "five euros and 50 cents" is one amount.
        return opener > 0 and not (beyond < len(self.units) and self.units[beyond].is_number)

    def is_turned(self, first: int, last: int) -> bool:
        """Say whether a word before the unit *first* or behind *last* turns what stands beside it."""
        return any(not first <= place <= last for place in self._turning)

    @cached_property
    def turned(self) -> frozenset[str]:
        """Return the words that turn something."""
        return frozenset([self.words[place] for place in self._turning])

    @cached_property
    def _turning(self) -> list[int]:
        return self.language.turning.places(self.words)

    def skipped(self, place: int) -> tuple[int, ...]:
        """Return the units that may come before *place* in a claim: the one before it, or the one before a gap."""
        if place not in self._skipped:
            self._skipped[place] = tuple(self._before(place))
        return self._skipped[place]

    def _before(self, place: int) -> Iterator[int]:
        starts, waiting = {place}, [(place, False)]
        while waiting:
            at, is_shortened = waiting.pop()
            if at:
                yield at - 1
            for start, is_stretch in self._left_out(at) if self.language.is_known and not self.is_pair else ():
                # Behind a word that turns it, less says more: "not very high" is not "not high".
                if start not in starts and not (is_stretch and is_shortened) and not bisect_left(self._turning, start):
                    starts.add(start)
                    waiting.append((start, is_shortened or is_stretch))

    def _left_out(self, end: int) -> Iterator[tuple[int, bool]]:
        """Yield where what may be left out before *end* begins, and whether it is a stretch of a clause."""
        if not end:
            return
        if self.words[end - 1] in self.language.anywhere.lasts:
            yield from [(end - size, False) for size in self.language.anywhere.before(self.words, end)]
        is_aside = self.units[end - 1].is_aside and not self.units[end].is_aside
        if is_aside or self.units[end].before in (",", "|"):
            start = end - 1
            while start and not (self._opens_at(start) if is_aside else self._parts_at(start)):
                start -= 1
            if bisect_left(self._turning, start) == bisect_left(self._turning, end):
                yield start, not is_aside

    def _opens_at(self, place: int) -> bool:
        return not self.units[place - 1].is_aside

    def _parts_at(self, place: int) -> bool:
        return bool(self.units[place].before) and not self.units[place].is_aside


@dataclass(frozen=True, slots=True)
class Alignment:
    """
    A claim beside the units *first* to *last* of a place.

    *gaps* is how often something was left out of the place, *edits* how many differences there are that are not
    harmless: with one of them it is a contradiction, and no proof.
    """

    first: int
    last: int
    gaps: int = 0
    edits: int = 0


def aligned(claim: UnitRow, place: UnitRow, *, edits: int = 0) -> Alignment | None:
    """
    Return how *place* says the whole of *claim* with at most *edits* (0 or 1) contradicting differences; None if not.

    What *place* says besides begins and ends at the edge of a clause and turns nothing; in a language of which nothing
    is known it says nothing besides. The best alignment has the fewest edits, then the fewest gaps.
    """
    states = dict(_first_states(claim, place, edits))
    for number in range(1, len(claim.units)):
        if not states:
            return None
        states = _next(states, claim, place, number, edits)
    alignments = [state for state in states.values() if _is_whole(state, claim, place)]
    return min(alignments, key=lambda state: (state.edits, state.gaps), default=None)


def cells(claim: UnitRow, place: UnitRow) -> int:
    """Return how much work it is to align the two, in cells: pairs of equal units, and the units themselves."""
    counted = sum([len(place.places.get(root, ())) for root in claim.roots])
    return 3 * counted + len(claim.units) + len(place.units)


def _first_states(claim: UnitRow, place: UnitRow, edits: int) -> Iterator[tuple[int, Alignment]]:
    first = claim.units[0]
    for at in place.of(first):
        if at in place.starts:
            yield at, Alignment(at, at)
    for at in place.starts if edits else ():
        if not same(first, place.units[at], place.language) and _contradicts(claim, 0, place, at):
            yield at, Alignment(at, at, edits=1)


def _next(
    states: dict[int, Alignment], claim: UnitRow, place: UnitRow, number: int, edits: int
) -> dict[int, Alignment]:
    next_states: dict[int, Alignment] = {}
    for at in place.of(claim.units[number]):
        for before in place.skipped(at):
            if (state := states.get(before)) is not None:
                _keep(next_states, at, Alignment(state.first, at, state.gaps + (before + 1 < at), state.edits))
    if edits:
        for before, state in states.items():
            _edited(next_states, state, (claim, number), (place, before))
    return next_states


def _edited(
    states: dict[int, Alignment], state: Alignment, claim_at: tuple[UnitRow, int], place_at: tuple[UnitRow, int]
) -> None:
    """Add to *states* what follows *state* with one difference that contradicts; words that deny count as one."""
    (claim, number), (place, before) = claim_at, place_at
    at = before + 1
    if at >= len(place.units):
        return
    if not same(claim.units[number], place.units[at], place.language):
        if not state.edits and _contradicts(claim, number, place, at):
            _keep(states, at, Alignment(state.first, at, state.gaps, 1))
        if place.language.denial.at(claim.words, number) == 1:
            _keep(states, before, Alignment(state.first, before, state.gaps, 1))
    denied = place.language.denial.at(place.words, at)
    beyond = at + denied
    if denied and beyond < len(place.units) and same(claim.units[number], place.units[beyond], place.language):
        _keep(states, beyond, Alignment(state.first, beyond, state.gaps, 1))


def _keep(states: dict[int, Alignment], at: int, state: Alignment) -> None:
    best = states.get(at)
    if best is None or (state.edits, state.gaps) < (best.edits, best.gaps):
        states[at] = state


def _is_whole(state: Alignment, claim: UnitRow, place: UnitRow) -> bool:
    """Say whether all that *place* says besides is of other clauses, and turns nothing."""
    words, behind, is_end = place.words, state.last + 1, place.is_end(state.last)
    if behind == len(words):
        # What is cut off is cut off of both.
        is_end = is_end or not claim.ends
    elif place.language.denial.places(words[state.first : behind]):
        # Only another clause is left out behind a denial.
        is_end = is_end and place.language.openers.at(words, behind) > 0
    is_all = state.first == 0 and behind == len(words)
    return is_end and (is_all or place.language.is_known) and not place.is_turned(state.first, state.last)


def _contradicts(claim: UnitRow, number: int, place: UnitRow, at: int) -> bool:
    """Say whether the two units, which differ, cannot both be true: other numbers, units or names."""
    unit, other = claim.units[number], place.units[at]
    if unit.is_number and other.is_number:
        return _is_one_reading(unit.key) and _is_one_reading(other.key)
    if number and at and claim.units[number - 1].is_number and place.units[at - 1].is_number:
        return max(len(unit.key), len(other.key)) <= UNIT_CHARS
    return unit.is_name and other.is_name


def _is_one_reading(number: str) -> bool:
    """Say whether the digits of *number* can only be read in one way: 1,500 and 12 500 can be in two."""
    return all(map(str.isdigit, number[-4:-3]))
