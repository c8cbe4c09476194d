"""
What a model's server wants of a request, where servers differ; what is known of those that people use; and how each
lists its models: names and windows.

The papers' form (Datafari RagAPI) is the default: one message for each document, `max_tokens`, `temperature`, the key
as a bearer token.

What a refusal means, to the service, to its administrator, to the caller: the service leaves out a parameter that the
server does not take, or sends the messages in their plainest form. An administrator is shown the server's words and
what to do; a caller is told what they chose wrong. The message may quote the prompt, documents included: none of it is
shown or logged. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit, urlunsplit

from datafari_rag.core.errors import (
    MAX_NAME_SHOWN,
    ModelError,
    ModelInputTooLong,
    ModelNotFound,
    RagError,
    RefusedByModel,
    Rejection,
)
from datafari_rag.core.model.prompt import Prompt, texts_of
from datafari_rag.core.model.replies import RELAYED, refusal_of
from datafari_rag.core.model.streams import END_MARKS, ThinkingFilter

Length = Literal["max_tokens", "max_completion_tokens"]
Thinking = Literal["none", "apart", "aloud"]


@dataclass(frozen=True, slots=True)
class ServerNeeds:
    """
    The form of request that one model of one server accepts.

    *length* names the parameter that limits the answer. *is_plain*: user and assistant alternate, because neighbours of
    one role are one message, and instructions head the first message of the user. *key_header* "" sends the key as a
    bearer token. *query* is added to the address where it is absent there. *body* has further keys of the request, such
    as reasoning_effort. *thinking* is where the model's thoughts are: "apart" (a field of their own, or not shown at
    all) or "aloud" (before the answer, in its text).
    """

    length: Length = "max_tokens"
    sends_temperature: bool = True
    is_plain: bool = False
    key_header: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] = field(default_factory=dict)
    thinking: Thinking = "none"


PAPERS_FORM = ServerNeeds()
"""One message for each document, `max_tokens`, `temperature` and a bearer token, as Datafari RagAPI has them."""


def needs_for(server: str, url: str, model: str, *, body: Mapping[str, object] | None = None) -> ServerNeeds:
    """
    Return what the server named *server* (`llm.server`) at *url* wants for *model*; *body* is added to its own.

    `auto` looks the host up, and has the papers' form where it is not known.
    """
    name = server_at(url) if server == AUTO else server
    needs = SERVERS[name]
    for pattern, servers, changes in MODELS:
        if name in servers and pattern.fullmatch(model.rpartition("/")[2].lower()):
            needs = replace(needs, **changes)
    return replace(needs, body={**needs.body, **(body or {})})


def server_at(url: str) -> str:
    """Return the name of the server at *url* by its host, `auto` where that says nothing."""
    host = (urlsplit(url).hostname or "").lower()
    return next((name for ending, name in HOSTS if host == ending or host.endswith(f".{ending}")), AUTO)


def completed(url: str) -> str:
    """
    Return the address of chat completions for a base address, any other address unchanged.

    A base address has no path, or its path ends as the ones that makers name for OpenAI's clients: with a version
    (/v1, /v1beta) or with /openai.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if not path:
        path = "/v1"
    elif not _BASE_PATH.search(path):
        return url
    return urlunsplit(parts._replace(path=f"{path}/chat/completions"))


def with_query(url: str, query: Mapping[str, str]) -> str:
    """Return *url* with what of *query* it does not have; Azure's older paths alone need an api-version."""
    parts = urlsplit(url)
    if "/deployments/" not in parts.path:
        return url
    missing = [f"{name}={value}" for name, value in query.items() if name not in parse_qs(parts.query)]
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, *missing)))))


def names_in(listing: object) -> tuple[str, ...]:
    """Return the names in the reply of `/v1/models`, in its order; none where it is no such reply."""
    return tuple(name for item in _items(listing) if isinstance(name := item.get("id"), str) and name)


def named_in(names: Collection[object], model: str) -> str | None:
    """Return the one of *names* that is *model*, None where there is none; Ollama lists "m:latest", and takes "m"."""
    return next((name for name in (model, f"{model}:latest") if name in names), None)


