"""
What a document says of one sentence: word for word, in part, much the same, or nothing.

*verified*: its words are one or more whole neighbouring statements. *quoted*: they are a stretch of one. *near*: most
of its content words stand in three neighbouring statements, with all of its numbers and names. Everything else is
*unsupported*. Nothing is left out of a sentence, and nothing is recognised as harmless.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter
from typing import Any

from datafari_rag.core.proof.sources import Block, Source, is_prose
from datafari_rag.core.proof.words import Words, is_denying, rough_roots, word_lists
from datafari_rag.core.text.language import FUNCTION_WORDS
from datafari_rag.core.text.sentences import asks

VERIFIED, QUOTED, NEAR, UNSUPPORTED = "verified", "quoted", "near", "unsupported"
STATUSES = (VERIFIED, QUOTED, NEAR, UNSUPPORTED)
"""What a sentence can be, the best first."""

LEAST_WORDS, LEAST_CONTENT = 3, 2
"""What has fewer words, or fewer content words, states nothing."""

NEAR_SHARE = 0.7
"""How much of a sentence's content words a near place has (docs/grounding.md)."""

ROUGH_SHARE = 0.6
"""How much of a sentence a place has at the least, as its words are looked for, where it is compared."""

MAX_BLOCKS, MAX_PLACES = 8, 4
"""Blocks of a document that are looked into for a sentence, and their places that are compared with it."""

MAX_WORK, STATEMENTS_A_STEP = 2_000_000, 8
"""Steps that may be spent on one text: some seconds. A step is a word that is compared, or so many statements."""

MAX_BESIDE = 3
"""A sentence with more content words beside its quotation is judged as a whole."""

MAX_QUOTATION_CHARS = 2_000
QUOTATION = re.compile(
    "|".join(
        rf"{opening}[^{opening}{closing}]{{1,{MAX_QUOTATION_CHARS}}}[{closing}]"
        for opening, closing in (("“", "”"), ("„", "“”"), ("«", "»"), ("「", "」"), ("『", "』"), ('"', '"'))
    )
)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """
    What a document says of a sentence: *status*, and the *place* of the whole statements in its text that give it.

    *match* is the stretch of words of a verified or quoted one, and *context* what introduces the place: a line above,
    a header. *missing* are the words of a near sentence that the place lacks, *added* those of the nearest statement
    that the sentence lacks. *share* is how many of its content words the place has. An unsupported one has the nearest
    place, if any.
    """

    status: str = UNSUPPORTED
    place: Span | None = None
    match: Span | None = None
    context: str = ""
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    share: float = 0.0


NOTHING = Finding()


class Work:
    """Counts what the sentences of one text cost together; behind `MAX_WORK` nothing is proved."""

    def __init__(self) -> None:
        """Count from nothing."""
        self.left = MAX_WORK

    def take(self, steps: int) -> bool:
        """Count *steps*, and say whether they may be spent."""
        self.left -= steps
        return self.left >= 0


