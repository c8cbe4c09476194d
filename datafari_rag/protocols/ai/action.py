"""
The actions of Datafari 7's AI API: one row each, which is a separate dialect on the same two paths.

A failure is written by the action that failed, so each action has the four functions of a protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import BadRequest, RagError
from datafari_rag.core.events import Answer
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.whole.work import SwitchedOff
from datafari_rag.protocols.ai import events
from datafari_rag.protocols.ai.asking import agentic_ask, question_ask, work_ask
from datafari_rag.protocols.ai.failures import error_of, status_of
from datafari_rag.protocols.ai.replies import content_of
from datafari_rag.protocols.request import Incoming, ReplyContext

Json = dict[str, object]

DEFAULT = "rag"
"""The action of a request that names none."""


@dataclass(frozen=True, slots=True)
class AiAction:
    """One action: its *name*, the *subject* of its labels, its phases, how it is read, and what switches it off."""

    name: str
    subject: str
    phases: events.Phases
    read: Callable[[Incoming, Settings], Ask]
    is_on: Callable[[Settings], bool] = lambda settings: True

    def accepts(self, incoming: Incoming) -> bool:
        """Say whether *incoming* asks for this action."""
        return action_of(incoming) == self.name

    def parse(self, incoming: Incoming, settings: Settings) -> Ask:
        """
        Read the ask.

        Raises:
            SwitchedOff: a setting has switched the action off.
            BadRequest, NoQuery, QueryTooLong: the request does not fit; the reason names what.
        """
        if not self.is_on(settings):
            raise SwitchedOff
        return self.read(incoming, settings)

    def reply(self, answer: Answer, context: ReplyContext) -> Json:
        """Return the whole answer."""
        content = {**content_of(answer, context), "memoryId": events.memory_id(context)}
        return {"status": "OK", "content": content}

    def stream(self, answering: Iterator[events.AiEvent], context: ReplyContext) -> Iterator[Json]:
        """Yield the events of the answer; a failure is the last but one."""
        return events.stream(answering, context, phases=self.phases, subject=self.subject)

    def failure(self, error: RagError, settings: Settings) -> tuple[int, Json]:
        """Return HTTP status and body of a failure before the stream, or in place of the reply."""
        told = error_of(error, self.subject)
        return status_of(error, settings), {"status": "ERROR", "content": {"message": told["message"], "error": told}}


def action_of(incoming: Incoming) -> object:
    """Return what a request names as its action, the default where it names none."""
    named = incoming.body.get("action") if isinstance(incoming.body, Mapping) else None
    return DEFAULT if named is None or named == "" else named


def _unknown(incoming: Incoming, settings: Settings) -> Ask:
    raise BadRequest(f"action must be one of: {', '.join(ACTIONS)}.", field="action")


def _rag(settings: Settings) -> bool:
    return settings.ai_enable_rag


def _agentic(settings: Settings) -> bool:
    return settings.ai_enable_agentic


def _summarization(settings: Settings) -> bool:
    return settings.ai_enable_summarization


def _synthesis(settings: Settings) -> bool:
    return settings.ai_enable_synthesis


ACTIONS: Mapping[str, AiAction] = {
    one.name: one
    for one in (
        AiAction("rag", "rag", events.ANSWERING, partial(question_ask, action="rag"), _rag),
        AiAction("agentic", "agentic", events.ANSWERING, agentic_ask, _agentic),
        AiAction("summarize", "summarization", events.SUMMARISING, partial(work_ask, kind="summarize"), _summarization),
        AiAction("synthesize", "synthesis", events.SYNTHESISING, partial(work_ask, kind="synthesize"), _synthesis),
        AiAction("search", "ai", events.SEARCHING, partial(work_ask, kind="search")),
    )
}

UNKNOWN = AiAction("", "ai", events.SEARCHING, _unknown)
"""What a request meets that names no action of these, and a request that cannot be read."""
