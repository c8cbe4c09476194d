"""
The second judge over HTTP: what is sent for some claims, and what the replies say of them.

Two kinds of server that people run: models of natural language inference behind `/predict` of Hugging Face
text-embeddings-inference, and LettuceDetect's own web API. What is not in their form is garbled, and so is what cannot
be true: a score that is no share of one, a label twice, labels that share out more than one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from datafari_rag.adapters.http.exchange import Failing, JsonEndpoint, NoReply
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.answer.text_check import Doubt, JudgeFailure, JudgeLabel, SecondJudge, Verdict
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.settings.table import Settings

Body = dict[str, object]

MAX_PAIRS = 32
"""Pairs of one request: the default of text-embeddings-inference (`--max-client-batch-size`)."""

MOST_SHARED = 1.01
"""The scores of a pair's labels come to one, but for their rounding."""

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
    scores = [_share(span, "hallucination_score") for span in spans]
    return Verdict() if any(score >= least for score in scores) else Verdict(tuple(range(len(doubt.premises))))


def _best_label(row: object, least: float) -> str:
    """Return the label with the highest score, in small letters; "" where that is below *least*."""
    scored = [(_share(item, "score"), _label(item)) for item in _list(row)]
    if (
        not scored
        or len({label for _, label in scored}) < len(scored)
        or sum(share for share, _ in scored) > MOST_SHARED
    ):
        raise ValueError("a pair without labels, or with labels that contradict each other")
    score, label = max(scored, key=lambda pair: (pair[0], pair[1] not in PROVING))
    return label if score >= least else ""


def _label(row: object) -> str:
    label = row.get("label") if isinstance(row, Mapping) else None
    if not isinstance(label, str):
        raise ValueError("a label that is no text")
    return label.lower()


def _verdict(labels: Sequence[str]) -> Verdict:
    return Verdict(
        tuple(number for number, label in enumerate(labels) if label in PROVING),
        tuple(number for number, label in enumerate(labels) if label in CONTRADICTING),
    )


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError("no list")
    return value


def _share(row: object, name: str) -> float:
    value = row.get(name) if isinstance(row, Mapping) else None
    # No number that is not finite is between the two.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("no share of one")
    return value


JUDGE_FORMATS: Mapping[str, JudgeFormat] = {
    "nli": JudgeFormat(nli_bodies, nli_verdicts),
    "lettucedetect": JudgeFormat(span_bodies, span_verdicts),
}
"""The formats by the values of format in `answer.judge.options`."""


log = logging.getLogger(__name__)

_LABELS: Mapping[Failing, JudgeLabel] = {
    "Unavailable": "judgeUnavailable",
    "Timeout": "judgeTimeout",
    "Garbled": "judgeGarbled",
}


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How the endpoint is spoken to; *timeout_s* is for all requests of one check together."""

    format: str = "nli"
    token: str = field(default="", repr=False)
    timeout_s: float = 2.0
    least_score: float = 0.7
    tls: Tls = PLAIN_TLS


class EndpointJudge:
    """A `SecondJudge` over HTTP."""

    def __init__(self, url: str, options: JudgeOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember where the endpoint is; nothing is opened yet."""
        self._options, self._clock = options, clock
        self._endpoint = JsonEndpoint(url, options.token, options.tls, clock)

    def judge(self, doubts: Sequence[Doubt]) -> Sequence[Verdict] | JudgeFailure:
        """Return one verdict for each of *doubts*, or how that failed."""
        deadline = self._clock() + self._options.timeout_s
        format_ = JUDGE_FORMATS[self._options.format]
        try:
            replies = [self._endpoint.reply(body, deadline) for body in format_.bodies(doubts)]
            return format_.verdicts(doubts, replies, self._options.least_score)
        except NoReply as none:
            failure = JudgeFailure(_LABELS[none.failing], none.log)
        # RecursionError: brackets inside brackets, thousands of them.
        except (ValueError, RecursionError):
            failure = JudgeFailure("judgeGarbled", "not the JSON of its format")
        log.warning("%s claims=%d %s", failure.label, len(doubts), failure.log)
        return failure


def judge_for(settings: Settings, machine: Machine = MACHINE) -> SecondJudge | None:
    """Return the second judge, None where `answer.judge.endpoint` is empty."""
    if not settings.answer.judge_endpoint:
        return None
    call = settings.answer.judge_options
    options = JudgeOptions(
        call.format, settings.answer.judge_token, call.timeout_s, least_score=call.min_score, tls=settings.tls.judge
    )
    return EndpointJudge(settings.answer.judge_endpoint, options, clock=machine.monotonic)
