"""`GET /v1/models` and `/v1/models/ID`: which models and indexes a client of /v1 may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain

from flask import Response, request

from datafari_rag.core.access import require_known
from datafari_rag.core.errors import ModelGarbled, NotAllowed, NotAuthenticated
from datafari_rag.core.events import UNKNOWN_MODEL, Failed, Finished, ModelFacts
from datafari_rag.core.model.replies import header_value
from datafari_rag.ports import Ending
from datafari_rag.protocols.openai.chat_completions import relayed, relayed_chunk
from datafari_rag.protocols.openai.renderings import failure, listed, model_row
from datafari_rag.protocols.request import PassThrough, Questionless
from datafari_rag.web.api.answers import stream
from datafari_rag.web.responses import NDJSON, json_response, plain
from datafari_rag.web.turn import DialectRoute, Turn


def models(turn: Turn) -> Response:
    """Return the list in OpenAI's format, or the one model that the path names; an application's key is enough."""
    identified, settings = turn.rights().identified, turn.settings
    is_known = identified.name is not None or identified.is_application
    if not is_known and settings.security.anonymous == "refuse":
        raise NotAuthenticated
    name, now_s = (request.view_args or {}).get("name"), int(turn.now_s)
    body = (
        listed(settings.rag, settings.openai, created_s=now_s)
        if name is None
        else model_row(name, settings.rag, settings.openai, created_s=now_s)
    )
    return json_response(plain(body))


MODELS = DialectRoute("models", Questionless(failure), NDJSON, work=models, is_question=False)


RelayedChunk = Mapping[str, object] | Ending


def relay(turn: Turn, passed: PassThrough) -> Response:
    """
    Return the model's reply to *passed*, with `source_nodes` null.

    Raises:
        NotAuthenticated: no user is signed in and that is required, as for an answer with documents.
        RagError: the model failed before its first words.
    """
    require_known(turn.user(), turn.settings.security.anonymous)
    if turn.snapshot.relay is None:
        raise NotAllowed
    # What passes through is no question to documents.
    turn.question, turn.extracts, turn.ending, turn.outcome = None, (), None, "passed"
    if passed.is_streamed:
        turn.open_stream()
    chunks = turn.snapshot.relay.relay(passed.body, is_streamed=passed.is_streamed)
    first = next(chunks, None)
    if not isinstance(first, Mapping):
        chunks.close()
        raise first.failure if first is not None and first.failure is not None else ModelGarbled()
    if passed.is_streamed:
        turn.facts = ModelFacts(name=str(first.get("model") or "") or None)
        response = stream(
            turn,
            _lines(turn, chain((first,), chunks)),
            broken=lambda error: [failure(error, turn.settings.rag)[1]],
            close=chunks.close,
        )
    else:
        with closing(chunks):
            ending = next(chunks, None)  # read to its end, so that the connection can be used again
        turn.facts = ending.facts if isinstance(ending, Ending) else UNKNOWN_MODEL
        response = json_response(turn.row.encoding.whole(relayed(first)))
    response.headers["X-RAG-Model"] = header_value(turn.facts)
    return response


def _lines(turn: Turn, chunks: Iterator[RelayedChunk]) -> Iterator[Mapping[str, object]]:
    for chunk in chunks:
        if isinstance(chunk, Mapping):
            yield relayed_chunk(chunk)
            continue
        turn.facts = chunk.facts
        turn.ending = Finished("") if chunk.failure is None else Failed(chunk.failure)
        if chunk.failure is not None:
            yield failure(chunk.failure, turn.settings.rag)[1]
