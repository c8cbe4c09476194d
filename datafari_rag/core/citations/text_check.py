"""
What documents prove of a text that was not written from them: sentence by sentence, as citations are proved.

The text need not cite anything. Brackets in it that look like marks are taken for what they are in an answer and prove
nothing here: each sentence is looked for in every document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from datafari_rag.core.citations.claim_facts import ClaimFacts
from datafari_rag.core.citations.claims import Claim, Mark, stated_in
from datafari_rag.core.citations.resolution import (
    CONTRADICTED,
    UNSUPPORTED,
    VERIFIED,
    citation_at,
    proof_for,
    proves,
    seen_of,
)
from datafari_rag.core.citations.verification import CheckedExtract
from datafari_rag.core.documents import Citation, Document, Extract, Passage
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.text.language import detect
from datafari_rag.core.text.sentences import spans

MAX_COMPARED = 20_000
"""Each sentence is looked for in each text: so many pairs are the most, however short both are."""

MAX_COMPARISONS = 30_000
"""
So many comparisons with a place, as `ClaimFacts` counts them, for one text: about a second of work (measured). A
text of 20,000 characters that was copied from twelve documents takes about 1,500 of them.
"""

MAX_SENTENCES = 500

MAX_PROOFS = 3
"""So many documents that prove a sentence, or contradict it, are named: the strongest, the first of those alike."""

QUOTED, IN_ONE, IN_TWO = 1.0, 0.8, 0.6
"""How strong a proof is: words that are quoted, facts in one sentence, facts in two that stand together."""

JUDGED = 0.6
"""How strong the word of a second judge is: as the weakest proof."""


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """
    A sentence of the text from *start* to *end*: *status*, and the place of each document that proves it.

    *status* None: it states nothing that a document could prove.
    """

    start: int
    end: int
    status: str | None
    proofs: tuple[Citation, ...] = ()
    against: tuple[Citation, ...] = ()
    """The places that say the same otherwise, when none proves it."""
    claim: Claim | None = None
    """What it states, without marks; None where it states nothing."""
    is_by_second: bool = False
    """Whether the second judge says so, and not a comparison of words."""

    def strength(self, proof: Citation) -> float:
        """Return how strong *proof*, one of the sentence's, is: 0 to 1."""
        return JUDGED if self.is_by_second else strength_of(proof)


@dataclass(frozen=True, slots=True)
class TextCheck:
    """What was found of a text: every sentence of it, and *extracts*, the documents as they were read."""

    sentences: tuple[CheckedSentence, ...]
    extracts: tuple[Extract, ...]

    @property
    def stated(self) -> tuple[CheckedSentence, ...]:
        """Return the sentences that state something."""
        return tuple(one for one in self.sentences if one.status is not None)


def checked(text: str, extracts: Sequence[Extract], *, language: str = "en") -> tuple[CheckedSentence, ...]:
    """
    Return every sentence of *text* that states something, with what *extracts* prove of it.

    A sentence is verified when the words that it quotes stand in a document, supported when its facts do, and
    contradicted when no document proves it and one says the same with another number, unit, date, name or a negation.

    Raises:
        BadRequest: the text has too many sentences, or comparing them with the documents takes too much work.
    """
    return tuple(one for one in _sentences(text, extracts, language) if one.status is not None)


def checked_against(text: str, documents: Sequence[Document], *, is_cleaned: bool) -> TextCheck:
    """
    Return what the whole of *documents* proves of *text*, in the language that the text seems to be in.

    *is_cleaned* is `rag.clean`.

    Raises:
        BadRequest: the text has too many sentences, or comparing them with the documents takes too much work.
    """
    chosen = [(document, (Passage(0, len(document.text)),)) for document in documents]
    extracts = extracts_for(chosen, is_cleaned=is_cleaned, has_paths=False)
    return TextCheck(_sentences(text, extracts, detect(text)), extracts)


