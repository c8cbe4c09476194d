"""OpenAI's shape of an error, for every path under /v1."""

from __future__ import annotations

from collections.abc import Mapping

from datafari_rag.core.errors import ContextTooLong, NoSuchModel, RagError, RefusedByModel
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_reply_parts import Json, status_of


def failure(error: RagError, settings: Settings) -> tuple[int, Json]:
    """Return the HTTP status and the error as OpenAI's clients read it; the model's own words where it refused."""
    if isinstance(error, RefusedByModel):
        refusal = error.refusal
        kind = refusal.kind or "invalid_request_error"
        return refusal.status, _body(error.reason, kind, refusal.param, refusal.code or error.label)
    status = status_of(error)
    kind = KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return status, _body(error.reason, kind, error.field, CODES.get(type(error), error.label))


def _body(message: str, kind: str, param: str | None, code: str) -> Json:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


KINDS = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
"""What OpenAI calls a failure of this status; all other 4xx are invalid_request_error."""

CODES: Mapping[type[RagError], str] = {
    ContextTooLong: "context_length_exceeded",
    NoSuchModel: "model_not_found",
}
"""Failures that clients know by OpenAI's code; all others have their label."""
