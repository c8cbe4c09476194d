"""
What a document says of one sentence: word for word, in part, much the same, or nothing.

*verified*: its words are one or more whole neighbouring statements. *quoted*: they are a stretch of one. *near*: most
of its content words stand in three neighbouring statements, with all of its numbers and names. Everything else is
*unsupported*. Nothing is left out of a sentence, and nothing is recognised as harmless.
"""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter

from datafari_rag.core.proof.sources import Block, Source, Work, is_prose
from datafari_rag.core.proof.words import Words, is_denying, plain, rough_roots, word_lists
from datafari_rag.core.text.language import FUNCTION_WORDS
from datafari_rag.core.text.sentences import asks
from datafari_rag.core.text.tokens import VARIANT

VERIFIED, QUOTED, NEAR, UNSUPPORTED = "verified", "quoted", "near", "unsupported"
STATUSES = (VERIFIED, QUOTED, NEAR, UNSUPPORTED)
"""What a sentence can be, the best first."""

LEAST_WORDS, LEAST_CONTENT = 3, 2
"""What has fewer words, or fewer content words, states nothing."""

NEAR_SHARE = 0.7
"""How much of a sentence's content words a near place has (docs/grounding.md)."""

ROUGH_SHARE = 0.6
"""How much of a sentence a place has at the least, as its words are looked for, where it is compared."""

MAX_BLOCKS, MAX_LOOKED = 8, 4
"""Blocks of a document that are looked into for a sentence, and their places that are compared with it."""

STATEMENTS_A_STEP = 8
"""Statements that are looked at in the time in which a word is read."""

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


class Sentence(Words):
    """A sentence as it is compared: its words, and those that a near place must have."""

    def __init__(self, text: str, language: str) -> None:
        """Read *text*; *language* decides stop words alone, and may be empty."""
        super().__init__(text)
        self.text, self.asks, self.stop = text, asks(text), FUNCTION_WORDS[language]
        counted, is_loud = word_lists().counted, text.isupper()
        self.content, needed, content, raws, named = 0, set[str](), list[str](), list[str](), list[str]()
        for at, (token, raw, own) in enumerate(zip(self.tokens, self.raws, self.roots, strict=True)):
            key, is_name = token.key, raw[0].isupper()
            is_counted = key in counted
            # In May, which a dog may; by IT.
            is_capital = is_name and (is_counted or (len(raw) > 1 and raw.isupper() and not is_loud))
            if not own or (key in self.stop and not is_capital):
                continue
            self.content += 1
            raws.append(raw)
            if not is_denying(token):
                content.append(own)
            if is_counted or (is_name and at) or any(map(str.isdigit, key)):
                needed.add(own)
                named.append(raw)
        self.weights, self.needed = Counter(content), frozenset(needed)
        self.rough = rough_roots(plain(unicodedata.normalize("NFKC", " ".join(raws) or text)))
        spelled = filter(lambda word: VARIANT not in word, map(plain, named))
        # U.S. and US are the same, and read here as other words.
        self.rough_needed = frozenset(one for one in rough_roots(" ".join(spelled)) if len(one) > 2 or one.isdigit())

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
    for hits, block, number in _places(sentence, source, ROUGH_SHARE * len(sentence.rough), work)[:MAX_LOOKED]:
        if best is not NOTHING and hits < len(sentence.rough):
            break  # Nothing that is left has all of its words.
        each, count = block.rough_of_each, len(block.statements)
        own = each[number] & sentence.rough
        beside = [at for at in (number - 1, number + 1) if 0 <= at < count and not each[at] & sentence.rough <= own]
        around = [number, *beside]
        if not work.take(sum(len(each[at]) for at in around)):
            break
        finding = _word_for_word(sentence, block, around) or _near(sentence, block, around)
        best = min(best, finding, key=lambda one: STATUSES.index(one.status))
        if best.status == VERIFIED:
            break
    return best


def nearest(sentence: Sentence, source: Source, work: Work) -> Finding:
    """Return as unsupported the statement of *source* that is most like *sentence*; without a place where none is."""
    places = _places(sentence, source, 1, work, is_compared=False)
    if not places:
        return NOTHING
    _, block, number = places[0]
    return Finding(place=_place(block, number, number))


def _places(
    sentence: Sentence, source: Source, least: float, work: Work, *, is_compared: bool = True
) -> list[tuple[int, Block, int]]:
    """
    Return the statements around which *least* of the sentence's rough roots stand, those with the most first.

    Each is behind how many it has. If they are compared with it, the needed ones are among them.
    """
    rough = sentence.rough
    needed = sentence.rough_needed if is_compared and VARIANT not in source.small else frozenset()
    if len(rough & source.rough) < least or not needed <= source.rough or not work.take(len(source.blocks)):
        return []
    hits = [(len(rough & block.rough), -at) for at, block in enumerate(source.blocks) if needed <= block.rough]
    places = []
    for found, at in heapq.nlargest(MAX_BLOCKS if is_compared else 1, hits):
        block = source.blocks[-at]
        each = block.rough_of_each if found >= least and work.take(len(block.statements) // STATEMENTS_A_STEP) else []
        for number, own in enumerate(each):
            there = own.union(*each[max(0, number - 1) : number + 2])
            if len(there & rough) >= least:
                # Of neighbours the one that has most of the words itself comes first, and says little else.
                places.append(((len(there & rough), len(own & rough), -len(own)), block, number))
    return [(rank[0], block, number) for rank, block, number in sorted(places, key=itemgetter(0), reverse=True)]


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
        one, (_, full) = statements[number], block.words(number)
        is_whole = line == full.line and not one.is_part and one.is_question == sentence.asks
        if is_whole and _has_capitals_of(sentence, full.raws):
            return _proof(VERIFIED, block, number, number)
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
            return _proof(VERIFIED, block, first, last)
    return next(filter(None, (_quoted(sentence, block, number) for number in around)), None)


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
    proof = _proof(QUOTED, block, number, number)
    first = len(words.line[: at + 1].replace("-", " ").split())
    stretch = words.tokens[first : first + len(sentence.tokens)] if at >= 0 else []
    return replace(proof, match=(one.start + stretch[0].start, one.start + stretch[-1].end)) if stretch else proof


def _near(sentence: Sentence, block: Block, around: Sequence[int]) -> Finding:
    """Return how near the statements *around* the first of them are; the nearest of them says what was added."""
    wanted = sentence.weights.keys()
    roots = {
        each: frozenset(() if block.statements[each].is_question else block.words(each)[1].roots) for each in around
    }
    there = frozenset[str]().union(*roots.values())
    share = sum(weight for word, weight in sentence.weights.items() if word in there) / max(1, sentence.weights.total())
    if share < NEAR_SHARE or not sentence.needed <= there:
        return NOTHING
    closest = max(around, key=lambda each: len(roots[each] & wanted))
    words = block.words(closest)[0]
    # In a script without blanks a denial makes other pairs of signs: something is always missing.
    has_pairs = 2 * sum(len(token.stem) > len(token.key) for token in sentence.tokens) > len(sentence.tokens)
    if (has_pairs or share == 1) and words.denials != sentence.denials:
        return NOTHING
    # Only as much is shown as has the words.
    order = sorted(around)
    runs = sorted((order[low:high] for low, high in combinations(range(len(order) + 1), 2)), key=len)
    run = next(run for run in runs if there & wanted <= frozenset[str]().union(*(roots[each] for each in run)))
    missing, added = sentence.lacking(there, sentence.stop), words.lacking(sentence.roots, sentence.stop)
    return Finding(NEAR, _place(block, run[0], run[-1]), None, _context(block, run[0]), missing, added, share)
