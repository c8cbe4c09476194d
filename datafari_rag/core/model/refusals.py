"""
What a refusal of a model's server means: to the service, to its administrator, to the caller.

The service learns a parameter that the server does not take, or roles that it wants otherwise. An administrator is
shown the server's words and what to do; a caller is told what they chose wrong. The message may quote the prompt,
documents included: what stands in the prompt teaches nothing, and none of it is shown or logged. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.errors import (
    MAX_NAME_SHOWN,
    ModelError,
    ModelInputTooLong,
    ModelNotFound,
    RagError,
    Refusal,
    RefusedByModel,
    Rejection,
)
from datafari_rag.core.model.prompt import Prompt, texts_of
from datafari_rag.core.model.replies import RELAYED, refusal_of
from datafari_rag.core.model.servers import Instructions, Length, ServerNeeds
from datafari_rag.core.model.thinking import END_MARKS, ThinkingFilter

MAX_LESSONS = 3
"""How often one question is sent again, each time for another difference."""

TEACHING = frozenset({200, 400, 422})
"""Statuses of a refusal of the request itself; 200 is an error object in place of an answer that names no status."""

_AROUND = 8
_ONLY = "only user and assistant roles"
_REFUSED = re.compile(
    r"unsupported|not support|n't support|not permitted|not allowed|unrecognized|unknown|unexpected|extra_forbidden"
    rf"|deprecated|{_ONLY}"
)
_ALTERNATE = re.compile(r"must alternate|roles? in a row|must be at the beginning|initial optional system message")
_ROLE = re.compile(r"\broles?\b")
_BACKSLASHES = re.compile(r"\\+")
_NOT_ASCII = re.compile(r"(?:\\u[\da-f]{4}|\\x[\da-f]{2}|[^\x00-\x7f]|\?)+")
_SPACE = re.compile(r"(?:\\[nrtbf]|\s)+")
_PARAMETERS = ("max_tokens", "max_completion_tokens", "temperature")


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a server wants otherwise: *name* is what it refused, *text* says what is done, for the log."""

    name: str
    text: str
    needs: ServerNeeds


def lesson_in(rejection: Rejection, needs: ServerNeeds, sent: Sequence[str]) -> Lesson | None:
    """
    Return what *rejection* teaches of a request that was made as *needs* says, None where it teaches nothing.

    *sent* are the texts of the prompt.
    """
    if rejection.status not in TEACHING:
        return None
    said = _Said.of(rejection, sent)
    if not said.has(_REFUSED):
        return _of_turns(needs) if said.has(_ALTERNATE) else None
    name = next(said.named((*_PARAMETERS, *needs.body)), None)
    if name is not None:
        return _of_parameter(name, needs)
    if said.has(_ALTERNATE):
        return _of_turns(needs)
    is_of_role = needs.instructions in said.text or _ONLY in said.text
    return _of_instructions(needs) if said.has(_ROLE) and is_of_role else None


def thinking_lesson(
    needs: ServerNeeds, thinking: ThinkingFilter, prompt: Prompt, *, has_thoughts: bool
) -> Iterator[Lesson]:
    """
    Yield what the reply to *prompt* teaches that was read through *thinking*: whether its model thinks, and where.

    *has_thoughts*: it thought, shown or hidden. An end mark that stands in the prompt may be quoted from there.
    """
    if thinking.is_without_beginning and needs.thinking != "aloud":
        if any(mark in text for mark in END_MARKS for text in texts_of(prompt)):
            return
        text = "its answers begin with thoughts: streams wait for their end"
        yield Lesson("thinking", text, replace(needs, thinking="aloud"))
    elif has_thoughts and needs.thinking == "none":
        yield Lesson("thinking", "it thinks: its answers get more tokens", replace(needs, thinking="apart"))


@dataclass(frozen=True, slots=True)
class _Said:
    """The words of a refusal, unescaped and cut; *param* is the parameter that it names in a field of its own."""

    text: str
    param: str
    sent: tuple[str, ...]

    @classmethod
    def of(cls, rejection: Rejection, sent: Sequence[str]) -> _Said:
        param = rejection.error.get("param")
        return cls(
            _unescaped(rejection.words),
            param if isinstance(param, str) else "",
            tuple(_unescaped(text.lower()) for text in sent),
        )

    def has(self, pattern: re.Pattern[str]) -> bool:
        """Say whether the server itself says what *pattern* finds; what it only quotes of the prompt does not count."""
        return any(not self._is_quoted(*found.span()) for found in pattern.finditer(self.text))

    def named(self, names: Sequence[str]) -> Iterator[str]:
        """Yield those of *names* that are refused: the one of the field, else as they come in the message."""
        if self.param:
            yield from (name for name in names if name == self.param)
            return
        found = ((re.search(rf"(?<![\w.]){re.escape(name.lower())}(?!\w)", self.text), name) for name in names)
        places = sorted((match.start(), name) for match, name in found if match and not self._is_quoted(*match.span()))
        yield from (name for _, name in places)

    def _is_quoted(self, start: int, end: int) -> bool:
        around = self.text[max(0, start - _AROUND) : end + _AROUND]
        return any(around in text for text in self.sent)


