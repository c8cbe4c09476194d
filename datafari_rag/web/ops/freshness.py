"""How old what was answered with was, for Prometheus: the rights, and the newest document that any answer has shown."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from datafari_rag.core.documents import Extract
from datafari_rag.core.query.dates import moment_of

AGES = (0, 0.1, 1, 5, 15, 30, 60, 120, 300, 900, 3600, 21_600, 86_400)
"""Bounds for the age of rights, in seconds; `security.cache_s` is at most a day."""

HOUR_S = 3600
"""Steps of a document's date: the exact one is for those who may see the document."""


class Freshness:
    """What one worker counts of it; `Metrics` shows it over all workers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Make the families, all at zero."""
        self._rights_age = Histogram(
            "datafari_rag_rights_age_seconds",
            "Age of the rights that a request was answered with: seconds since the authority service was called.",
            registry=registry,
            buckets=AGES,
        )
        self._revocations = Counter(
            "datafari_rag_revocations",
            "Revocations by administrators, of one user or of everybody.",
            ("of",),
            registry=registry,
        ).labels
        self._newest_s = 0.0
        self._newest = Gauge(
            "datafari_rag_newest_document_timestamp_seconds",
            "Newest last_modified of a document that answers were made from, in seconds since 1970, to the hour.",
            registry=registry,
            multiprocess_mode="max",
        )

    def note_rights_age(self, age_s: float) -> None:
        """Note how old the rights were that a request was answered with."""
        self._rights_age.observe(age_s)

    def count_revocation(self, *, is_of_everybody: bool) -> None:
        """Count one revocation."""
        self._revocations("everybody" if is_of_everybody else "user").inc()

    def note_documents(self, extracts: Iterable[Extract], *, now_s: float) -> None:
        """Note the newest date of the documents of *extracts*; a date after *now_s* is not the date of a change."""
        moments = (moment_of(extract.document.last_modified or "") for extract in extracts)
        dates = [at_s for moment in moments if moment is not None and (at_s := moment.timestamp()) <= now_s]
        newest = max(dates, default=0.0) // HOUR_S * HOUR_S
        if newest > self._newest_s:
            self._newest_s = newest
            self._newest.set(newest)
