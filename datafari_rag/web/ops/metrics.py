"""
Counts and times for Prometheus, right over several workers; how old documents are, and the last failure of each part.

Labels are from closed lists, never free text.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from datafari_rag.core.documents import Extract, Reranking
from datafari_rag.core.errors import AuthorityError, ModelError, RagError, SearchError, leaves
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts
from datafari_rag.core.query.dates import moment_of
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import LlmSettings, RagSettings

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0)
"""0.99 is below all that are not whole: what is above it is proved altogether."""

STEP_S = 0.01
"""
What times are rounded up to. With finer times, a user who reads the metrics and sends questions could find out whether
a word is in documents that they may not see: it costs a search some microseconds.
"""

OTHER = "other"
"""A model whose name is not in the settings: what a server calls itself may be anything, and a label may not."""

_USAGE = {"prompt_tokens": "prompt", "completion_tokens": "completion"}


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """
    How one answer ended: *outcome* is ok, the label of a failure, passed or aborted.

    *total_ms* and *timings_ms* are those of a good answer, None and empty otherwise. *facts* are the model's.
    """

    dialect: str
    outcome: str
    facts: ModelFacts = UNKNOWN_MODEL
    timings_ms: tuple[tuple[str, float], ...] = ()
    total_ms: float | None = None
    support: float | None = None
    """The share of its sentences that the documents prove; None if none states anything, or was checked."""
    reranking: Reranking | None = None


class Metrics:
    """What one worker counts; with PROMETHEUS_MULTIPROC_DIR set the files there hold all workers' counts."""

    def __init__(self) -> None:
        """Make the metrics, all at zero."""
        self._listeners: list[Callable[[str, str], None]] = []
        self._registry = registry = CollectorRegistry()

        def counted(name: str, about: str, labels: tuple[str, ...]) -> Callable[..., Counter]:
            return Counter(name, about, labels, registry=registry).labels

        def measured(
            name: str, about: str, labels: tuple[str, ...], buckets: tuple[float, ...] = SECONDS
        ) -> Callable[..., Histogram]:
            return Histogram(name, about, labels, registry=registry, buckets=buckets).labels

        self._answers = counted(
            "datafari_rag_answers",
            "Finished answers by dialect and outcome (ok, the label of the failure, passed, or aborted).",
            ("dialect", "outcome"),
        )
        self._seconds = measured(
            "datafari_rag_answer_seconds", "Seconds from a request to the end of its successful answer.", ("dialect",)
        )
        self._first = measured(
            "datafari_rag_first_words_seconds", "Seconds from a request to the first words of its stream.", ("dialect",)
        )
        self._stages = measured(
            "datafari_rag_stage_seconds", "Seconds of each stage of a successful answer.", ("dialect", "stage")
        )
        about = "Share of the sentences of an answer that its documents prove, as the model wrote it."
        self._support = measured("datafari_rag_answer_support", about, ("dialect",), SHARES)
        self._rerankings = counted(
            "datafari_rag_rerankings",
            "Answers with a reranker by outcome (ok, or the label of the failure).",
            ("outcome",),
        )
        self._open = Gauge("datafari_rag_open_streams", "Open streams.", registry=registry, multiprocess_mode="livesum")
        self._models = counted(
            "datafari_rag_model_answers",
            "Answers by model (a name of the settings, or other) and outcome.",
            ("model", "outcome"),
        )
        self._tries = counted("datafari_rag_model_tries", "Requests to models for those answers.", ("model",))
        self._tokens = counted(
            "datafari_rag_model_tokens",
            "Tokens by model and kind (prompt, completion), where the model's server reports them.",
            ("model", "kind"),
        )
        self.freshness = Freshness(registry)
        self._ignored = counted(
            "datafari_rag_ignored_parameters",
            "Parameters that have no effect here; kind identity: attempts to name a user or to bypass the filter.",
            ("kind",),
        )

    def listen(self, listener: Callable[[str, str], None]) -> None:
        """Call *listener* with dialect and outcome at the end of each answer from now on."""
        self._listeners.append(listener)

    def count(self, ended: FinishedRequest, rag: RagSettings, llm: LlmSettings) -> None:
        """Count one finished answer with its times and tokens, and its model where one was reached."""
        self._answers(ended.dialect, ended.outcome).inc()
        for listener in self._listeners:
            listener(ended.dialect, ended.outcome)
        for stage, took_ms in ended.timings_ms:
            self._stages(ended.dialect, stage).observe(coarse_s(took_ms))
        if ended.total_ms is not None:
            self._seconds(ended.dialect).observe(coarse_s(ended.total_ms))
        if ended.reranking is not None:
            self._rerankings(ended.reranking.failure or "ok").inc()
        if ended.support is not None:
            self._support(ended.dialect).observe(ended.support)
        facts = ended.facts
        if facts.name is None and not ended.outcome.startswith("model"):
            return
        model = model_label(facts.name or rag.model, rag, llm)
        self._models(model, ended.outcome).inc()
        self._tries(model).inc(facts.tries)
        usage = facts.extras.get("usage")
        for key, kind in _USAGE.items():
            number = usage.get(key) if isinstance(usage, Mapping) else None
            if isinstance(number, int) and number > 0:
                self._tokens(model, kind).inc(number)

    def time_first_words(self, dialect: str, took_ms: float) -> None:
        """Note how long a stream's reader waited for its first words."""
        self._first(dialect).observe(coarse_s(took_ms))

    def count_ignored(self, *, others: int, identity: int) -> None:
        """Count ignored parameters, and separately those that tried to name a user."""
        self._ignored("identity").inc(identity)
        self._ignored("other").inc(others)

    def set_open_streams(self, streams: int) -> None:
        """Say how many streams are open in this worker."""
        self._open.set(streams)

    def exposition(self, *, is_rejected: bool = False) -> bytes:
        """Return Prometheus' text over all workers; *is_rejected*: the settings file has values that cannot be used."""
        return self._counts() + _now(is_rejected)

    def _counts(self) -> bytes:
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the library's own annotation is missing
            return generate_latest(registry)
        return generate_latest(self._registry)


