"""
What servers say of their models besides answers: names and windows, read out of parsed JSON. Pure.

`/v1/models` is everybody's; llama.cpp has `/props` besides, Ollama `/api/show`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

MAX_MODELS = 10_000

_WINDOWS = ("max_model_len", "max_context_length", "context_length", "context_window", "n_ctx")
"""vLLM; Mistral and LM Studio; OpenRouter; Groq; llama.cpp."""

_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


def names_in(listing: object) -> tuple[str, ...]:
    """Return the names in the reply of `/v1/models`, in its order; none where it is no such reply."""
    return tuple(name for item in _items(listing) if isinstance(name := item.get("id"), str) and name)


def window_in(listing: object, model: str) -> int | None:
    """Return the window of *model* in tokens by the reply of `/v1/models`, None where it says nothing of it."""
    items = [item for item in _items(listing) if item.get("id") == model]
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
    data = listing.get("data") if isinstance(listing, Mapping) else None
    yield from (
        item for item in islice(data if isinstance(data, list) else [], MAX_MODELS) if isinstance(item, Mapping)
    )


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