def window_in(reply: object, model: str) -> int | None:
    """Return the window of *model* in tokens by a reply from one of `LISTINGS`, None where it says nothing of it."""
    if not isinstance(reply, Mapping):
        return None
    items = [item for item in _items(reply) if named_in((item.get("id"), item.get("name")), model)]
    places = [*items, *(item.get("meta") for item in items), reply.get("default_generation_settings")]
    sizes = (place.get(name) for place in places if isinstance(place, Mapping) for name in _WINDOWS)
    size = next((size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and size > 0), None)
    # The `context_length` that Ollama shows is what the model could have; what it gives it is not in the reply.
    text = reply.get("parameters")
    match = _NUM_CTX.search(text[:100_000]) if size is None and isinstance(text, str) else None
    return int(match[1]) if match else size


def _items(listing: object) -> Iterator[Mapping[str, object]]:
    lists = [listing.get(name) for name in ("data", "models")] if isinstance(listing, Mapping) else []
    items = chain.from_iterable(rows for rows in lists if isinstance(rows, list))
    yield from (item for item in islice(items, MAX_MODELS) if isinstance(item, Mapping))


_BASE_PATH = re.compile(r"/(v\d[a-z\d]{0,10}|openai)$")

AUTO = "auto"

THINKING_TOKENS = 25_000
"""Most tokens that are added to an answer's for thoughts: what OpenAI's guide to reasoning advises to begin with."""

SERVERS: Mapping[str, ServerNeeds] = {
    AUTO: PAPERS_FORM,
    "openai": ServerNeeds(length="max_completion_tokens"),
    "azure": ServerNeeds(length="max_completion_tokens", key_header="api-key", query={"api-version": "2024-10-21"}),
    "ollama": PAPERS_FORM,
    "vllm": PAPERS_FORM,
    "llamacpp": PAPERS_FORM,
    "lmstudio": PAPERS_FORM,
    "mistral": PAPERS_FORM,
    "gemini": ServerNeeds(thinking="apart"),
    "bedrock": PAPERS_FORM,
    "litellm": PAPERS_FORM,
}
"""By the value of `llm.server`; docs/models.md has the recipe for each, and where its row is from."""

HOSTS: tuple[tuple[str, str], ...] = (
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure"),
    ("cognitiveservices.azure.com", "azure"),
    ("services.ai.azure.com", "azure"),
    ("api.mistral.ai", "mistral"),
    ("generativelanguage.googleapis.com", "gemini"),
)
"""Hosts, or the ends of their names, that say which server it is."""

MODELS: tuple[tuple[re.Pattern[str], frozenset[str], Mapping[str, Any]], ...] = (
    (
        re.compile(r"(o[1-9]|gpt-[5-9])([.:-].*)?"),
        frozenset({"openai", "azure"}),
        {"thinking": "apart", "length": "max_completion_tokens", "sends_temperature": False},
    ),
    (
        re.compile(r"qwen3(?!.{0,60}(instruct|coder)).*|qwq.*|deepseek-r1.*|magistral.*|gpt-oss.*|.*-thinking.*"),
        frozenset(SERVERS) - {"openai"},
        {"thinking": "aloud"},
    ),
)
"""
Models that think, by a pattern for the part of their name after the last slash, and by servers; what they change.

Whoever serves them may put the thoughts apart: a reply that has some there shows it.
"""

MAX_MODELS = 10_000

LISTINGS = (("models", False), ("/api/v0/models", False), ("/api/ps", False), ("/props", False), ("/api/show", True))
"""
Where servers say what they serve, and whether the model's name is asked for there: everybody, LM Studio, Ollama of the
models that are loaded, which counts before what it would give them, llama.cpp of each slot, Ollama of one model.
"""

_WINDOWS = (
    "loaded_context_length",
    "max_model_len",
    "max_context_length",
    "context_length",
    "context_window",
    "n_ctx",
)
"""LM Studio, of a model that is loaded; vLLM; Mistral and LM Studio; Ollama and OpenRouter; Groq; llama.cpp."""

_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


MAX_CHANGES = 3
"""How often one question is sent again, each time in another form."""

_CHANGING = frozenset({200, 400, 422})
"""Statuses of a refusal of the request itself; 200 is an error object in place of an answer that names no status."""

_REFUSED = re.compile(
    r"unsupported|not support|n't support|not permitted|not allowed|unrecognized|unknown|unexpected|extra_forbidden"
    r"|deprecated"
)
_OF_FORM = re.compile(r"\broles?\b|system message")


