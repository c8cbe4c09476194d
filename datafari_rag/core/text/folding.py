"""
Makes two spellings of the same words equal, and maps back to the original characters.

Folded are case, white space, typographic quotes and dashes, compatibility forms and ligatures (Unicode's NFKC), soft
hyphens and all other invisible characters, and the backslash that cleaning turns into a slash. Differences in meaning
are kept: accents, digits and signs stay, `ß` is no `ss` (Maßen are no Massen), what is raised stays raised (10² is not
102, x² not x2), and a backslash between two digits is one.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from datafari_rag.core.documents import OffsetMap, OffsetRun
from datafari_rag.core.text.structure import row_lines
from datafari_rag.core.text.words import Remembered

VISIBLE_ASCII = "".join(map(chr, range(0x20, 0x7F)))
"""What can be seen in ASCII, and the space."""

_VISIBLE_BYTES = VISIBLE_ASCII.encode("ascii")

LINE_ENDS = "\n\r\t\v\f\x85\u2028\u2029"
"""What becomes a space: line ends and tabs, with the rarer spellings that Unicode has for both."""

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""
Soft hyphen, fillers, zero-width and bidirectional marks, variation selectors, annotations, and the tag characters in
which whole sentences can be hidden: what Unicode calls ignorable by default, and the other format controls.
"""

_UNSENDABLE = "\ud800-\udfff\ufffe\uffff"
"""Lone surrogates and noncharacters: JSON for a model cannot carry the first, nothing may mean the second."""

_DROPPED_CLASS = f"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f{_INVISIBLE}{_UNSENDABLE}]"
_DROPPED_ONLY_CLASS = f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_INVISIBLE}{_UNSENDABLE}]"
_DROPPED = re.compile(f"{_DROPPED_CLASS}+")
_DROPPED_ONLY = re.compile(f"{_DROPPED_ONLY_CLASS}+")

_BREAKS = re.compile(f"[{LINE_ENDS}]+")
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Bidirectional embeddings, overrides and isolates; the plain marks (U+200E, U+200F) only help mixed texts."""

_PRESENTATION = "\ufe0e\ufe0f"
_NON_JOINER, _JOINER = "\u200c", "\u200d"
_VIRAMA = 9
"""The canonical combining class of what takes the vowel from a letter of India (RFC 5892, appendix A)."""

PIECE_CHARS = 20_000
"""Of a longer text so much is read at a time."""

_ZEROS = re.compile(r"&#0+(?=[0-9])")
_TOO_LARGE = re.compile(r"&#[0-9]{8,};?")
"""The largest code point has seven digits."""


def clean(text: str, *, is_full: bool, is_in_table: bool = False) -> tuple[str, OffsetMap]:
    """
    Return *text* as the model may see it, and the original position of each character.

    Controls and invisible characters are dropped. *is_full* also turns each line end and tab into one space, save in
    the rows of tables (`spaced`), and each backslash into a slash; without it all of them stay. Double quotes stay.
    The result may be empty.
    """
    dropped = _DROPPED if is_full else _DROPPED_ONLY
    if not any(map(dropped.search, map(unusual, pieces(text)))):
        return (spaced(text, is_in_table=is_in_table) if is_full else text), OffsetMap(
            (OffsetRun(0, 0, len(text)),) if text else ()
        )
    parts, runs, at, length = [], [], 0, 0
    for match in dropped.finditer(text):
        if match.start() > at:
            runs.append(OffsetRun(length, at, match.start() - at))
            parts.append(text[at : match.start()])
            length += match.start() - at
        at = match.end()
    if at < len(text):
        runs.append(OffsetRun(length, at, len(text) - at))
        parts.append(text[at:])
    whole = "".join(parts)
    return (spaced(whole, is_in_table=is_in_table) if is_full else whole), OffsetMap(tuple(runs))


def unusual(text: str) -> str:
    """Return *text* without what `VISIBLE_ASCII` has: to look for anything else among it would take the longest."""
    return text.encode("utf-8", "surrogatepass").translate(None, _VISIBLE_BYTES).decode("utf-8", "surrogatepass")


def unusual_characters(text: str) -> set[str]:
    """Return the characters of *text* that `unusual` leaves."""
    return set().union(*map(unusual, pieces(text)))


def pieces(text: str) -> Sequence[str]:
    """Return *text* in pieces of whole words: while one call into C reads megabytes, no other thread does anything."""
    if len(text) <= PIECE_CHARS:
        return (text,)
    cuts = [0]
    while len(text) - cuts[-1] > PIECE_CHARS:
        reach = cuts[-1] + PIECE_CHARS
        cuts.append(text.rfind(" ", cuts[-1], reach) + 1 or reach)
    return [text[at:end] for at, end in pairwise((*cuts, len(text)))]


def encodable(text: str) -> str:
    """Return *text* with every lone surrogate replaced: half a character cannot be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_unicode(text: str) -> bool:
    """Say whether *text* can be written as UTF-8: JSON can spell halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def without_invisible(text: str) -> str:
    """Return *text* (a title or similar) without invisible characters and outer blanks; line ends become spaces."""
    return clean(_BREAKS.sub(" ", text), is_full=False)[0].strip()


class VisibleText:
    """
    A text in pieces of any size without controls and what is invisible; line ends and tabs stay.

    Joiners and non-joiners stay where letters or signs need them, and signs keep how they are presented.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._before = self._tail = ""

    def feed(self, text: str) -> str:
        """Return what may be shown; what the next letter decides about is held back, two characters at most."""
        is_plain = (text.isascii() and text.isprintable()) or _DROPPED_ONLY.search(unusual(text)) is None
        if is_plain and not self._tail:
            self._before = text[-1:] or self._before
            return text
        whole = self._tail + text
        self._tail, parts, at = "", [], 0
        for run in _DROPPED_ONLY.finditer(whole):
            parts.append(whole[at : run.start()])
            at = run.end()
            self._before = whole[run.start() - 1] if run.start() else self._before
            needed = _joining(run.group(), self._before, whole[at : at + 1])
            if at == len(whole):
                self._tail = needed
            else:
                parts.append(needed)
        parts.append(whole[at:])
        self._before = whole[at:][-1:] or self._before
        return "".join(parts)


