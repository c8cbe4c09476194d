"""What is counted and how, as arithmetic on plain values: no clock, no files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from datafari_rag.core.text.cleaning import visible

BUDGETS = (1000, 2000, 4000, 8000)
"""Characters of all extracts together at which it is counted whether the answer is among them."""

RANKS = (1, 3, 5, 10)
"""An answer reads the first three documents by default, five with `rag.maxFiles=5` (docs/settings.md)."""

FIVE = 5
"""A question that needs several documents should have them among this many, as many as an answer in steps has."""

UNFOUND = 10_000
"""Rank of a document that was not found."""

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Trial:
    """
    What one question gave.

    *rank* is the first right document's place (0 is best, `UNFOUND` when absent) after re-ranking, *engine_rank* the
    same in the engine's order. *is_whole* says whether the reply quotes the whole row or item that answers, None where
    the answer is neither. *needs_all* says that *rank* is that of the last of several right documents. *hits* says for
    each way (passages, head) whether the answer is in the context at each budget; *has_answer* is False where that
    cannot be counted. *evidence* is the gate's number.
    """

    group: str
    is_answerable: bool
    has_answer: bool
    has_document: bool
    rank: int
    engine_rank: int
    hits: dict[str, tuple[bool, ...]]
    is_in_reply: bool
    has_replied: bool
    citations: int
    proved: int
    right: int
    evidence: float
    leaks: int
    is_whole: bool | None = None
    needs_all: bool = False
    ms: dict[str, float] = field(default_factory=dict)
    id: str = ""
    """The question's."""


def folded(text: str) -> str:
    r"""
    Return *text* as answers are compared, as cleaning leaves texts: without what is invisible, and `\\` a `/`.

    In lower case; blanks in a row are one.
    """
    return _SPACE.sub(" ", visible(text).lower().replace("\\", "/")).strip()


def holds(texts: Iterable[str], answers: Iterable[str]) -> bool:
    """Return whether one of *texts* contains the whole of one of *answers*, both folded."""
    haystacks = [folded(text) for text in texts]
    return any(folded(answer) in haystack for answer in answers for haystack in haystacks)


def share(values: Sequence[bool]) -> float | None:
    """Return the percentage of true *values*, None of none."""
    return 100.0 * sum(values) / len(values) if values else None


def quantile(values: Sequence[float], part: float) -> float | None:
    """Return the value below which *part* of *values* lie, None of none."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else None


def summary(trials: Sequence[Trial]) -> dict[str, object]:
    """Return all that is reported of *trials*, as plain JSON values; percentages, and milliseconds under `ms`."""
    sought = [t for t in trials if t.is_answerable and t.has_document]
    answered = [t for t in trials if t.is_answerable and t.has_answer]
    return {
        "questions": len(trials),
        "recall": {str(k): share([t.rank < k for t in sought]) for k in RANKS},
        "all_among_five": _all_among_five(sought),
        "engine_recall": {str(k): share([t.engine_rank < k for t in sought]) for k in RANKS},
        "in_context": _in_context(answered),
        **_replies(answered),
        **_citations(answered),
        **_abstentions(trials),
        "leaks": sum(t.leaks for t in trials),
        "ms": {stage: _spread(times) for stage, times in _by_stage(trials).items()},
    }


def _all_among_five(sought: Sequence[Trial]) -> float | None:
    """Return how often all documents are there of those questions that need several; None where none does."""
    return share([t.rank < FIVE for t in sought if t.needs_all])


def _replies(answered: Sequence[Trial]) -> dict[str, float | None]:
    return {
        "in_reply": share([t.is_in_reply for t in answered]),
        "whole": share([t.is_whole for t in answered if t.is_whole is not None]),
    }


def _citations(answered: Sequence[Trial]) -> dict[str, object]:
    cited = [t for t in answered if t.citations]
    number = sum(t.citations for t in cited)
    return {
        "citations": number,
        "citations_proved": 100.0 * sum(t.proved for t in cited) / number if number else None,
        "citations_right": 100.0 * sum(t.right for t in cited) / number if number else None,
    }


def _abstentions(trials: Sequence[Trial]) -> dict[str, object]:
    return {
        "abstained_unanswerable": share([not t.has_replied for t in trials if not t.is_answerable]),
        "abstained_answerable": share([not t.has_replied for t in trials if t.is_answerable]),
    }


def _spread(times: Sequence[float]) -> dict[str, float | None]:
    return {"median": quantile(times, 0.5), "p95": quantile(times, 0.95)}


def gate_curve(trials: Sequence[Trial], steps: int = 20) -> list[dict[str, float]]:
    """
    Return for each threshold what share of unanswerable questions it would stop, and of answers it would lose.

    An answer is lost when the question is stopped although the context of the largest budget contains the answer.
    """
    idle = [t.evidence for t in trials if not t.is_answerable]
    good = [t.evidence for t in trials if t.has_answer and t.hits.get("passages", (False,))[-1]]
    return [
        {
            "threshold": step / steps,
            "saved": share([evidence < step / steps for evidence in idle]) or 0.0,
            "lost": share([evidence < step / steps for evidence in good]) or 0.0,
        }
        for step in range(steps + 1)
    ]


def _in_context(trials: Sequence[Trial]) -> dict[str, list[float | None]]:
    ways = dict.fromkeys(way for trial in trials for way in trial.hits)
    return {
        way: [share([t.hits[way][place] for t in trials if way in t.hits]) for place in range(len(BUDGETS))]
        for way in ways
    }


def _by_stage(trials: Sequence[Trial]) -> dict[str, list[float]]:
    by_stage: dict[str, list[float]] = {}
    for trial in trials:
        for stage, took_ms in trial.ms.items():
            by_stage.setdefault(stage, []).append(took_ms)
    return by_stage