def without_refused(needs: ServerNeeds, rejection: Rejection) -> ServerNeeds | None:
    """
    Return *needs* without what *rejection* names of them, None where it names nothing that can be left out.

    The limit of the answer gets its other name, and a refusal that speaks of roles the plain form. What a refusal
    quotes of a document may be misread: the worst that follows is one more request, in a form that any server takes.
    """
    if rejection.status not in _CHANGING:
        return None
    words, named = rejection.words, rejection.error.get("param")
    names = [needs.length, *(["temperature"] if needs.sends_temperature else []), *needs.body]
    if not isinstance(named, str):
        hits = ((re.search(rf"(?<![\w.]){re.escape(name.lower())}(?!\w)", words), name) for name in names)
        named = min(((hit.start(), name) for hit, name in hits if hit), default=(0, None))[1]
    if named in names and _REFUSED.search(words):
        if named in needs.body:
            return replace(needs, body={key: value for key, value in needs.body.items() if key != named})
        if named == "temperature":
            return replace(needs, sends_temperature=False)
        return replace(needs, length="max_tokens" if named == "max_completion_tokens" else "max_completion_tokens")
    return replace(needs, is_plain=True) if _OF_FORM.search(words) else None


def with_thoughts(needs: ServerNeeds, thinking: ThinkingFilter, prompt: Prompt, *, has_thoughts: bool) -> ServerNeeds:
    """
    Return *needs* with what the reply to *prompt*, read through *thinking*, shows of the model's thoughts.

    *has_thoughts*: it thought, shown or hidden. An end mark that stands in the prompt may be quoted from there.
    """
    if thinking.is_without_beginning:
        is_quoted = any(mark in text for mark in END_MARKS for text in texts_of(prompt))
        return needs if is_quoted else replace(needs, thinking="aloud")
    return replace(needs, thinking="apart") if has_thoughts and needs.thinking == "none" else needs


RUN_CHARS = 16
"""A run of so many characters that stands in what was sent is a quotation, and is not shown."""

MAX_SHOWN_CHARS, MAX_READ_CHARS = 300, 4_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def words_of(rejection: Rejection | None, texts: Sequence[str], secrets: Sequence[str]) -> str:
    """
    Return the server's message in one line, at most `MAX_SHOWN_CHARS` long; "" where there is none.

    What it quotes of *texts*, and each of *secrets*, is replaced by "…".
    """
    message = rejection.error.get("message") if rejection is not None else None
    if not isinstance(message, str):
        return ""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        message = message.replace(secret, "…")
    text = _CONTROL.sub(" ", message[:MAX_READ_CHARS])
    escaped = (json.dumps(value, ensure_ascii=is_ascii)[1:-1] for value in texts for is_ascii in (False, True))
    sent = [_CONTROL.sub(" ", value) for value in (*texts, *escaped, *secrets)]
    runs = (at for at in range(len(text) - RUN_CHARS + 1) if any(text[at : at + RUN_CHARS] in one for one in sent))
    hidden = {place for at in runs for place in range(at, at + RUN_CHARS)}
    shown = "".join("\0" if at in hidden else sign for at, sign in enumerate(text))
    words = re.sub("\0+", "…", shown).strip()
    return words if len(words) <= MAX_SHOWN_CHARS else words[: MAX_SHOWN_CHARS - 1] + "…"


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
    param = _OTHER_NAMES.get(refusal.param or "", refusal.param)
    code, sentence = "invalid_value", f"The model does not accept this value of {param}."
    for kind, blamed, blamed_code, blamed_sentence in BLAMED:
        if isinstance(failure, kind) and blamed in chosen:
            param, code, sentence = blamed, blamed_code, blamed_sentence.format(model=model[:MAX_NAME_SHOWN])
    if param is None or param not in chosen:
        return None
    spelled = replace(
        refusal,
        code=code if refusal.code is None or refusal.code.isdigit() else refusal.code,
        kind=refusal.kind or "invalid_request_error",
        param=refusal.param or param,
    )
    return RefusedByModel(sentence, refusal=spelled, log=f"status={refusal.status} by the caller's {param}")


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
    "modelTimeout": "The first question may load the model: raise first_token_s and llm.limits.total_s",
    "onlyThoughts": "Raise rag.maxTokens and llm.context.window, or lower the effort with llm.body",
    "thoughtsPassedOn": "Ask again; or name the server with llm.server, and let it put thoughts apart",
    "noAnswer": "It replied without a text: does it answer questions (and not complete texts or call tools)?",
}
"""By the label of a failure."""
