"""
What servers say of their models besides answers: names and windows, read out of parsed JSON. Pure.

`/v1/models` is everybody's. LM Studio has `/api/v0/models` besides, llama.cpp `/props`, Ollama `/api/ps` and
`/api/show`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice

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
