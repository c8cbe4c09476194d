"""
Two spellings of the same words made equal, with the way back to the characters as they stand.

Folded are case, white space, typographic quotes and dashes, compatibility forms and ligatures (Unicode's NFKC), soft
hyphens and all else that nobody sees, and the backslash that cleaning turns into a slash. Nothing that a reader can
tell apart in meaning is folded: accents, digits and signs stay, and a raised digit after a digit stays raised (10² is
not 102).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from datafari_rag.core.text.cleaning import is_invisible
from datafari_rag.core.text.lowering import lowered
from datafari_rag.core.text.offset_map import OffsetMap, OffsetRun

_PLAIN = "".join(map(chr, range(0x20, 0x7F)))
"""What can be seen in ASCII, and the space."""

_PLAIN_BYTES = _PLAIN.encode("ascii")

_SPELLINGS = {
    **dict.fromkeys("“”„‟«»″〝〞〟＂「」『』", '"'),
    **dict.fromkeys("‘’‚‛‹›′ʼʹ`´＇", "'"),
    **dict.fromkeys("‐‑‒–—―−﹘﹣－⁃", "-"),
    "œ": "oe",
    "Œ": "oe",
    "æ": "ae",
    "Æ": "ae",
    "\\": "/",
}
_EXPONENT = "^"
_BLANKS = re.compile("  +")


class Folded:
    """A folded text: *text*, and the way back to the code points of the original, which is not kept."""

    __slots__ = ("_ends", "_origins", "text")

    def __init__(self, text: str, origins: OffsetMap, ends: Mapping[int, int]) -> None:
        """Hold what `fold` found; *ends* says where several characters became one."""
        self.text = text
        self._origins = origins
        self._ends = ends

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """
        Return the stretch of the original that ``text[start:end]`` came from.

        None when the stretch is empty or begins or ends inside a character as a reader sees it: half a ligature, or a
        letter without its accent.
        """
        first, last = self._origins.at(start), self._origins.at(end - 1)
        if end <= start or first is None or last is None:
            return None
        if first == self._origins.at(start - 1) or last == self._origins.at(end):
            return None
        if any(unicodedata.combining(mark) for mark in (self.text[start], self.text[end : end + 1] or " ")):
            return None
        return first, self._ends.get(end - 1, last + 1)


def fold(text: str) -> Folded:
    """Return *text* folded: a run of white space is one space, none stands at either end; may be empty."""
    odd = {character: _spelling(character) for character in set(_unusual(text))}
    spellings = _PLAIN_SPELLINGS | odd
    at, end = _edges(text, spellings)
    regular = _regular(text, odd)
    pieces: list[str] = []
    runs: list[OffsetRun] = []
    ends: dict[int, int] = {}
    length = 0
    for start, stop in _irregular(text, regular, odd):
        if stop <= at or start >= end:
            continue
        if regular[start] == " ":
            # Most of them are blanks in a row, of which the first stays: one run, where two would say the same.
            spelled, kept = "", start + 1
        else:
            spelled, kept = _spelled(text, start, stop, spellings), start
        if kept > at:
            runs.append(OffsetRun(length, at, kept - at))
            pieces.append(regular[at:kept])
            length += kept - at
        if spelled:
            runs.extend(OffsetRun(length + number, start, 1) for number in range(len(spelled)))
            pieces.append(spelled)
            length += len(spelled)
        at = stop
        ends[length - 1] = at
    if at < end:
        runs.append(OffsetRun(length, at, end - at))
        pieces.append(regular[at:end])
    return Folded("".join(pieces), OffsetMap(tuple(runs)), ends)


def aligned(text: str) -> Folded | None:
    """
    Return *text* with each character folded at its place: words are found as in `fold`, in a third of its time.

    Blanks in a row stay, and so do signs that fold to several. None where a letter folds to none or to several, or has
    its accent apart.
    """
    odd = {character: _spelling(character) for character in set(_unusual(text))}
    if not all(map(_keeps_place, odd, odd.values())):
        return None
    return Folded(_regular(text, odd), OffsetMap((OffsetRun(0, 0, len(text)),)), {})


def folded(text: str) -> str:
    """Return `fold` of *text* without the way back."""
    if text.isascii():
        # Most of what is compared: a translation within ASCII is some twenty times faster than any other.
        return " ".join(text.translate(_ASCII).split())
    return fold(text).text


def _unusual(text: str) -> str:
    """Return *text* without its plain characters: to look for anything else among them would take the longest."""
    return text.encode("utf-8", "surrogatepass").translate(None, _PLAIN_BYTES).decode("utf-8", "surrogatepass")


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
    # Beyond ASCII a translation asks for each character; to replace the few that there are is ten times faster. What
    # folds to one character folds as its lower case does; of all Unicode one letter is longer in that, and it is grown.
    small = lowered(text)
    changed = {one.lower(): other for one, other in odd.items() if len(other) == 1 and one.lower() != other}
    for one, other in (_PLAIN_CHANGED | changed).items():
        small = small.replace(one, other)
    return small


def _irregular(text: str, regular: str, odd: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return what does not fold one to one: blanks in a row, what vanishes, grows or is composed; in order."""
    dropped = _class_of(one for one, other in odd.items() if not other)
    grown = _class_of(one for one, other in odd.items() if len(other) > 1 or _is_raised(one))
    marks = _marks(text, odd)
    if dropped or marks:
        return [match.span() for match in _mixed(dropped, grown, marks).finditer(text)]
    # A pattern that begins with one character, or with one class, lets the engine skip ahead; a choice would not.
    found = [match.span() for match in _BLANKS.finditer(regular)]
    if grown:
        found.extend(match.span() for match in re.finditer(f"[{grown}]", text))
        found.sort()
    return found


