"""
One document as it is looked into: blocks that begin anew, where words stand in them, and the statements of a few.

Only what stands around the parts that the model saw is read. What a statement would be beyond an edge that is no edge
of the stored text is not known: there it is a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

from datafari_rag.core.documents import HIGHLIGHTING, NO_ORIGINS, Extract
from datafari_rag.core.proof.words import Words, rough_roots
from datafari_rag.core.text.sentences import EMPTY_LINE, STOPS, Statement, statements, texts_of
from datafari_rag.core.text.structure import is_row

WHOLE_CHARS, REACH_CHARS = 40_000, 2_000
"""A longer text is read only this far around what the model saw."""

BLOCK_CHARS = 300
"""The least characters of a block; statements of one block alone are compared together. A line of as many ends one."""

PREVIEW = "preview_content"
"""The field of documents whose text is the beginning of the stored one."""

_JOINT = re.compile(r"\s…\s")
_LINE = re.compile(r"\n(?=#|[^\W_]++[^\w.)])")
"""A line that begins with a word, which is no item."""


class Region(NamedTuple):
    """A stretch of a text; *is_begun* and *is_ended* say that no statement goes on beyond its edges."""

    start: int
    end: int
    is_begun: bool
    is_ended: bool


class Block:
    """The statements of a region, which are compared together."""

    def __init__(self, text: str, region: Region) -> None:
        """Read nothing yet of the *region* of *text*."""
        self.text, self.region = text, region
        self._words: dict[int, tuple[Words, Words]] = {}

    @cached_property
    def roots(self) -> frozenset[str]:
        """Return the rough roots of all words."""
        return rough_roots(self.text[self.region.start : self.region.end])

    @cached_property
    def statements(self) -> list[Statement]:
        """Return the statements in order; those that an edge which was not read may have cut are marked as parts."""
        found = statements(self.text, self.region.start, self.region.end)
        if not self.region.is_begun:
            # What introduces a list, or names the columns of a table, may stand above.
            first = next((at for at, one in enumerate(found) if one.kind in ("sentence", "heading")), len(found))
            found[: first + 1] = [one._replace(is_part=True) for one in found[: first + 1]]
        if found and not self.region.is_ended:
            found[-1] = found[-1]._replace(is_part=True)
        return found

    @cached_property
    def roots_of_each(self) -> list[frozenset[str]]:
        """Return the rough roots of each statement with what introduces it."""
        # A header may be above thousands of rows: it is read once.
        roots = cache(lambda start, end: rough_roots(self.text[start:end]))
        return [
            frozenset[str]().union(*(roots(each.start, each.end) for each in (*one.above, one)))
            for one in self.statements
        ]

    @cached_property
    def windows(self) -> list[frozenset[str]]:
        """Return the rough roots of each statement together with those of its neighbours."""
        each = self.roots_of_each
        return [frozenset[str]().union(*each[max(0, at - 1) : at + 2]) for at in range(len(each))]

    def words(self, number: int) -> tuple[Words, Words]:
        """Return the words of a statement, and those with what introduces it."""
        if number not in self._words:
            one = self.statements[number]
            own = Words(self.text[one.start : one.end])
            self._words[number] = own, Words(*texts_of(self.text, one)) if one.above else own
        return self._words[number]


class Source:
    """The blocks of one document that may be looked into."""

    def __init__(self, extract: Extract) -> None:
        """Remember *extract*; nothing is read yet."""
        self.extract = extract
        self.text = extract.text if extract.document.field == HIGHLIGHTING else extract.document.text

    @cached_property
    def blocks(self) -> Sequence[Block]:
        """Return the blocks in order."""
        regions = _regions(self.text, self.extract)
        return [Block(self.text, part) for region in regions for part in _parts(self.text, region)]

    @cached_property
    def roots(self) -> frozenset[str]:
        """Return the rough roots of all blocks."""
        return frozenset[str]().union(*(block.roots for block in self.blocks))

    @cached_property
    def statements(self) -> list[Statement]:
        """Return the statements of all blocks."""
        return [one for block in self.blocks for one in block.statements]


def is_prose(text: str, run: Sequence[Statement]) -> bool:
    """Say whether *run*, neighbours of *text*, are sentences of one paragraph, each whole by itself."""
    if any(one.kind != "sentence" or one.is_part or one.is_question or one.above for one in run):
        return False
    return not any(EMPTY_LINE.search(text, one.end, other.start) for one, other in pairwise(run))


def _regions(text: str, extract: Extract) -> Iterator[Region]:
    """Yield what is compared, in order: short parts of the text whole, of long ones what is near what was seen."""
    document = extract.document
    if document.field == HIGHLIGHTING:
        edges = [0, *(edge for joint in _JOINT.finditer(text) for edge in joint.span()), len(text)]
        yield from (Region(*edge, False, False) for edge in zip(edges[::2], edges[1::2], strict=True))
        return
    parts = [Region(run.start, run.start + run.length, run.stored == 0, False) for run in document.origins.runs]
    if document.origins is NO_ORIGINS:
        parts = [Region(0, len(text), True, document.field != PREVIEW)]
    seen = sorted(extract.origins.stretches()) or [(0, len(text))]
    for part in parts:
        reach = REACH_CHARS if part.end - part.start > WHOLE_CHARS else WHOLE_CHARS
        near = [
            (max(part.start, start - reach), min(part.end, end + reach))
            for start, end in seen
            if start < part.end and end > part.start
        ]
        while near:
            low, high = near.pop(0)
            while near and near[0][0] <= high:
                high = max(high, near.pop(0)[1])
            yield Region(low, high, part.is_begun and low == part.start, part.is_ended and high == part.end)


def _parts(text: str, region: Region) -> Iterator[Region]:
    """
    Yield *region* in parts of which each but the last has at least `BLOCK_CHARS` characters.

    Behind an empty line, or a long line with a full stop, a word begins what no line introduces.
    """
    start, is_begun = region.start, region.is_begun
    for match in _LINE.finditer(text, region.start, region.end):
        end = match.end()
        if end - start < BLOCK_CHARS or text[end].islower():
            continue
        line = text[text.rfind("\n", start, end - 1) + 1 : end - 1].rstrip()
        if not line or (len(line) >= BLOCK_CHARS and line[-1] in STOPS and not is_row(line)):
            yield Region(start, end, is_begun, is_ended=True)
            start, is_begun = end, True
    yield Region(start, region.end, is_begun, region.is_ended)