class _Rejected:
    """The one gauge that every worker knows alike, because all watch the same file."""

    def __init__(self, value: float) -> None:
        self._value = value

    def collect(self) -> Iterator[GaugeMetricFamily]:
        name = "datafari_rag_settings_rejected"
        yield GaugeMetricFamily(name, "1 while the settings file has a value that is not used.", value=self._value)


def _now(is_rejected: bool) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Rejected(float(is_rejected)))
    return generate_latest(registry)


def coarse_s(took_ms: float) -> float:
    """Return seconds, rounded up to `STEP_S`; what took no time took one step."""
    return max(1, math.ceil(took_ms / (1000 * STEP_S))) * STEP_S


def model_label(name: str, rag: RagSettings, llm: LlmSettings) -> str:
    """Return the configured name that *name* is or is a version of ("gpt-4o" for "gpt-4o-2024-08-06"), else other."""
    models = {rag.model, BUILTIN_MODEL, *(address.partition("#")[2] for address in llm.fallback)} - {""}
    fits = [family for family in models if name == family or name.startswith(f"{family}-")]
    return max(fits, key=len, default=OTHER)


def server_timing(stages_ms: tuple[tuple[str, float], ...], total_ms: float) -> str:
    """
    Return the header's value, milliseconds; the parts add up to the total.

    What no stage claims is the edge's own: reading, identity, rights, encoding.
    """
    edge = max(0.0, total_ms - sum(took for _, took in stages_ms))
    parts = [f"{stage};dur={took:.2f}" for stage, took in (*stages_ms, ("edge", edge))]
    return ", ".join([*parts, f"total;dur={total_ms:.2f}"])


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


Failure = Mapping[str, str]

PARTS: Mapping[str, type[RagError]] = {"search": SearchError, "rights": AuthorityError, "model": ModelError}
"""The parts that can fail by themselves, each with the root of its errors."""

WRITE_EVERY_S = 1.0
"""How often one and the same failure is written at most: a part that is down fails a thousand times a second."""


class LastFailures:
    """The last failure of each of `PARTS`; *now* gives seconds since the epoch."""

    def __init__(self, folder: Path | None = None, now: Callable[[], float] = time.time) -> None:
        """Know of none; *folder* None keeps them in this process alone."""
        self._folder, self._now = folder, now
        self._latest: dict[str, tuple[float, Failure]] = {}
        self._last_writes: dict[str, tuple[float, str]] = {}

    def note(self, label: str) -> None:
        """Note that an answer ended with *label*; one that is no part's failure is nothing to note."""
        part = _PART_OF.get(label)
        if part is None:
            return
        now = self._now()
        self._latest[part] = now, {"label": label, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))}
        written_at, last_label = self._last_writes.get(part, (-WRITE_EVERY_S, ""))
        # Another failure than the last one is news, however soon it comes.
        if self._folder is not None and (label != last_label or not 0 <= now - written_at < WRITE_EVERY_S):
            self._last_writes[part] = now, label
            # A failure that cannot be written is still known to this worker; an answer never fails for it.
            with suppress(OSError):
                new = self._folder / f"last-{part}.{os.getpid()}"
                new.write_text(json.dumps(self._latest[part]), encoding="ascii")
                new.replace(self._folder / f"last-{part}.json")

    def latest(self, part: str) -> Failure | None:
        """Return label and time (ISO 8601, UTC) of the last failure of *part* in any worker, None before the first."""
        mine_at, mine = self._latest.get(part, (0.0, None))
        if self._folder is None:
            return mine
        with suppress(OSError, ValueError):
            shared_at, shared = json.loads((self._folder / f"last-{part}.json").read_bytes())
            failure: Failure = shared
            # Not by the reported seconds: two failures may have the same.
            return failure if mine is None or shared_at > mine_at else mine
        return mine


_PART_OF = {error.label: part for part, root in PARTS.items() for error in leaves(root)}
