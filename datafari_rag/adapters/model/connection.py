"""
One endpoint of a model: a request out, a reply in, with a distinct error for every failure; and what the server lists.

What holds for all HTTP is in `adapters/http`. Every foreign exception ends here as a core error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

import orjson

from datafari_rag.adapters.http.exchange import Fault, HttpFailure, Reply, Request, exchanged
from datafari_rag.adapters.http.sessions import without_credentials
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.errors import ModelError, ModelGarbled, ModelRefused, ModelTimeout, ModelUnavailable
from datafari_rag.core.model.servers import (
    AUTO,
    ServerNeeds,
    names_in,
    needs_for,
    window_in,
    window_in_props,
    window_in_show,
    with_query,
)
from datafari_rag.core.settings.addresses import Tls

POOL = 2048
"""Most idle connections kept for one endpoint: at least the streams of a worker, or they are opened again and again."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    Where a model's server is; *token* empty means that no key is sent. *model* None asks for the prompt's model.

    *proxy* is the http address of a proxy in between, with user and password if it wants them; empty means none.
    *headers* are asked for with each request: its id and its trace. *server* names a row of the known servers, *body*
    has further keys of a request (`llm.server`, `llm.body`).
    """

    url: str
    token: str = field(default="", repr=False)
    model: str | None = None
    tls: Tls = field(default_factory=Tls)
    proxy: str = field(default="", repr=False)
    headers: Callable[[], Mapping[str, str]] = dict
    server: str = AUTO
    body: Mapping[str, object] = field(default_factory=dict)

    def needs(self, model: str) -> ServerNeeds:
        """Return what the server wants for *model*, as far as the table of known servers says."""
        return needs_for(self.server, self.url, model, body=self.body)


class ModelServer:
    """
    All connections to one endpoint. Safe for threads and greenlets: a connection has one user at a time.

    Nothing of a request is kept here but its idle connection.
    """

    def __init__(self, endpoint: Endpoint, machine: Machine = MACHINE) -> None:
        """
        Hold no connection yet; nothing is opened before the first request.

        Raises:
            ValueError: the URL is not http or https, or a PEM file cannot be used.
        """
        # Credentials in the address would take the place of the token.
        url, _ = without_credentials(endpoint.url)
        needs = endpoint.needs(endpoint.model or "")
        self._url = with_query(url, needs.query)
        self._session = machine.session(endpoint.url, endpoint.tls, proxy=endpoint.proxy, pool=POOL)
        self._passed_on = endpoint.headers
        self._headers = {"Content-Type": "application/json"}
        if endpoint.token and needs.key_header:
            self._headers[needs.key_header] = endpoint.token
        elif endpoint.token:
            self._headers["Authorization"] = f"Bearer {endpoint.token}"

    def post(self, body: bytes, *, accept: str, timeout_s: tuple[float, float], max_bytes: int) -> Reply:
        """
        Send *body* and return the reply's head, whatever its status; see `exchanged`.

        *timeout_s* is the longest time to connect and the longest until the head; *max_bytes* is the most of the body.

        Raises:
            ModelTimeout: not connected in time, or no head in time.
            ModelUnavailable: no connection, or it ended before the head.
            ModelGarbled: the head is not HTTP.
        """
        headers = {**self._passed_on(), **self._headers, "Accept": accept}
        request = Request("POST", self._url, timeout_s, max_bytes, body, headers, is_safe=True)
        return exchanged(self._session, request, failed)

    def fetch(self, url: str, body: bytes | None, *, timeout_s: tuple[float, float], max_bytes: int) -> bytes:
        """
        Return the whole reply at *url*, another address of this server: to a GET, or to a POST of *body*.

        Raises:
            ModelRefused: another status than 200.
            ModelError: as `post`.
        """
        method = "GET" if body is None else "POST"
        url, _ = without_credentials(url)
        headers = {**self._passed_on(), **self._headers, "Accept": "application/json"}
        request = Request(method, url, timeout_s, max_bytes, body, headers, is_safe=True)
        with exchanged(self._session, request, failed) as reply:
            if reply.status != 200:
                raise ModelRefused(log=f"status={reply.status}", status=reply.status)
            return b"".join(reply.pieces(lambda: timeout_s[1]))

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their reply ends."""
        self._session.close()


def failed(failure: HttpFailure) -> ModelError:
    """Return the core error of a failure of HTTP."""
    return FAILURES[failure.fault](log=failure.log, can_repeat=failure.fault in (Fault.REFUSED, Fault.DROPPED))


FAILURES: Mapping[Fault, type[ModelError]] = {
    Fault.UNCONNECTED: ModelTimeout,
    Fault.LATE: ModelTimeout,
    Fault.REFUSED: ModelUnavailable,
    Fault.BROKEN: ModelUnavailable,
    Fault.DROPPED: ModelUnavailable,
    Fault.TOO_LONG: ModelGarbled,
    Fault.CODED: ModelGarbled,
    Fault.GARBLED: ModelGarbled,
    Fault.UNSENDABLE: ModelUnavailable,
}
"""Each failure of HTTP with its core error. Only where no server can be at work on it may a request be repeated."""


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
