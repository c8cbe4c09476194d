"""Servers, and the way to them, in place of sockets: clients that send nothing, and their replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol
from urllib.parse import urlsplit

from urllib3 import HTTPHeaderDict

from datafari_rag.adapters.http import Client, Fail, Fault, Reply, Request
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

    def client(self, url: str, fail: Fail, tls: object, **options: object) -> Client:
        """Be `Machine.client`."""
        return SimulatedClient(self, fail)

    def call_of(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[Server, str, Call]:
        """Return the server of *url*, its host, and the call that it sees."""
        parts = urlsplit(url)
        self._calls += 1
        host = parts.hostname or ""
        return self.servers[host], host, Call(self._calls, parts.path, parts.query, body or b"", headers)


class SimulatedClient(Client):
    """Sends nothing anywhere: waits as long as the network takes, and returns what the server's script says."""

    def __init__(self, network: Network, fail: Fail) -> None:
        self._network, self._fail = network, fail

    def open(self, request: Request) -> Reply:
        """Be `Client.open`."""
        network, (connect_s, head_s) = self._network, request.timeout_s
        server, host, call = network.call_of(request.url, request.body, request.headers)
        reply = SimulatedReply(network, server, call, self._fail)
        network.open[call.number] = host
        outcome = "left"
        server.sent(call)
        try:
            network.scheduler.sleep(network.random.choice((0.0, 0.001, 0.01, 0.2)))
            script = server.called(call)
            network.log("call", host, call.number, call.request_id, script.status, script.fault)
            fault = self._head(script, connect_s, head_s)
            outcome = "failed" if fault else ""
        finally:
            if outcome:
                reply.finish(outcome)
        if fault:
            raise self._fail(fault, fault.value)
        reply.begin(script)
        return reply

    def close(self) -> None:
        """Close nothing."""

    def _head(self, script: Script, connect_s: float, head_s: float) -> Fault | None:
        """Wait for the head, and return why there is none."""
        sleep = self._network.scheduler.sleep
        if script.fault == "refused":
            return Fault.REFUSED
        if script.fault == "unconnected":
            sleep(connect_s)
            return Fault.UNCONNECTED
        if script.fault == "hang" or script.before_s >= head_s:
            sleep(head_s)
            return Fault.LATE
        sleep(script.before_s)
        return Fault.BROKEN if script.fault == "reset" else None


class SimulatedReply(Reply):
    """One reply, read from its script."""

    def __init__(self, network: Network, server: Server, call: Call, fail: Fail) -> None:
        self._network, self._server, self._call, self._fail = network, server, call, fail
        self._pieces: list[tuple[float, bytes]] = []

    def begin(self, script: Script) -> None:
        """Show the head of *script*."""
        self.status, self.headers = script.status, HTTPHeaderDict(script.headers)
        self._pieces, self._ending = list(script.pieces), script.ending

    def read(self, timeout_s: float) -> bytes:
        """Be `Reply.read`."""
        if timeout_s <= 0:
            raise self._failed(Fault.LATE)
        if not self._pieces:
            return self._last(timeout_s)
        wait_s, piece = self._pieces[0]
        if wait_s >= timeout_s:
            self._pieces[0] = (wait_s - timeout_s, piece)
            raise self._ended(Fault.LATE, timeout_s)
        del self._pieces[0]
        if wait_s > 0:
            self._network.scheduler.sleep(wait_s)
        return piece

    def __exit__(self, *raised: object) -> None:
        """Close the connection, if the reply was not read to its end."""
        self.finish("left")

    def finish(self, outcome: str) -> None:
        """Note the end of the call, the first time."""
        if self._network.open.pop(self._call.number, None) is not None:
            self._network.log("ended", self._call.number, outcome)
            self._server.ended(self._call, outcome, len(self._pieces))

    def _ended(self, fault: Fault, after_s: float) -> Exception:
        if after_s:
            self._network.scheduler.sleep(after_s)
        self.finish("failed")
        return self._failed(fault)

    def _last(self, timeout_s: float) -> bytes:
        if self._ending == "silent":
            raise self._ended(Fault.LATE, timeout_s)
        if self._ending == "cut":
            raise self._ended(Fault.BROKEN, 0.0)
        self.finish("read")
        return b""
