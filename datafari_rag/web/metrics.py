"""Counts and times for Prometheus, right over several workers; labels are from closed lists, never free text."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """What one worker counts; with PROMETHEUS_MULTIPROC_DIR set the files there hold all workers' counts."""

    def __init__(self) -> None:
        """Make the families, all at zero."""
        self._registry = CollectorRegistry()
        self._answers = Counter(
            "datafari_rag_answers",
            "Finished answers by dialect and outcome (ok, the label of the failure, or aborted).",
            ("dialect", "outcome"),
            registry=self._registry,
        )
        self._stages = Histogram(
            "datafari_rag_stage_seconds",
            "Seconds of each stage of an answer.",
            ("stage",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._ignored = Counter(
            "datafari_rag_ignored_parameters",
            "Parameters that have no effect here; kind identity tried to name a user or to go round the filter.",
            ("kind",),
            registry=self._registry,
        )

    def count_answer(self, dialect: str, outcome: str) -> None:
        """Count one finished answer; *outcome* is ok, a label, or aborted."""
        self._answers.labels(dialect, outcome).inc()

    def count_ignored(self, *, others: int, identity: int) -> None:
        """Count parameters that were ignored, and among them those that tried to name somebody."""
        self._ignored.labels("identity").inc(identity)
        self._ignored.labels("other").inc(others)

    def time_stages(self, timings_ms: tuple[tuple[str, float], ...]) -> None:
        """Note how long each stage of one answer took."""
        for stage, took_ms in timings_ms:
            self._stages.labels(stage).observe(took_ms / 1000)

    def exposition(self) -> bytes:
        """Return Prometheus' text over all workers."""
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the library's own annotation is missing
            return generate_latest(registry)
        return generate_latest(self._registry)
