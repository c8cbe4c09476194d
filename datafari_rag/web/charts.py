"""Prometheus' text as the few numbers that an administrator wants at a glance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

ANSWERS = "datafari_rag_answers"
STAGES = "datafari_rag_stage_seconds"


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: *share* from 0 to 100 is its length beside the longest of its chart; *text* says its value."""

    name: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Charts:
    """Requests by dialect, ends of answers by label, and how long each stage takes; since the start of the server."""

    requests: tuple[Bar, ...]
    outcomes: tuple[Bar, ...]
    stages: tuple[Bar, ...]


def charts_of(exposition: bytes) -> Charts:
    """Return the charts of what `/metrics` says; a chart without numbers is empty."""
    requests: dict[str, float] = {}
    outcomes: dict[str, float] = {}
    buckets: dict[str, dict[float, float]] = {}
    for family in text_string_to_metric_families(exposition.decode()):
        for sample in family.samples:
            if sample.name == f"{ANSWERS}_total":
                _add(requests, sample.labels["dialect"], sample.value)
                _add(outcomes, sample.labels["outcome"], sample.value)
            elif sample.name == f"{STAGES}_bucket":
                bounds = buckets.setdefault(sample.labels["stage"], {})
                _add(bounds, float(sample.labels["le"]), sample.value)
    medians = {stage: quantile(bounds, 0.5) * 1000 for stage, bounds in buckets.items()}
    slow = {stage: quantile(bounds, 0.95) * 1000 for stage, bounds in buckets.items()}
    return Charts(
        _bars(requests, {name: f"{value:.0f}" for name, value in requests.items()}),
        _bars(outcomes, {name: f"{value:.0f}" for name, value in outcomes.items()}),
        _bars(slow, {name: f"{medians[name]:.0f} / {slow[name]:.0f} ms" for name in slow}, is_sorted=False),
    )


def quantile(bounds: Mapping[float, float], part: float) -> float:
    """Return the value that *part* of a histogram's counts (upper bound → counts up to it) lie below; 0 when empty."""
    ordered = sorted(bounds.items())
    wanted = part * (ordered[-1][1] if ordered else 0)
    low = below = 0.0
    for bound, count in ordered:
        if count >= wanted and count > below:
            top = bound if bound != float("inf") else low
            return low + (top - low) * (wanted - below) / (count - below)
        low, below = (bound if bound != float("inf") else low), count
    return 0.0


def _add(counts: dict[Any, float], key: object, value: float) -> None:
    counts[key] = counts.get(key, 0.0) + value


def _bars(values: Mapping[str, float], texts: Mapping[str, str], *, is_sorted: bool = True) -> tuple[Bar, ...]:
    shown: Iterable[tuple[str, float]] = [(name, value) for name, value in values.items() if value > 0]
    if is_sorted:
        shown = sorted(shown, key=lambda pair: -pair[1])
    most = max((value for _, value in shown), default=1.0)
    return tuple(Bar(name, round(100 * value / most, 1), texts[name]) for name, value in shown)
