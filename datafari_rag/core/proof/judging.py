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
from itertools import islice

from datafari_rag.core.proof.sources import PLACES_OF_WORD, QUESTIONS, Source
from datafari_rag.core.proof.statements import asks
from datafari_rag.core.proof.words import ROOTS, is_denying, joined, line_of, root, rough_words, word_lists
from datafari_rag.core.text.tokens import Token, tokens
from datafari_rag.core.text.words import FUNCTION_WORDS

VERIFIED, QUOTED, NEAR, UNSUPPORTED = "verified", "quoted", "near", "unsupported"
STATUSES = (VERIFIED, QUOTED, NEAR, UNSUPPORTED)
"""What a sentence can be, the best first."""

LEAST_WORDS, LEAST_CONTENT = 3, 2
"""What has fewer words, or fewer content words, states nothing."""

NEAR_SHARE = 0.7
"""How much of a sentence's content words a near place has (docs/grounding.md)."""

ROUGH_SHARE = 0.6
"""How much of a sentence a place has at the least, counted roughly, where it is compared."""

MAX_LOOKED = 4
"""Places of a document that are compared with a sentence: those with most of its words."""

MAX_QUESTIONS = 200
"""Questions of a document that are compared with one."""

MAX_LISTED = 30
"""Missing words that are named, and added ones."""

MAX_BESIDE = 3
"""A sentence with more content words beside its quotation is judged as a whole."""

