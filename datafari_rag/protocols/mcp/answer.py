"""
The tools that write as a dialect of the pipeline: a question or a work in, one result or a stream of progress out.

One of these is made for each call, since a reply repeats the call's id. Without a call it only reports failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from datafari_rag.core.ask import Ask, DocumentWork
from datafari_rag.core.errors import BadRequest, Internal, RagError
from datafari_rag.core.events import Answer, Delta, Finished, Progress, Sources, WorkEvent
from datafari_rag.core.query.chat_overrides import with_steps
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.language import language_code
from datafari_rag.core.whole.work import SENTENCES
from datafari_rag.protocols.arguments import Arguments, facets_of
from datafari_rag.protocols.chat_request import ask_of
from datafari_rag.protocols.mcp.messages import RpcRequest
from datafari_rag.protocols.mcp.replies import error_result, failed, progress, succeeded, tool_result
from datafari_rag.protocols.mcp.results import Room, answer_result, links
from datafari_rag.protocols.mcp.tools import ANSWER, EFFORTS, LENGTHS, MAX_COMPARED, MAX_LANGUAGE, Tool
from datafari_rag.protocols.request import Incoming, ReplyContext

Json = dict[str, object]

STREAM = "text/event-stream"

NO_ROOM = Room(0, len)


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """One call of `answer`: *request* is the call, *room* how large its result may be."""

    request: RpcRequest | None = None
    room: Room = NO_ROOM
    tool: Tool = ANSWER

    def parse(self, incoming: Incoming, settings: Settings) -> Ask:
        """
        Read the ask out of the call's arguments.

        Raises:
            BadRequest: an argument does not fit; the reason names it.
            NoQuery, QueryTooLong, ContextTooLong: the question cannot be taken.
        """
        ask = READERS[self.tool.name](self.arguments(), incoming, settings)
        return replace(ask, is_streamed=self._streams(incoming))

    def arguments(self) -> Arguments:
        """Return the call's arguments. Raises: BadRequest."""
        call = self._call()
        return Arguments.of(call.params.get("arguments", {}), tuple(self.tool.takes))

    def reply(self, answer: Answer, context: ReplyContext) -> Json:
        """Return the whole answer as the tool's result."""
        return self._finished(answer.sources, answer.finished)

    def stream(self, events: Iterator[WorkEvent], context: ReplyContext) -> Iterator[Json]:
        """
        Yield progress: how many documents there are, then the answer's words in order; the result comes last.

        Joined, the messages after the first are the answer; work on whole documents tells of its steps between them.
        """
        token, sources = self._call().progress_token, Sources(())
        for done, event in enumerate(events, start=1):
            match event:
                case Sources():
                    sources = event
                    message = f"{len(sources.extracts)} documents found"
                case Delta():
                    message = event.text
                case Progress():
                    message = f"{event.step}: {event.done} of {event.total}"
                case Finished():
                    yield self._finished(sources, event)
                    return
                case _:  # Failed
                    yield succeeded(self._call(), error_result(event.error))
                    return
            yield progress("" if token is None else token, done, message)

    def failure(self, error: RagError, settings: Settings) -> tuple[int, Json]:
        """Return HTTP status and body of a failure, before or instead of the result."""
        return failed(error, self.request)

    def _finished(self, sources: Sources, finished: Finished) -> Json:
        documents = [extract.document for extract in sources.extracts]
        structured = answer_result(sources, finished, self.room)
        return succeeded(self._call(), tool_result(structured, links(documents, self.room)))

    def _streams(self, incoming: Incoming) -> bool:
        accepted = incoming.headers.get("accept", "")
        return self._call().progress_token is not None and STREAM in accepted

    def _call(self) -> RpcRequest:
        if self.request is None:
            raise Internal(log="an answer without a call")
        return self.request


def _question(given: Arguments, incoming: Incoming, settings: Settings) -> Ask:
    if "effort" in given.values:
        given.choice("effort", EFFORTS)
    question = {"role": "user", "content": given.question("question")}
    body = {"messages": [*given.turns("history"), question]}
    ask = ask_of(replace(incoming, body=body), settings, is_streamed=False)
    ask = with_steps(ask, given.values, settings, names=("effort",))
    return replace(ask, restrictions=given.restrictions("filters", facets_of(settings)))


def _summary(given: Arguments, incoming: Incoming, settings: Settings) -> Ask:
    length = next(one for one in SENTENCES if one == given.choice("length", LENGTHS))
    ask = Ask("", language=_language(given), document_ids=(given.document_id("id"),))
    return replace(ask, work=DocumentWork("summarize", length))


def _comparison(given: Arguments, incoming: Incoming, settings: Settings) -> Ask:
    ask = Ask("")
    if given.text("question", most_chars=None).strip():
        body = {"messages": [{"role": "user", "content": given.question("question")}]}
        ask = ask_of(replace(incoming, body=body), settings, is_streamed=False)
    ids = given.document_ids("ids", most=MAX_COMPARED)
    return replace(ask, language=_language(given), document_ids=ids, work=DocumentWork("synthesize"))


def _language(given: Arguments) -> str | None:
    text = given.text("language", most_chars=MAX_LANGUAGE)
    code = language_code(text)
    if text and code is None:
        raise BadRequest("language must be a code such as en or fr.", field="language")
    return code


READERS: Mapping[str, Callable[[Arguments, Incoming, Settings], Ask]] = {
    "answer": _question,
    "summarize": _summary,
    "compare": _comparison,
}
"""How the arguments of each tool are read."""
