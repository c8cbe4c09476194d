"""
Makes two spellings of the same words equal, and maps back to the original characters.

Folded are case, white space, typographic quotes and dashes, compatibility forms and ligatures (Unicode's NFKC), soft
hyphens and all other invisible characters, and the backslash that cleaning turns into a slash. Differences in meaning
are kept: accents, digits and signs stay, `ß` is no `ss` (Maßen are no Massen), what is raised stays raised (10² is not
102, x² not x2), and a backslash between two digits is one.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from datafari_rag.core.text.cleaning import VISIBLE_ASCII, is_invisible, unusual

_LATIN = frozenset("abcdefghijklmnopqrstuvwxyz")

_SPELLINGS = {
    **dict.fromkeys("“”„‟«»″〝〞〟＂「」『』", '"'),
    **dict.fromkeys("‘’‚‛‹›′ʼʹ`´＇", "'"),
    **dict.fromkeys("‐‑‒–—―−﹘﹣－⁃", "-"),
    "œ": "oe",
    "Œ": "oe",
    "æ": "ae",
    "Æ": "ae",
    **dict.fromkeys("﹨＼", "/"),
}
_PLAIN_LETTERS = {
    letter: base
    for letter in map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)))
    if letter.islower() and (base := unicodedata.normalize("NFD", letter)[0]) in _LATIN
}
"""Lower-case Latin letters with accents, each with the one that it is without them."""

_TAG_BEGIN = re.compile(r"<(?=[A-Za-z/!?])")
_BACKSLASH = re.compile(r"(?<![0-9])\\|\\(?![0-9])")
_SHARP_S = re.compile("[ßẞ]")

_EXPONENT = "^"
_BLANKS = re.compile("  +")
_PLAIN, _VANISHES, _GROWS, _MARK, _GROWING_MARK = "-", "v", "g", "m", "M"
"""The kinds of characters: each kind represents one character in the search for what does not fold one to one."""

_MIXED = re.compile("[^ vmM][mM]+|[ v]{2,}|[vgM]")
"""An accent apart from its letter, blanks among which others vanish, what vanishes, what grows."""

_FEW = 50
"""So many different characters are replaced one after the other; a hostile text has thousands."""


class Folded:
    """
    A folded text: *text*, and the way back to the code points of the original, which is not kept.

    It is made of pieces. In most of them each character represents one of the original; the characters of a cluster
    together represent all that it was made of.
    """

    __slots__ = ("_clusters", "_starts", "_stored", "text")

    def __init__(self, text: str, starts: Sequence[int], stored: Sequence[int], clusters: Collection[int]) -> None:
        """
        Hold what `fold` found: where each piece begins in *text*, and where it was *stored* in the original.

        After the last piece there is the end of both. *clusters* are numbers of pieces.
        """
        self.text = text
        self._starts = starts
        self._stored = stored
        self._clusters = clusters

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """
        Return the stretch of the original that ``text[start:end]`` came from.

        None when the stretch is empty or begins or ends inside a character as a reader sees it: half a ligature, or a
        letter without its accent.
        """
        if not 0 <= start < end <= len(self.text):
            return None
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1) - 1
        into, beyond = start - self._starts[first], self._starts[last + 1] - end
        if (into and first in self._clusters) or (beyond and last in self._clusters):
            return None
        if any(unicodedata.combining(mark) for mark in (self.text[start], self.text[end : end + 1] or " ")):
            return None
        # What vanished behind a piece belongs to its last character.
        stop = self._stored[last] + end - self._starts[last] if beyond else self._stored[last + 1]
        return self._stored[first] + into, stop


def fold(text: str) -> Folded:
    """Return *text* folded: a run of white space is one space, with no space at either end; may be empty."""
    text = _as_shown(text)
    odd = {character: _spelling(character) for character in set(unusual(text))}
    spellings, raised = _PLAIN_SPELLINGS | odd, frozenset(filter(_is_raised, odd))
    at, end = _edges(text, spellings)
    regular = _regular(text, odd)
    pieces: list[str] = []
    starts: list[int] = []
    stored: list[int] = []
    clusters: set[int] = set()
    length = 0
    for start, stop in _irregular(text, regular, odd):
        if stop <= at or start >= end:
            continue
        # Most of them are blanks in a row, of which the first stays.
        kept = start + 1 if regular[start] == " " else start
        if kept > at:
            starts.append(length)
            stored.append(at)
            pieces.append(regular[at:kept])
            length += kept - at
        if kept == start and (spelled := _spelled(text, start, stop, spellings, raised)):
            clusters.add(len(starts))
            starts.append(length)
            stored.append(start)
            pieces.append(spelled)
            length += len(spelled)
        at = stop
    if at < end:
        starts.append(length)
        stored.append(at)
        pieces.append(regular[at:end])
        length += end - at
    return Folded("".join(pieces), [*starts, length], [*stored, max(at, end)], clusters)


def aligned(text: str) -> Folded | None:
    """
    Return *text* with each character folded at its place: words are found as in `fold`, in a third of its time.

    Blanks in a row stay, and so do signs that fold to several. None where a letter folds to none or to several, or has
    its accent apart.
    """
    text = _as_shown(text)
    odd = {character: _spelling(character) for character in set(unusual(text))}
    if not all(map(_keeps_place, odd)):
        return None
    return Folded(_regular(text, odd), (0, len(text)), (0, len(text)), ())


def folds_in_place(text: str) -> bool:
    """Say whether each character of *text* folds to one, whatever stands beside it, blanks aside."""
    return all(map(_is_one, set(unusual(text))))


def folded(text: str) -> str:
    """Return `fold` of *text* without the way back."""
    text = _as_shown(text)
    if text.isascii():
        # Most of what is compared: a translation within ASCII is some twenty times faster than any other.
        return " ".join(text.translate(_ASCII).split())
    odd = set(unusual(text))
    if all(map(_is_one, odd)):
        return " ".join(_regular(text, {character: _spelling(character) for character in odd}).split())
    return fold(text).text


def _as_shown(text: str) -> str:
    """Return *text* with what a model, or the reader of an answer, sees in place of two of its signs."""
    if "<" in text:
        text = _TAG_BEGIN.sub("‹", text)
    return _BACKSLASH.sub("/", text) if "\\" in text else text


def lowered(text: str) -> str:
    """Return *text* in lower case with every character at its place."""
    # The one character of Unicode that is two in lower case.
    return text.replace("\u0130", "i").lower()


def unaccented(text: str) -> str:
    """Return *text*, which is in lower case, without the accents of Latin letters, every character at its place."""
    if text.isascii():
        return text
    # A few accents occur often: to replace them one by one takes a tenth of the time that a table takes.
    for letter in _PLAIN_LETTERS.keys() & set(unusual(text)):
        text = text.replace(letter, _PLAIN_LETTERS[letter])
    return text


def _edges(text: str, spellings: Mapping[str, str]) -> tuple[int, int]:
    """Return where *text* begins and ends without what is blank or vanishes at its edges."""
    start, end = 0, len(text)
    while start < end and not spellings[text[start]].strip():
        start += 1
    while end > start and not spellings[text[end - 1]].strip():
        end -= 1
    return start, end


def _regular(text: str, odd: Mapping[str, str]) -> str:
    """
    Return *text* with every character replaced that folds to one other; the others may stay as they are.

    *odd* has the spelling of each character that is not plain.
    """
    if text.isascii():
        return text.translate(_ASCII_SAME_LENGTH)
    # What folds to one character folds as its lower case does; of all Unicode one letter is longer in that, and it is
    # grown.
    small = lowered(text)
    changed = {one.lower(): other for one, other in odd.items() if len(other) == 1 and one.lower() != other}
    if len(changed) > _FEW:
        return small.translate({ord(one): other for one, other in (_PLAIN_CHANGED | changed).items()})
    # A translation looks up each character; to replace the few that there are is ten times faster.
    for one, other in (_PLAIN_CHANGED | changed).items():
        small = small.replace(one, other)
    return small


def _irregular(text: str, regular: str, odd: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return what does not fold one to one: blanks in a row, what vanishes, grows or is composed; in order."""
    kinds = {one: _kind(one, other) for one, other in odd.items()}
    grown = [one for one, kind in kinds.items() if kind == _GROWS]
    marks = [] if unicodedata.is_normalized("NFC", text) else list(filter(unicodedata.combining, odd))
    if marks or len(grown) > _FEW or _VANISHES in kinds.values():
        kinds |= {one: _GROWING_MARK if kinds[one] == _GROWS else _MARK for one in marks}
        return _spans_of(_MIXED, text.translate(_PLAIN_KINDS | {ord(one): kind for one, kind in kinds.items()}))
    # To look for the few that there are is some times faster than to sort all characters into kinds.
    found = _spans_of(_BLANKS, regular)
    if grown:
        found.extend(_spans_of(re.compile(f"[{''.join(map(re.escape, grown))}]"), text))
        found.sort()
    return found


