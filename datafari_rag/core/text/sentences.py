"""
Where sentences begin and end in a text, as offsets; small, fast, and by region when the text is large.

A boundary is a sentence mark before a new beginning, an empty line, or a line end that is not a wrapped line.
Abbreviations of the text's language, initials, numbers and section numbers do not end a sentence. The row of a table is
one span, whatever is in its cells. Nothing is normalised: the offsets are code points of the text as it is given.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter

from datafari_rag.core.text.language import FUNCTION_WORDS, detect, language_codes, listed
from datafari_rag.core.text.structure import Table, tables_in, uncovered

_ANYWHERE = frozenset(
    "mr mrs ms dr prof st sr jr vs etc inc ltd co corp al p pp ed eds vol cf ca no nr fig".split()  # noqa: SIM905
)
"""Abbreviations that texts in any language have: of titles, companies and places in books."""

_BEFORE_NUMBERS_LIST = """no nos nr n° art arts fig figs vol sec ch chap cap ext tel tél min max párr s д ст
    jan feb mar apr jun jul aug sep sept oct nov dec janv févr avr juil déc ene abr ago dic"""
_BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS_LIST.split())
"""Ordinary words that are abbreviations before a number: "no. 5", "Jan. 5"."""

_CLOSING = frozenset(("inc", "ltd", "co", "corp", "etc", "usw", "ecc", "al", "jr", "sr"))
"""Abbreviations that end a sentence often enough; then a word follows that nearly always begins one."""

_AROUND_CHARS = 600
"""How much text on each side, at least, shows in which language an abbreviation would be one."""

_NEXT_WORD = re.compile(r"\w+")
_COUNTED = re.compile(
    r"Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Quartal|Auflage"
)
"""What German counts with a point behind the number."""

_ROMAN = re.compile(r"[IVXLC]+\b")
_BARE = re.compile(r"['’\"«“”„‘(\[¿¡]")
_LONGEST_CHARS = 9
_INITIALISM_CHARS = 2
_ORDINAL_DIGITS = 2


Languages = dict[int, str]
"""The languages of the stretches of one text that were looked at."""


def is_abbreviated(text: str, begin: int, stop: int, after: int, languages: Languages | None = None) -> bool:
    """
    Say whether the point at *stop* belongs to the word before it and no sentence ends there.

    *begin* is where the sentence began, *after* where the next word would begin one. Who asks for many points of a text
    hands in the same *languages* each time: it is filled here, for a text may be full of abbreviations.
    """
    words = text[max(begin, stop - 30) : stop].rsplit(None, 1)
    word = words[-1] if words else ""
    if len(word) > _LONGEST_CHARS and word.isalpha():
        return False
    word = _BARE.split(word)[-1]
    small = word.lower()
    if small in _BEFORE_NUMBERS:
        return text[after : after + 1].isdigit() or _ROMAN.match(text, after) is not None
    if word.replace(".", "").isdigit():
        return _is_numbering(text, word, max(begin, stop - 30), stop, after)
    if small in _ANYWHERE and small not in _CLOSING:
        return True
    is_open = small in _CLOSING or _is_initial(word)
    listed_in = _abbreviations().get(small, frozenset())
    if listed_in and small not in _CLOSING:
        languages = {} if languages is None else languages
        low = max(0, stop // _AROUND_CHARS - 1) * _AROUND_CHARS
        if low not in languages:
            languages[low] = detect(text[low : low + 3 * _AROUND_CHARS])
        language = languages[low]
        if language in listed_in:
            return True
        is_open = is_open or not language
    return is_open and not (text[after : after + 1].isupper() and _is_beginning(text, after))


@cache
def _abbreviations() -> Mapping[str, frozenset[str]]:
    """Return the languages of each abbreviation: in another one it may be a word, "à l'est. Le vent"."""
    languages = defaultdict[str, set[str]](set)
    for code in language_codes():
        for word in listed(code, "abbreviations"):
            languages[word].add(code)
    return {word: frozenset(codes) for word, codes in languages.items()}


@cache
def _beginnings() -> frozenset[str]:
    """Return the stop words of all languages: written with a capital, they begin a sentence."""
    return frozenset().union(*(FUNCTION_WORDS[code] for code in language_codes()))


def _is_numbering(text: str, word: str, begin: int, stop: int, after: int) -> bool:
    """Recognise the number of a section, which begins its sentence or a quotation, and a German ordinal."""
    if stop - begin <= len(word) + 1 or text[begin : stop - len(word)].rstrip().endswith(("“", "„", "«")):
        return True
    return len(word) <= _ORDINAL_DIGITS and _COUNTED.match(text, after) is not None


def _is_initial(word: str) -> bool:
    """Distinguish "J", "J.-P" and "U.S" from words and file names."""
    parts = [part.strip("-") for part in word.split(".")]
    if len(parts) == 1:
        return len(word) == 1 and word.isupper()
    return all(part.isalpha() and len(part) <= _INITIALISM_CHARS for part in parts)


def _is_beginning(text: str, after: int) -> bool:
    word = _NEXT_WORD.match(text, after)
    is_initial = word is not None and text[word.end() : word.end() + 1] == "." and len(word.group()) == 1
    return word is not None and not is_initial and word.group().lower() in _beginnings()


Span = tuple[int, int]

MAX_TICKS = 30
"""A run of more backticks begins and ends no code within a line."""

_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t]*+(?P<signs>[`~]{3,}+)[ \t]*+$", re.MULTILINE)
_TICKS = re.compile(r"`++|\n(?=[ \t]*+\n)")


def code_spans(text: str) -> list[Span]:
    """
    Return the code of *text* as (start, end) with its fences, in order; they never overlap.

    A fence that nothing closes reaches to the end. A span ends at the next run of exactly as many backticks, before an
    empty line; of a run that has no such the last backticks may open one.
    """
    found = [(fence.start(), fence.end(), fence[1]) for fence in _FENCE.finditer(text)]
    closings: dict[int, int] = {}
    for run in reversed(list(_TICKS.finditer(text))):
        size = run.end() - run.start()
        if run[0] == "\n":
            closings.clear()
        elif size <= MAX_TICKS:
            if own := max((other for other in closings if other <= size), default=0):
                found.append((run.end() - own, closings[own], ""))
            closings[size] = run.end()
    stretches: list[Span] = []
    at = 0
    for start, end, fence in sorted(found, key=itemgetter(0)):
        if start >= at:
            ends = (match.end() for match in _FENCE_END.finditer(text, end) if match["signs"].startswith(fence))
            at = next(ends, len(text)) if fence else end
            stretches.append((start, at))
    return stretches


MAX_CHARS = 700
"""Longest span: text without any boundary is cut there, at a space where one is near."""

REGION_CHARS = 2000
"""How far around a place `bounds_around` looks for boundaries."""

# The leading single character lets the engine skip ahead; a repeated one would not. What follows it leaves out half of
# all line ends together, which `_is_boundary` would: those of wrapped lines, where the next goes on in lower case.
# A run of signs with no end behind it is one match as a whole (`none`): each later sign of it would begin a search
# through all of the rest.
_MARK = re.compile(
    r"[.!?…؟۔।。！？\n](?:(?:(?![a-z]{4})|(?<![^.!?…:;。！？؟]\n))"
    r"[.!?…؟۔।。！？\n]*(?:(?<!\n)[\"'»”“’)\]」』）]+|[\xa0 ]»)?(?:(?<!\n)\[\d+\])*(?:\s+|(?<=[。！？」』”’）\n]))"
    r"|(?P<none>[.!?…؟۔।。！？\n]++))"
)
_OPENERS = "\"'«“”„‘([¿¡ \u00a0"
_BULLETS = frozenset("•*-–—·▪●○◦■□►➢✓")
_ITEM = re.compile(r"\(?[^\W_]{1,3}[.)]\s|[•*\-–—·▪●○◦■□►➢✓]+\s")
_UNFINISHED = re.compile(
    r"(?:^|\s)(?:the|an?|of|to|and|or|for|with|by|from|in|on|at|is|are|its|their|see|les?|la|des?|du|et|ou|à|une?|avec|par|pour|dans"
    r"|der|die|das|und|oder|mit|von|zu|den|dem|eine?|el|los|las|y|con|por|para|и|в|на|с|по|из)$|[,،、，]$"
)
"""The end of a line that continues in the next."""

_CAPTION = re.compile(
    r"#{1,6} [\dA-Z][\d.]{0,12}|(?:Table|Figure|Example|Tableau|Exemple|Tabelle|Abbildung|Beispiel|Tabla|Figura)"
    r" [\dA-Z][\d.]{0,12}"
)
"""The number of a heading that has its mark, or of a table: its words follow."""

_CAPTION_CHARS = 24
_TAIL_CHARS = 8
_TERMINAL = frozenset(".!?…:;。！？؟")
_BLANKS = " \n\t\u00a0"
_UNSEEN = "\ufeff\u200b"
"""Stand before the first word of many texts, and are not shown."""

_WIDE = frozenset("。！？")
_WRAP_CHARS = 55
_LONG_LINE_CHARS = 110


def spans(text: str, *, longest: int = MAX_CHARS, most: int | None = None) -> list[Span]:
    """
    Return the sentences of *text* as (start, end) in order, without white space around them; empty for blanks.

    A sentence of more than *longest* characters is cut. With *most* the first so many, without looking for the others.
    """
    return list(islice(_spans_in(text, 0, len(text), longest), most))


def blocks(text: str, least_chars: int, tables: Sequence[Table] | None = None) -> list[Span]:
    """
    Return *text* in pieces of whole sentences as (start, end), each the shortest of at least *least_chars* characters.

    The last may be shorter. Sentences that stay together are not cut one by one: that costs five times as much.
    *tables* are those of *text*, where they are known.
    """
    found: list[Span] = []
    for begin, last, table in uncovered(tables_in(text) if tables is None else tables, 0, len(text)):
        if table is not None:
            found.extend(_header_and_runs(table.rows, least_chars))
            continue
        languages = Languages()
        while begin < last:
            end = _block_end(text, begin, last, least_chars, languages)
            start, stop = _trimmed(text, begin, end)
            if start < stop:
                found.append((start, stop))
            begin = end
    return found


def bounds_around(text: str, start: int, end: int, reach: int = REGION_CHARS) -> list[Span]:
    """
    Return the sentences in the region *reach* around *start* to *end*, so that a long text is not cut as a whole.

    The first and the last may be cut at the edge of the region, between two words where there are any; a sentence that
    touches *start* to *end* is cut only when it is longer than the region.
    """
    low, high = max(0, start - reach), min(len(text), end + reach)
    if low > 0:
        newline = text.find("\n", low, start)
        low = newline + 1 if newline >= 0 else _next_word(text, low, start)
    if high < len(text) and not text[high].isspace():
        high = 1 + max(text.rfind(blank, end, high) for blank in _BLANKS) or high
    return list(_spans_in(text, low, high))


def _next_word(text: str, low: int, high: int) -> int:
    """Return where the first word behind *low* begins, before *high*; *low* when none does."""
    if text[low - 1].isspace():
        return low
    places = [at for blank in _BLANKS if (at := text.find(blank, low, high)) >= 0]
    return min(places) + 1 if places else low


def _header_and_runs(rows: Sequence[Span], least_chars: int) -> Iterator[Span]:
    """Yield the header row alone, then the other *rows* in runs of at least *least_chars* characters."""
    yield rows[0]
    begin: int | None = None
    for start, end in rows[1:]:
        begin = start if begin is None else begin
        if end - begin >= least_chars:
            yield begin, end
            begin = None
    if begin is not None:
        yield begin, rows[-1][1]


def _block_end(text: str, begin: int, last: int, least_chars: int, languages: Languages) -> int:
    """Return the first sentence end *least_chars* after *begin* or later, behind its white space; *last* at most."""
    limit = begin + MAX_CHARS + least_chars
    high = min(limit, last)
    for match in _MARK.finditer(text, min(begin + least_chars, high), high):
        end = match.end()
        if match["none"] is None and end < high and _is_boundary(text, match.group(), begin, end, languages):
            return end
    return high if limit >= last else _cut(text, begin + least_chars, limit)


def _spans_in(text: str, low: int, high: int, longest: int = MAX_CHARS) -> Iterator[Span]:
    for begin, last, table in uncovered(tables_in(text, low, high), low, high):
        if table is not None:
            for row in table.rows:
                yield from _bounded(text, *row, longest)
            continue
        languages = Languages()
        for match in _MARK.finditer(text, begin, last):
            run, after = match.group(), match.end()
            if match["none"] is None and after < last and _is_boundary(text, run, begin, after, languages):
                yield from _bounded(text, begin, match.start() + len(run.rstrip()), longest)
                begin = after
        yield from _bounded(text, begin, last, longest)


def _is_boundary(text: str, run: str, begin: int, after: int, languages: Languages) -> bool:
    if run == "\n\n":
        return True
    if run == "\n":  # with the empty lines three marks in four of a text with line ends
        return _is_line_end(text, after - 1, begin, after)
    if run[0] in _WIDE:
        return True
    if not run[-1].isspace():
        return False
    lines = run.count("\n")
    if lines > 1:
        return True
    if lines and _is_line_end(text, after - len(run), begin, after):
        return True
    return run[0] != "\n" and _is_sentence_end(text, run, begin, after, languages)


def _is_sentence_end(text: str, run: str, begin: int, after: int, languages: Languages) -> bool:
    following = text[after]
    while following in _OPENERS and after + 1 < len(text):
        after += 1
        following = text[after]
    if following.islower() or not (following.isalnum() or following in _BULLETS):
        return False
    if run[0] != "." or run.startswith(".."):
        return True
    stop = text.rfind(".", begin, after)
    if stop - begin <= _CAPTION_CHARS and _CAPTION.fullmatch(text, begin, stop) is not None:
        return False
    return not is_abbreviated(text, begin, stop, after, languages)


def _is_line_end(text: str, position: int, begin: int, after: int) -> bool:
    """Distinguish the end of a line from a wrap: the next line goes on in lower case, or this line is full."""
    if _ITEM.match(text, after):
        return True
    line = text[after]
    if line in ",;:.)" or _UNFINISHED.search(text, max(begin, position - _TAIL_CHARS), position) is not None:
        return False
    if text[position] != "\n":
        position += len(text[position:after]) - len(text[position:after].lstrip(".!?…\"'»”’)]"))
    before = text[position - 1 : position]
    line_chars = position - max(begin, text.rfind("\n", begin, position) + 1)
    if line.islower():
        return line_chars < _WRAP_CHARS and before in _TERMINAL
    return line_chars < _WRAP_CHARS or before in _TERMINAL or line_chars > _LONG_LINE_CHARS


def _bounded(text: str, start: int, end: int, longest: int) -> Iterator[Span]:
    """Yield *start* to *end* without white space around it, in pieces when it is too long."""
    start, end = _trimmed(text, start, end)
    while end - start > longest:
        cut = _cut(text, start + longest // 2, start + longest)
        yield start, cut
        start, end = _trimmed(text, cut, end)
    if start < end:
        yield start, end


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] in _UNSEEN):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut(text: str, low: int, high: int) -> int:
    """Return where text without a boundary is cut: behind its last space between *low* and *high*, else at *high*."""
    cut = max(text.rfind(mark, low, high) for mark in ("; ", ", ", " ", "\n"))
    return cut + 1 if cut >= 0 else high
