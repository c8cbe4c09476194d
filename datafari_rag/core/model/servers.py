"""
What a model's server wants of a request, where servers differ; what is known of those that people use; and how each
lists its models: names and windows.

The papers' form (Datafari RagAPI) is the default: one message for each document, `max_tokens`, `temperature`, the key
as a bearer token. `/v1/models` is everybody's list; LM Studio has `/api/v0/models` besides, llama.cpp `/props`, Ollama
`/api/ps` and `/api/show`. Pure: what a running server taught besides is in `refusals.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Literal
from urllib.parse import parse_qs, urlsplit, urlunsplit

Length = Literal["max_tokens", "max_completion_tokens"]
Instructions = Literal["system", "developer", "user"]
Thinking = Literal["none", "apart", "aloud"]


@dataclass(frozen=True, slots=True)
class ServerNeeds:
    """
    The form of request that one model of one server accepts.

    *length* names the parameter that limits the answer. *instructions* is the role that they have;
    with "user" they head the first message of the user. *is_merged*: neighbours of one role are one message, so that
    user and assistant alternate. *key_header* "" sends the key as a bearer token. *query* is added to the address where
    it is absent there. *body* has further keys of the request, such as reasoning_effort. *thinking* is where the
    model's thoughts are: "apart" (a field of their own, or not shown at all) or "aloud" (before the answer, in its
    text).
    """

    length: Length = "max_tokens"
    sends_temperature: bool = True
    instructions: Instructions = "system"
    is_merged: bool = False
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
    for row in MODELS:
        if name in row.servers and row.name.fullmatch(model.rpartition("/")[2].lower()):
            needs = row.changed(needs)
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


def retired(url: str, model: str) -> str | None:
    """Return since which day the maker at *url* has *model* switched off, None where that is not known of it."""
    return RETIRED.get((server_at(url), model))


@dataclass(frozen=True, slots=True)
class ModelRow:
    """What is known of models by *name*, a pattern for the part after the last slash, on *servers*."""

    name: re.Pattern[str]
    servers: frozenset[str]
    thinking: Thinking
    is_bare: bool = False
    """It takes no temperature, and no `max_tokens`."""

    def changed(self, needs: ServerNeeds) -> ServerNeeds:
        """Return *needs* as these models have them."""
        if not self.is_bare:
            return replace(needs, thinking=self.thinking)
        return replace(needs, thinking=self.thinking, length="max_completion_tokens", sends_temperature=False)


def names_in(listing: object) -> tuple[str, ...]:
    """Return the names in the reply of `/v1/models`, in its order; none where it is no such reply."""
    return tuple(name for item in _items(listing) if isinstance(name := item.get("id"), str) and name)


def named_in(names: Collection[object], wanted: str) -> str | None:
    """Return the one of *names* that is *wanted*, None where there is none; Ollama lists "m:latest", and takes "m"."""
    return next((name for name in (wanted, f"{wanted}:latest") if name in names), None)


def window_in(listing: object, model: str) -> int | None:
    """Return the window of *model* in tokens by a list of models, None where it says nothing of it."""
    items = [item for item in _items(listing) if named_in((item.get("id"), item.get("name")), model)]
    places = [place for item in items for place in (item, item.get("meta")) if isinstance(place, Mapping)]
    return next((size for place in places for name in _WINDOWS if (size := _size(place.get(name)))), None)


def window_in_props(reply: object) -> int | None:
    """Return the window of each slot by llama.cpp's `/props`."""
    found = reply.get("default_generation_settings") if isinstance(reply, Mapping) else None
    return _size(found.get("n_ctx")) if isinstance(found, Mapping) else None


def window_in_show(reply: object) -> int | None:
    """
    Return the window that Ollama's `/api/show` names for a model: its `num_ctx`, else None.

    The `context_length` there is what the model could have; what Ollama gives it without `num_ctx` is not in the reply.
    """
    text = reply.get("parameters") if isinstance(reply, Mapping) else None
    found = _NUM_CTX.search(text[:100_000]) if isinstance(text, str) else None
    return int(found[1]) if found else None


def _items(listing: object) -> Iterator[Mapping[str, object]]:
    lists = [listing.get(name) for name in ("data", "models")] if isinstance(listing, Mapping) else []
    items = chain.from_iterable(one for one in lists if isinstance(one, list))
    yield from (item for item in islice(items, MAX_MODELS) if isinstance(item, Mapping))


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


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

MODELS: tuple[ModelRow, ...] = (
    ModelRow(
        re.compile(r"(o[1-9]|gpt-[5-9])([.:-].*)?"),
        frozenset({"openai", "azure"}),
        "apart",
        is_bare=True,
    ),
    ModelRow(
        re.compile(r"qwen3(?!.{0,60}(instruct|coder)).*|qwq.*|deepseek-r1.*|magistral.*|gpt-oss.*|.*-thinking.*"),
        frozenset(SERVERS) - {"openai"},
        "aloud",
    ),
)
"""Models that think. Whoever serves them may put the thoughts apart: a reply that has some there shows it."""

RETIRED: Mapping[tuple[str, str], str] = {
    ("openai", "chatgpt-4o-latest"): "2026-02-17",
    ("openai", "gpt-3.5-turbo"): "2026-10-23",
    ("openai", "gpt-3.5-turbo-0125"): "2026-10-23",
    ("openai", "gpt-4"): "2026-10-23",
    ("openai", "gpt-4-0125-preview"): "2026-03-26",
    ("openai", "gpt-4-0314"): "2026-03-26",
    ("openai", "gpt-4-0613"): "2026-10-23",
    ("openai", "gpt-4-1106-preview"): "2026-03-26",
    ("openai", "gpt-4-turbo-preview"): "2026-03-26",
    ("openai", "gpt-5-chat-latest"): "2026-07-23",
    ("openai", "gpt-5.1-chat-latest"): "2026-07-23",
    ("openai", "gpt-5.2-chat-latest"): "2026-08-10",
    ("openai", "gpt-5.3-chat-latest"): "2026-08-10",
}
"""By server and model: the day on which its maker switched it off (OpenAI's page of deprecations, May 2026)."""

MAX_MODELS = 10_000

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
