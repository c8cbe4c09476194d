"""
Where the text of a document has words that an answer puts in quotation marks.

Words that are there count only by themselves: not cut out of a number or of a word that says the contrary, and not from
behind a negation that the answer leaves out. In doubt they are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from datafari_rag.core.citations.claim_facts import ClaimFacts
from datafari_rag.core.citations.proof.seen_text import UNSPACED, SeenText
from datafari_rag.core.citations.statements import DENYING_WORD, NEGATING_CHARACTERS, facts_of, is_negation
from datafari_rag.core.text.folding import folded
from datafari_rag.core.text.tables import is_row

MAX_PLACES = 200
MAX_COMPARED_CHARS = 20_000
"""How many places of a quotation are looked at, and how many characters of them are compared."""

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


class QuotedWords:
    """The search for quotations in one document's text; *claims* knows the words of each, for all documents."""

    def __init__(self, seen: SeenText, claims: ClaimFacts) -> None:
        """Search in *seen*."""
        self._seen = seen
        self._claims = claims

    def quoted(self, quote: str, *, around: str = "") -> tuple[int, int] | None:
        """
        Return where the stored text has the words *quote*, None when it has not, or not by themselves.

        Not by themselves: cut out of a number, or of a word that says the contrary, or from behind a negation that
        *around*, the words of the answer about it, leaves out.
        """
        wanted = self._claims.wording(quote).folded.strip(" ,;")
        if not any(map(str.isalnum, wanted)) or self._lacks_a_word(quote):
            return None
        for start, end in self._places(wanted):
            stored = self._seen.extract.origins.span(start, end)
            if stored is None or folded(self._seen.stored[slice(*stored)]) != wanted:
                continue
            if self._is_by_itself(start, end, around):
                return stored
        return None

    def spelled(self, quote: str, *, around: str = "") -> tuple[int, int] | None:
        """Return where the stored text has the words of *quote* in their order, whatever signs stand between them."""
        wanted = self._claims.wording(quote).folded
        words = list(_WORDS.finditer(wanted))
        if not 2 < len(words) <= MAX_SPELLED_WORDS or self._lacks_a_word(quote):
            return None
        between = [_between(wanted, one.end(), other.start()) for one, other in pairwise(words)]
        spelled = "".join(re.escape(word.group()) + sign for word, sign in zip(words, [*between, ""], strict=True))
        pattern = re.compile(rf"\b{spelled}\b")
        for match in islice(pattern.finditer(self._seen.folded.text), MAX_PLACES):
            span = self._seen.folded.span(*match.span())
            stored = None if span is None else self._seen.extract.origins.span(*span)
            if span is not None and stored is not None and self._is_by_itself(*span, around):
                return stored
        return None

    def _lacks_a_word(self, quote: str) -> bool:
        """Say whether a word of *quote* stands nowhere: to find that is quicker than to fold the document's text."""
        return any(one not in self._seen.sought.text for one in self._claims.needed(quote))

    def _places(self, wanted: str) -> Iterator[tuple[int, int]]:
        at, looked = self._seen.folded.text.find(wanted), 0
        most = min(MAX_PLACES, MAX_COMPARED_CHARS // len(wanted) + 1)
        while at >= 0 and looked < most:
            span = self._seen.folded.span(at, at + len(wanted))
            if span is not None:
                yield span
            at, looked = self._seen.folded.text.find(wanted, at + 1), looked + 1

    def _is_by_itself(self, start: int, end: int, around: str) -> bool:
        text = self._seen.extract.text
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
        text = self._seen.extract.text
        first = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        return not text[first:start].strip(" \t|") and is_row(text[first : end if end >= 0 else len(text)])

    def _is_denied(self, before: str, around: str) -> bool:
        word = _WORD_BEFORE.search(before)
        if word is None or not is_negation(folded(word["word"]), self._seen.language):
            return False
        return not facts_of(around, self._seen.language).is_negated


def _between(text: str, start: int, end: int) -> str:
    """Return the pattern of what may stand between two words instead of what does: between digits nothing else."""
    own = text[start:end]
    if text[start - 1].isdigit() and text[end].isdigit():
        return re.escape(own)
    # Atomic, for a word follows in any case: two ways to match the same signs would be tried in all combinations.
    return rf"(?>{re.escape(own)}(?=\w)|{_BETWEEN})"


def _is_uncut(edge: str, letters: re.Pattern[str], beside: str, turning: frozenset[str], is_long: bool) -> bool:
    """Say whether a quotation's edge is a word's, or cuts a long one where the word's rest does not turn its sense."""
    if not edge.isalpha() or UNSPACED.match(edge):
        return True
    found = letters.search(beside)
    rest = "" if found is None else found.group()
    return not rest or (is_long and folded(rest) not in turning)
