"""
How a second judge is spoken to: what is sent for some claims, and what its replies say of them. Pure.

Two kinds of server that people run: models of natural language inference behind `/predict` of Hugging Face
text-embeddings-inference, and LettuceDetect's own web API. What is not in their form raises ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.judging.second_judge import Doubt, Verdict

Body = dict[str, object]

MAX_PAIRS = 32
"""Pairs of one request: the default of text-embeddings-inference (`--max-client-batch-size`)."""

PROVING = frozenset({"entailment", "entails", "supported", "supports", "consistent"})
CONTRADICTING = frozenset({"contradiction", "contradicts", "contradicted", "refutes", "refuted"})
"""Labels of models that decide, in small letters; all others decide nothing."""


@dataclass(frozen=True, slots=True)
class JudgeFormat:
    """*bodies* are what is sent for some claims; *verdicts* is what the replies say, at a least score."""

    bodies: Callable[[Sequence[Doubt]], list[Body]]
    verdicts: Callable[[Sequence[Doubt], Sequence[object], float], list[Verdict]]


def nli_bodies(doubts: Sequence[Doubt]) -> list[Body]:
    """Return requests of pairs, a premise and its claim each."""
    pairs = [[premise, doubt.claim] for doubt in doubts for premise in doubt.premises]
    return [
        {"inputs": pairs[start : start + MAX_PAIRS], "truncate": True, "raw_scores": False}
        for start in range(0, len(pairs), MAX_PAIRS)
    ]


def nli_verdicts(doubts: Sequence[Doubt], replies: Sequence[object], least: float) -> list[Verdict]:
    """Return what the scored labels of each pair say. Raises: ValueError."""
    rows = [row for reply in replies for row in _list(reply)]
    if len(rows) != sum(len(doubt.premises) for doubt in doubts):
        raise ValueError("not one row for each pair")
    labels = iter([_best_label(row, least) for row in rows])
    return [_verdict([next(labels) for _ in doubt.premises]) for doubt in doubts]


def span_bodies(doubts: Sequence[Doubt]) -> list[Body]:
    """Return a request for each claim, its premises as contexts; there is no question."""
    return [{"contexts": list(doubt.premises), "question": "", "answer": doubt.claim} for doubt in doubts]


def span_verdicts(doubts: Sequence[Doubt], replies: Sequence[object], least: float) -> list[Verdict]:
    """Return that the premises together prove a claim in which no span is marked. Raises: ValueError."""
    return [_unmarked(doubt, reply, least) for doubt, reply in zip(doubts, replies, strict=True)]


def _unmarked(doubt: Doubt, reply: object, least: float) -> Verdict:
    spans = _list(reply["predictions"] if isinstance(reply, Mapping) and "predictions" in reply else None)
    scores = [_number(span, "hallucination_score") for span in spans]
    return Verdict() if any(score >= least for score in scores) else Verdict(tuple(range(len(doubt.premises))))


def _best_label(row: object, least: float) -> str:
    """Return the label with the highest score, in small letters; "" where that is below *least*."""
    scored = [(_number(one, "score"), one) for one in _list(row)]
    if not scored:
        raise ValueError("a pair without labels")
    score, best = max(scored, key=lambda one: one[0])
    label = best.get("label") if isinstance(best, Mapping) else None
    if not isinstance(label, str):
        raise ValueError("a label that is no text")
    return label.lower() if score >= least else ""


def _verdict(labels: Sequence[str]) -> Verdict:
    return Verdict(
        tuple(number for number, label in enumerate(labels) if label in PROVING),
        tuple(number for number, label in enumerate(labels) if label in CONTRADICTING),
    )


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value


def _number(row: object, name: str) -> float:
    value = row.get(name) if isinstance(row, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("no number")
    return value


JUDGE_FORMATS: Mapping[str, JudgeFormat] = {
    "nli": JudgeFormat(nli_bodies, nli_verdicts),
    "lettucedetect": JudgeFormat(span_bodies, span_verdicts),
}
"""The formats by the values of `answer.judge.format`."""
