"""
`/talk`: a follow-up question of our own page, streamed.

JSON alone is taken: no form of another site can send it, and other sites' scripts are not let in (`web/ops/cors.py`).
"""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.errors import RagError
from datafari_rag.web.api.answers import WorkerContext, answered, failed
from datafari_rag.web.pages.search import PAGE
from datafari_rag.web.request_values import incoming_from

TAKES = frozenset({"json"})


def talk(worker: WorkerContext) -> Response:
    """Return the stream of the answer to the last message that was sent."""
    snapshot = worker.snapshot()
    try:
        incoming = incoming_from(request, takes=TAKES, now_s=worker.now())
    except RagError as error:
        return failed(worker, PAGE, error, snapshot.settings)
    watch = request.environ.get("datafari_rag.watch")
    if watch is not None:
        watch()
    return answered(worker, PAGE, snapshot, incoming=incoming, peer=request.remote_addr or "")
