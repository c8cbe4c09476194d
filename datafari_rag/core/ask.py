"""
One question with its options, as a dialect has read it and before it is processed.

Values only. Nothing in an ask names the user or widens their rights: identity comes from the adapter, never from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from datafari_rag.core.effort import NO_LIMITS, Effort, StepLimits

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
    prompt_template: str | None = None
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
    wants_tools: bool = False
    """Whether the model chooses the steps itself, with tools, where the effort is medium."""
    conversation: str | None = None
    """The stored conversation that the answer belongs to, "" for a new one; None where none is stored."""
    overrides: Mapping[str, str] = field(default_factory=dict)
    """What each override of the chat dialects did here: name → one sentence, for the thoughts."""
