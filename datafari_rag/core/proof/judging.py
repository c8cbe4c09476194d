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
from itertools import combinations, islice
from operator import itemgetter

from datafari_rag.core.proof.sources import Block, Source, Work, is_prose
from datafari_rag.core.proof.words import is_denying, joined, line_of, root, rough_roots, word_lists
from datafari_rag.core.text.statements import asks
from datafari_rag.core.text.tokens import Token, tokens
from datafari_rag.core.text.words import FUNCTION_WORDS, Remembered

VERIFIED, QUOTED, NEAR, UNSUPPORTED = "verified", "quoted", "near", "unsupported"
STATUSES = (VERIFIED, QUOTED, NEAR, UNSUPPORTED)
"""What a sentence can be, the best first."""

LEAST_WORDS, LEAST_CONTENT = 3, 2
"""What has fewer words, or fewer content words, states nothing."""

NEAR_SHARE = 0.7
"""How much of a sentence's content words a near place has (docs/grounding.md)."""

ROUGH_SHARE = 0.6
"""How much of a sentence a place has at the least, counted roughly, where it is compared."""

MAX_BLOCKS, MAX_LOOKED = 8, 4
"""Blocks of a document that are looked into for a sentence, and their places that are compared with it."""

MAX_LISTED = 30
"""Missing words that are named, and added ones."""

MAX_BESIDE = 3
"""A sentence with more content words beside its quotation is judged as a whole."""

MAX_QUOTATION_CHARS = 2_000
QUOTATION = re.compile(
    "|".join(
        rf"{opening}[^{opening}{closing}]{{1,{MAX_QUOTATION_CHARS}}}[{closing}]"
        for opening, closing in (("“", "”"), ("„", "“”"), ("«", "»"), ("「", "」"), ("『", "』"), ('"', '"'))
    )
)

