"""
Which refusals of the model's server are the caller's own doing, when the prompt holds documents as well.

A model that does not exist is the administrator's mistake where the settings name it, and the caller's where he did.
The message of the server may quote the prompt, documents included: it is read here and never handed on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from datafari_rag.core.errors import RefusedByModel
from datafari_rag.core.model.refusal import MAX_NAME_SHOWN, Refusal, Rejection
from datafari_rag.core.model.replies import RELAYED, refusal_of

CONVERSATION = "messages"
"""What a caller chose who sent a whole conversation and its budget (/v1)."""

_READ_CHARS = 2_000
_OTHER_NAMES = {"max_completion_tokens": "max_tokens", "input": CONVERSATION, "prompt": CONVERSATION}


@dataclass(frozen=True, slots=True)
class BlamedFault:
    """
    One way to be refused: *needs* is what the caller must have chosen, *words* what the server's error then holds.

    *words* are compared with its code, type and message, in lower case; `{model}` is the name of the model. *statuses*
    are those of HTTP with which they mean that.
    """

    code: str
    needs: str
    words: tuple[str, ...]
    sentence: str
    statuses: frozenset[int] = RELAYED


def callers_error(rejection: Rejection, *, chosen: Collection[str], model: str) -> RefusedByModel | None:
    """
    Return the error for the caller, None when the refusal is not his doing.

    *chosen* names the parameters that he set himself; *model* is the name that was sent.
    """
    if rejection.status not in RELAYED:
        return None
    refusal = refusal_of(rejection)
    said = _text_of(rejection)
    for fault in FAULTS:
        if fault.needs in chosen and _is_meant(fault, refusal.status, said, model=model.lower()):
            return _error(
                fault.sentence.format(model=model[:MAX_NAME_SHOWN]), refusal, code=fault.code, param=fault.needs
            )
    param = _OTHER_NAMES.get(refusal.param or "", refusal.param)
    if param is None or param not in chosen:
        return None
    return _error(f"The model does not accept this value of {param}.", refusal, code="invalid_value", param=param)


def _is_meant(fault: BlamedFault, status: int, said: str, *, model: str) -> bool:
    return status in fault.statuses and any(word.format(model=model) in said for word in fault.words)


def _error(reason: str, refusal: Refusal, *, code: str, param: str) -> RefusedByModel:
    spelled = replace(
        refusal,
        code=code if refusal.code is None or refusal.code.isdigit() else refusal.code,
        kind=refusal.kind or "invalid_request_error",
        param=refusal.param or param,
    )
    return RefusedByModel(reason, refusal=spelled, log=f"status={refusal.status} by the caller's {param}")


def _text_of(rejection: Rejection) -> str:
    words = (str(rejection.error.get(key) or "")[:_READ_CHARS] for key in ("code", "type", "message"))
    return " ".join(words).lower()


NO_SUCH_MODEL = "The model `{model}` does not exist or you do not have access to it."

FAULTS = (
    BlamedFault(
        "context_length_exceeded",
        CONVERSATION,
        ("context_length_exceeded", "exceed_context_size", "maximum context length", "context window", "context size"),
        "The conversation, the documents and max_tokens together are longer than the model's context.",
    ),
    BlamedFault("model_not_found", "model", ("model_not_found", "unknown_model"), NO_SUCH_MODEL),
    # Servers without a code for it name the model between signs; a 400 may do so for other reasons.
    BlamedFault(
        "model_not_found",
        "model",
        ("`{model}`", '"{model}"', "'{model}'", "model {model} "),
        NO_SUCH_MODEL,
        frozenset({404}),
    ),
)
"""The ways that are distinguished; a refusal that names another chosen parameter is the caller's too."""
