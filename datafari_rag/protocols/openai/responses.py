"""
OpenAI's responses (Open Responses): the same answers as chat completions, as items and typed events.

A stream is ten kinds of events around one message, and two more items where the search results were requested. Places
of annotations are code points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from datafari_rag.core.answer import conversations as memory
from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.citations.labels import title_of
from datafari_rag.core.documents import Extract
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer, Delta, Event, Finished, Sources
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_reply_parts import Json, activity, citation, partial, support, with_facts
from datafari_rag.protocols.chat_request import body_of, memory_limits
from datafari_rag.protocols.chat_request import softened as softened
from datafari_rag.protocols.openai.asking import ask_from, stepping, styled
from datafari_rag.protocols.openai.failures import failure as failure
from datafari_rag.protocols.openai.renderings import Cited, search_results, url_citations
from datafari_rag.protocols.openai.responses_request import (
    ID_PREFIX,
    ResponseEcho,
    check_served,
    echo_of,
    parameters_of,
    turns_of,
)
from datafari_rag.protocols.request import Incoming, ReplyContext, Task

CUT = "max_output_tokens"


def parse(incoming: Incoming, settings: Settings) -> Ask | Task:
    """
    Return the ask, or the task of a chat program.

    Raises:
        NoSuchModel: this service has no such `model`.
        BadRequest: a parameter or an item is not served here or cannot be read; the error names it.
        NoQuery, QueryTooLong, ContextTooLong: as for chat completions.
    """
    body = body_of(incoming)
    check_served(body)
    echo = echo_of(body, settings)
    parameters, own = parameters_of(body, settings)
    said = turns_of(body, echo, incoming=incoming, settings=settings)
    read = ask_from(said, parameters, own, incoming=incoming, settings=settings)
    return styled(stepping(read, body, settings), echo)


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the whole response, with `citations` and `search_results` in addition to its output."""
    finished, sources = answer.finished, answer.sources
    return _ended(_Draft(context, _id(context, finished.text), sources), finished)


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield the typed events of one response, numbered from 0; a failure after the first words is the last."""
    draft, numbers = _Draft(context, _id(context, None), Sources(())), count()
    for event, _ in with_facts(events):
        match event:
            case Sources():
                draft = replace(draft, sources=event)
                sent = _opening(draft)
            case Delta():
                sent = [{"type": "response.output_text.delta", **draft.place, "delta": event.text, "logprobs": []}]
            case Finished():
                sent = _closing(draft, event)
            case _:  # Failed
                sent = [_failed(draft, event.error)]
        yield from ({**one, "sequence_number": next(numbers)} for one in sent)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A response before its end: what is known of it when its first words come."""

    context: ReplyContext
    id: str
    sources: Sources

    @property
    def searches(self) -> list[Json]:
        """Return the search as a separate item if its results were requested, else nothing."""
        if not _echo(self.context).has_results:
            return []
        call = {"id": f"fs_{self.context.id}", "type": "file_search_call", "status": "completed"}
        results = [_result(extract) for extract in self.sources.extracts]
        return [{**call, "queries": [self.context.ask.question], "results": results}]

    @property
    def message(self) -> Json:
        """Return the message without text and status."""
        return {"id": f"msg_{self.context.id}", "type": "message", "role": "assistant"}

    @property
    def place(self) -> Json:
        """Return the place of the message's text."""
        index = int(_echo(self.context).has_results)
        return {"item_id": f"msg_{self.context.id}", "output_index": index, "content_index": 0}


def _opening(draft: _Draft) -> list[Json]:
    begun = _response(draft, "in_progress", [])
    item: Json = {**draft.message, "status": "in_progress", "content": []}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *_search_events(draft.searches),
        {"type": "response.output_item.added", "output_index": draft.place["output_index"], "item": item},
        {"type": "response.content_part.added", **draft.place, "part": _text_part("", [])},
    ]


def _search_events(searches: Sequence[Json]) -> Iterator[Json]:
    for number, search in enumerate(searches):
        place = {"output_index": number}
        begun = search | {"status": "in_progress", "results": None}
        yield {"type": "response.output_item.added", **place, "item": begun}
        for state in ("in_progress", "searching", "completed"):
            yield {"type": f"response.file_search_call.{state}", **place, "item_id": search["id"]}
        yield {"type": "response.output_item.done", **place, "item": search}


