"""
The production server: gunicorn with gevent workers, set up for many slow streams.

One worker for each core, each with a listening socket of its own (reuse-port: on a shared one gevent workers accept
unevenly and the slowest readers wait for seconds). All sockets are opened before the first worker: readers who wait for
a start would else all be with the worker that listens first, and stay there. A port is claimed before, so that no
second service joins the sockets of a running one. `prepare` comes before anything that imports sockets.
"""

from __future__ import annotations

import errno
import gc
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
import gevent.monkey
import gevent.socket
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.sock import create_sockets
from gunicorn.workers.base_async import AsyncWorker
from gunicorn.workers.ggevent import GeventWorker
from werkzeug.wsgi import ClosingIterator

from datafari_rag.connection import BodyReader, ClientConnection, HeadTooLarge
from datafari_rag.core.errors import BadRequest, TooManyValues

if TYPE_CHECKING:
    from datafari_rag.bootstrap import Application

Environ = dict[str, Any]

_READ = 1
"""The loop's word for "can be read"."""

STALL_S = 60.0
"""How long a reader may take nothing of their answer, or a sender give nothing of their body: then they are gone."""

MAX_HEADERS = 100
"""Most headers of one request."""

MAX_HEADER_BYTES = 65_536
"""Longest header: a token of Kerberos may have 48 KB, and more when it is written as text."""


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """
    Where and how to listen.

    *grace_s* is how long open streams may go on after a SIGTERM; *header_timeout_s* how long a connection may take to
    send the head of a request, the next one included; *max_connections* are those of one worker.
    """

    host: str
    port: int
    workers: int
    grace_s: float = 30.0
    header_timeout_s: float = 15.0
    max_connections: int = 10_000


class CannotListen(Exception):
    """The port cannot be opened; the text says why, and what to do."""


def prepare() -> None:
    """Make sockets, locks and sleeps of the standard library give way to other greenlets; call it first of all."""
    gevent.monkey.patch_all()


@contextmanager
def counting() -> Iterator[None]:
    """
    Keep the counts of all workers together in a folder of this run.

    The metrics library looks for the folder when it is imported: enter this before anything imports it.
    """
    # In memory where there is such a place: a disk that is full would end a worker that counts into a mapped file. The
    # folder in it belongs to this process: `mkdtemp` makes it.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 # nosec B108
    folder = tempfile.mkdtemp(prefix="datafari-rag-metrics-", dir=place)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    owner = os.getpid()
    try:
        yield
    finally:
        # A forked worker leaves through here, too, while the others still count.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def run(make_app: Callable[[], Application], listening: ListenOptions, on_ready: Callable[[], None]) -> None:
    """
    Serve until SIGTERM or SIGINT; *on_ready* is called once, in the first worker, when it can answer.

    Raises:
        CannotListen: the port is taken, or is not this account's or this machine's to open.
    """
    # The limit of open files of systemd and most shells would end at 1,024 connections. One is for the reader and one
    # for the model of each answer, and some for everything else.
    descriptors = 2 * listening.max_connections + 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = descriptors if hard == resource.RLIM_INFINITY else min(descriptors, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    _Arbiter(Server(make_app, listening, on_ready)).run()


def _forget(arbiter: Arbiter, worker: Worker) -> None:
    """Remove the current values of an ended worker (its open streams); its counters stay."""
    folder = Path(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""))
    for file in folder.glob(f"gauge_live*_{worker.pid}.db") if folder.name else ():
        file.unlink(missing_ok=True)