class Sentence(Words):
    """A sentence as it is compared: its words, and those that a near place must have."""

    def __init__(self, text: str, language: str) -> None:
        """Read *text*; *language* decides stop words alone, and may be empty."""
        super().__init__(text)
        self.text, self.asks, self.stop = text, asks(text), FUNCTION_WORDS[language]
        counted, is_loud = word_lists().counted, text.isupper()
        self.content, self.weights, self.needed = 0, Counter[str](), set[str]()
        empty, named = list[str](), list[str]()
        for at, (token, raw, own) in enumerate(zip(self.tokens, self.raws, self.roots, strict=True)):
            is_counted, is_name = token.key in counted, raw[0].isupper()
            # In May, which a dog may; by IT.
            is_capital = is_name and (is_counted or (len(raw) > 1 and raw.isupper() and not is_loud))
            if not own or (token.key in self.stop and not is_capital):
                empty.append(raw)
                continue
            self.content += 1
            if not is_denying(token):
                self.weights[own] += 1
            if is_counted or (is_name and at) or any(map(str.isdigit, token.key)):
                self.needed.add(own)
                named.append(raw)
        self.rough = rough_roots(text) - rough_roots(" ".join(empty)) or rough_roots(text)
        # U.S. and US are the same, and read here as other words.
        named_roots = rough_roots(" ".join(named)) & self.rough
        self.rough_needed = {one for one in named_roots if len(one) > 2 or one.isdigit()}

    @property
    def states(self) -> bool:
        """Say whether it has enough words to state anything."""
        return len(self.tokens) >= LEAST_WORDS and self.content >= LEAST_CONTENT

    def quotation(self, language: str) -> Sentence | None:
        """Return the quotation that it is but for a few words; None where there is none."""
        found = QUOTATION.search(self.text)
        if found is None:
            return None
        quotation = Sentence(found[0][1:-1], language)
        is_most = self.content - quotation.content <= MAX_BESIDE
        return quotation if is_most and quotation.states and len(quotation.tokens) < len(self.tokens) else None


def judged(sentence: Sentence, source: Source, work: Work) -> Finding:
    """
    Return what *source* says of *sentence*, which states something; *work* bounds how much is compared.

    An unsupported one gets its place from `nearest`.
    """
    best = NOTHING
    for hits, block, number in _places(sentence, source, ROUGH_SHARE * len(sentence.rough), work):
        if best is not NOTHING and hits < len(sentence.rough):
            break  # Nothing that is left has all of its words.
        each, own = block.roots_of_each, block.roots_of_each[number]
        beside = [at for at in (number - 1, number + 1) if 0 <= at < len(each) and each[at] & sentence.rough - own]
        if not work.take(sum(len(each[at]) for at in (number, *beside))):
            break
        found = _word_for_word(sentence, block, [number, *beside]) or _near(sentence, block, [number, *beside])
        best = min(best, found, key=lambda one: STATUSES.index(one.status))
        if best.status == VERIFIED:
            break
    return best


def nearest(sentence: Sentence, source: Source, work: Work) -> Finding:
    """Return as unsupported the statement of *source* that is most like *sentence*; without a place where none is."""
    places = _places(sentence, source, 1, work, is_compared=False)
    return _finding(UNSUPPORTED, places[0][1], [places[0][2]]) if places else NOTHING