def _closing(draft: _Draft, finished: Finished) -> list[Json]:
    place, cited = draft.place, url_citations(_cited(draft.context, finished))
    response = _ended(draft, finished)
    return [
        *_annotation_events(place, cited),
        {"type": "response.output_text.done", **place, "text": finished.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": _text_part(finished.text, cited)},
        {
            "type": "response.output_item.done",
            "output_index": place["output_index"],
            "item": _message(draft, finished),
        },
        {"type": f"response.{response['status']}", "response": response},
    ]


def _annotation_events(place: Json, annotations: Sequence[Json]) -> Iterator[Json]:
    for number, annotation in enumerate(annotations):
        kind = "response.output_text.annotation.added"
        yield {"type": kind, **place, "annotation_index": number, "annotation": annotation}


def _failed(draft: _Draft, error: RagError) -> Json:
    fields = {"code": ERROR_CODES.get(error.code, "server_error"), "message": error.reason}
    return {"type": "response.failed", "response": _response(draft, "failed", draft.searches) | {"error": fields}}


def _ended(draft: _Draft, finished: Finished) -> Json:
    response = _response(draft, _status(finished), [*draft.searches, _message(draft, finished)])
    if finished.finish_reason == "length":
        response |= {"incomplete_details": {"reason": CUT}}
    return response | {
        "usage": _usage(finished.facts.extras.get("usage")),
        "completed_at": int(draft.context.now_s),
        "citations": [citation(one) for one in finished.citations],
        "search_results": search_results(_cited(draft.context, finished, draft.sources.extracts)),
        **partial(draft.sources),
        **support(finished),
        **activity(finished),
    }


def _response(draft: _Draft, status: str, output: list[Json]) -> Json:
    context, ask, echo = draft.context, draft.context.ask, _echo(draft.context)
    return {
        "id": draft.id,
        "object": "response",
        "created_at": int(context.now_s),
        "completed_at": None,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": echo.instructions,
        "max_output_tokens": ask.max_tokens,
        "model": echo.model,
        "output": output,
        "parallel_tool_calls": False,
        "previous_response_id": echo.previous_id,
        "store": echo.is_stored,
        "temperature": context.settings.rag_temperature if ask.temperature is None else ask.temperature,
        "text": {"format": {"type": "text"}} if echo.text is None else echo.text,
        "tool_choice": "none",
        "tools": [],
        "top_p": echo.top_p,
        "truncation": "disabled",
        "usage": None,
        "metadata": dict(echo.metadata),
    }


def _message(draft: _Draft, finished: Finished) -> Json:
    part = _text_part(finished.text, url_citations(_cited(draft.context, finished)))
    return {**draft.message, "status": _status(finished), "content": [part]}


def _text_part(text: str, annotations: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _result(extract: Extract) -> Json:
    document = extract.document
    attributes = {"number": extract.number, "label": extract.label, "url": document.url, "field": document.field}
    return {
        "file_id": document.id,
        "filename": title_of(document),
        "score": document.score,
        "text": extract.text,
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }


def _cited(context: ReplyContext, finished: Finished, extracts: Sequence[Extract] = ()) -> Cited:
    return Cited(finished.citations, extracts, context.base_url)


def _status(finished: Finished) -> str:
    return "incomplete" if finished.finish_reason == "length" else "completed"


def _id(context: ReplyContext, text: str | None) -> str:
    """
    Return the id: with the signed turns in it where the response is to be stored.

    *text* None is a stream, with the id in its first event: the answer itself is not among the turns then.
    """
    ask, settings = context.ask, context.settings
    if not _echo(context).is_stored:
        return f"{ID_PREFIX}{context.id}"
    turns = (
        *ask.history,
        ChatMessage("user", ask.question),
        *([] if text is None else [ChatMessage("assistant", text)]),
    )
    state = memory.issued(turns, context.signing, now_s=context.now_s, limits=memory_limits(settings))
    return ID_PREFIX + state[memory.KEY]


def _echo(context: ReplyContext) -> ResponseEcho:
    echo = context.ask.reply_as
    return echo if isinstance(echo, ResponseEcho) else ResponseEcho(context.settings.openai_model_name)


def _usage(usage: object) -> Json | None:
    """Return the counts of the model's server under the names of responses, None where it gave none."""
    if not isinstance(usage, Mapping):
        return None
    read, written = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
    if not isinstance(read, int) or not isinstance(written, int):
        return None
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }


ERROR_CODES: Mapping[int, str] = {429: "rate_limit_exceeded", 503: "rate_limit_exceeded"}
"""What responses call a failure of this code; any other is server_error."""
