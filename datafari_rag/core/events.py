"""
The answer as a short sequence of frozen events: `Sources`, `Delta`…, then exactly one `Finished` or `Failed`.

A whole answer is a fold over them (`pipeline.collect`), a stream a map. Values only; no dialect's names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from datafari_rag.core.ask import Activity
from datafari_rag.core.documents import Citation, Extract, Reranking, Retrieval
from datafari_rag.core.errors import RagError


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """What became of an answer in its conversation: *failure* is the label of why it was not kept."""

    id: str | None
    title: str
    failure: str | None = None


NOT_FOUND, EMPTY, OVER_LIMIT = "notFound", "empty", "overLimit"
"""Why a document is not in an answer: absent or hidden, which look alike; without text; more than are taken."""


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that was named and is not in the answer; nothing is known of it but the name that was sent."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkEstimate:
    """How many *calls* of the model the work takes at most, over how many *pieces*, and *chars* that are read."""

    calls: int
    pieces: int
    chars: int
    strategy: str


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Thought:
    """One step shown to a reader who asks how the answer was made; *props* are None or plain JSON values."""

    title: str
    description: object
    props: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """
    What is known of the model's reply besides its text: as it came, or None / empty where it did not.

    *extras* holds the keys that dialects copy verbatim when present: system_fingerprint, usage,
    content_filter_results (of the choice), prompt_filter_results.
    """

    name: str | None = None
    id: str | None = None
    created: int | None = None
    extras: Mapping[str, object] = field(default_factory=dict)
    tries: int = 1
    is_fallback: bool = False
    thought_chars: int = 0
    """How long the thoughts before the answer were; for administrators."""
    thought_ms: float = 0.0
    """When the answer began that followed them, since the request."""
    thought_tokens: int | None = None
    """How many tokens they were, hidden ones too; None where the server does not say."""

    @property
    def has_thoughts(self) -> bool:
        """Return whether the model thought before it answered."""
        return bool(self.thought_chars or self.thought_tokens)


UNKNOWN_MODEL = ModelFacts()
"""Facts of a model that said nothing of itself."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The documents of which the model will see text, best first; and how they were found."""

    extracts: tuple[Extract, ...]
    thoughts: tuple[Thought, ...] = ()
    language: str = "en"
    timings_ms: tuple[tuple[str, float], ...] = ()
    """Milliseconds of each stage before the model, in order."""
    is_partial: bool = False
    """A shard of the collection did not answer, and the settings tolerate that: there may be better documents."""
    has_few_words: bool = False
    """There is just enough evidence to answer (`rag.evidence.min`): the documents hold few words of the question."""
    is_in_other_language: bool = False
    """All documents whose language is known are in another one than the question, whose language is known too."""
    found_by: Retrieval = "words"
    reranking: Reranking | None = None
    skipped: tuple[SkippedDocument, ...] = ()
    """Documents that the caller named and that are not among the extracts."""
    estimate: WorkEstimate | None = None
    """What work on whole documents will cost, sent before the first call of the model."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer, never empty, with links already made safe; the first one names the model."""

    text: str
    facts: ModelFacts | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """The model could not answer yet, and is tried again in *seconds*; between `Sources` and the first delta."""

    seconds: float


UnsupportedPolicy = Literal["mark", "drop"]
"""What is done with a sentence that no document proves (`answer.unsupported`)."""


@dataclass(frozen=True, slots=True)
class Support:
    """
    What the documents prove of an answer: of *checked* sentences, which state something, how many have each status.

    *checked* counts what the model wrote, the *dropped* sentences too. *unsupported* are places in the answer as it was
    shown. *is_replaced*: of all that it stated nothing was left, and the answer says that nothing was found.
    """

    checked: int
    verified: int = 0
    quoted: int = 0
    near: int = 0
    policy: UnsupportedPolicy = "mark"
    unsupported: tuple[tuple[int, int], ...] = ()
    dropped: int = 0
    is_replaced: bool = False

    def joined(self, later: Support, chars: int) -> Support:
        """Return the support of a text of *chars* characters and of *later*, which begins behind them."""
        return Support(
            self.checked + later.checked,
            self.verified + later.verified,
            self.quoted + later.quoted,
            self.near + later.near,
            later.policy,
            self.unsupported + tuple((start + chars, end + chars) for start, end in later.unsupported),
            self.dropped + later.dropped,
            is_replaced=self.is_replaced or later.is_replaced,
        )

    @property
    def share(self) -> float | None:
        """Return the share of the sentences that are verified, None where none states anything."""
        return round(self.verified / self.checked, 4) if self.checked else None


@dataclass(frozen=True, slots=True)
class Finished:
    """
    The end of a good answer; *text* equals all deltas joined.

    *finish_reason* is "stop" or "length". *followups* is None when none were asked for.
    """

    text: str
    finish_reason: str = "stop"
    citations: tuple[Citation, ...] = ()
    followups: tuple[str, ...] | None = None
    facts: ModelFacts = UNKNOWN_MODEL
    timings_ms: tuple[tuple[str, float], ...] = ()
    """Milliseconds of each stage of the line, in order; they add up to the whole."""
    extracts: tuple[Extract, ...] = ()
    """Those of `Sources` again, so that their texts need not be kept while the model writes."""
    support: Support | None = None
    """How much of it the documents prove; None if there are none, or it was not checked."""
    activity: Activity | None = None
    """What was done for the answer and what it took; None where one search was all that was wanted."""
    turn: KeptTurn | None = None
    """The stored conversation that it is part of now; None where none is stored."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole good answer: what `pipeline.collect` folds the events into."""

    sources: Sources
    finished: Finished


@dataclass(frozen=True, slots=True)
class Failed:
    """The end of a bad one: before the first delta a failure of the request, after it the last line of a stream."""

    error: RagError
    facts: ModelFacts = UNKNOWN_MODEL


Event = Sources | Delta | Finished | Failed


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of work on whole documents that is number *count* of *total*; only works have it, never an answer."""

    step: str
    count: int
    total: int


WorkEvent = Event | Progress

AnswerEvent = Event | Waiting
"""What the pipeline yields; a dialect gets `Waiting` only where its route says that it reports it."""


def taken_until(events: Iterator[T], is_enough: Callable[[T], bool]) -> list[T]:
    """Take from *events* up to the first that *is_enough*, and return what was taken; the rest stays to be read."""
    beginning: list[T] = []
    for event in events:
        beginning.append(event)
        if is_enough(event):
            break
    return beginning


class Stopwatch:
    """
    One answer's stopwatch: each `lap` ends a stage, so the laps always add up to the time since the start.

    *clock* gives seconds that never go back. A second lap of one name adds to the first.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start."""
        self._clock = clock
        self._last = clock()
        self._ms: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End the stage *name* now."""
        now = self._clock()
        self._ms[name] = self._ms.get(name, 0.0) + (now - self._last) * 1000
        self._last = now

    @property
    def ms(self) -> tuple[tuple[str, float], ...]:
        """Return (stage, milliseconds) in order of their first end."""
        return tuple(self._ms.items())