class SentenceProof:
    """Says of the sentences of one answer, one by one, whether any of the documents that the model saw proves them."""

    def __init__(self, extracts: Sequence[Extract], language: str) -> None:
        """Look into nothing yet; *language* is the answer's."""
        self._extracts, self._facts = extracts, ClaimFacts(language)
        self._labels = [extract.label for extract in extracts]
        self._left = MAX_SENTENCES

    @cached_property
    def seen(self) -> Sequence[CheckedExtract]:
        """Return the documents as they are looked into; made when first needed, for they hold texts."""
        return seen_of(self._extracts, self._facts)

    def of(self, sentence: str) -> bool | None:
        """
        Return whether all that *sentence* states is proved, None where it states nothing.

        Behind `MAX_SENTENCES` sentences, and behind `MAX_COMPARISONS` comparisons, nothing is proved any more.
        """
        self._left -= 1
        if self._left < 0:
            return False
        stated = stated_in(sentence, self._labels, self._facts.has_content)
        claims = [claim for _, claim in stated if claim is not None]
        return all(self._is_proved(claim) for claim in claims) if claims else None

    def unproved(self, sentence: str) -> list[Claim]:
        """Return the claims of *sentence*, of which `of` has said that it is not proved, that are not."""
        stated = stated_in(sentence, self._labels, self._facts.has_content)
        return [claim for _, claim in stated if claim is not None and not self._is_proved(claim)]

    def _is_proved(self, claim: Claim) -> bool:
        return any(self._facts.compared <= MAX_COMPARISONS and proves(claim, one) for one in self.seen)


def strength_of(proof: Citation) -> float:
    """Return how strong *proof*, the place of a document that proves a sentence, is: 0 to 1."""
    if proof.status == VERIFIED:
        return QUOTED
    return IN_ONE if len(spans(proof.quote or "")) < 2 else IN_TWO


def _sentences(text: str, extracts: Sequence[Extract], language: str) -> tuple[CheckedSentence, ...]:
    facts = ClaimFacts(language, most_compared=MAX_COMPARISONS)
    seen = seen_of(extracts, facts)
    stated = stated_in(text, [extract.label for extract in extracts], facts.has_content)
    if len(stated) > MAX_SENTENCES:
        raise BadRequest(f"The text has {len(stated)} sentences: at most {MAX_SENTENCES}.")
    if len(stated) * len(seen) > MAX_COMPARED:
        raise BadRequest(
            f"{len(stated)} sentences against {len(seen)} texts are too many: at most {MAX_COMPARED} pairs."
        )
    return tuple(_checked(place, claim, seen, facts) for place, claim in stated)


def _checked(
    place: tuple[int, int], claim: Claim | None, seen: Sequence[CheckedExtract], facts: ClaimFacts
) -> CheckedSentence:
    if claim is None:
        return CheckedSentence(*place, None)
    language = facts.language
    mark = Mark(*place, inside="", places=())
    most = QUOTED if claim.quotes else IN_ONE
    proofs = _strongest((proof_for(mark, claim, one, language) for one in seen), most)
    if proofs:
        return CheckedSentence(*place, proofs[0].status, proofs, claim=claim)
    if facts.is_open(claim.text):
        return CheckedSentence(*place, UNSUPPORTED, claim=claim)
    against = tuple(islice(_against(mark, claim, seen, language), MAX_PROOFS))
    return CheckedSentence(*place, CONTRADICTED if against else UNSUPPORTED, against=against, claim=claim)


def _strongest(proofs: Iterable[Citation | None], most: float) -> tuple[Citation, ...]:
    """Return the strongest of *proofs*; no more are worked out when enough are as strong as *most*."""
    found: list[tuple[float, Citation]] = []
    for one in proofs:
        if one is None:
            continue
        found.append((strength_of(one), one))
        if sum(strength >= most for strength, _ in found) == MAX_PROOFS:
            break
    found.sort(key=lambda one: -one[0])
    return tuple(one for _, one in found[:MAX_PROOFS])


def _against(mark: Mark, claim: Claim, seen: Sequence[CheckedExtract], language: str) -> Iterator[Citation]:
    for one in seen:
        there = one.contradicting(claim.text)
        if there is not None:
            yield citation_at(mark, one, (CONTRADICTED, there), language)
