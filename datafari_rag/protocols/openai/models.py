"""
What all paths of /v1 share: the models, and OpenAI's shape of an error.

Our models answer from documents and name an index; those of the model's server come after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from datafari_rag.core.errors import ContextTooLong, NoSuchModel, RagError, RefusedByModel
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_reply_parts import Json, status_of


@dataclass(frozen=True, slots=True)
class OurModel:
    """A model that answers from documents: the *name* that the caller used, and the *index*, None for the main one."""

    name: str
    index: str | None = None


def our_model(name: object, settings: Settings) -> OurModel | None:
    """
    Return this service's model with that *name*, None for another name.

    Raises:
        NoSuchModel: the name is ours and its index is not known.
    """
    if not isinstance(name, str):
        return None
    base, has_index, index = name.partition("/")
    if base != settings.openai_client.model:
        return None
    if not has_index:
        return OurModel(name)
    if index not in settings.openai_indexes:
        raise NoSuchModel.named(name)
    return OurModel(name, index)


def may_pass_through(settings: Settings) -> bool:
    """Say whether requests may go to the model as they came; some models cannot be called that way."""
    is_openai = settings.rag_template == "openai" and settings.rag_api_endpoint != BUILTIN_MODEL
    return settings.openai_client.passthrough and is_openai


def upstream_names(settings: Settings) -> tuple[str, ...]:
    """Return the names that are known of the model's own server."""
    return settings.openai_models or ((settings.rag_model,) if settings.rag_model else ())


def listed(settings: Settings, *, created_s: int) -> Json:
    """Return the models that may be requested, and the names of the indexes."""
    data = [_described(name, created_s) for name in dict.fromkeys(_names(settings))]
    return {"object": "list", "data": data, "indexes": list(settings.openai_indexes)}


def found(name: str, settings: Settings, *, created_s: int) -> Json:
    """Return one model. Raises: NoSuchModel, where the list does not have it."""
    if our_model(name, settings) is None and name not in _names(settings):
        raise NoSuchModel.named(name)
    return _described(name, created_s)


def _names(settings: Settings) -> Iterator[str]:
    ours = settings.openai_client.model
    yield ours
    main = next((name for name, address in settings.openai_indexes.items() if not address), None)
    yield from (f"{ours}/{name}" for name in settings.openai_indexes if name != main)
    if may_pass_through(settings):
        yield from upstream_names(settings)


def _described(name: str, created_s: int) -> Json:
    return {"id": name, "object": "model", "created": created_s, "owned_by": "datafari_rag"}


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
