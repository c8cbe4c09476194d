"""The names of the phases of each action, as Datafari 7 spells them."""

from __future__ import annotations

from dataclasses import dataclass

from datafari_rag.core.events import Progress
from datafari_rag.protocols.request import ReplyContext

HISTORY, REWRITING = "retrieving chat history", "query rewriting"


@dataclass(frozen=True, slots=True)
class Phases:
    """
    The phases of one action: their *subject*, those at its beginning, and what the model's is called.

    *reading* is the phase in which named documents are read, one after the other.
    """

    subject: str
    opening: tuple[str, ...]
    generating: str = ""
    reading: str = ""

    @property
    def generation(self) -> str:
        """The phase in which the answer is written."""
        return f"{self.subject}:{self.generating}"

    def begun(self, context: ReplyContext) -> tuple[str, ...]:
        """Return the phases before anything is found, those of a conversation where there is one."""
        ask = context.ask
        of_talk = [HISTORY] if ask.history and ask.work is None else []
        if of_talk and context.settings.chat_query_rewriting_enabled and not ask.document_ids:
            of_talk.append(REWRITING)
        return tuple(f"{self.subject}:{name}" for name in (*of_talk, *self.opening))

    def step(self, progress: Progress) -> str:
        """Return the phase of one step of a work, with its number."""
        name = self.reading if progress.step == "retrieval" else self.generating
        return f"{self.subject}:{name} ({progress.done}/{progress.total})"


ANSWERING = Phases("Rag", ("retrieval",), "response generation")
SUMMARISING = Phases("summarize", ("start", "document retrieval"), "generation")
SYNTHESISING = Phases("synthesis", ("start",), "summary generation", "documents retrieval")
SEARCHING = Phases("search", ("start",))
