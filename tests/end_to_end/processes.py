"""Real processes for tests: our server, the stub model; on free loopback ports, ended by their own process id."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tests.support.waiting import HANGS_S, until

STOP_S = 120.0


PORTS = (10_000, 15_000)
"""
Below the ports that systems hand out to clients, from 32,768 on, and beside those of `solr_process`.

A port of the clients' may be taken by any connection of this machine before our server listens on it.
"""


def free_port() -> int:
    """Return a port that is free, at random: several runs of the suite may look for one."""
    while True:
        port = random.SystemRandom().randrange(*PORTS)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Running:
    """A started process that answers on *url*; *session* is without proxies and the environment."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    session: requests.Session = field(default_factory=requests.Session)

    def get(self, path: str, *, stream: bool = False, **headers: str) -> requests.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.session.get(f"{self.url}{path}", headers=named, timeout=HANGS_S, stream=stream)

    def logged(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def workers(self) -> list[int]:
        """Return the process ids of the server's workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [int(number) for number in children.split()]


@contextmanager
def running(
    folder: Path,
    name: str,
    *arguments: str,
    port: int,
    health: str,
    environ: Mapping[str, str] | None = None,
    program: Sequence[str] = (sys.executable, "-m", "datafari_rag"),
) -> Iterator[Running]:
    """Run `datafari-rag` with *arguments* until the block ends; a failure in it prints the end of the log."""
    log = folder / f"{name}.log"
    command = [*program, *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environ or {})}, cwd=folder
        )
    found = Running(f"http://127.0.0.1:{port}", process, log)
    found.session.trust_env = False
    try:
        _wait(found, health)
        yield found
    except Exception:
        sys.stderr.write(found.logged()[-4000:])
        raise
    finally:
        found.session.close()
        _end(process)


def _wait(found: Running, health: str) -> None:
    def answers() -> bool:
        assert found.process.poll() is None, why()
        with suppress(requests.RequestException):
            return found.get(health).status_code < 500
        return False

    def why() -> str:
        return f"{found.process.args} does not answer:\n{found.logged()[-4000:]}"

    until(answers, why)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_S)
        raise


@contextmanager
def stub_llm(folder: Path) -> Iterator[Running]:
    """Run the stub model."""
    port = free_port()
    with running(folder, "stub", "stub-llm", "--port", str(port), port=port, health="/v1/models") as found:
        yield found


@contextmanager
def service(
    folder: Path, settings: Mapping[str, str], *, workers: int = 1, environ: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """Run the production server over *settings*, with *environ* added to its environment."""
    port = free_port()
    # Tests send more searches a minute than a caller may by default. Theirs come first: an error names the line.
    write_settings(folder, {**settings, "server.rate.work": settings.get("server.rate.work", "0")})
    options = ("--conf", str(folder / "rag.properties"), "--port", str(port), "--workers", str(workers))
    with running(folder, "serve", "serve", *options, port=port, health="/health/live", environ=environ) as found:
        yield found


def write_settings(folder: Path, settings: Mapping[str, str]) -> None:
    # In one step: a server that looks at the file meanwhile must not take half of it for the whole.
    new = folder / "rag.properties.new"
    new.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    new.chmod(0o600)
    new.replace(folder / "rag.properties")
