"""
What a tool returns: results bounded in tokens, and the tools that write as a dialect of the pipeline.

A question or a work goes in, one result or a stream of progress comes out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import cast
from urllib.parse import quote, urlencode, urlsplit

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer, Delta, Finished, Progress, Sources, WorkEvent
from datafari_rag.core.proof.checking import CheckedSentence
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.settings.table import RagSettings, Settings
from datafari_rag.core.text.sizes import cut_at, longest_prefix
from datafari_rag.protocols.chat_reply_parts import Json, citation, of_work, partial, proofs
from datafari_rag.protocols.mcp.messages import (
    RpcRequest,
    error_result,
    failed,
    json_text,
    progress,
    succeeded,
    tool_result,
)
from datafari_rag.protocols.mcp.tools import AnswerArguments, CompareArguments, SummarizeArguments
from datafari_rag.protocols.openai.renderings import nodes_of
from datafari_rag.protocols.request import Incoming, ReplyContext

MOST_CHARS_PER_TOKEN = 16
"""No text has more characters to a token for long: more than this is not even counted."""

_ADDRESS = re.compile(
    r"(?:(?:https?|ftps?|sftp|davs?)://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?|(?:file|smb|nfs|cifs)://[A-Za-z0-9.-]*)"
    r"(?:[/?#][^\x00-\x1f\x7f]*)?"
)
_UNQUOTED = "%/:=&?~#+!$,;'@()*[]"


@dataclass(frozen=True, slots=True)
class Room:
    """How large a result may be: *tokens* as *count* counts them; *origin* begins the addresses of our own pages."""

    tokens: int
    count: Callable[[str], int]
    origin: str = ""

    def tokens_of(self, value: object) -> int:
        """Return the tokens of *value* as it is written."""
        return self.count(json_text(value))


def search_result(sources: Sources, room: Room) -> Json:
    """
    Return the documents of *sources* with their passages.

    Where not all have room, the last documents go first, then passages: each document keeps one before any has two.
    """
    documents: list[Json] = []
    for extract in sources.extracts:
        modified = extract.document.last_modified
        dated = {} if modified is None else {"last_modified": modified}
        documents.append({**_named(extract.document, room), **dated, "passages": []})
    result, rest = _within({"results": documents, "truncated": False}, ("results",), room)
    results = cast("list[dict[str, list[Json]]]", result["results"])
    passages: list[list[Json]] = []
    for extract in sources.extracts[: len(results)]:
        nodes = [(cast("Mapping[str, object]", node["metadata"]), node["text"]) for node in nodes_of([extract])]
        passages.append([{**{key: at[key] for key in ("field", "start", "end")}, "text": text} for at, text in nodes])
    # The best passage of each document before the second of any.
    for row in zip_longest(*passages):
        for document, passage in zip(results, row, strict=True):
            size = 0 if passage is None else room.tokens_of([passage])
            if size > rest:
                result["truncated"] = True
            elif passage is not None:
                document["passages"].append(passage)
                rest -= size
    return {**result, **partial(sources)}


def fetched(document: Document, span: tuple[int, int], room: Room, most_tokens: int | None = None) -> Json:
    """
    Return the stored text of *document* from the first place of *span* to the second, as far as there is room.

    *most_tokens* is how much text the caller wants at most.
    """
    length = len(document.text)
    start = min(span[0], length)
    last = max(start, min(span[1], length))
    place: Json = {"field": document.field, "start": start, "end": last, "length": length}
    facts = {"last_modified": document.last_modified, "language": document.language}
    place |= {key: value for key, value in facts.items() if value is not None}
    result: Json = {**_named(document, room), "text": "", "metadata": place, "truncated": True, "next_start": last}
    rest = max(1, room.tokens - room.tokens_of(result))
    rest = rest if most_tokens is None else min(rest, most_tokens)
    text = document.text[start:last]
    fitting = longest_prefix(text, rest * MOST_CHARS_PER_TOKEN, lambda head: room.count(json_text(head)), rest)
    # Cut where a sentence ends, and never to nothing: the next call begins where this one ended.
    end = start + (fitting if fitting == len(text) else max(1, cut_at(text, fitting)))
    is_cut = end < last
    ending: Json = {"truncated": is_cut, "next_start": end if is_cut else None}
    return {**result, "text": document.text[start:end], "metadata": {**place, "end": end}, **ending}


def answer_result(sources: Sources, finished: Finished, room: Room) -> Json:
    """Return the answer; where all of it is too large, the last citations and then the last documents go."""
    documents = [{**_named(extract.document, room), "label": extract.label} for extract in sources.extracts]
    result: Json = {"answer": finished.text, "finish_reason": finished.finish_reason}
    proved = proofs(finished, sources)
    citations = proved.pop("citations")
    result |= proved | of_work(sources) | {"citations": citations, "documents": documents, "truncated": False}
    return _within(result, ("documents", "citations"), room)[0]


def check_result(
    text: str, checked: Sequence[CheckedSentence], documents: Sequence[Document], missing: Sequence[str], room: Room
) -> Json:
    """Return what is proved of *text*; *missing* are ids under which the user finds nothing, whatever the reason."""
    keys = ("document_id", "field", "start", "end", "quote", "context", "missing", "added")
    claims: list[Json] = []
    for sentence in checked:
        cited = [citation(place) for place in sentence.places if place.quote is not None]
        places = [{key: each[key] for key in keys} for each in cited]
        about: Json = {"start": sentence.start, "end": sentence.end, "status": sentence.status, "places": places}
        claims.append({"text": text[sentence.start : sentence.end], **about})
    named = [_named(document, room) for document in documents]
    result: Json = {"claims": claims, "documents": named, "not_found": list(missing), "truncated": False}
    return _within(result, ("claims",), room)[0]


def links(documents: Iterable[Document], room: Room) -> list[Json]:
    """Return a link to each of *documents* as MCP has it, the first one with the highest priority."""
    return [
        {
            "type": "resource_link",
            "uri": address_of(document, room.origin),
            "name": title_of(document),
            "annotations": {"audience": ["user"], "priority": round(1 / (place + 1), 3)},
        }
        for place, document in enumerate(documents)
    ]


def address_of(document: Document, origin: str) -> str:
    """Return where a person can open *document*: its own URL where it is a strictly valid one, else our page of it."""
    own = target_of(document)
    try:
        if _ADDRESS.fullmatch(own) and urlsplit(own).port != 0 and own.count("#") < 2:
            return quote(own, safe=_UNQUOTED)
    except ValueError:
        pass  # `port` raises for one that is none, and so does a bad host
    return f"{origin}/documents?{urlencode({'id': document.id}, errors='replace')}"


def _named(document: Document, room: Room) -> Json:
    return {"id": document.id, "title": title_of(document), "url": address_of(document, room.origin)}


def _within(result: Json, keys: Sequence[str], room: Room) -> tuple[Json, int]:
    """
    Return *result* with as many of the first items of its lists *keys* as there is room for, and the tokens left.

    The list that *keys* name first gets its room first. An item counts with its comma.
    """
    lists = {key: cast("list[Json]", result[key]) for key in keys}
    rest = room.tokens - room.tokens_of(result)
    if rest >= 0:
        return result, rest
    rest = room.tokens - room.tokens_of(result | {key: [] for key in keys})
    for key, items in lists.items():
        fitting: list[Json] = []
        for item in items:
            size = room.tokens_of([item])
            if size > rest:
                break
            fitting.append(item)
            rest -= size
        result = result | {key: fitting, "truncated": result["truncated"] or len(fitting) < len(items)}
    return result, rest


STREAM = "text/event-stream"

Writing = AnswerArguments | SummarizeArguments | CompareArguments
"""What the tools that write take."""


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """One call of a tool that writes: *request* is the call, *room* how large its result may be."""

    request: RpcRequest
    room: Room
    takes: type[Writing] = AnswerArguments

    def parse(self, incoming: Incoming, settings: Settings) -> Ask:
        """
        Read the ask out of the call's arguments.

        Raises:
            BadRequest: an argument does not fit; the reason names it.
            NoQuery, QueryTooLong, ContextTooLong: the question cannot be taken.
        """
        is_streamed = self.request.progress_token is not None and STREAM in incoming.headers.get("accept", "")
        return self.request.arguments(self.takes).ask(incoming, settings, is_streamed=is_streamed)

    def reply(self, answer: Answer, context: ReplyContext) -> Json:
        """Return the whole answer as the tool's result."""
        return self._finished(answer.sources, answer.finished)

    def stream(self, events: Iterator[WorkEvent], context: ReplyContext) -> Iterator[Json]:
        """
        Yield progress: how many documents there are, then the answer's words in order; the result comes last.

        Joined, the messages after the first are the answer; work on whole documents tells of its steps between them.
        """
        token, sources = self.request.progress_token, Sources(())
        for count, event in enumerate(events, start=1):
            match event:
                case Sources():
                    sources = event
                    message = f"{len(sources.extracts)} documents found"
                case Delta():
                    message = event.text
                case Progress():
                    message = f"{event.step}: {event.count} of {event.total}"
                case Finished():
                    yield self._finished(sources, event)
                    return
                case _:  # Failed
                    yield succeeded(self.request, error_result(event.error))
                    return
            yield progress("" if token is None else token, count, message)

    def failure(self, error: RagError, rag: RagSettings) -> tuple[int, Json]:
        """Return HTTP status and body of a failure, before or instead of the result."""
        return failed(error, self.request)

    def _finished(self, sources: Sources, finished: Finished) -> Json:
        documents = [extract.document for extract in sources.extracts]
        structured = answer_result(sources, finished, self.room)
        return succeeded(self.request, tool_result(structured, links(documents, self.room)))