def _spans_of(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


def _kind(character: str, spelling: str) -> str:
    """Return the kind of *character*, which folds to *spelling*."""
    if not spelling:
        return _VANISHES
    if len(spelling) > 1 or _is_raised(character):
        return _GROWS
    return " " if character.isspace() else _PLAIN


def _spelled(text: str, start: int, stop: int, spellings: Mapping[str, str], raised: Collection[str]) -> str:
    found = text[start:stop]
    if len(found) > 1 and (found.isspace() or not spellings[found[0]].strip()):
        return " " if any(map(str.isspace, found)) else ""
    is_apart = found[0] in raised and (_is_superscript(found[0]) or text[max(0, start - 1) : start].isdigit())
    return f"{_EXPONENT if is_apart else ''}{spellings[found] if len(found) == 1 else _composed(found)}"


@lru_cache(maxsize=8192)
def _keeps_place(character: str) -> bool:
    """Say whether words beside *character* are found where it stays as it is: it folds to one, or is a sign."""
    if unicodedata.combining(character) or _is_raised(character):
        return False
    spelling = _spelling(character)
    return len(spelling) == 1 or (bool(spelling) and not any(map(str.isalnum, character + spelling)))


def _is_one(character: str) -> bool:
    """Say whether *character* folds to one, whatever stands beside it."""
    return len(_spelling(character)) == 1 and _keeps_place(character)


def _is_raised(character: str) -> bool:
    """Say whether *character* is raised, or a number that is not a plain digit: lowered, circled, a fraction."""
    return not character.isascii() and (unicodedata.category(character) == "No" or _is_superscript(character))


def _is_superscript(character: str) -> bool:
    return unicodedata.decomposition(character).startswith("<super>")


@lru_cache(maxsize=8192)
def _spelling(character: str) -> str:
    if character.isspace():
        return " "
    if character in _SPELLINGS:
        return _SPELLINGS[character]
    return "" if is_invisible(character) else _composed(character)


def _composed(cluster: str) -> str:
    small = "ß".join(map(str.casefold, _SHARP_S.split(unicodedata.normalize("NFKC", cluster))))
    plain = unicodedata.normalize("NFKC", small)
    if plain.startswith(" "):  # a separate mark is written as a blank with the mark: no blank to fold with others
        return cluster
    return "".join(_SPELLINGS.get(part, part) for part in plain)


_PLAIN_SPELLINGS = {character: _spelling(character) for character in VISIBLE_ASCII}
_PLAIN_CHANGED = {one: other for one, other in _PLAIN_SPELLINGS.items() if one.lower() != other}
_PLAIN_KINDS = {ord(character): _kind(character, spelling) for character, spelling in _PLAIN_SPELLINGS.items()}
_ASCII = {code: _spelling(chr(code)) or None for code in range(128)}
_ASCII_SAME_LENGTH = {code: other or chr(code) for code, other in _ASCII.items()}
