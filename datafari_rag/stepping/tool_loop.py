"""
The model chooses the steps itself, with four tools, within the budget: search, fetch, readNext, check.

Each tool works as the user who asks: a search and a fetch go under the filter that the line handed in, and only
documents that were shown can be read. A model that calls nothing, calls rubbish or never ends is stopped, and the
activity says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.citations.text_check import checked_against
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import StepEvent
from datafari_rag.core.query.steps import content_words
from datafari_rag.core.steps.activity import ActivityStep
from datafari_rag.core.steps.tools import PIECE_CHARS, ToolCall, call_in, is_done, tools_prompt
from datafari_rag.stepping.walk import StepWalk

MAX_USELESS = 2
"""How many replies without a call, or with one that was made before, end the loop."""

NO_CALL, REPEATED, NO_SUCH_DOCUMENT, OVER_BUDGET = "noToolCall", "repeatedToolCall", "noSuchDocument", "overBudget"
"""What the activity calls a reply that moved nothing."""

Outcome = Generator[StepEvent, None, str]
"""What a tool does: its events, then its result for the model."""


class ToolLoop:
    """The calls of one question; lives as long as its request."""

    def __init__(self, walk: StepWalk) -> None:
        """Call nothing yet."""
        self._walk = walk
        self._said: list[ChatMessage] = []
        self._shown: tuple[Extract, ...] = ()
        self._pieces: dict[str, tuple[Document, int]] = {}
        self._made: set[str] = set()
        self._useless = 0

    def run(self) -> Generator[StepEvent, None, None]:
        """Let the model call tools until it has enough, moves nothing, or the budget is spent."""
        while self._useless < MAX_USELESS:
            self._shown = tuple(self._with_piece(extract) for extract in self._walk.seen())
            prompt = tools_prompt(self._walk.ask, self._shown, self._said, self._walk.planner())
            said = yield from self._walk.called(prompt, _noted)
            if said is None or said.failure is not None or is_done(said.text):
                return
            call = call_in(said.text)
            if call is None:
                yield from self._rejected_call(NO_CALL, "", "That was no call of a tool.")
                continue
            self._said.append(ChatMessage("assistant", call.line))
            if call.line in self._made and call.name != "readNext":
                yield from self._rejected_call(REPEATED, call.name, "You have made this call before.")
                continue
            self._made.add(call.line)
            result = yield from TOOL_TABLE[call.name](self, call)
            self._said.append(ChatMessage("user", f"Result: {result}"))

    def _rejected_call(self, failure: str, name: str, sentence: str) -> Generator[StepEvent, None, None]:
        self._useless += 1
        self._said.append(ChatMessage("user", f"Result: {sentence}"))
        begun = self._walk.meter.begin("tool", name=name)
        yield begun[0]
        yield self._walk.meter.end(begun, ActivityStep("tool", failure=failure), sentence)

    def search(self, call: ToolCall) -> Outcome:
        """Search for the words of *call*."""
        before = {one.id for one in self._walk.order()}
        found = yield from self._walk.search_also(
            call.text, call.text, content_words(call.text, self._walk.language), tool=call.name
        )
        if found is None:
            return "The search is not possible now."
        new = sum(one.id not in before for one in found)
        return f"{len(found)} documents, {new} of them new."

    def fetch(self, call: ToolCall) -> Outcome:
        """Read the beginning of a document that was shown."""
        extract = next((one for one in self._shown if one.number == call.number), None)
        begun = self._walk.meter.begin("tool", call.text, name=call.name)
        yield begun[0]
        if extract is None or not self._walk.meter.may_search():
            failure = NO_SUCH_DOCUMENT if extract is None else OVER_BUDGET
            yield self._walk.meter.end(begun, ActivityStep("tool", call.text, failure=failure))
            return "There is no such document." if extract is None else "No document can be read now."
        try:
            document = self._walk.fetched(extract.document)
        except RagError as error:
            yield self._walk.meter.end(begun, ActivityStep("tool", call.text, searches=1, failure=error.label))
            return "The document cannot be read now."
        step = ActivityStep("tool", call.text, found=int(document is not None), searches=1)
        if document is not None:
            self._pieces[document.id] = (document, 0)
        result = "There is no such document." if document is None else self._place(document, 0)
        yield self._walk.meter.end(begun, step, result)
        return result

    def read_next(self, call: ToolCall) -> Outcome:
        """Read on in a document that was fetched."""
        extract = next((one for one in self._shown if one.number == call.number), None)
        begun = self._walk.meter.begin("tool", call.text, name=call.name)
        yield begun[0]
        document, at = self._pieces.get("" if extract is None else extract.document.id, (None, 0))
        if document is None or at + PIECE_CHARS >= len(document.text):
            self._useless += 1
            result = "That document was not fetched." if document is None else "That was the end of the document."
            yield self._walk.meter.end(begun, ActivityStep("tool", call.text, found=0), result)
            return result
        self._pieces[document.id] = (document, at + PIECE_CHARS)
        result = self._place(document, at + PIECE_CHARS)
        yield self._walk.meter.end(begun, ActivityStep("tool", call.text, found=1), result)
        return result

    def check(self, call: ToolCall) -> Outcome:
        """Check a statement against the documents that were shown."""
        begun = self._walk.meter.begin("tool", call.text, name=call.name)
        yield begun[0]
        documents = [one.document for one in self._shown]
        try:
            checked = self._walk.aside(partial(checked_against, call.text, documents, is_cleaned=True), documents)
        except RagError as error:
            yield self._walk.meter.end(begun, ActivityStep("tool", call.text, failure=error.label))
            return "This cannot be checked."
        statuses = [one.status for one in checked.sentences if one.status is not None]
        result = ", ".join(statuses) or "It states nothing that a document could prove."
        yield self._walk.meter.end(begun, ActivityStep("tool", call.text, found=len(statuses)), result)
        return result

    def _place(self, document: Document, at: int) -> str:
        end = min(len(document.text), at + PIECE_CHARS)
        return f"Characters {at} to {end} of {len(document.text)} are below."

    def _with_piece(self, extract: Extract) -> Extract:
        """Return *extract* with the part of the document that was read last, where one was."""
        document, at = self._pieces.get(extract.document.id, (None, 0))
        return extract if document is None else replace(extract, text=document.text[at : at + PIECE_CHARS], paths=())


def _noted(said: str) -> tuple[str, ...]:
    call = call_in(said)
    return () if call is None or is_done(said) else (call.line,)


TOOL_TABLE: Mapping[str, Callable[[ToolLoop, ToolCall], Outcome]] = {
    "search": ToolLoop.search,
    "fetch": ToolLoop.fetch,
    "readNext": ToolLoop.read_next,
    "check": ToolLoop.check,
}
"""What each tool does."""
