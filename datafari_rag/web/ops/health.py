"""Liveness, readiness and metrics: what operators and probes read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address

import orjson
from flask import Response, request

from datafari_rag.core.errors import RagError
from datafari_rag.web.ops.probes import PROBES
from datafari_rag.web.responses import json_response
from datafari_rag.web.turn import Turn
from datafari_rag.web.user import is_admin

FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via")
"""Headers by which a proxy on this machine shows that it forwards a request."""

UNWELL = "Not working correctly; details are shown to this machine and to administrators."
"""What a stranger reads in place of a problem, which may name hosts, files and settings."""


def live(turn: Turn) -> Response:
    """Answer 200 while this process lives, whatever Solr or the model do."""
    return json_response(b'{"status":"live"}')


def ready(turn: Turn) -> Response:
    """
    Answer 200 when a question would be answered now, else 503; the body lists what is wrong, and each part.

    A settings file that was rejected is no reason for 503: the settings before it answer. Only this machine and
    administrators read in which words, and where the model is.
    """
    problems, rejected = list(turn.worker.service.problems()), turn.worker.service.rejected_settings()
    if turn.worker.streams.is_closing:
        problems.append({"what": "server", "problem": "This worker is stopping."})
    parts = parts_of(turn, problems)
    if not _may_see_more(turn):
        problems, parts = [_blurred(problem) for problem in problems], [_blurred(part) for part in parts]
        rejected = UNWELL if rejected else None
    body = {
        "status": "not ready" if problems else "ready",
        "problems": problems,
        "settings_rejected": rejected,
        "dependencies": parts,
    }
    return json_response(orjson.dumps(body), 503 if problems else 200)


def parts_of(turn: Turn, problems: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """
    Return what is known of the settings and of each part in `PROBES`; *problems* are the service's own of this moment.

    What is not needed is a part where it is configured, and never a reason for not being ready.
    """
    all_problems = [*problems, *turn.worker.service.weaknesses()]
    rows = (row.what for row in PROBES if row.is_needed or row.of(turn.snapshot) is not None)
    return [_part(turn, what, all_problems) for what in ("settings", *rows)]


def metrics(turn: Turn) -> Response:
    """Answer Prometheus' text over all workers."""
    text = turn.worker.metrics.exposition(is_rejected=turn.worker.service.rejected_settings() is not None)
    return Response(text, mimetype="text/plain; version=0.0.4")


def _may_see_more(turn: Turn) -> bool:
    """Say whether this is a request of the machine itself, or of an administrator."""
    snapshot, peer = turn.snapshot, turn.peer
    is_direct = not any(name in request.headers for name in FORWARDED)
    try:
        if is_direct and ip_address(peer).is_loopback:
            return True
        return is_admin(snapshot.identity.identify(turn.incoming.headers, peer).name, snapshot.settings.security)
    except (RagError, ValueError):
        return False


def _blurred(part: Mapping[str, object]) -> Mapping[str, object]:
    """Return what a stranger may know of a problem or a part: what it is, whether it is well, the labels."""
    endpoints = part.get("endpoints")
    public = {**part, "problem": UNWELL if part["problem"] else None}
    if isinstance(endpoints, list):
        public["endpoints"] = [{"breaker": endpoint["breaker"]} for endpoint in endpoints]
    return public


def _part(turn: Turn, what: str, problems: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    """
    Return what is known of one part: its problem now, and the last failure of an answer by it in any worker.

    The model is never called for this: that would cost money, or wake it. Its breaker has the last known state.
    """
    problem = next((row["problem"] for row in problems if row.get("what") == what), None)
    part = {"what": what, "ok": problem is None, "problem": problem, "last_error": turn.worker.failures.latest(what)}
    if what == "model":
        breakers: Callable[[], Sequence[tuple[str, bool]]] = getattr(turn.snapshot.dependencies.model, "breakers", list)
        endpoints = [{"host": host, "breaker": "open" if is_open else "closed"} for host, is_open in breakers()]
        is_ok = not endpoints or any(endpoint["breaker"] == "closed" for endpoint in endpoints)
        part |= {"ok": is_ok, "endpoints": endpoints}
    return part
