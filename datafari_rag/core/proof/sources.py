"""
One document as it is looked into: blocks that begin anew, with their words, and the statements of those that matter.

Only what stands around the parts that the model saw is read. What a statement would be beyond an edge that is no edge
of the stored text is not known: there it is a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from datafari_rag.core.documents import HIGHLIGHTING, NO_ORIGINS, Extract
from datafari_rag.core.proof.words import joined, line_of, root, rough_roots
from datafari_rag.core.text.statements import EMPTY_LINE, STOPS, Statement, statements, texts_of
from datafari_rag.core.text.structure import is_row
from datafari_rag.core.text.tokens import Token, tokens

WHOLE_CHARS, REACH_CHARS = 40_000, 2_000
"""A longer text is read only this far around what the model saw."""

BLOCK_CHARS = 300
"""The least characters of a block; statements of one block alone are compared together."""

MAX_WORK = 2_000_000
"""Statements looked at and words read for one text: some seconds."""

PREVIEW = "preview_content"
"""The field of documents whose text is the beginning of the stored one."""

_JOINT = re.compile(r"\s…\s")
_ANEW = re.compile(r"(?<!\s)(?P<gap>\s*\n)(?=#|[^\W_]++[^\w.)])")
"""Behind an empty line, or a long line with a full stop, a word, which is no item, begins what no line introduces."""

LONG_LINE_CHARS = 300
"""A line of so many characters is a paragraph of its own."""


class Words(NamedTuple):
    """
    The words of a statement: its *tokens*, their places counted from its start, and the *line* of their keys.

    *full_line*, *raws* (the words as they are written) and *roots* are those of the statement with what introduces it;
    a question has no roots.
    """

    tokens: list[Token]
    line: str
    full_line: str
    raws: list[str]
    roots: frozenset[str]


class Work:
    """Counts what the documents of one text cost together; behind `MAX_WORK` nothing is proved."""

    def __init__(self) -> None:
        """Count from nothing."""
        self.left = MAX_WORK

    def take(self, units: int) -> bool:
        """Count *units*, and say whether they may be spent."""
        self.left -= units
        return self.left >= 0


class Region(NamedTuple):
    """A stretch of a text; *is_begun* and *is_ended* say that no statement goes on beyond its edges."""

    start: int
    end: int
    is_begun: bool
    is_ended: bool


class Block:
    """The statements of a region, which are compared together."""

    def __init__(self, text: str, region: Region) -> None:
        """Read the words alone."""
        self.text, self.region = text, region
        self.roots = rough_roots(text[region.start : region.end])
        self._words: dict[int, Words] = {}

    @cached_property
    def statements(self) -> list[Statement]:
        """Return the statements in order."""
        found = statements(self.text, self.region.start, self.region.end)
        if not self.region.is_begun:
            # What introduces a list, or names the columns of a table, may stand above.
            first = next((at for at, one in enumerate(found) if one.kind in ("sentence", "heading")), len(found))
            found[: first + 1] = [one._replace(is_part=True) for one in found[: first + 1]]
        if found and not self.region.is_ended:
            found[-1] = found[-1]._replace(is_part=True)
        return found

    @cached_property
    def rough(self) -> list[frozenset[str]]:
        """Return the rough roots of each statement with what introduces it."""
        return [rough_roots(" ".join(texts_of(self.text, one))) for one in self.statements]

    def words(self, number: int) -> Words:
        """Return the words of a statement."""
        if number not in self._words:
            one = self.statements[number]
            texts = [self.text[one.start : one.end], *(texts_of(self.text, one) if one.above else ())]
            own, *each = map(tokens, texts)
            line, *lines = map(line_of, texts, (own, *each))
            said = [(text, token) for text, found in zip(texts[1:], each, strict=True) for token in found]
            said = said or [(texts[0], token) for token in own]
            roots = frozenset(() if one.is_question else (root(token) for _, token in said))
            raws = [text[token.start : token.end] for text, token in said]
            self._words[number] = Words(own, line, joined(lines) if lines else line, raws, roots)
        return self._words[number]


def is_prose(text: str, run: Sequence[Statement]) -> bool:
    """Say whether *run*, neighbours of *text*, are sentences of one paragraph, each whole by itself."""
    if any(one.kind != "sentence" or one.is_part or one.is_question or one.above for one in run):
        return False
    return not any(EMPTY_LINE.search(text, one.end, other.start) for one, other in pairwise(run))


class Source:
    """The blocks of one document that may be looked into."""

    def __init__(self, extract: Extract) -> None:
        """Remember *extract*; nothing is read yet."""
        self.extract = extract
        self.text = extract.text if extract.document.field == HIGHLIGHTING else extract.document.text

    @cached_property
    def blocks(self) -> Sequence[Block]:
        """Return the blocks in order."""
        return [block for region in self._regions() for block in _blocks(self.text, region)]

    @cached_property
    def roots(self) -> frozenset[str]:
        """Return the rough roots of all blocks."""
        return frozenset[str]().union(*(block.roots for block in self.blocks))

    @cached_property
    def statements(self) -> list[Statement]:
        """Return the statements of all blocks."""
        return [one for block in self.blocks for one in block.statements]

    def _regions(self) -> Iterator[Region]:
        """Yield what is read, in order: of the parts of the stored text all, or what is near what the model saw."""
        text, document = self.text, self.extract.document
        if document.field == HIGHLIGHTING:
            edges = [0, *(edge for joint in _JOINT.finditer(text) for edge in joint.span()), len(text)]
            yield from (
                Region(*edge, is_begun=False, is_ended=False) for edge in zip(edges[::2], edges[1::2], strict=True)
            )
            return
        parts = [Region(run.start, run.start + run.length, run.stored == 0, False) for run in document.origins.runs]
        if document.origins is NO_ORIGINS:
            parts = [Region(0, len(text), True, document.field != PREVIEW)]
        seen = sorted(self.extract.origins.stretches()) or [(0, len(text))]
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


def _blocks(text: str, region: Region) -> Iterator[Block]:
    """Yield the blocks of *region*: each but the last has at least `BLOCK_CHARS` characters."""
    start, is_begun = region.start, region.is_begun
    for match in _ANEW.finditer(text, region.start, region.end):
        end = match.end()
        is_empty = match["gap"].count("\n") > 1
        line = "" if is_empty else text[text.rfind("\n", start, end - 1) + 1 : end - 1]
        is_wrapped = not is_empty and (len(line) < LONG_LINE_CHARS or line[-1] not in STOPS or is_row(line))
        if end - start >= BLOCK_CHARS and not (is_wrapped or text[end].islower()):
            yield Block(text, Region(start, end, is_begun, is_ended=True))
            start, is_begun = end, True
    yield Block(text, Region(start, region.end, is_begun, region.is_ended))
