"""
Where sentences begin and end in a text, as offsets; small, fast, and by region when the text is large.

A boundary is a sentence mark before a new beginning, an empty line, or a line end that is not a wrapped line.
Abbreviations, initials, numbers and section numbers do not end a sentence. Nothing is normalised: the offsets are code
points of the text as it is given.
"""

from __future__ import annotations

import re
from bisect import bisect_right

MAX_CHARS = 700
"""Longest span: text without any boundary is cut there, at a space where one is near."""

REGION_CHARS = 2000
"""How far around a place `bounds_around` looks for boundaries."""

_ABBREVIATION_LIST = """mr mrs ms dr prof st sr jr vs etc eg ie inc ltd co corp no nos art arts fig figs al vol
    pp p ed eds rev gen col sgt capt lt gov sen rep approx dept est min max ca cf resp sec ch ref refs eq eqs univ ave blvd rd mt
    jan feb mar apr jun jul aug sep sept oct nov dec
    m mm mme mlle mgr av apr chap env ex hab janv févr avr juil déc tél réf n° al. l r
    bzw ca usw evtl ggf inkl nr str hr fr hrsg bd jh abs vgl sog geb gest dipl ing mio mrd z d u o
    sra srta dña ud uds pág págs núm av gral lic dpto aprox
    sig dott ing avv ecc pag sigg
    г гг в вв т д п стр см рис табл ул им тыс млн млрд руб др пр проф акад св"""
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_END = re.compile(
    r"(?P<stop>[.!?…؟۔।]+[\"'»”’)\]]*(?:\[\d+\])*)(?P<gap>\s+)(?=[\"'«»“”„‘(\[¿¡\-–—•*]*\s?(?P<next>\w))"
    r"|[。！？]+[」』”’）]*\s*"
    r"|[ \t\u00a0]*\n[ \t\u00a0]*\n\s*"
    r"|[ \t\u00a0]*\n[ \t\u00a0]*(?=(?P<mark>[•*\-–—·▪●○◦■□►➢✓]+\s|\(?\w{1,3}[.)]\s)?[\"'«“„‘(\[¿¡]*(?P<line>\S))"
)
_LAST_WORD = re.compile(r"([^\s.,;:()\[\]\"'«»“”]+(?:\.[^\W\d_])*)$")
_TERMINAL = frozenset(".!?…:;。！？؟")
_WRAP_CHARS = 55


def spans(text: str) -> list[tuple[int, int]]:
    """Return the sentences of *text* as (start, end) in order, without white space around them; empty for blanks."""
    return _spans_between(text, 0, len(text))


def bounds_around(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """
    Return the sentences in the region around *start* to *end*, so that a long text is not cut as a whole.

    The first and the last may be cut where the region ends, those that touch *start* to *end* only when longer than
    the region.
    """
    low, high = max(0, start - REGION_CHARS), min(len(text), end + REGION_CHARS)
    if low > 0:
        newline = text.find("\n", low, start)
        low = newline + 1 if newline >= 0 else low
    return _spans_between(text, low, high)


def _spans_between(text: str, low: int, high: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    begin = low
    for match in _END.finditer(text, low, high):
        if _is_boundary(text, match, begin):
            stop = match.end("stop") if match["stop"] else match.start()
            if match["stop"] is None and text[match.start()] in "。！？":
                stop = match.end()
            _add(found, text, begin, stop)
            begin = match.end()
    _add(found, text, begin, high)
    return found


def _is_boundary(text: str, match: re.Match[str], begin: int) -> bool:
    if match["stop"] is not None:
        return "\n\n" in match["gap"] or _ends_sentence(text, match, begin)
    if match["line"] is not None:
        return _ends_line(text, match, begin)
    return True


def _ends_sentence(text: str, match: re.Match[str], begin: int) -> bool:
    following = match["next"]
    if following.islower():
        return False
    if match["stop"][0] != "." or match["stop"].startswith(".."):
        return True
    word = _LAST_WORD.search(text, max(begin, match.start() - 30), match.start())
    if word is None:
        return True
    last = word.group(1)
    if last.lower() in _ABBREVIATIONS:
        return False
    if len(last) == 1 and last.isalpha() and last.isupper():
        return False
    if "." in last and last.replace(".", "").isalpha():  # U.S., z.B., e.g: ends one only before a common opener
        return False
    return not (last.isdigit() and match.start() - begin <= len(last) + 1)


def _ends_line(text: str, match: re.Match[str], begin: int) -> bool:
    """Tell a line that ends from a line that was wrapped: the next one goes on in lower case, or this one is full."""
    line, position = match["line"], match.start()
    if match["mark"]:
        return True
    if line.islower() or line in ",;:.)":
        return False
    line_start = max(begin, text.rfind("\n", begin, position) + 1)
    is_full = position - line_start >= _WRAP_CHARS and text[position - 1] not in _TERMINAL
    if not is_full:
        return True
    next_end = text.find("\n", match.end())
    next_chars = (next_end if next_end >= 0 else len(text)) - match.end()
    return position - line_start > 110 and next_chars > 0


def _add(found: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while end - start > MAX_CHARS:
        cut = max(text.rfind(mark, start + MAX_CHARS // 2, start + MAX_CHARS) for mark in ("; ", ", ", " ", "\n"))
        cut = cut + 1 if cut > start else start + MAX_CHARS
        found.append((start, cut))
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        found.append((start, end))


def index_at(bounds: list[tuple[int, int]], offset: int) -> int:
    """Return the index of the sentence of *bounds* that holds *offset*, or of the last one before it; 0 at least."""
    return max(0, bisect_right(bounds, (offset, 1 << 60)) - 1)