def visible(text: str) -> str:
    """Return *text* as `VisibleText` shows it."""
    return VisibleText().feed(text)


def _joining(run: str, before: str, after: str) -> str:
    """Return what a letter or sign needs of a *run* of invisible characters; *after* "": all that it may need."""
    if not before:
        return ""
    kind = unicodedata.category(before)[0]
    selector = next((sign for sign in run if sign in _PRESENTATION and (kind == "S" or after in ("", "\u20e3"))), "")
    joiner = next((sign for sign in run if sign in (_NON_JOINER, _JOINER)), "")
    if joiner and after and not _is_needed(joiner, before, after):
        joiner = ""
    return selector + joiner


def _is_needed(joiner: str, before: str, after: str) -> bool:
    if _VIRAMA in (unicodedata.combining(before), unicodedata.combining(after)):
        return True
    is_cursive = unicodedata.bidirectional(before) == "AL"
    if joiner == _NON_JOINER:
        return is_cursive and unicodedata.bidirectional(after) == "AL"
    return is_cursive or unicodedata.category(before)[0] == unicodedata.category(after)[0] == "S"


def without_directions(text: str) -> str:
    """Return *text* without the controls that reverse the direction of the text after them."""
    return text if text.isascii() else _DIRECTIONS.sub("", text)


def unescaped(text: str) -> str:
    """
    Return *text* with its character references of HTML resolved, as `html.unescape` does it.

    That function raises a ValueError for a number of more than 4,300 digits, because Python reads no longer one. Here
    it becomes U+FFFD, as every number beyond the last code point does.
    """
    if "&#" in text:
        text = _TOO_LARGE.sub("\ufffd", _ZEROS.sub("&#", text))
    return html.unescape(text)


def is_invisible(character: str) -> bool:
    """Say whether *character* is one that cleaning drops whatever the settings say."""
    return _DROPPED_ONLY.fullmatch(character) is not None


def spaced(text: str, *, is_in_table: bool = False) -> str:
    """
    Return *text* with line ends and tabs as spaces and backslashes as slashes, which is what full cleaning adds.

    The rows of tables stay on separate lines with their tabs: without them the columns of the cells are lost.
    *is_in_table* says that *text* was cut from a table, so that a row alone is one too. Each character keeps its place.
    """
    text = text.replace("\\", "/")
    rows = row_lines(text, are_neighbours=not is_in_table)
    if not rows:
        return _on_one_line(text)
    pieces, at = [], 0
    for start, end in rows:
        # The line end before the row and the one after it are the row's.
        pieces.append(_on_one_line(text[at : max(at, start - 1)]))
        pieces.append(_on_one_line(text[max(at, start - 1) : end + 1], but="\n\t"))
        at = end + 1
    return "".join((*pieces, _on_one_line(text[at:])))


def _on_one_line(text: str, *, but: str = "") -> str:
    for end in LINE_ENDS:
        if end not in but:
            text = text.replace(end, " ")
    return text


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
    odd = {character: _SPELLED[character] for character in unusual_characters(text)}
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
        first = start + 1 if regular[start] == " " else start
        if first > at:
            starts.append(length)
            stored.append(at)
            pieces.append(regular[at:first])
            length += first - at
        if first == start and (spelled := _spelled(text, start, stop, spellings, raised)):
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
    odd = {character: _SPELLED[character] for character in unusual_characters(text)}
    if not all(map(_KEEPS_PLACE.__getitem__, odd)):
        return None
    return Folded(_regular(text, odd), (0, len(text)), (0, len(text)), ())