_STOP_ROOTS: Remembered[str, frozenset[str]] = Remembered(
    lambda language: rough_roots(" ".join(FUNCTION_WORDS[language])), 64
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


class Sentence:
    """A sentence as it is compared: its words, and those that a near place must have."""

    def __init__(self, text: str, language: str) -> None:
        """Read *text*; *language* decides stop words alone, and may be empty."""
        self.text, self.tokens, self.asks = text, tokens(text), asks(text)
        self.line, self.stop = line_of(text, self.tokens), FUNCTION_WORDS[language]
        self.raws = [text[token.start : token.end] for token in self.tokens]
        counted, is_loud = word_lists().counted, text.isupper()
        self.roots, needed = Counter[str](), set[str]()
        self.content = self.denials = 0
        for token, raw in zip(self.tokens, self.raws, strict=True):
            key = token.key
            is_name = raw[0].isupper()
            # In May, which a dog may; by IT.
            is_capital = is_name and (key in counted or (len(raw) > 1 and raw.isupper() and not is_loud))
            self.denials += is_denying(token)
            if not root(token) or (key in self.stop and not is_capital):
                continue
            self.content += 1
            if not is_denying(token):
                self.roots[root(token)] += 1
            if key in counted or any(map(str.isdigit, key)) or (is_name and token is not self.tokens[0]):
                needed.add(root(token))
        self.needed = frozenset(needed)
        self.rough = rough_roots(text) - _STOP_ROOTS[language] or rough_roots(text)

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

    The place of an unsupported one is `nearest`'s.
    """
    least = ROUGH_SHARE * len(sentence.rough)
    best = NOTHING
    if len(sentence.rough & source.roots) < least:
        return best
    hits = [(len(sentence.rough & block.roots), -at) for at, block in enumerate(source.blocks)]
    close = [source.blocks[-at] for found, at in heapq.nlargest(MAX_BLOCKS, hits) if found >= least]
    places = [place for block in close for place in _places(sentence, block, least)] if work.take(len(hits)) else []
    for place in heapq.nlargest(MAX_LOOKED, places, key=itemgetter(0)):
        _, block, number = place
        around = [number, *(each for each in (number - 1, number + 1) if 0 <= each < len(block.statements))]
        if not work.take(sum(len(block.rough[each]) for each in around)):
            break
        finding = _word_for_word(sentence, block, around) or _near(sentence, block, around)
        best = min(best, finding, key=lambda one: STATUSES.index(one.status))
        if best.status == VERIFIED:
            break
    return best


def nearest(sentence: Sentence, source: Source, work: Work) -> Finding:
    """Return as unsupported the statement of *source* that is most like *sentence*; without a place where none is."""
    block = max(source.blocks, key=lambda each: len(sentence.rough & each.roots), default=None)
    places = _places(sentence, block, 1) if block and work.take(len(source.blocks)) else []
    if not places:
        return NOTHING
    (hits, *_), block, number = max(places, key=itemgetter(0))
    one = block.statements[number]
    return Finding(place=(one.start, one.end), share=hits / len(sentence.rough))


def _places(sentence: Sentence, block: Block, least: float) -> list[tuple[tuple[int, int, int], Block, int]]:
    """Return the statements of *block* around which *least* roots of the sentence stand, each behind its rank."""
    found = [sentence.rough & roots for roots in block.rough]
    places = []
    for number, own in enumerate(found):
        hits = len(own.union(*found[max(0, number - 1) : number + 2]))
        if hits >= least:
            # Of neighbours the one that has most of the words itself comes first, and says little else.
            places.append(((hits, len(own), -len(block.rough[number])), block, number))
    return places


def _place(block: Block, first: int, last: int) -> Span:
    return block.statements[first].start, block.statements[last].end


def _context(block: Block, number: int) -> str:
    return "\n".join(block.text[one.start : one.end] for one in block.statements[number].above)


def _proof(status: str, block: Block, first: int, last: int) -> Finding:
    place = _place(block, first, last)
    return Finding(status, place, place if status == VERIFIED else None, _context(block, first), share=1.0)


def _word_for_word(sentence: Sentence, block: Block, around: Sequence[int]) -> Finding | None:
    """Return the proof by the words of one of the statements *around* or of a run from it, None where there is none."""
    line, statements = sentence.line, block.statements
    for number in around:
        one, words = statements[number], block.words(number)
        is_whole = line == words.full_line and not one.is_part and one.is_question == sentence.asks
        if is_whole and _has_capitals_of(sentence, words.raws):
            return _proof(VERIFIED, block, number, number)
    if sentence.asks:
        return None
    for first in around:
        words, last = block.words(first), first
        said, raws = words.line, words.raws
        while len(said) < len(line) and line.startswith(said) and last + 1 < len(statements):
            last += 1
            said, raws = joined([said, block.words(last).line]), [*raws, *block.words(last).raws]
        is_whole = said == line and last > first and is_prose(block.text, statements[first : last + 1])
        if is_whole and _has_capitals_of(sentence, raws):
            return _proof(VERIFIED, block, first, last)
    return next(filter(None, (_quoted(sentence, block, number) for number in around)), None)


def _has_capitals_of(sentence: Sentence, raws: Sequence[str]) -> bool:
    """Say whether *sentence* has capitals only where *raws* have them, or all over: polish is not Polish."""
    own = sentence.raws[1:]
    is_mixed = any(word[0].isupper() for word in own) and any(map(str.islower, own)) and any(map(str.islower, raws[1:]))
    return not is_mixed or [word.islower() for word in own] == [word.islower() for word in raws[1:]]


def _quoted(sentence: Sentence, block: Block, number: int) -> Finding | None:
    """Return the proof that the words are a stretch of a statement, None where they are not."""
    one, words = block.statements[number], block.words(number)
    at = words.line.find(sentence.line)
    if one.is_question or (at < 0 and sentence.line not in words.full_line):
        return None
    proof = _proof(QUOTED, block, number, number)
    first = len(words.line[: at + 1].replace("-", " ").split())
    stretch = words.tokens[first : first + len(sentence.tokens)] if at >= 0 else []
    return replace(proof, match=(one.start + stretch[0].start, one.start + stretch[-1].end)) if stretch else proof


def _near(sentence: Sentence, block: Block, around: Sequence[int]) -> Finding:
    """Return how near the statements *around* the first of them are; the nearest of them says what was added."""
    roots = {each: block.words(each).roots for each in around}
    there = frozenset[str]().union(*roots.values())
    closest = max(around, key=lambda each: len(roots[each] & sentence.roots.keys()))
    found = sum(weight for word, weight in sentence.roots.items() if word in there)
    share = found / max(1, sentence.roots.total())
    words = block.words(closest).tokens
    # In a script without blanks a denial makes other pairs of signs: something is always missing.
    has_pairs = 2 * sum(len(token.stem) > len(token.key) for token in sentence.tokens) > len(sentence.tokens)
    is_unlike = (has_pairs or share == 1) and sum(map(is_denying, words)) != sentence.denials
    if share < NEAR_SHARE or not sentence.needed <= there or is_unlike:
        return NOTHING
    # Only as much is shown as has the words.
    order = sorted(around)
    runs = sorted((order[low:high] for low, high in combinations(range(len(order) + 1), 2)), key=len)
    run = next(
        run for run in runs if there & sentence.roots.keys() <= frozenset[str]().union(*(roots[each] for each in run))
    )
    one = block.statements[closest]
    missing = _lacking(sentence.text, sentence.tokens, there, sentence.stop)
    own = frozenset(map(root, sentence.tokens))
    added = _lacking(block.text[one.start : one.end], words, own, sentence.stop)
    return Finding(NEAR, _place(block, run[0], run[-1]), None, _context(block, run[0]), missing, added, share)


def _lacking(text: str, words: Sequence[Token], there: frozenset[str], stop: frozenset[str]) -> tuple[str, ...]:
    """Return the *words* of *text* that are not *there*, without stop words but for those that deny."""
    lacking = (token for token in words if root(token) and root(token) not in there)
    named = (text[token.start : token.end] for token in lacking if token.key not in stop or is_denying(token))
    return tuple(islice(dict.fromkeys(named), MAX_LISTED))
