"""
What a model's server said of a refusal, made fit for an administrator's eyes, and what to do about each failure.

For questions of the service's own alone (`doctor`, the trial of the settings page): no message of a server reaches the
log or a caller. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from datafari_rag.core.errors import RagError
from datafari_rag.core.model.refusal import Rejection

RUN_CHARS = 16
"""A run of so many characters that stands in what was sent is a quotation."""

MAX_SHOWN_CHARS = 300
_READ_CHARS = 4_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def words_of(rejection: Rejection | None, sent: Sequence[str], secrets: Sequence[str]) -> str:
    """
    Return the server's message in one line, at most `MAX_SHOWN_CHARS` long; "" where there is none.

    What it quotes of *sent*, and each of *secrets*, is replaced by "…".
    """
    message = rejection.error.get("message") if rejection is not None else None
    if not isinstance(message, str):
        return ""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        message = message.replace(secret, "…")
    text = _CONTROL.sub(" ", message[:_READ_CHARS])
    escaped = (json.dumps(one, ensure_ascii=is_ascii)[1:-1] for one in sent for is_ascii in (False, True))
    shown = _without_quotes(text, [_CONTROL.sub(" ", one) for one in (*sent, *escaped, *secrets)]).strip()
    return shown if len(shown) <= MAX_SHOWN_CHARS else shown[: MAX_SHOWN_CHARS - 1] + "…"


def _without_quotes(text: str, sent: Sequence[str]) -> str:
    kept: list[str] = []
    at = 0
    while at < len(text):
        run = text[at : at + RUN_CHARS]
        if len(run) < RUN_CHARS or not any(run in one for one in sent):
            kept.append(text[at])
            at += 1
            continue
        end = at + RUN_CHARS
        while end < len(text) and any(text[end - RUN_CHARS + 1 : end + 1] in one for one in sent):
            end += 1
        kept.append("…")
        at = end
    return "".join(kept)


def advice_for(error: RagError) -> str:
    """Return what an administrator does about *error*, "" where nothing is known."""
    return next((advice for word, advice in LOG_ADVICE if word in error.log), ADVICE.get(error.label, ""))


LOG_ADVICE: tuple[tuple[str, str], ...] = (
    ("SSL", "The server's certificate is not trusted: set llm.tls.ca to its certificate authority"),
    ("status=3", "It redirects to another address, which requests do not follow: set rag.api.endpoint to that one"),
    ("ReplyTooLong", "It sends far more than rag.maxTokens: does it take the parameter? See llm.server"),
)
"""By a word of a failure's log, where that says more than its label."""

ADVICE: Mapping[str, str] = {
    "modelKeyRefused": "Check rag.api.token, and that llm.server names the server (Azure wants the header api-key)",
    "modelNotFound": "Set rag.model to a name that the server lists at /v1/models",
    "modelParameterRefused": "Set llm.server, or leave rag.temperature= or rag.maxTokens= empty (docs/models.md)",
    "modelInputTooLong": "Lower llm.context.window to what the server was started with",
    "modelOutOfCredit": "Add credit to the account, or set llm.fallback",
    "contentFiltered": "The provider's filter blocked a harmless question: check its settings there",
    "modelRefused": "Check rag.api.endpoint, rag.api.token, rag.model and llm.server",
    "modelBusy": "Wait, or raise the limit of the account; llm.fallback names another endpoint",
    "modelGarbled": "The server at this address is no chat completions endpoint: check rag.api.endpoint",
    "modelUnavailable": "Is it running, and reachable from here? Check rag.api.endpoint, tls and llm.proxy",
    "modelTimeout": "The first question may load the model: raise llm.first_token_timeout_s and llm.total_timeout_s",
    "onlyThoughts": "Raise rag.maxTokens and llm.context.window, or lower the effort with llm.body",
    "thoughtsPassedOn": "Ask again; or name the server with llm.server, and let it put thoughts apart",
    "noAnswer": "It replied without a text: does it answer questions (and not complete texts or call tools)?",
}
"""By the label of a failure."""
