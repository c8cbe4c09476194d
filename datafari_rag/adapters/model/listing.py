"""Asks a model's server what it has: names of models, and the window of one. For commands; no answer needs it."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import orjson

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.model.connection import Endpoint, ModelServer
from datafari_rag.core.errors import ModelError
from datafari_rag.core.model.listings import names_in, window_in, window_in_props, window_in_show

MAX_BYTES = 16_000_000
TIMEOUT_S = (5.0, 20.0)
_COMPLETIONS = "/chat/completions"


class ServerListing:
    """What the server of one endpoint says of its models."""

    def __init__(self, endpoint: Endpoint, machine: Machine = MACHINE) -> None:
        """Open nothing yet. Raises: ValueError, as `ModelServer`."""
        self._server = ModelServer(endpoint, machine)
        parts = urlsplit(endpoint.url)
        path = parts.path.removesuffix(_COMPLETIONS)
        self._base = urlunsplit(parts._replace(path=path, query=""))
        self._root = urlunsplit(parts._replace(path="", query=""))

    def names(self) -> tuple[str, ...]:
        """Return the names of its models. Raises: ModelError."""
        return names_in(self._read(f"{self._base}/models"))

    def window(self, model: str) -> int | None:
        """Return the window of *model* in tokens, None where the server does not say; never fails."""
        asked = orjson.dumps({"model": model})
        # Of Ollama, what a loaded model has counts before what it would be given.
        listed = (f"{self._base}/models", f"{self._root}/api/v0/models", f"{self._root}/api/ps")
        found = next(filter(None, (window_in(self._tried(url), model) for url in listed)), None)
        found = found or window_in_props(self._tried(f"{self._root}/props"))
        return found or window_in_show(self._tried(f"{self._root}/api/show", asked))

    def _tried(self, url: str, body: bytes | None = None) -> object:
        try:
            return self._read(url, body)
        except ModelError:
            return None

    def _read(self, url: str, body: bytes | None = None) -> object:
        data = self._server.fetch(url, body, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES)
        try:
            return orjson.loads(data)
        except ValueError:
            return None
