"""A request of /v1 that goes to the model as it came, and the model's reply back (contract §3)."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from itertools import chain

from flask import Response

from datafari_rag.core.access import User, require_known
from datafari_rag.core.errors import ModelGarbled, NotAllowed, RagError
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts, taken_until
from datafari_rag.core.model.replies import header_value
from datafari_rag.ports import Ending
from datafari_rag.protocols.openai.chat_completions import failure, relayed, relayed_chunk
from datafari_rag.protocols.request import PassThrough
from datafari_rag.web.api.answers import DialectRoute, WorkerContext
from datafari_rag.web.ops.audit import Audited, audit
from datafari_rag.web.ops.metrics import FinishedRequest
from datafari_rag.web.responses import STREAM_HEADERS, json_response
from datafari_rag.web.runtime import ServiceSnapshot

Said = Mapping[str, object] | Ending


def relay(
    worker: WorkerContext, row: DialectRoute, snapshot: ServiceSnapshot, *, user: User, passed: PassThrough
) -> Response:
    """
    Return the model's reply to *passed*, with `source_nodes` null.

    Raises:
        NotAuthenticated: no user is signed in and that is required, as for an answer with documents.
        RagError: the model failed before its first words.
    """
    require_known(user, snapshot.settings.security_anonymous)
    if snapshot.relay is None:
        raise NotAllowed
    said = snapshot.relay.relay(passed.body, is_streamed=passed.is_streamed)
    audited = Audited(worker.now(), worker.new_id(), row.name, user.name)
    if passed.is_streamed:
        return _streamed(worker, row, snapshot, audited=audited, chunks=said)
    with closing(said):
        reply, ending = _first(said), next(said, None)  # read to its end, so that the connection can be used again
    facts = ending.facts if isinstance(ending, Ending) else UNKNOWN_MODEL
    worker.metrics.count(FinishedRequest(row.name, "passed", facts), snapshot.settings)
    audit(snapshot, audited, "passed", facts=facts)
    response = json_response(row.encoding.whole(relayed(reply)))
    response.headers["X-RAG-Model"] = header_value(facts)
    return response


def _streamed(
    worker: WorkerContext,
    row: DialectRoute,
    snapshot: ServiceSnapshot,
    *,
    audited: Audited,
    chunks: Generator[Said, None, None],
) -> Response:
    with worker.streams.opened(snapshot.settings.server_max_streams) as opened:
        taken = taken_until(chunks, lambda _: True)
        try:
            first = _first(iter(taken))
        except RagError:
            chunks.close()
            raise
        lines = _lines(worker, row, snapshot, audited=audited, said=chain(taken, chunks))
        response = Response(lines, mimetype=row.encoding.stream_type, headers=STREAM_HEADERS)
        opened.is_kept = True
    response.call_on_close(chunks.close)
    response.call_on_close(opened.leave)
    response.headers["X-RAG-Model"] = header_value(ModelFacts(name=str(first.get("model") or "") or None))
    return response


def _first(said: Iterator[Said]) -> Mapping[str, object]:
    """Return the reply or its first chunk. Raises: RagError, when there is none."""
    first = next(said, None)
    if isinstance(first, Mapping):
        return first
    raise first.failure if first is not None and first.failure is not None else ModelGarbled()


def _lines(
    worker: WorkerContext, row: DialectRoute, snapshot: ServiceSnapshot, *, audited: Audited, said: Iterator[Said]
) -> Iterator[bytes]:
    outcome, facts = "aborted", UNKNOWN_MODEL
    try:
        for one in said:
            if isinstance(one, Mapping):
                yield row.encoding.line(relayed_chunk(one))
            elif one.failure is not None:
                outcome, facts = one.failure.label, one.facts
                yield row.encoding.line(failure(one.failure, snapshot.settings)[1])
            else:
                outcome, facts = "passed", one.facts
                yield row.encoding.last
    finally:
        worker.metrics.count(FinishedRequest(row.name, outcome, facts), snapshot.settings)
        audit(snapshot, audited, outcome)
