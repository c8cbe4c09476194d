"""What every protocol is given: the request as plain values, and what a reply needs besides the events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from datafari_rag.core.answer.conversations import NO_SIGNING, Signing
from datafari_rag.core.ask import Ask, Attachment, ChatMessage
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import UNKNOWN_MODEL, Finished, KeptTurn, ModelFacts
from datafari_rag.core.settings.table import RagSettings, Settings
from datafari_rag.core.text.sizes import estimate

Params = Mapping[str, tuple[str, ...]]


class ConversationMemory(Protocol):
    """The stored conversations of the user of one request."""

    def recalled(self, conversation_id: str, *, has_own_history: bool) -> tuple[ChatMessage, ...]:
        """
        Return the last messages of a conversation that may be shown to its user now, oldest first.

        None where the client sends what was said itself (*has_own_history*), or where the store fails.

        Raises:
            BadRequest: this user has no such conversation.
            SearchError: the documents behind it cannot be looked up.
        """
        ...

    def kept(self, ask: Ask, finished: Finished, conversation_id: str) -> KeptTurn:
        """Keep the answer to *ask* in the conversation; say where it is kept, or why it is not."""
        ...


@dataclass(frozen=True, slots=True)
class Incoming:
    """
    One request, decoded and without its framework.

    *query* and *form* hold every value of a name in order; *body* is the decoded JSON, None when there is none.
    *headers* have lower-case names; identity is never read from here. *files* are text files sent along.
    """

    path: str
    query: Params = field(default_factory=dict)
    form: Params = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Attachment, ...] = ()
    now_s: float = 0.0
    """Seconds since 1970 when the request came."""
    base_url: str = ""
    """The address under which the caller reached this service, without a path; empty if it is unknown."""
    count_tokens: Callable[[str], int] = estimate
    """Tokens of a text as the model counts them; set by the edge."""
    signing: Signing = NO_SIGNING
    """Signs the memory of this user (`chat.memory.enabled`); set by the edge."""
    memory: ConversationMemory | None = None
    """This user's stored conversations; None where none are stored. Set by the edge."""

    def param(self, name: str) -> str | None:
        """Return the first value of *name* in the query string, else in the form, else None."""
        values = self.query.get(name) or self.form.get(name)
        return values[0] if values else None


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What a reply needs besides the answer: the ask, one snapshot of the settings, an id, the time of the answer."""

    ask: Ask
    settings: Settings
    id: str
    now_s: float
    base_url: str = ""
    """The address under which readers reach this service's pages, without a final slash."""
    clock: Callable[[], float] | None = None
    """Seconds since the epoch, for dialects that date each line; None means all at *now_s*."""
    signing: Signing = NO_SIGNING
    """As in `Incoming`."""
    facts: ModelFacts = UNKNOWN_MODEL
    """What was known of the model when its first words came: even the first line of a stream can name it."""


@dataclass(frozen=True, slots=True)
class PassThrough:
    """A request of /v1 that goes to the model as it is (KAITO's RAG service): *body* without our own keys."""

    body: Mapping[str, object]
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """What a chat program asks the model about a conversation: no documents; *answer* is the reply without a model."""

    ask: Ask
    answer: str


Failure = Callable[[RagError, RagSettings], tuple[int, Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class Questionless:
    """What has no questions and answers, but failures."""

    failure: Failure