def _unescaped(text: str) -> str:
    """Return *text*, in lower case, so that a quotation of it, escaped or not and however often, reads the same."""
    text = _NOT_ASCII.sub("?", _BACKSLASHES.sub(r"\\", text))
    return _SPACE.sub(" ", text).replace("\\", "")


def _of_parameter(name: str, needs: ServerNeeds) -> Lesson | None:
    if name in needs.body:
        body = {key: value for key, value in needs.body.items() if key != name}
        return Lesson(name, f"{name} is not sent", replace(needs, body=body))
    if name == "temperature":
        bare = replace(needs, sends_temperature=False)
        return Lesson(name, "temperature is not sent", bare) if needs.sends_temperature else None
    if name != needs.length:
        return None
    other: Length = "max_completion_tokens" if name == "max_tokens" else "max_tokens"
    return Lesson("length", f"{other} is sent in place of {name}", replace(needs, length=other))


def _of_turns(needs: ServerNeeds) -> Lesson | None:
    if needs.is_merged:
        return None
    text = "documents and question are one message, so that user and assistant alternate"
    return Lesson("turns", text, replace(needs, is_merged=True))


def _of_instructions(needs: ServerNeeds) -> Lesson | None:
    if needs.instructions == "user":
        return None
    role: Instructions = "system" if needs.instructions == "developer" else "user"
    return Lesson(needs.instructions, f"instructions have the role {role}", replace(needs, instructions=role))


RUN_CHARS = 16
"""A run of so many characters that stands in what was sent is a quotation, and is not shown."""

MAX_SHOWN_CHARS, MAX_READ_CHARS = 300, 4_000
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
    text = _CONTROL.sub(" ", message[:MAX_READ_CHARS])
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


def callers_error(failure: ModelError, *, chosen: Collection[str], model: str) -> RefusedByModel | None:
    """
    Return the error for the caller, None where *failure* is not their doing.

    *chosen* names the parameters that they set themselves; *model* is the name that was sent. A model that does not
    exist is the administrator's mistake where the settings name it, and the caller's where they did.
    """
    rejection = failure.rejection
    if rejection is None or rejection.status not in RELAYED:
        return None
    refusal = refusal_of(rejection)
    for kind, param, code, sentence in BLAMED:
        if isinstance(failure, kind) and param in chosen:
            return _error(sentence.format(model=model[:MAX_NAME_SHOWN]), refusal, code=code, param=param)
    named = _OTHER_NAMES.get(refusal.param or "", refusal.param)
    if named is None or named not in chosen:
        return None
    return _error(f"The model does not accept this value of {named}.", refusal, code="invalid_value", param=named)


def _error(reason: str, refusal: Refusal, *, code: str, param: str) -> RefusedByModel:
    spelled = replace(
        refusal,
        code=code if refusal.code is None or refusal.code.isdigit() else refusal.code,
        kind=refusal.kind or "invalid_request_error",
        param=refusal.param or param,
    )
    return RefusedByModel(reason, refusal=spelled, log=f"status={refusal.status} by the caller's {param}")


CONVERSATION = "messages"
"""What a caller chose who sent a whole conversation and its budget (/v1)."""

_OTHER_NAMES = {"max_completion_tokens": "max_tokens", "input": CONVERSATION, "prompt": CONVERSATION}

BLAMED: tuple[tuple[type[ModelError], str, str, str], ...] = (
    (
        ModelInputTooLong,
        CONVERSATION,
        "context_length_exceeded",
        "The conversation, the documents and max_tokens together are longer than the model's context.",
    ),
    (
        ModelNotFound,
        "model",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
)
"""Failures that are the caller's where they chose a parameter; with the code and the sentence that they get."""

LOG_ADVICE: tuple[tuple[str, str], ...] = (
    ("certificate", "The server's certificate is not trusted: set ca of llm in tls to its certificate authority"),
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
    "modelRefused": "Check rag.api.endpoint with its path, rag.api.token, rag.model and llm.server",
    "modelBusy": "Wait, or raise the limit of the account; llm.fallback names another endpoint",
    "modelGarbled": "The server at this address is no chat completions endpoint: check rag.api.endpoint",
    "modelUnavailable": "Is it running, and reachable from here? Check rag.api.endpoint, tls and llm.proxy",
    "modelTimeout": "The first question may load the model: raise first_token_s and total_s of llm.limits",
    "onlyThoughts": "Raise rag.maxTokens and llm.context.window, or lower the effort with llm.body",
    "thoughtsPassedOn": "Ask again; or name the server with llm.server, and let it put thoughts apart",
    "noAnswer": "It replied without a text: does it answer questions (and not complete texts or call tools)?",
}
"""By the label of a failure."""
