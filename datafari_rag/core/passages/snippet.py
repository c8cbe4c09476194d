"""The part of a sentence that is too long to be said whole: where most of the question's words stand, whole words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from datafari_rag.core.citations.statements import DENYING_WORD, is_negation
from datafari_rag.core.passages.answer_types import Cue
from datafari_rag.core.passages.term_matching import Term, traces_of
from datafari_rag.core.text.folding import folded

CUE_WORTH, CLAUSE_WORTH, CENTRE_WORTH = 0.5, 0.15, 0.2
"""What counts beside the question's words: the kind of thing asked for, a clause's beginning, words in the middle."""

_BLANKS = re.compile(r"\s+|(?<=[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])")
"""Where one word ends and the next begins; in scripts without spaces behind every character."""

_WORDS = re.compile(DENYING_WORD)
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
        worth += CUE_WORTH * any(start <= at < end for at in cues) + CLAUSE_WORTH * (start in clauses)
        if worth > best:
            best, found = worth, (start, end)
    return found


def _windows(text: str, room: int, language: str) -> Iterator[tuple[int, int]]:
    """Yield the longest run of whole words from each word on that cuts no negation off."""
    ends = [*(match.start() for match in _BLANKS.finditer(text)), len(text)]
    denials = _denials(text, language)
    for start in (0, *(match.end() for match in _BLANKS.finditer(text))):
        place = bisect_right(ends, start + room) - 1
        if place < 0 or ends[place] <= start:
            continue
        end = ends[place]
        if not any(said < start < last or first < end <= said for first, said, last in denials):
            yield start, end


def _denials(text: str, language: str) -> list[tuple[int, int, int]]:
    """Return where *text* denies something, each between the beginning and the end of its clause."""
    # A line may be wrapped anywhere.
    clauses = [0, *(match.end() for match in _CLAUSE.finditer(text) if match.group() != "\n"), len(text)]
    # Of scripts without spaces nothing is said here: one and the same character denies, or is a part of "very".
    denying = {word for word in set(_WORDS.findall(text)) if is_negation(folded(word), language)}
    places = [word.start() for word in _WORDS.finditer(text) if word.group() in denying]
    following = [bisect_right(clauses, place) for place in places]
    return [(clauses[after - 1], place, clauses[after]) for place, after in zip(places, following, strict=True)]


def _worth(hits: Sequence[Sequence[int]], terms: Sequence[Term], start: int, end: int) -> float:
    inside = [[at for at in places if start <= at < end] for places in hits]
    offsets = [at for places in inside for at in places]
    if not offsets:
        return 0.0
    middle = (min(offsets) + max(offsets)) / 2
    share = sum(term.share for term, places in zip(terms, inside, strict=True) if places)
    return share - CENTRE_WORTH * abs(middle - (start + end) / 2) / (end - start)
