"""
One question with its options, as a dialect has read it and before it is processed, and what its steps may take.

Values only. Of what a search in steps may take, the least of what the level, the settings and the caller allow counts;
what was spent is the sum of the steps themselves (the reply's `activity`), so that no second account can differ.
Nothing in an ask names the user or widens their rights: identity comes from the adapter, never from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from msgspec import Meta

Effort = Literal["none", "minimal", "low"]
EFFORTS: tuple[Effort, ...] = ("none", "minimal", "low")

WantedEffort = Literal["none", "minimal", "low", "medium"]
"""What a request may say: medium, a level of other services, is answered as low."""

MAX_WHOLE = 2**53 - 1
"""Largest whole number that every JSON reader takes as it is."""

MaxSearches = Annotated[int, Meta(ge=1, le=MAX_WHOLE)]
MaxCount = Annotated[int, Meta(ge=0, le=MAX_WHOLE)]
MaxSeconds = Annotated[float, Meta(ge=0, le=1e300)]
"""What a caller may say of a limit, however the request is written; the highest second is any that is a number."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """
    What a caller allows at most for the steps before the answer; None is "as the settings say".

    *searches* counts every search that is sent, the first one and its relaxed repeats too; *tokens* those that go to
    the model and come from it before the answer.
    """

    searches: int | None = None
    model_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None


NO_LIMITS = StepLimits()


@dataclass(frozen=True, slots=True)
class StepBudget:
    """What the steps of one answer may take at most; see `StepLimits` for what is counted."""

    searches: int = 7
    model_calls: int = 1
    tokens: int = 12_000
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Level:
    """
    One level of effort: most *searches* and *model_calls*, and most *follows* that no model has planned.

    *follows* are searches for the names that the best passages bring.
    """

    searches: int
    model_calls: int
    follows: int


LEVELS: Mapping[Effort, Level] = {
    "none": Level(0, 0, 0),
    "minimal": Level(3, 0, 2),
    "low": Level(7, 1, 2),
}
"""minimal: by rules alone. low: the model plans once."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What steps have taken together."""

    searches: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    elapsed_ms: float

    @property
    def tokens(self) -> int:
        """Return the tokens of both directions."""
        return self.input_tokens + self.output_tokens


def budget_for(effort: Effort, limits: StepLimits, allowed: StepBudget) -> StepBudget:
    """Return the least of what the level takes, the caller's *limits* and what the settings *allowed*."""
    level = LEVELS[effort]
    return StepBudget(
        searches=_least(level.searches, limits.searches, allowed.searches),
        model_calls=_least(level.model_calls, limits.model_calls, allowed.model_calls),
        tokens=_least(allowed.tokens, limits.tokens),
        seconds=min(allowed.seconds, math.inf if limits.seconds is None else limits.seconds),
    )


def _least(first: int, *others: int | None) -> int:
    return min((first, *(other for other in others if other is not None)))


StepKind = Literal["search", "plan", "answer"]
"""A search of the index, the model's plan, the answer itself."""


@dataclass(frozen=True, slots=True)
class ActivityStep:
    """
    One step that has ended.

    *text* is what was searched for; *count* how many documents came back, None where nothing is counted. *queries* are
    what a plan wants to search for. *searches* and *model_calls* say what the step counts in the budget. *failure* is
    the label of the error with which it ended, None for success.
    """

    kind: StepKind
    text: str = ""
    count: int | None = None
    queries: tuple[str, ...] = ()
    searches: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    elapsed_ms: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """All *steps* of one answer in order, taken at this *effort*."""

    effort: Effort
    steps: tuple[ActivityStep, ...] = ()

    @property
    def spent(self) -> Spent:
        """Return what the steps took together."""
        return spent_on(self.steps)

    def plus(self, step: ActivityStep) -> Activity:
        """Return the same with *step* at the end."""
        return replace(self, steps=(*self.steps, step))


def spent_on(steps: tuple[ActivityStep, ...]) -> Spent:
    """Return the sums of *steps*."""
    return Spent(
        searches=sum(step.searches for step in steps),
        model_calls=sum(step.model_calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps),
        output_tokens=sum(step.output_tokens for step in steps),
        elapsed_ms=sum(step.elapsed_ms for step in steps),
    )


WorkKind = Literal["search", "summarize", "synthesize"]


SummaryLength = Literal["short", "medium", "long"]


@dataclass(frozen=True, slots=True)
class DocumentWork:
    """Documents found, one document summarised, or several put together."""

    kind: WorkKind
    length: SummaryLength = "medium"
    is_estimate: bool = False
    """Whether only the cost is wanted."""


AnswerFormat = Literal["bulletpoint", "text", "stepbystep", "default"]
ANSWER_FORMATS: tuple[AnswerFormat, ...] = ("bulletpoint", "text", "stepbystep", "default")

