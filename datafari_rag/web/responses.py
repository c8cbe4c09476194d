"""Responses as every path sends them: JSON that is not cached, and the headers of an answer or a failure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from flask import Response

from datafari_rag.core.errors import InvalidSignIn, NotAuthenticated, RagError
from datafari_rag.core.events import ModelFacts, Support
from datafari_rag.core.model.replies import header_value

RETRIEVAL_HEADER = "X-RAG-Retrieval"
"""Says what the documents were found by: words, vector, both."""

SUPPORT_HEADER = "X-RAG-Support"
"""Says what share of the sentences of a whole answer the documents prove, 0 to 1."""

INVALID = 'realm="datafari_rag", error="invalid_token"'
"""What a challenge says of a credential that was sent and refused (RFC 6750)."""

IGNORED_HEADER = "X-RAG-Ignored"
"""Names what of the request had no effect, where names are plain words."""

_HEADER_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,60}")

STREAM_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
"""What keeps a proxy from holding a stream back."""


def with_error_headers(error: RagError, response: Response) -> Response:
    """Return *response* with the headers that HTTP requires for *error*: when a repeat can help, and how to sign in."""
    if response.status_code == NotAuthenticated.code:
        response.headers["WWW-Authenticate"] = (
            f"Bearer {INVALID}" if isinstance(error, InvalidSignIn) else 'Bearer realm="datafari_rag"'
        )
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    return response


def json_response(body: bytes, status: int = 200) -> Response:
    """Return JSON that must not be cached: its contents are for one user."""
    response = Response(body, status, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def add_model(response: Response, facts: ModelFacts) -> None:
    """Name the model that answered."""
    response.headers["X-RAG-Model"] = header_value(facts)


def add_support(response: Response, support: Support | None) -> None:
    """Give the proved share of a whole answer; the headers of a stream are sent before it is known."""
    if support is not None and support.share is not None:
        response.headers[SUPPORT_HEADER] = f"{support.share:g}"


def add_ignored(response: Response, names: Iterable[str]) -> None:
    """Name what of the request had no effect, where names are plain words."""
    if plain := [name for name in names if _HEADER_SAFE.fullmatch(name)]:
        response.headers[IGNORED_HEADER] = ", ".join(plain)
