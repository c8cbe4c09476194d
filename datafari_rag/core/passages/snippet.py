"""The part of a long sentence that is shown: the one with most of the question's words, cut at words."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from datafari_rag.core.passages.answer_types import Cue
from datafari_rag.core.passages.term_matching import Term, traces_of
from datafari_rag.core.text.folding import folded
from datafari_rag.core.text.language import spoken

CUE_WORTH, CLAUSE_WORTH, CENTRE_WORTH = 0.5, 0.15, 0.2
"""What counts beside the question's words: the kind of thing asked for, a clause's beginning, words in the middle."""

MAX_BEGINNINGS = 5000
"""So many words are tried as the first one. No sentence has more; a row of a table may."""

_BLANKS = re.compile(r"\s+|(?<=[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])")
"""Where one word ends and the next begins; in scripts without spaces behind every character."""

_WORDS = re.compile(r"[^\W\d_]+(?:['’]t)?")
_CLAUSE = re.compile(r"[,;:()\[\]–—]\s+|\s(?=[–—(])|\n")


def clipped(text: str, room: int, *, terms: Sequence[Term], cue: Cue | None, language: str) -> tuple[int, int]:
    """
    Return the part of *text*, at most *room* characters, that answers best, as (start, end).

    All of it when it fits; (0, 0) when not even one word does. No clause is cut so that its negation is left out:
    the rest would say the contrary.
    """
    if len(text) <= room:
        return 0, len(text)
    hits = traces_of(terms, text, language).hits
    cues = [] if cue is None else [match.start() for match in cue.finditer(text)]
    clauses = {0, *(match.end() for match in _CLAUSE.finditer(text))}
    best, found = -1.0, (0, 0)
    for start, end in _windows(text, room, language):
        worth = _worth(hits, terms, start, end)
        worth += CUE_WORTH * _has_any(cues, start, end) + CLAUSE_WORTH * (start in clauses)
        if worth > best:
            best, found = worth, (start, end)
    return found


def _windows(text: str, room: int, language: str) -> Iterator[tuple[int, int]]:
    """Yield the longest run of whole words from each word on that cuts no negation off."""
    blanks = [match.span() for match in _BLANKS.finditer(text)]
    ends = [*(start for start, _ in blanks), len(text)]
    clauses, denials = _clauses(text), _denials(text, language)
    for start in (0, *(end for _, end in blanks[: MAX_BEGINNINGS - 1])):
        place = bisect_right(ends, start + room) - 1
        if place < 0 or ends[place] <= start:
            continue
        end = ends[place]
        begun, last = clauses[bisect_right(clauses, start) - 1], clauses[bisect_left(clauses, end)]
        if not (_has_any(denials, begun, start) or _has_any(denials, end, last)):
            yield start, end


def _clauses(text: str) -> list[int]:
    """Return where the clauses of *text* begin, and where it ends. A line may be wrapped anywhere."""
    return [0, *(match.end() for match in _CLAUSE.finditer(text) if match.group() != "\n"), len(text)]


def _denials(text: str, language: str) -> list[int]:
    """Return where *text* denies something."""
    # Of scripts without spaces nothing is found here: one and the same character denies, or is a part of "very".
    words, denial = list(_WORDS.finditer(text)), spoken(language).denial
    plain = [folded(word.group()) for word in words]
    return [words[place].start() for place in denial.places(plain)]


def _has_any(places: Sequence[int], start: int, end: int) -> bool:
    """Say whether any of *places*, which are in order, is from *start* to before *end*."""
    return bisect_left(places, start) < bisect_left(places, end)


def _worth(hits: Sequence[Sequence[int]], terms: Sequence[Term], start: int, end: int) -> float:
    held = [
        (term, places[low], places[high - 1])
        for term, places in zip(terms, hits, strict=True)
        if (low := bisect_left(places, start)) < (high := bisect_left(places, end))
    ]
    if not held:
        return 0.0
    middle = (min(first for _, first, _ in held) + max(last for _, _, last in held)) / 2
    share = sum(term.share for term, _, _ in held)
    return share - CENTRE_WORTH * abs(middle - (start + end) / 2) / (end - start)
