"""
What a model's reply means: HTTP statuses, error objects, finish reasons and Retry-After, each to one named outcome;
and how long it may be, and be waited for.

OpenAI's API is the authority. Pure: replies are parsed JSON, the time is a number. No text of a reply gets into an
error, except the message of a refused pass-through, which is its sender's own (`refused_by_model`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from email.utils import parsedate_to_datetime

from datafari_rag.core.errors import (
    ContentFiltered,
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelInputTooLong,
    ModelKeyRefused,
    ModelNotFound,
    ModelOutOfCredit,
    ModelParameterRefused,
    ModelRefused,
    ModelUnavailable,
    NoAnswer,
    OnlyThoughts,
    RagError,
    Refusal,
    RefusedByModel,
    Rejection,
)
from datafari_rag.core.events import UNKNOWN_MODEL, ModelFacts

REPEATABLE = frozenset({429, 502, 503, 504})
"""Statuses where the same request may succeed in a moment."""

RELAYED = frozenset({400, 404, 422})
"""Statuses whose message a pass-through's sender is shown (contract §3)."""

MAX_MESSAGE_CHARS = 1000
_LOGGED_HEADERS = ("content-type", "retry-after", "x-request-id", "server")
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
_PLAIN_WORD = re.compile(r"[\w.\[\]-]{1,80}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class ReplyChunk:
    """
    What one reply, or one chunk of a stream, says.

    *is_declined* is a refusal. *failure* is an error object inside a 200, or a shape
    that cannot be read. *facts* is None where a chunk has nothing new. *thought_chars* is the length of thoughts that
    came in a field of their own.
    """

    text: str = ""
    finish_reason: str | None = None
    is_declined: bool = False
    failure: ModelError | None = None
    facts: ModelFacts | None = None
    thought_chars: int = 0


NOTHING_SAID = ReplyChunk()
"""A chunk without text or news: a keep-alive, the role alone."""


MAX_REPLY_BYTES = 32_000_000
"""Longest reply of a model that is read, whatever was requested: a fault must not fill the memory."""

TOKEN_BYTES = 4_000
"""
Most bytes of a reply for each requested token, on average.

A streamed token takes some 250 bytes of JSON, with a provider's own fields 900, with the logarithms of 20 probabilities
3,000.
"""

REPLY_BYTES = 1_000_000
"""Bytes of a reply besides its tokens: reasoning that some servers do not count, comments, usage."""


def most_bytes(body: Mapping[str, object]) -> int:
    """
    Return how many bytes the reply to the request *body* may have, streamed or whole.

    A model that sends more than its `max_tokens` allow by a wide margin does not heed them, and might never end.
    """
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    tokens = [number for number in limits if isinstance(number, int) and number > 0]
    choices = body.get("n")
    if not tokens:
        return MAX_REPLY_BYTES
    count = max(tokens) * (choices if isinstance(choices, int) and choices > 0 else 1)
    return min(MAX_REPLY_BYTES, REPLY_BYTES + TOKEN_BYTES * count)


def failure_for(rejection: Rejection, *, now_s: float) -> ModelError:
    """
    Return the named failure of a status other than 200; its log has status, size and a few headers, no text.

    *now_s* is the time in seconds since 1970, for a Retry-After that is a date.
    """
    kind = _kind(rejection)
    is_final = issubclass(kind, ModelRefused)
    waits = rejection.status in (429, 503) and not is_final
    return kind(
        retry_after_s=retry_after_s(rejection.headers, now_s=now_s) if waits else None,
        log=_log(rejection),
        status=rejection.status,
        can_repeat=rejection.status in REPEATABLE and not is_final,
        rejection=rejection,
    )


def refused_by_model(rejection: Rejection) -> RefusedByModel:
    """Return the failure of a passed-through body, with the model's message as its reason (cut, in one line)."""
    message = rejection.error.get("message")
    text = _CONTROL.sub(" ", message).strip()[:MAX_MESSAGE_CHARS] if isinstance(message, str) else ""
    return RefusedByModel(text or ModelRefused.sentence, refusal=refusal_of(rejection), log=_log(rejection))


def refusal_of(rejection: Rejection) -> Refusal:
    """Return how the model's server names its refusal; what is no short plain word is left out."""
    error = rejection.error
    return Refusal(rejection.status, _plain(error.get("code")), _plain(error.get("type")), _plain(error.get("param")))


def failure_in(error: Mapping[str, object]) -> ModelError:
    """Return the failure of an error object that came inside a 200, by its own code or type."""
    numbers = (_number(str(error.get(key))) for key in ("code", "status"))
    named = next((int(number) for number in numbers if number is not None and 400 <= number < 600), None)
    if named is None:
        words = f"{error.get('code')} {error.get('type')}".lower()
        named = next((status for word, status in WORDS if word in words), None)
    status = 500 if named is None else named
    rejection = Rejection(named or 200, error=error)
    kind = _kind(replace(rejection, status=status))
    return kind(
        log=f"error object inside a 200, code {status}",
        status=status,
        can_repeat=status in REPEATABLE and not issubclass(kind, ModelRefused),
        rejection=rejection,
    )


def error_object(body: object) -> Mapping[str, object]:
    """
    Return the error object of a reply, whatever its form; {} where there is none.

    OpenAI's, a bare string, vLLM's older one without a frame, and FastAPI's `detail`, alone or as Mistral's message:
    of several the first, with the last name of its place as `param`.
    """
    if not isinstance(body, Mapping):
        return {}
    error = body.get("error") or body.get("detail") or ("choices" not in body and body.get("message"))
    if isinstance(error, Mapping) and "message" not in error and "detail" in error:
        return error_object(error)
    if isinstance(error, Mapping):
        return error
    if isinstance(error, list) and error:
        # FastAPI's list of invalid fields.
        item = error[0] if isinstance(error[0], Mapping) else {}
        place = item.get("loc")
        param = place[-1] if isinstance(place, list) and place else None
        return {"message": item.get("msg"), "type": item.get("type"), "param": param} if item else {}
    beside = {key: body[key] for key in ("code", "type", "param") if body.get(key) is not None}
    return {**beside, "message": error} if isinstance(error, str) else {}


def retry_after_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """
    Return when a repeat can help, in seconds from *now_s*, never negative; None when absent or not to be read.

    *headers* has lower-case names. Seconds and HTTP dates are read, and `retry-after-ms`, which is finer.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        return max(0.0, seconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(value or "").timestamp() - now_s)
    except (ValueError, OverflowError):
        return None


class ReplyTotals:
    """One reply, collected while it arrives: its facts, its ending and whether it had any text."""

    def __init__(self, asked_model: str, *, tries: int = 1) -> None:
        """Start with the requested model's name, which the reply's replaces; *tries* requests were sent for it."""
        self.finish_reason: str | None = None
        self.has_text = False
        self._is_declined = False
        self._facts = replace(UNKNOWN_MODEL, name=asked_model or None, tries=tries)

    @property
    def facts(self) -> ModelFacts:
        """Return what is known so far."""
        return self._facts

    def add(self, chunk: ReplyChunk) -> None:
        """Take one chunk's news. Raises: ModelError, the chunk's own failure."""
        if chunk.failure is not None:
            raise chunk.failure
        if chunk.text and not self.has_text:
            self.has_text = not chunk.text.isspace()
        if chunk.finish_reason is not None:
            self.finish_reason = chunk.finish_reason
        self._is_declined = self._is_declined or chunk.is_declined
        if chunk.facts is not None:
            old, new = self._facts, chunk.facts
            self._facts = replace(
                old,
                name=new.name or old.name,
                id=new.id if old.id is None else old.id,
                # Azure's first chunk, which has the filter's results alone, says 0.
                created=old.created or new.created,
                extras={**old.extras, **new.extras} if new.extras else old.extras,
                thought_tokens=_counted(new.extras, "completion_tokens_details", "reasoning_tokens")
                or old.thought_tokens,
            )

    def note_thoughts(self, chars: int, took_ms: float) -> None:
        """Take how long the thoughts before the answer were, and after how long it began or the reply ended."""
        self._facts = replace(self._facts, thought_chars=chars, thought_ms=took_ms)

    def failure(self) -> RagError | None:
        """
        Return what the reply failed by, now that all of it is read; None is success, and so is a cut answer with text.

        "stop" and unknown finish reasons are successful endings. A reply that was cut before its first word was used up
        by thoughts, also where its server shows none of them.
        """
        is_cut = self.finish_reason == "length"
        if self.finish_reason == "content_filter":
            return ContentFiltered(log="finish_reason content_filter", status=200)
        if self._is_declined:
            return NoAnswer(log="the model declined")
        if self.has_text:
            return None
        if is_cut or self._facts.has_thoughts:
            return OnlyThoughts.of(_counted(self._facts.extras, "completion_tokens"), is_cut=is_cut)
        return NoAnswer(log=f"no text of the model finish_reason={_plain(self.finish_reason)}")


def header_value(facts: ModelFacts) -> str:
    """Return the value of `X-RAG-Model`: a model's name, never an address; safe as a header whatever it was."""
    name = facts.name or "unknown"
    if "://" in name:
        name = "unknown"
    name = re.sub(r"[^\x20-\x7e]|[;,]", "", name).strip()[:100] or "unknown"
    return f"{name}; tries={facts.tries}; fallback={int(facts.is_fallback)}"


def _counted(extras: Mapping[str, object], *names: str) -> int | None:
    """Return a count of the usage in *extras* by the *names* of its place, None where it is no number."""
    value: object = extras.get("usage")
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and value > 0 else None


def _kind(rejection: Rejection) -> type[ModelError]:
    error, inner = rejection.error, rejection.error.get("innererror")
    codes = (error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, Mapping) else None)
    is_filtered = any(isinstance(code, str) and code.lower() in _FILTER_CODES for code in codes)
    # LiteLLM keeps the kind in the message alone.
    is_filtered = is_filtered or "ContentPolicyViolationError" in str(error.get("message"))
    if rejection.status in (400, 403, 422) and is_filtered:
        return ContentFiltered
    words = rejection.words
    for kind, statuses, pattern in REFUSALS:
        if rejection.status in statuses and pattern.search(words):
            return kind
    if rejection.status in (400, 422) and refusal_of(rejection).param:
        return ModelParameterRefused
    if rejection.status in KINDS:
        return KINDS[rejection.status]
    return FAMILIES.get(rejection.status // 100, ModelGarbled)


def _plain(value: object) -> str | None:
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    return text if _PLAIN_WORD.fullmatch(text) else None


def _number(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"\s*-?\d{1,12}(\.\d{1,12})?\s*", value):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _log(rejection: Rejection) -> str:
    headers = [f"{name}={rejection.headers[name][:80]!r}" for name in _LOGGED_HEADERS if name in rejection.headers]
    refusal = refusal_of(rejection)
    named = [
        f"{name}={word}" for name, word in zip(("code", "type", "param"), astuple(refusal)[1:], strict=True) if word
    ]
    return " ".join([f"status={rejection.status}", f"bytes={rejection.size_bytes}", *named, *headers])


KINDS: Mapping[int, type[ModelError]] = {
    400: ModelRefused,
    401: ModelKeyRefused,
    402: ModelOutOfCredit,
    403: ModelRefused,
    404: ModelRefused,
    408: ModelUnavailable,
    429: ModelBusy,
    500: ModelUnavailable,
    502: ModelUnavailable,
    503: ModelUnavailable,
    504: ModelUnavailable,
}
"""Statuses of OpenAI's error codes and the labels of contract §4."""

REFUSALS: tuple[tuple[type[ModelRefused], frozenset[int], re.Pattern[str]], ...] = (
    (
        ModelOutOfCredit,
        frozenset({400, 403, 429}),
        re.compile(r"insufficient_quota|insufficient (balance|credits|funds)|credit balance"),
    ),
    (
        ModelKeyRefused,
        frozenset({400, 403}),
        re.compile(r"invalid_api_key|authentication|(api|subscription) key (is )?(not valid|invalid|expired|missing)"),
    ),
    (
        ModelNotFound,
        frozenset({400, 404, 422}),
        re.compile(
            r"model_not_found|unknown_model|deploymentnotfound|model\b.{0,200}(not found|does not exist|not exist)"
            r"|(invalid|unknown|no such) model|not a valid model"
        ),
    ),
    (
        ModelInputTooLong,
        frozenset({400, 413, 422}),
        re.compile(
            r"context_length_exceeded|exceed_context_size|context (length|window|size)|(prompt|input) is too long"
            r"|too many (input )?tokens"
        ),
    ),
)
"""
What a refusal is about, by words of its code, type and message in lower case; the first that fits.

A message that quotes the prompt may hold such words too: what is at stake is which sentence is shown.
"""

FAMILIES: Mapping[int, type[ModelError]] = {4: ModelRefused, 5: ModelUnavailable}
"""Other statuses, by their first digit; what is neither (a redirect, an empty 204) cannot be read as an answer."""

WORDS: tuple[tuple[str, int], ...] = (
    ("content_filter", 400),
    ("content_policy", 400),
    ("rate_limit", 429),
    ("throttling", 429),
    ("insufficient_quota", 429),
    ("overloaded", 503),
    ("authentication", 401),
    ("permission", 403),
    ("not_found", 404),
    ("context_length", 400),
    ("invalid_request", 400),
)
"""Words of an error object's code and type, where it names no status."""
