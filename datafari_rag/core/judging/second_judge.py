"""
The second judge as a port, and what goes through it: values only.

The first judge compares words. What it proves or finds contradicted is sure, and so is a quotation that stands nowhere;
only claims that are neither are sent on, each with the places of the documents that are most like it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

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
