"""Liveness, readiness and metrics: what operators and probes read."""

from __future__ import annotations

import orjson
from flask import Response

from datafari_rag.web.answering import Desk, json_response


def live(desk: Desk) -> Response:
    """Answer 200 while this process lives, whatever Solr or the model do."""
    return json_response(b'{"status":"live"}')


def ready(desk: Desk) -> Response:
    """Answer 200 when a question would be answered now, else 503; the body lists what is wrong."""
    problems = list(desk.service.problems())
    if desk.streams.is_closing:
        problems.append({"what": "server", "problem": "This worker is stopping."})
    body = {"status": "not ready" if problems else "ready", "problems": problems}
    return json_response(orjson.dumps(body), 503 if problems else 200)


def metrics(desk: Desk) -> Response:
    """Answer Prometheus' text over all workers."""
    return Response(desk.metrics.exposition(), mimetype="text/plain; version=0.0.4")
