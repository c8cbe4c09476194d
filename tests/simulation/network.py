"""Servers, and the way to them, in place of sockets: sessions with the part of requests' interface that we use."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, Protocol
from urllib.parse import urlsplit

import requests
from requests.structures import CaseInsensitiveDict

from tests.simulation.scheduler import Scheduler


@dataclass(frozen=True)
class Call:
    """One request as its server sees it; *number* is its own, *request_id* that of the reader's request it is for."""

    number: int
    path: str
    query: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def request_id(self) -> str:
        """Whose request this is made for."""
        return self.headers.get("X-Request-ID", "")


@dataclass(frozen=True)
class Script:
    """
    What a server does with a call: *before_s* until its head, *pieces* of (seconds, bytes), then *ending*.

    *fault* in place of a head is refused, unconnected, hang or reset; *ending* is end, cut or silent.
    """

    pieces: tuple[tuple[float, bytes], ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    before_s: float = 0.0
    fault: str = ""
    ending: str = "end"
    kind: str = ""
    """The fault that made it, empty for none."""


class Server(Protocol):
    """One address of the network."""

    def sent(self, call: Call) -> None:
        """Note that *call* is on its way."""
        ...

    def called(self, call: Call) -> Script:
        """Return what happens to *call*, decided now."""
        ...

    def ended(self, call: Call, outcome: str, pieces_left: int) -> None:
        """Note how *call* ended: read, failed, or left (the caller gave up)."""
        ...


class Network:
    """All servers by host; every wait is the scheduler's."""

    def __init__(self, scheduler: Scheduler, random: Random, log: Callable[..., None]) -> None:
        self.scheduler, self.random, self.log = scheduler, random, log
        self.servers: dict[str, Server] = {}
        self.open: dict[int, str] = {}
        self._calls = 0

    def session(self, url: str, tls: object, **options: object) -> Any:
        """Be `Machine.session`."""
        return SimulatedSession(self)

    def call_of(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[Server, str, Call]:
        """Return the server of *url*, its host, and the call that it sees."""
        parts = urlsplit(url)
        self._calls += 1
        host = parts.hostname or ""
        return self.servers[host], host, Call(self._calls, parts.path, parts.query, body or b"", headers)


class SimulatedSession:
    """Sends nothing anywhere: waits as long as the network takes, and returns what the server's script says."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def request(self, method: str, url: str, *, data: bytes | None, headers: Any, timeout: Any, **how: object) -> Any:
        """Be `requests.Session.request`."""
        network, (connect_s, head_s) = self._network, timeout
        server, host, call = network.call_of(url, data, headers)
        response = SimulatedResponse(network, server, call)
        network.open[call.number] = host
        outcome = "left"
        server.sent(call)
        try:
            network.scheduler.sleep(network.random.choice((0.0, 0.001, 0.01, 0.2)))
            script = server.called(call)
            network.log("call", host, call.number, call.request_id, script.status, script.fault)
            try:
                self._head(script, connect_s, head_s)
            except requests.RequestException:
                outcome = "failed"
                raise
            outcome = ""
        finally:
            if outcome:
                response.finish(outcome)
        response.begin(script)
        return response

    def close(self) -> None:
        """Close nothing."""

    def _head(self, script: Script, connect_s: float, head_s: float) -> None:
        """Wait for the head. Raises: what requests raises when there is none."""
        sleep = self._network.scheduler.sleep
        if script.fault == "refused":
            raise requests.ConnectionError(ConnectionRefusedError())
        if script.fault == "unconnected":
            sleep(connect_s)
            raise requests.ConnectTimeout
        if script.fault == "hang" or script.before_s >= head_s:
            sleep(head_s)
            raise requests.ReadTimeout
        sleep(script.before_s)
        if script.fault == "reset":
            raise requests.ConnectionError(ConnectionResetError())


class SimulatedResponse:
    """One reply, with the part of `requests.Response` that we read."""

    def __init__(self, network: Network, server: Server, call: Call) -> None:
        self._network, self._server, self._call = network, server, call
        self.raw, self.timed = self, self
        self.limit_s: float | None = None
        self.request = SimpleNamespace(body=call.body)
        self._pieces: list[tuple[float, bytes]] = []

    def begin(self, script: Script) -> None:
        """Show the head of *script*."""
        self.status_code, self.headers = script.status, CaseInsensitiveDict(script.headers)
        self._pieces, self._ending = list(script.pieces), script.ending

    def bound(self, max_bytes: int) -> None:
        """Take the limit; nothing here is that long."""

    def read1(self, size: int) -> bytes:
        """Return the next piece. Raises: what a socket raises."""
        limit_s = self.limit_s or 0.0
        if not self._pieces:
            return self._last(limit_s)
        wait_s, piece = self._pieces[0]
        if wait_s >= limit_s:
            self._pieces[0] = (wait_s - limit_s, piece)
            self._network.scheduler.sleep(limit_s)
            self.finish("failed")
            raise TimeoutError
        del self._pieces[0]
        if wait_s > 0:
            self._network.scheduler.sleep(wait_s)
        return piece

    def close(self) -> None:
        """Close the connection, if the reply was not read to its end."""
        self.finish("left")

    def finish(self, outcome: str) -> None:
        """Note the end of the call, the first time."""
        if self._network.open.pop(self._call.number, None) is not None:
            self._network.log("ended", self._call.number, outcome)
            self._server.ended(self._call, outcome, len(self._pieces))

    def _last(self, limit_s: float) -> bytes:
        if self._ending == "silent":
            self._network.scheduler.sleep(limit_s)
            self.finish("failed")
            raise TimeoutError
        if self._ending == "cut":
            self.finish("failed")
            raise http.client.IncompleteRead(b"")
        self.finish("read")
        return b""