LineBreaks = Literal["escaped", "newline", "html"]
LINE_BREAKS: tuple[LineBreaks, ...] = ("escaped", "newline", "html")

MAX_QUESTION_CHARS = 4000
"""Longest `q`, in characters (contract §4, queryTooLong; Datafari's own limit)."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation before the question; *role* is user, assistant or system."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Restriction:
    """
    One narrowing of the search on a field of `solr.facets`: a *value*, or a range (*low*, *high*).

    A value is never query text; an engine compares it as the field's type does. A bound that is None is open. Of
    *alternatives*, on the same field, one is enough as well. *is_excluded* turns it all round.
    """

    field: str
    value: str | None = None
    low: str | None = None
    high: str | None = None
    is_excluded: bool = False
    alternatives: tuple[Restriction, ...] = ()


MAX_ID_CHARS = 2048
"""Longest id of a document that is looked up."""

MAX_DOCUMENTS = 1000
"""Most documents that a search can be narrowed to by their ids."""


@dataclass(frozen=True, slots=True)
class NamedDocuments:
    """
    The documents with *ids*: nothing else is found, or with *is_excluded* all but these.

    An id is a value and never query text. Without any id nothing is found.
    """

    ids: tuple[str, ...]
    is_excluded: bool = False


Narrowing = Restriction | NamedDocuments


def narrowings(restrictions: tuple[Restriction, ...], documents: tuple[str, ...] | None) -> tuple[Narrowing, ...]:
    """Return what every search is narrowed by; each further step and the search by meaning copy it."""
    return restrictions if documents is None else (*restrictions, NamedDocuments(documents))


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text file sent along with the question: a source of this answer alone."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """
    How many tokens the documents may take (KAITO's RAG service): the /v1 arithmetic of contract §3.

    *documents* is the budget itself, *node* the most one passage may have; *max_documents* 0 means no bound.
    """

    documents: int
    node: int
    max_documents: int


@dataclass(frozen=True, slots=True)
class Ask:
    """
    A question with all that its sender may decide.

    *question* goes to the model last and word for word. None means "as the settings say" for *language*,
    *answer_format*, *linebreaks*, *max_documents*, *temperature*, *max_tokens*, *min_score* and *model*. *ignored*
    names what was sent and has no effect here, for the trace and the counters (names only, never values).
    """

    question: str
    search_text: str | None = None
    """What to search for when that is not the question itself (merged turns, earlier turns)."""
    history: tuple[ChatMessage, ...] = ()
    language: str | None = None
    question_language: str | None = None
    """The language that the question is written in, where it was detected already; the search goes by it alone."""
    accept_language: str | None = None
    answer_format: AnswerFormat | None = None
    linebreaks: LineBreaks | None = None
    is_streamed: bool = False
    wants_trace: bool = False
    wants_followups: bool = False
    restrictions: tuple[Restriction, ...] = ()
    documents: tuple[str, ...] | None = None
    """Ids of the only documents that any search for this answer may find; None is all that the user may see."""
    max_documents: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    min_score: float | None = None
    model: str | None = None
    wants_captions: bool = False
    token_budget: TokenBudget | None = None
    has_whole_history: bool = False
    """Whether the history goes to the model however long it is, so that its length is the caller's to answer for."""
    attachments: tuple[Attachment, ...] = ()
    index: str | None = None
    """Alias of `openai.indexes`; None is the index of `solr.url`."""
    sampling: Mapping[str, object] = field(default_factory=dict)
    earlier_text: str | None = None
    """The questions before this one: what to search for when the words of this one find nothing (contract §3)."""
    session_state: object = None
    """What the client wants back with the answer; never read for anything but our own signed memory."""
    warnings: tuple[str, ...] = ()
    """Sentences for the log, such as a lowered max_tokens; numbers and names only."""
    ignored: tuple[str, ...] = ()
    reply_as: object = None
    """What only the dialect that made this ask reads again, when it spells the answer."""
    document_ids: tuple[str, ...] = ()
    """Documents that are read whole in place of a search; empty means those that a search finds."""
    work: DocumentWork | None = None
    """What is wanted of whole documents in place of an answer; None for a question."""
    effort: Effort | None = None
    """How many steps the search may take; None is as `rag.effort` says."""
    limits: StepLimits = NO_LIMITS
    """What the caller allows for these steps; the settings' own limits count as well."""
    conversation: str | None = None
    """The stored conversation that the answer belongs to, "" for a new one; None where none is stored."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """What each override of the chat dialects did here: name → one sentence, for the thoughts."""


def effort_of(wanted: str | None) -> tuple[Effort | None, tuple[str, ...]]:
    """Return the effort that a caller *wanted*, and the name of what had no effect: medium is answered as low."""
    if wanted == "medium":
        return "low", ("effort",)
    return next((effort for effort in EFFORTS if effort == wanted), None), ()