_QUOTATION = re.compile(
    r"“([^“”]{3,2000})”|„([^„“”]{3,2000})[“”]|«([^«»]{3,2000})»|\"([^\"]{3,2000})\"|「([^「」]{3,2000})」|『([^『』]{3,2000})』"
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
        self.line = line_of(text, self.tokens)
        self.words = [text[token.start : token.end] for token in self.tokens]
        self.stop = FUNCTION_WORDS[language]
        counted = word_lists().counted
        is_loud = self.text.isupper()
        content = [
            token
            for token in self.tokens
            if root(token)
            and (
                token.key not in self.stop
                # In May, which a dog may; by IT.
                or (token.key in counted and text[token.start].isupper())
                or (token.end - token.start > 1 and text[token.start : token.end].isupper() and not is_loud)
            )
        ]
        self.roots = Counter(root(token) for token in content if not is_denying(token))
        self.content = len(content)
        self.needed = frozenset(
            root(token)
            for token in content
            if token.key in counted
            or any(map(str.isdigit, token.key))
            or (token is not self.tokens[0] and text[token.start].isupper())
        )
        self.denials = sum(map(is_denying, self.tokens))
        self.rough = Counter([ROOTS[word] for word in rough_words(text) if word not in self.stop])

    @property
    def has_pairs(self) -> bool:
        """Say whether most of it is in a script without blanks."""
        return 2 * sum(len(token.stem) > len(token.key) for token in self.tokens) > len(self.tokens)

    @property
    def states(self) -> bool:
        """Say whether it has enough words to state anything."""
        return len(self.tokens) >= LEAST_WORDS and self.content >= LEAST_CONTENT

    def quotation(self, language: str) -> Sentence | None:
        """Return the quotation that it is but for a few words; None where there is none."""
        found = _QUOTATION.search(self.text)
        if found is None:
            return None
        quotation = Sentence(next(filter(None, found.groups())), language)
        is_most = self.content - quotation.content <= MAX_BESIDE
        return quotation if is_most and quotation.states and len(quotation.tokens) < len(self.tokens) else None


def judged(sentence: Sentence, source: Source) -> Finding:
    """Return what *source* says of *sentence*, which states something."""
    if sentence.asks:
        return _asked(sentence, source)
    best = NOTHING
    for number, share in _nearest(sentence, source):
        around = [other for other in (number - 1, number, number + 1) if _are_together(source, number, other)]
        if share < ROUGH_SHARE:
            finding = replace(NOTHING, place=_place(source, number, number), share=share)
        else:
            finding = _word_for_word(sentence, source, around) or _near(sentence, source, number, around)
        if best is NOTHING or STATUSES.index(finding.status) < STATUSES.index(best.status):
            best = finding
        if best.status == VERIFIED or share < ROUGH_SHARE:
            break
    return best


def _asked(sentence: Sentence, source: Source) -> Finding:
    """Return the proof of a question: the same question."""
    for number in source.places.get(QUESTIONS, ())[:MAX_QUESTIONS]:
        if source.work.take(len(sentence.tokens)) and source.line(number) == sentence.line:
            return _proof(VERIFIED, source, number, number)
    return NOTHING


def _nearest(sentence: Sentence, source: Source) -> list[tuple[int, float]]:
    """Return the statements around which most of the words stand, roughly, each with their share; the best first."""
    counts: Counter[int] = Counter()
    for word, weight in sentence.rough.items():
        near = source.near(word)
        if not source.work.take(1 + len(near) // PLACES_OF_WORD):
            return []
        for _ in range(weight):
            counts.update(near)
    total = sentence.rough.total()
    for outside in (-1, len(source.statements)):
        del counts[outside]
    close = [number for number, count in counts.items() if count >= ROUGH_SHARE * total]
    if len(close) > 1:
        # Of neighbours the one that has most of the words itself comes first.
        own = Counter(number for word in sentence.rough for number in source.places.get(word, ()))
        close = heapq.nlargest(MAX_LOOKED, close, key=lambda number: (counts[number], own[number]))
    elif not close and counts:
        close = [max(counts, key=counts.__getitem__)]
    return [(number, counts[number] / total) for number in close]


def _are_together(source: Source, number: int, other: int) -> bool:
    return number == other or (0 <= other < len(source.statements) and source.is_next(max(number, other)))


def _place(source: Source, first: int, last: int) -> Span:
    return source.statements[first].start, source.statements[last].end


def _proof(status: str, source: Source, first: int, last: int) -> Finding:
    place = _place(source, first, last)
    return Finding(status, place, place if status == VERIFIED else None, source.context(first), share=1.0)


def _word_for_word(sentence: Sentence, source: Source, around: Sequence[int]) -> Finding | None:
    """Return the proof by the words of the statements *around*, None where they are not those of *sentence*."""
    line = sentence.line
    for number in around:
        one = source.statements[number]
        is_said = line in (source.line(number), source.full_line(number)) and not (one.is_part or one.is_question)
        is_whole = not one.context or line == source.full_line(number)
        if is_said and is_whole and _has_capitals_of(sentence, source.full_texts(number)):
            return _proof(VERIFIED, source, number, number)
    for first in around:
        run, said = [first], source.line(first)
        while line.startswith(said) and source.is_next(run[-1] + 1):
            run.append(run[-1] + 1)
            said = joined([said, source.line(run[-1])])
            if said == line and source.is_prose(first, run[-1]):
                if _has_capitals_of(sentence, list(map(source.text_of, run))):
                    return _proof(VERIFIED, source, first, run[-1])
                break
    return next(filter(None, (_quoted(sentence, source, number) for number in around)), None)


def _quoted(sentence: Sentence, source: Source, number: int) -> Finding | None:
    """Return the proof that the words are a stretch of a statement, None where they are not."""
    one, at = source.statements[number], source.line(number).find(sentence.line)
    if one.is_question or (at < 0 and sentence.line not in source.full_line(number)):
        return None
    proof = _proof(QUOTED, source, number, number)
    if at < 0:
        return proof
    first = len(source.line(number)[: at + 1].replace("-", " ").split())
    words = source.tokens(number)[first : first + len(sentence.tokens)]
    return replace(proof, match=(one.start + words[0].start, one.start + words[-1].end)) if words else proof


def _has_capitals_of(sentence: Sentence, texts: Sequence[str]) -> bool:
    """Say whether *sentence* has capitals only where *texts* have them, or all over: polish is not Polish."""
    own = sentence.words[1:]
    if not any(word[0].isupper() for word in own) or not any(map(str.islower, own)):
        return True
    words = [text[token.start : token.end] for text in texts for token in tokens(text)][1:]
    pairs = zip(words, own, strict=False)
    return not any(map(str.islower, words)) or all(word.islower() == other.islower() for word, other in pairs)


def _near(sentence: Sentence, source: Source, number: int, around: Sequence[int]) -> Finding:
    """Return how near the statements *around* the one with *number* are; the nearest of them says what was added."""
    there = frozenset[str]().union(*map(source.roots, around))
    number = max((number, *around), key=lambda other: len(source.roots(other) & sentence.roots.keys()))
    found = sum(weight for word, weight in sentence.roots.items() if word in there)
    total = sentence.roots.total()
    share = found / max(1, total)
    nearest = source.tokens(number)
    # In a script without blanks a denial makes other pairs of signs: something is always missing.
    is_comparable = found == total or sentence.has_pairs
    is_alike = not is_comparable or sum(map(is_denying, nearest)) == sentence.denials
    if share < NEAR_SHARE or not sentence.needed <= there or not is_alike:
        return replace(NOTHING, place=_place(source, number, number), share=share)
    # Only as much is shown as has the words.
    wanted = there & sentence.roots.keys()
    at = around.index(number)
    runs = (around[at : at + 1], around[max(0, at - 1) : at + 1], around[at : at + 2], around)
    run = next(run for run in runs if wanted <= frozenset[str]().union(*map(source.roots, run)))
    missing = _lacking(sentence.text, sentence.tokens, there, sentence.stop)
    added = _lacking(source.text_of(number), nearest, frozenset(map(root, sentence.tokens)), sentence.stop)
    return Finding(NEAR, _place(source, run[0], run[-1]), None, source.context(run[0]), missing, added, share)


def _lacking(text: str, words: Sequence[Token], there: frozenset[str], stop: frozenset[str]) -> tuple[str, ...]:
    """Return the *words* of *text* that are not *there*, without stop words but for those that deny."""
    lacking = (token for token in words if root(token) and root(token) not in there)
    named = (text[token.start : token.end] for token in lacking if token.key not in stop or is_denying(token))
    return tuple(islice(dict.fromkeys(named), MAX_LISTED))
