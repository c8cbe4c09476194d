"""
OpenAI's responses (Open Responses): the same answers as chat completions, as items and typed events.

A stream is ten kinds of events around one message, and two more items where the search results were asked for. Places
of annotations are code points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from datafari_rag.core.answer import session_state as memory
from datafari_rag.core.ask import Ask, Turn
from datafari_rag.core.documents import Extract
from datafari_rag.core.errors import NoDocuments, RagError
from datafari_rag.core.events import Answer, Delta, Event, Failed, Finished, Sources
from datafari_rag.core.labels import title_of
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_reply_parts import Json, with_facts
from datafari_rag.protocols.chat_request import body_of, memory_limits
from datafari_rag.protocols.openai.asking import asked, styled
from datafari_rag.protocols.openai.failures import failure as failure
from datafari_rag.protocols.openai.renderings import Cited, url_citations
from datafari_rag.protocols.openai.responses_request import (
    ID_PREFIX,
    ResponseEcho,
    check_served,
    echo_of,
    parameters_of,
    said_in,
)
from datafari_rag.protocols.request import Incoming, ReplyContext, Task

CUT = "max_output_tokens"


def parse(incoming: Incoming, settings: Settings) -> Ask | Task:
    """
    Return the ask, or the task of a chat program.

    Raises:
        NoSuchModel: `model` is none of ours.
        BadRequest: a parameter or an item is not served here or cannot be read; the error names it.
        NoQuery, QueryTooLong, ContextTooLong: as for chat completions.
    """
    body = body_of(incoming)
    check_served(body)
    echo = echo_of(body, settings)
    parameters, own = parameters_of(body, settings)
    said = said_in(body, echo, incoming=incoming, settings=settings)
    return styled(asked(said, parameters, own, incoming=incoming, settings=settings), echo)


def softened(ask: Ask, settings: Settings) -> tuple[type[RagError], ...]:
    """Return the failures that are answers here: nothing was found."""
    return (NoDocuments,)


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the whole response."""
    finished = answer.finished
    output = [*_searches(context, answer.sources.extracts), _message(context, finished, answer.sources.extracts)]
    return _ended(context, finished, output, response_id=_id(context, finished.text))


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield the typed events of one response, numbered from 0; a failure after the first words is the last."""
    response_id, numbers = _id(context, None), count()
    searches: list[Json] = []
    for event, _ in with_facts(events):
        match event:
            case Sources():
                searches = _searches(context, event.extracts)
                told = _opening(context, response_id, searches)
            case Delta():
                place = _place(context, searches)
                told = [{"type": "response.output_text.delta", **place, "delta": event.text, "logprobs": []}]
            case Finished():
                told = _closing(context, event, searches, response_id=response_id)
            case Failed():
                told = [_failed(context, event.error, searches, response_id=response_id)]
        yield from ({**one, "sequence_number": next(numbers)} for one in told)


def _opening(context: ReplyContext, response_id: str, searches: Sequence[Json]) -> list[Json]:
    begun = _response(context, response_id, "in_progress", [])
    place = _place(context, searches)
    item: Json = {**_bare_message(context), "status": "in_progress", "content": []}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *_search_events(searches),
        {"type": "response.output_item.added", "output_index": place["output_index"], "item": item},
        {"type": "response.content_part.added", **place, "part": _text_part("", [])},
    ]


def _search_events(searches: Sequence[Json]) -> Iterator[Json]:
    for number, search in enumerate(searches):
        place = {"output_index": number}
        yield {
            "type": "response.output_item.added",
            **place,
            "item": search | {"status": "in_progress", "results": None},
        }
        for state in ("in_progress", "searching", "completed"):
            yield {"type": f"response.file_search_call.{state}", **place, "item_id": search["id"]}
        yield {"type": "response.output_item.done", **place, "item": search}


def _closing(context: ReplyContext, finished: Finished, searches: list[Json], *, response_id: str) -> list[Json]:
    place, message = _place(context, searches), _message(context, finished, finished.extracts)
    part = _text_part(finished.text, url_citations(_cited(context, finished, finished.extracts)))
    response = _ended(context, finished, [*searches, message], response_id=response_id)
    return [
        *_annotation_events(place, part),
        {"type": "response.output_text.done", **place, "text": finished.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": place["output_index"], "item": message},
        {"type": f"response.{response['status']}", "response": response},
    ]


def _annotation_events(place: Json, part: Json) -> Iterator[Json]:
    annotations = part["annotations"]
    for number, annotation in enumerate(annotations if isinstance(annotations, list) else ()):
        kind = "response.output_text.annotation.added"
        yield {"type": kind, **place, "annotation_index": number, "annotation": annotation}


def _failed(context: ReplyContext, error: RagError, searches: list[Json], *, response_id: str) -> Json:
    told = {"code": ERROR_CODES.get(error.code, "server_error"), "message": error.reason}
    response = _response(context, response_id, "failed", searches) | {"error": told}
    return {"type": "response.failed", "response": response}


def _ended(context: ReplyContext, finished: Finished, output: list[Json], *, response_id: str) -> Json:
    response = _response(context, response_id, _status(finished), output)
    if finished.finish_reason == "length":
        response |= {"incomplete_details": {"reason": CUT}}
    return response | {"usage": _usage(finished.facts.extras.get("usage")), "completed_at": int(context.now_s)}


def _response(context: ReplyContext, response_id: str, status: str, output: list[Json]) -> Json:
    ask, echo = context.ask, _echo(context)
    return {
        "id": response_id,
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


def _message(context: ReplyContext, finished: Finished, extracts: Sequence[Extract]) -> Json:
    part = _text_part(finished.text, url_citations(_cited(context, finished, extracts)))
    return {**_bare_message(context), "status": _status(finished), "content": [part]}


def _bare_message(context: ReplyContext) -> Json:
    return {"id": f"msg_{context.id}", "type": "message", "role": "assistant"}


def _text_part(text: str, annotations: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _searches(context: ReplyContext, extracts: Sequence[Extract]) -> list[Json]:
    """Return the search as an item of its own where its results were asked for, else nothing."""
    if not _echo(context).has_results:
        return []
    call = {"id": f"fs_{context.id}", "type": "file_search_call", "status": "completed"}
    return [{**call, "queries": [context.ask.question], "results": [_result(extract) for extract in extracts]}]


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


def _place(context: ReplyContext, searches: Sequence[Json]) -> Json:
    return {"item_id": f"msg_{context.id}", "output_index": len(searches), "content_index": 0}


def _cited(context: ReplyContext, finished: Finished, extracts: Sequence[Extract]) -> Cited:
    return Cited(finished.citations, extracts, context.base_url)


def _status(finished: Finished) -> str:
    return "incomplete" if finished.finish_reason == "length" else "completed"


def _id(context: ReplyContext, text: str | None) -> str:
    """
    Return the id: with the signed turns in it where the response is to be stored.

    *text* None is a stream, whose id stands in its first event: the answer itself is not among the turns then.
    """
    ask, settings = context.ask, context.settings
    if not _echo(context).is_stored:
        return f"{ID_PREFIX}{context.id}"
    turns = (*ask.history, Turn("user", ask.question), *([] if text is None else [Turn("assistant", text)]))
    seal = memory.Seal(settings.chat_memory_secret, context.user_name, context.now_s)
    return ID_PREFIX + memory.issued(turns, seal, memory_limits(settings))[memory.KEY]


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