def _marks(text: str, odd: Iterable[str]) -> str:
    """Return the accents of *text* that stand apart from their letters; none when it is composed."""
    if unicodedata.is_normalized("NFC", text):
        return ""
    return _class_of(one for one in odd if unicodedata.combining(one))


def _mixed(dropped: str, grown: str, marks: str) -> re.Pattern[str]:
    """Return the pattern of all that does not fold one to one, where blanks and what vanishes may be mixed."""
    choices = [f"[^\\s{dropped}{marks}][{marks}]+"] if marks else []
    choices.append(rf"[\s{dropped}]{{2,}}")
    choices.extend(f"[{members}]" for members in (dropped, grown) if members)
    return re.compile("|".join(choices))


def _class_of(characters: Iterable[str]) -> str:
    return "".join(map(re.escape, characters))


def _spelled(text: str, start: int, stop: int, spellings: Mapping[str, str]) -> str:
    found = text[start:stop]
    if found.isspace() or (len(found) > 1 and not spellings[found[0]].strip()):
        return " " if any(map(str.isspace, found)) else ""
    if len(found) > 1:
        return _composed(found)
    if _is_raised(found) and start > 0 and text[start - 1].isdigit():
        return _EXPONENT + spellings[found]
    return spellings[found]


def _keeps_place(character: str, spelling: str) -> bool:
    if unicodedata.combining(character) or _is_raised(character):
        return False
    return len(spelling) == 1 or (bool(spelling) and not any(map(str.isalnum, character + spelling)))


def _is_raised(character: str) -> bool:
    """Say whether *character* is a number that is not a plain digit: raised, lowered, circled, a fraction."""
    return not character.isascii() and unicodedata.category(character) == "No"


@lru_cache(maxsize=8192)
def _spelling(character: str) -> str:
    if character.isspace():
        return " "
    if character in _SPELLINGS:
        return _SPELLINGS[character]
    return "" if is_invisible(character) else _composed(character)


def _composed(cluster: str) -> str:
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    if plain.startswith(" "):  # a mark that stands alone is spelled as a blank with it: no blank to fold with others
        return cluster
    return "".join(_SPELLINGS.get(part, part) for part in plain)


_PLAIN_SPELLINGS = {character: _spelling(character) for character in _PLAIN}
_PLAIN_CHANGED = {one: other for one, other in _PLAIN_SPELLINGS.items() if one.lower() != other}
_ASCII = {code: _spelling(chr(code)) or None for code in range(128)}
_ASCII_SAME_LENGTH = {code: other or chr(code) for code, other in _ASCII.items()}