def _places(
    sentence: Sentence, source: Source, least: float, work: Work, *, is_compared: bool = True
) -> list[tuple[int, Block, int]]:
    """
    Return the statements around which *least* of the sentence's rough roots stand, those with the most first.

    Each is behind how many it has. If they are compared with it, the needed ones are among them.
    """
    rough, needed, ranked = sentence.rough, sentence.rough_needed if is_compared else set[str](), []
    if len(rough & source.roots) < least or not needed <= source.roots or not work.take(len(source.blocks)):
        return []
    hits = [(len(rough & block.roots), -at) for at, block in enumerate(source.blocks) if needed <= block.roots]
    for found, at in heapq.nlargest(MAX_BLOCKS if is_compared else 1, hits):
        block = source.blocks[-at]
        if found < least or not work.take(len(block.statements) // STATEMENTS_A_STEP):
            break
        for number, window in enumerate(block.windows):
            if (count := len(rough & window)) >= least:
                own = block.roots_of_each[number]
                # Of neighbours the one that has most of the words itself comes first, and says little else.
                ranked.append(((count, len(rough & own), -len(own)), block, number))
    return [(rank[0], block, number) for rank, block, number in heapq.nlargest(MAX_PLACES, ranked, key=itemgetter(0))]


def _finding(status: str, block: Block, run: Sequence[int], **more: Any) -> Finding:
    """Return *status* with the statements of *run*, numbers in order, and what introduces the first of them."""
    first, last = block.statements[run[0]], block.statements[run[-1]]
    context = "\n".join(block.text[one.start : one.end] for one in first.above)
    return Finding(status, (first.start, last.end), context=context, **more)


def _word_for_word(sentence: Sentence, block: Block, around: Sequence[int]) -> Finding | None:
    """Return the proof by the words of one of the statements *around* or of a run from it, None where there is none."""
    line, statements = sentence.line, block.statements
    for number in around:
        one, (_, full) = statements[number], block.words(number)
        is_whole = line == full.line and not one.is_part and one.is_question == sentence.asks
        if is_whole and _has_capitals_of(sentence, full.raws):
            return _verified(block, number, number)
    if sentence.asks:
        return None
    for first in around:
        words, last = block.words(first)[0], first
        said, raws = words.line, words.raws
        while len(said) < len(line) and line.startswith(said) and last + 1 < len(statements):
            last += 1
            words = block.words(last)[0]
            said, raws = said + words.line[1:], raws + words.raws
        is_whole = said == line and last > first and is_prose(block.text, statements[first : last + 1])
        if is_whole and _has_capitals_of(sentence, raws):
            return _verified(block, first, last)
    return next(filter(None, (_quoted(sentence, block, number) for number in around)), None)


def _verified(block: Block, first: int, last: int) -> Finding:
    found = _finding(VERIFIED, block, [first, last], share=1.0)
    return replace(found, match=found.place)


def _has_capitals_of(sentence: Sentence, raws: Sequence[str]) -> bool:
    """Say whether *sentence* has capitals only where *raws* have them, or all over: polish is not Polish."""
    own = sentence.raws[1:]
    is_mixed = any(word[0].isupper() for word in own) and any(map(str.islower, own)) and any(map(str.islower, raws[1:]))
    return not is_mixed or [word.islower() for word in own] == [word.islower() for word in raws[1:]]


def _quoted(sentence: Sentence, block: Block, number: int) -> Finding | None:
    """Return the proof that the words are a stretch of a statement, None where they are not."""
    one, (words, full) = block.statements[number], block.words(number)
    at = words.line.find(sentence.line)
    if one.is_question or (at < 0 and sentence.line not in full.line):
        return None
    first = len(words.line[: at + 1].replace("-", " ").split())
    stretch = words.tokens[first : first + len(sentence.tokens)] if at >= 0 else []
    match = (one.start + stretch[0].start, one.start + stretch[-1].end) if stretch else None
    return _finding(QUOTED, block, [number], match=match, share=1.0)


def _near(sentence: Sentence, block: Block, around: Sequence[int]) -> Finding:
    """Return how near the statements *around* the first of them are; the nearest of them says what was added."""
    roots = {at: frozenset(block.words(at)[1].roots) for at in around if not block.statements[at].is_question}
    there, wanted = frozenset[str]().union(*roots.values()), sentence.weights.keys()
    share = sum(weight for word, weight in sentence.weights.items() if word in there) / max(1, sentence.weights.total())
    if share < NEAR_SHARE or not sentence.needed <= there:
        return NOTHING
    words = block.words(max(roots, key=lambda at: len(roots[at] & wanted)))[0]
    # In a script without blanks a denial makes other pairs of signs: something is always missing.
    has_pairs = 2 * sum(len(token.stem) > len(token.key) for token in sentence.tokens) > len(sentence.tokens)
    if (has_pairs or share == 1) and words.denials != sentence.denials:
        return NOTHING
    # Only as much is shown as has the words.
    order = sorted(roots)
    runs = sorted((order[low:high] for low, high in combinations(range(len(order) + 1), 2)), key=len)
    run = next(run for run in runs if there & wanted <= frozenset[str]().union(*(roots[at] for at in run)))
    missing, added = sentence.lacking(there, sentence.stop), words.lacking(sentence.roots, sentence.stop)
    return _finding(NEAR, block, run, missing=missing, added=added, share=share)