class Server(BaseApplication):  # type: ignore[misc] # gunicorn has no types
    """gunicorn without its command line: options from *listening*, the application from *make_app*."""

    def __init__(
        self, make_app: Callable[[], Application], listening: ListenOptions, on_ready: Callable[[], None]
    ) -> None:
        """Remember them."""
        self._make_app, self._on_ready = make_app, on_ready
        self._listening = listening
        super().__init__()

    def load_config(self) -> None:
        """Translate the settings into those of gunicorn."""
        listening = self._listening
        options = {
            "bind": f"{listening.host}:{listening.port}",
            "workers": listening.workers,
            "worker_class": Worker,
            "worker_connections": listening.max_connections,
            "reuse_port": True,
            "graceful_timeout": max(1, round(listening.grace_s)),
            # A worker beats once a second from its loop; one that cannot for so long is stuck and replaced.
            "timeout": 120,
            # gunicorn's gevent worker gives a request's head, the first one's too, as long as a kept connection.
            "keepalive": max(1, round(listening.header_timeout_s)),
            # 0 is no limit of gunicorn's, which takes no more than 8190 bytes otherwise: `ClientConnection` has one.
            "limit_request_line": 0,
            "limit_request_fields": MAX_HEADERS,
            "limit_request_field_size": MAX_HEADER_BYTES,
            # No header of a caller is a path: by default SCRIPT_NAME and PATH_INFO are believed from this machine.
            "forwarder_headers": "",
            # By default the parent takes commands on a socket in its user's home, from a thread that must be stopped
            # and started again around the fork of each worker's successor.
            "control_socket_disable": True,
            "loglevel": "warning",
            "proc_name": "datafari-rag",
            # Not gunicorn's `when_ready`, which comes before the workers open the port.
            "post_fork": lambda arbiter, worker: arbiter.hand_over(worker),
            "post_worker_init": lambda worker: self._on_ready() if worker.age == 1 else None,
            "child_exit": _forget,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> WatchedApplication:
        """Build the application in the worker, after the fork: no socket, cache or lock is shared."""
        watched = WatchedApplication(self._make_app())
        # What is loaded now stays: left to the collector it would be gone through again and again, some 15 ms each.
        gc.collect()
        gc.freeze()
        return watched


class _Arbiter(Arbiter):  # type: ignore[misc] # as above
    """
    The parent of the workers; a SIGHUP makes each reload its settings, and restarts none.

    It keeps every worker's listening socket, so that readers wait for the successor of a worker that ended.
    """

    def __init__(self, app: Server) -> None:
        """Give no socket to anybody yet."""
        self._places: dict[int, int] = {}
        self._next = 0
        super().__init__(app)

    def start(self) -> None:
        """Open one socket for each worker. Raises: CannotListen."""
        with _claimed(*self.cfg.address[0]):
            super().start()
            self.LISTENERS = [sock for _ in range(self.cfg.workers) for sock in create_sockets(self.cfg, self.log)]
        # Else gunicorn would open a further one in each worker.
        self.cfg.set("reuse_port", False)

    def spawn_worker(self) -> int:
        """Start a worker on a socket that no living one has."""
        places = {self._places.get(pid) for pid in self.WORKERS}
        self._next = next(place for place in itertools.count() if place not in places)
        pid: int = super().spawn_worker()
        self._places[pid] = self._next
        return pid

    def hand_over(self, worker: Worker) -> None:
        """Leave *worker*, in its own process, its socket alone."""
        # gunicorn lets one of several workers take one connection in each round of its loop, to share a socket fairly.
        # A round is long while answers begin: the last of a thousand readers would wait for a thousand, and unseen.
        self.cfg.set("workers", 1)
        for place, listener in enumerate(self.LISTENERS):
            if place != self._next % len(self.LISTENERS):
                listener.sock.close()
        worker.sockets = [self.LISTENERS[self._next % len(self.LISTENERS)]]

    def handle_hup(self) -> None:
        """Hand the signal on to every worker."""
        self.kill_workers(signal.SIGHUP)

    def handle_int(self) -> None:
        """End on Ctrl-C as on SIGTERM: open answers have their grace. A second Ctrl-C does not wait for them."""
        self.handle_term()


@contextmanager
def _claimed(host: str, port: int) -> Iterator[None]:
    """Hold the port, on which nobody else listens or will, until its sockets are open. Raises: CannotListen."""
    place = f"{host}:{port}"
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        claim = socket.socket(family, kind)
        # As for every server: connections of the one before, which are still closing, keep nobody off.
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        claim.bind(address)
    except OSError as error:
        raise CannotListen(REFUSALS.get(error.errno or 0, REFUSALS[errno.EADDRNOTAVAIL]).format(place)) from error
    with claim:
        # Bound without it, the claim is refused beside any socket that has it. Bound, it lets those of this process
        # join and refuses every other claim.
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        yield


REFUSALS = {
    errno.EADDRINUSE: "Another program listens on {}: stop it, or choose another port (--port, server.port).",
    errno.EACCES: "This account may not listen on {}: choose a port above 1023 (--port, server.port).",
    errno.EADDRNOTAVAIL: "{} is not an address of this machine: choose another (--host, server.host).",
}
"""What to do when the port cannot be opened; the last one fits all."""


class Worker(GeventWorker):  # type: ignore[misc] # as above
    """A gevent worker that reports when it stops, reads settings on SIGHUP, and writes no HTML."""

    wsgi: WatchedApplication | None
    """None until the application is built; then its settings are read anyway."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Begin with no connection."""
        super().__init__(*args, **kwargs)
        self.wsgi = None
        self._waiting: set[Any] = set()

    @contextmanager
    def timeout_ctx(self) -> Iterator[None]:
        """Wait for a request's head as long as the settings allow; a waiting connection does not delay the shutdown."""
        waiting = gevent.getcurrent()
        self._waiting.add(waiting)
        # A client with a complete answer need not send the next request while the worker stops.
        patience_s = self.cfg.keepalive if self.alive else 0
        try:
            with gevent.Timeout(patience_s, False):
                yield
        finally:
            self._waiting.discard(waiting)

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Serve one connection; none may stay idle forever."""
        client.settimeout(max(STALL_S, self.cfg.keepalive + 1))
        # Not GeventWorker's, which would take the limit away again.
        AsyncWorker.handle(self, listener, ClientConnection(client), addr)

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> None:
        """Answer one request; who takes nothing of their answer for too long counts as one who hung up."""
        sock.serve(req)
        # Requests behind each other are all here: without this a hundred would come before those of others.
        gevent.sleep(0)
        try:
            super().handle_request(listener_name, req, sock, addr)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "nothing was read") from None
        finally:
            sock.await_head()

    def init_signals(self) -> None:
        """
        Add SIGHUP to gunicorn's signals, and ignore SIGINT: a terminal sends it to the parent too, which ends this.

        Both are blocked during the change, because their defaults would end this worker.
        """
        changed = {signal.SIGHUP, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, changed)
        super().init_signals()
        signal.signal(signal.SIGHUP, self._reload)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, changed)

    def _reload(self, sig: int, frame: Any) -> None:
        # Not here: a signal interrupts anything, the event loop too, which may wait for no lock.
        if self.wsgi is not None:
            gevent.spawn(self.wsgi.app.reload)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Refuse new streams while the open ones finish, and close idle connections."""
        if self.wsgi is not None:
            self.wsgi.app.stop()
        super().handle_exit(sig, frame)
        for connection in list(self._waiting):
            connection.kill(block=False)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """End without waiting for anything: gunicorn's raises SystemExit in a greenlet, whose traceback is printed."""
        os._exit(0)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer what is no HTTP in JSON; a reader who hung up needs no answer."""
        if isinstance(exc, gevent.GreenletExit | TimeoutError):
            return
        client.refuse_more()
        body = json.dumps({"error": _refusal(exc)}).encode()
        head = (
            "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            client.sendall(head.encode() + body)
        except OSError:
            self.log.debug("the client disconnected before the error about its malformed request was sent")


def _refusal(problem: BaseException) -> dict[str, object]:
    """Return the error for a request that is not HTTP, or whose head is over a limit."""
    if isinstance(problem, HeadTooLarge):
        return {"code": 400, "label": BadRequest.label, "reason": str(problem)}
    # gunicorn has one class for both, and "size" in one of its sentences.
    if isinstance(problem, LimitRequestHeaders) and "size" in str(problem):
        return {"code": 400, "label": BadRequest.label, "reason": f"A header is longer than {MAX_HEADER_BYTES} bytes."}
    if isinstance(problem, LimitRequestHeaders):
        error = TooManyValues.of("headers", MAX_HEADERS)
        return {"code": 400, "label": error.label, "reason": error.reason}
    return {"code": 400, "label": BadRequest.label, "reason": BadRequest.sentence}


class WatchedApplication:
    """
    A WSGI application that stops an answer when its client disconnects, even while the model is silent.

    The application says when (`datafari_rag.watch`), once the request's body is read. The greenlet that answers is
    ended where it waits, so that every `finally` on its way closes what it holds.
    """

    def __init__(self, app: Application) -> None:
        """Wrap *app*."""
        self.app = app

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        line = environ.get("gunicorn.socket")
        if not isinstance(line, ClientConnection):
            return self.app(environ, start_response)
        watcher = _DisconnectWatcher(line, gevent.getcurrent())
        body = BodyReader(
            environ["wsgi.input"],
            line,
            None if "HTTP_TRANSFER_ENCODING" in environ else int(environ.get("CONTENT_LENGTH") or 0),
        )
        environ["datafari_rag.watch"] = watcher.open
        environ["wsgi.input"] = body

        def start(*answer: Any) -> Any:
            # Before the headers are made, which say whether the connection stays open.
            if not body.is_settled:
                line.refuse_more()
            return start_response(*answer)

        try:
            return _WatchedResponse(self.app(environ, start), watcher)
        except BaseException:
            watcher.shut()
            raise


class _DisconnectWatcher:
    """
    Watches one reader's connection for its end.

    The loop itself looks; a greenlet that waited there would hold 6 KB for each open stream, and be made and ended.
    """

    def __init__(self, line: Any, answering: Any) -> None:
        self._line, self._answering = line, answering
        self._watcher: Any = None

    def open(self) -> None:
        self._watcher = gevent.get_hub().loop.io(self._line.fileno(), _READ)
        self._watcher.start(self._look)

    def shut(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None

    def _look(self) -> None:
        # A byte is the next request of a reader who does not wait: they are still there, and no longer watched.
        self.shut()
        if self._line.has_left():
            self._answering.kill(block=False)


class _WatchedResponse(ClosingIterator):
    """The pieces of one answer. First it stops watching the client: who leaves now must not end what is cleaned up."""

    def __init__(self, pieces: Iterable[bytes], watcher: _DisconnectWatcher) -> None:
        super().__init__(pieces)
        self._watcher = watcher

    def close(self) -> None:
        self._watcher.shut()
        super().close()
