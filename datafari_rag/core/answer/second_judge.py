"""
The second judge as a port, and what goes through it: values only.

The first judge compares words. What it proves or finds contradicted is sure, and so is a quotation that stands nowhere;
only claims that are neither are sent on, each with the places of the documents that are most like it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Literal, Protocol

from datafari_rag.core.answer.text_check import CheckedSentence, TextCheck
from datafari_rag.core.citations.claims import Mark
from datafari_rag.core.citations.resolution import CONTRADICTED, NEAR, SUPPORTED, UNSUPPORTED, citation_at, seen_of
from datafari_rag.core.citations.verification import CheckedExtract, ClaimFinding, ComparedText
from datafari_rag.core.documents import Citation
from datafari_rag.core.messages import Message, message

JudgeLabel = Literal["judgeUnavailable", "judgeTimeout", "judgeGarbled"]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A *claim* that is not proved by its words, and the *premises*, texts of documents that may prove it."""

    claim: str
    premises: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which premises prove a claim, and which contradict it: their numbers from 0. Both may be empty."""

    proving: tuple[int, ...] = ()
    contradicting: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeFailure:
    """Why the second judge said nothing: never a failure of the answer, whose first judge then counts alone."""

    label: JudgeLabel
    log: str = ""
    """For the log alone: a status or the kind of an exception, never a text."""

    @property
    def reason(self) -> Message:
        """Return a sentence that is safe to show."""
        return JUDGE_FAILURES[self.label]


class SecondJudge(Protocol):
    """A model that says whether a text proves a claim, somewhere else."""

    def judge(self, doubts: Sequence[Doubt]) -> Sequence[Verdict] | JudgeFailure:
        """Return one verdict for each of *doubts*, in order; an outcome is a value, so nothing is raised."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """How many claims the second judge was sent, how many it decided, and how it failed, if it did."""

    claims: int
    decided: int = 0
    failure: JudgeFailure | None = None


JUDGE_FAILURES: dict[JudgeLabel, Message] = {
    "judgeUnavailable": message("The second judge is not available at the moment."),
    "judgeTimeout": message("The second judge did not answer in time."),
    "judgeGarbled": message("The second judge's answer could not be read."),
}
"""The sentence of each failure."""


MAX_CLAIMS = 20
"""Most claims of one text that are sent to the second judge, the first ones: an answer waits for its word."""

MAX_PREMISES = 3
"""So many places go with a claim: those that hold most of its words."""

MAX_PREMISE_CHARS = 1_200
"""Longest place: models of this kind read some 500 tokens, claim included."""

_NOWHERE = Mark(0, 0, inside="", places=())


LikelyPlaces = tuple[tuple[CheckedExtract, tuple[int, int]], ...]
"""Places that may prove a claim, each with its document."""


@dataclass(frozen=True, slots=True)
class DoubtfulClaim:
    """A claim with the *number* of its sentence, and where in which document each of its *places* is."""

    number: int
    claim: str
    places: LikelyPlaces

    @property
    def doubt(self) -> Doubt:
        """Return what the second judge sees of it."""
        return Doubt(self.claim, texts_of(self.places))

    def citations(self, numbers: Sequence[int], status: str, language: str) -> tuple[Citation, ...]:
        """Return the places with *numbers* as citations with *status*."""
        chosen = [self.places[number] for number in numbers]
        found = (citation_at(_NOWHERE, seen, ClaimFinding(status, place), language) for seen, place in chosen)
        return tuple(replace(one, claim=self.claim) for one in found)


def doubtful_claims(check: TextCheck, language: str, most: int) -> tuple[DoubtfulClaim, ...]:
    """Return the first *most* claims of *check* that are neither proved, contradicted nor wrong quotations."""
    found: list[DoubtfulClaim] = []
    seen = seen_of(check.extracts, ComparedText(language))
    for number, one in enumerate(check.sentences):
        if len(found) == most:
            break
        if one.status in (NEAR, UNSUPPORTED) and one.claim is not None and one.claim.text and not one.claim.is_quoted:
            places = likely_places(one.claim.text, seen)
            if places:
                found.append(DoubtfulClaim(number, one.claim.text, places))
    return tuple(found)


def likely_places(claim: str, seen: Sequence[CheckedExtract]) -> LikelyPlaces:
    """Return the places that hold most of the words of *claim*, the best first; none where no word is anywhere."""
    counted = [(count, one, place) for one in seen for count, place in one.nearest(claim)]
    best = sorted(counted, key=itemgetter(0), reverse=True)[:MAX_PREMISES]
    return tuple((one, (start, min(end, start + MAX_PREMISE_CHARS))) for _, one, (start, end) in best)


def texts_of(places: LikelyPlaces) -> tuple[str, ...]:
    """Return what stands at *places*."""
    return tuple(seen.stored[start:end] for seen, (start, end) in places)


def judged_again(
    check: TextCheck, claims: Sequence[DoubtfulClaim], judge: SecondJudge, language: str
) -> tuple[TextCheck, JudgeReport]:
    """
    Return *check* with what *judge* says of *claims*, and a report; *check* as it is where the judge fails.

    A premise that contradicts a claim counts only where none proves it.
    """
    verdicts = judge.judge([claim.doubt for claim in claims]) if claims else ()
    if isinstance(verdicts, JudgeFailure):
        return check, JudgeReport(len(claims), failure=verdicts)
    sentences = list(check.sentences)
    for claim, verdict in zip(claims, verdicts, strict=True):
        sentences[claim.number] = _judged(sentences[claim.number], claim, verdict, language)
    decided = sum(verdict != Verdict() for verdict in verdicts)
    return replace(check, sentences=tuple(sentences)), JudgeReport(len(claims), decided)


def _judged(sentence: CheckedSentence, claim: DoubtfulClaim, verdict: Verdict, language: str) -> CheckedSentence:
    if verdict.proving:
        proofs = claim.citations(verdict.proving, SUPPORTED, language)
        return replace(sentence, status=SUPPORTED, proofs=proofs, close=(), is_by_second=True)
    if verdict.contradicting:
        against = claim.citations(verdict.contradicting, CONTRADICTED, language)
        return replace(sentence, status=CONTRADICTED, against=against, close=(), is_by_second=True)
    return sentence
