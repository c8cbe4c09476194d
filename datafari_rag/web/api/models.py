"""`GET /v1/models` and `/v1/models/ID`: which models and indexes a client of /v1 may name."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import chain

from flask import Response, request

from datafari_rag.core.access import require_known
from datafari_rag.core.errors import ModelGarbled, NotAllowed, NotAuthenticated, RagError
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts, taken_until
from datafari_rag.core.model.replies import header_value
from datafari_rag.ports import Ending
from datafari_rag.protocols.openai.chat_completions import relayed, relayed_chunk
from datafari_rag.protocols.openai.renderings import failure, listed, model_row
from datafari_rag.protocols.request import PassThrough, Questionless
from datafari_rag.web.api.answers import to_the_end
from datafari_rag.web.api.exchange import DialectRoute, Exchange
from datafari_rag.web.responses import NDJSON, STREAM_HEADERS, json_response, plain


def models(exchange: Exchange) -> Response:
    """Return the list in OpenAI's format, or the one model that the path names; an application's key is enough."""
    identified, settings = exchange.rights.identified, exchange.settings
    is_known = identified.name is not None or identified.is_application
    if not is_known and settings.security.anonymous == "refuse":
        raise NotAuthenticated
    name, now_s = (request.view_args or {}).get("name"), int(exchange.now_s)
    body = listed(settings, created_s=now_s) if name is None else model_row(name, settings, created_s=now_s)
    return json_response(plain(body))


MODELS = DialectRoute("models", Questionless(failure), NDJSON, work=models, is_question=False)


RelayedChunk = Mapping[str, object] | Ending


def relay(exchange: Exchange, passed: PassThrough) -> Response:
    """
    Return the model's reply to *passed*, with `source_nodes` null.

    Raises:
        NotAuthenticated: no user is signed in and that is required, as for an answer with documents.
        RagError: the model failed before its first words.
    """
    require_known(exchange.user(), exchange.settings.security.anonymous)
    relayed_by = exchange.snapshot.relay
    if relayed_by is None:
        raise NotAllowed
    # What passes through is no question to documents.
    exchange.question, exchange.extracts = None, ()
    chunks = relayed_by.relay(passed.body, is_streamed=passed.is_streamed)
    if passed.is_streamed:
        return _streamed(exchange, chunks)
    with closing(chunks):
        reply, ending = _first(chunks), next(chunks, None)  # read to its end, so that the connection can be used again
    exchange.facts = ending.facts if isinstance(ending, Ending) else UNKNOWN_MODEL
    exchange.finish("passed")
    response = json_response(exchange.row.encoding.whole(relayed(reply)))
    response.headers["X-RAG-Model"] = header_value(exchange.facts)
    return response


def _streamed(exchange: Exchange, chunks: Generator[RelayedChunk, None, None]) -> Response:
    with exchange.worker.streams.opened(exchange.settings.server.limits.streams) as opened:
        beginning = taken_until(chunks, lambda _: True)
        try:
            first = _first(iter(beginning))
        except RagError:
            chunks.close()
            raise
        exchange.facts = ModelFacts(name=str(first.get("model") or "") or None)
        lines = _lines(exchange, chain(beginning, chunks))
        response = Response(lines, mimetype=exchange.row.encoding.stream_type, headers=STREAM_HEADERS)
        opened.is_kept = exchange.is_open = True
    response.call_on_close(chunks.close)
    response.call_on_close(opened.leave)
    # A caller who left before the first byte never started the lines; what has ended before ends as it did.
    response.call_on_close(partial(exchange.finish, "aborted"))
    response.headers["X-RAG-Model"] = header_value(exchange.facts)
    return response


def _first(chunks: Iterator[RelayedChunk]) -> Mapping[str, object]:
    """Return the reply or its first chunk. Raises: RagError, when there is none."""
    first = next(chunks, None)
    if isinstance(first, Mapping):
        return first
    raise first.failure if first is not None and first.failure is not None else ModelGarbled()


def _lines(exchange: Exchange, chunks: Iterator[RelayedChunk]) -> Iterator[bytes]:
    outcome, encoding = "aborted", exchange.row.encoding

    def lines() -> Generator[bytes, None, None]:
        nonlocal outcome
        for chunk in chunks:
            if isinstance(chunk, Mapping):
                yield encoding.line(relayed_chunk(chunk))
                continue
            exchange.facts = chunk.facts
            if chunk.failure is not None:
                yield from failed(chunk.failure)
                continue
            outcome = "passed"
            yield encoding.last

    def failed(error: RagError) -> Generator[bytes, None, None]:
        nonlocal outcome
        outcome = error.label
        yield encoding.line(failure(error, exchange.settings)[1])

    try:
        with closing(to_the_end(lines(), failed, exchange.id)) as every:
            yield from every
    finally:
        exchange.finish(outcome)