def folded(text: str) -> str:
    """Return `fold` of *text* without the way back."""
    text = _as_shown(text)
    if text.isascii():
        # Most of what is compared: a translation within ASCII is some twenty times faster than any other.
        return " ".join(text.translate(_ASCII).split())
    odd = unusual_characters(text)
    if all(map(_is_one, odd)):
        return " ".join(_regular(text, {character: _SPELLED[character] for character in odd}).split())
    return fold(text).text


def _as_shown(text: str) -> str:
    """Return *text* with what a model, or the reader of an answer, sees in place of two of its signs."""
    if "<" in text:
        text = _TAG_BEGIN.sub("‹", text)
    return _BACKSLASH.sub("/", text) if "\\" in text else text


def lowered(text: str) -> str:
    """Return *text* in lower case with every character at its place."""
    # The one character of Unicode that is two in lower case.
    return "".join(map(str.lower, pieces(text.replace("\u0130", "i"))))


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
    changed = {sign.lower(): other for sign, other in odd.items() if len(other) == 1 and sign.lower() != other}
    if len(changed) > _FEW:
        return small.translate({ord(sign): other for sign, other in (_PLAIN_CHANGED | changed).items()})
    # A translation looks up each character; to replace the few that there are is ten times faster.
    for sign, other in (_PLAIN_CHANGED | changed).items():
        small = small.replace(sign, other)
    return small


def _irregular(text: str, regular: str, odd: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return what does not fold one to one: blanks in a row, what vanishes, grows or is composed; in order."""
    kinds = {sign: _kind(sign, other) for sign, other in odd.items()}
    grown = [sign for sign, kind in kinds.items() if kind == _GROWS]
    marks = [] if unicodedata.is_normalized("NFC", text) else list(filter(unicodedata.combining, odd))
    if marks or len(grown) > _FEW or _VANISHES in kinds.values():
        kinds |= {sign: _GROWING_MARK if kinds[sign] == _GROWS else _MARK for sign in marks}
        return _spans_of(_MIXED, text.translate(_PLAIN_KINDS | {ord(sign): kind for sign, kind in kinds.items()}))
    # To look for the few that there are is some times faster than to sort all characters into kinds.
    spans = _spans_of(_BLANKS, regular)
    if grown:
        spans.extend(_spans_of(re.compile(f"[{''.join(map(re.escape, grown))}]"), text))
        spans.sort()
    return spans


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
    run = text[start:stop]
    if len(run) > 1 and (run.isspace() or not spellings[run[0]].strip()):
        return " " if any(map(str.isspace, run)) else ""
    is_apart = run[0] in raised and (_is_superscript(run[0]) or text[max(0, start - 1) : start].isdigit())
    return f"{_EXPONENT if is_apart else ''}{spellings[run] if len(run) == 1 else _composed(run)}"


def _keeps_place(character: str) -> bool:
    """Say whether words beside *character* are found where it stays as it is: it folds to one, or is a sign."""
    if unicodedata.combining(character) or _is_raised(character):
        return False
    spelling = _SPELLED[character]
    return len(spelling) == 1 or (bool(spelling) and not any(map(str.isalnum, character + spelling)))


def _is_one(character: str) -> bool:
    """Say whether *character* folds to one, whatever stands beside it."""
    return len(_SPELLED[character]) == 1 and _KEEPS_PLACE[character]


def _is_raised(character: str) -> bool:
    """Say whether *character* is raised, or a number that is not a plain digit: lowered, circled, a fraction."""
    return not character.isascii() and (unicodedata.category(character) == "No" or _is_superscript(character))


def _is_superscript(character: str) -> bool:
    return unicodedata.decomposition(character).startswith("<super>")


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


_SPELLED = Remembered(_spelling, 8192)
_KEEPS_PLACE = Remembered(_keeps_place, 8192)

_PLAIN_SPELLINGS = {character: _SPELLED[character] for character in VISIBLE_ASCII}
_PLAIN_CHANGED = {sign: other for sign, other in _PLAIN_SPELLINGS.items() if sign.lower() != other}
_PLAIN_KINDS = {ord(character): _kind(character, spelling) for character, spelling in _PLAIN_SPELLINGS.items()}
_ASCII = {code: _SPELLED[chr(code)] or None for code in range(128)}
_ASCII_SAME_LENGTH = {code: other or chr(code) for code, other in _ASCII.items()}
