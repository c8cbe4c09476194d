"""
Runs a real Solr for trials and tests: one node, or several with a ZooKeeper, on this machine's loopback alone.

Everything a folder started is written down in it, with the time each process began, so that `stopped` ends exactly
those and never a stranger that has the same number by now.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import random
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

import requests

from datafari_rag_trials.downloads import Say
from datafari_rag_trials.solr.jars import CannotRunSolr, jars, launcher, shipped, tool

COLLECTION = "FileShare"
CONFIG_SET = "datafari-rag"
CONFIG_SETS = {COLLECTION: (CONFIG_SET, "conf"), "VectorMain": ("datafari-rag-passages", "passages")}
"""Collection → name of its config set, and the packaged folder of it."""
START_LIMIT_S = 180
STOP_LIMIT_S = 30
SHARDS = 2
_STATE = "running.json"
JAVA_OPTIONS = "java.options"
"""File of a folder with flags for its Java, one a line; they win over ours. For another size of its heap, say."""

_PORTS = (15_000, 32_000)
_POLL_S = 0.2
_JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Djava.awt.headless=true")
_BRIEF_JAVA = ("-XX:TieredStopAtLevel=1", "-Ddisable.v2.api=true")
"""For a test that ends in a minute: 6.9 s of CPU to start, 4.6 without the second compiler, 3.0 without `/api` too."""
_ZOOKEEPER = (
    "tickTime=500\ndataDir={folder}/zookeeper\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
    "admin.enableServer=false\nmaxClientCnxns=200\n"
)


@dataclass(frozen=True, slots=True)
class Process:
    """A program started here: *began* distinguishes it from a later one with the same *pid*."""

    role: str
    pid: int
    began: str
    port: int


@dataclass(frozen=True, slots=True)
class Running:
    """What a folder runs: the value for `solr.url`, and the programs, in the order of their start."""

    url: str
    processes: tuple[Process, ...]


def started(
    folder: Path, *, port: int | None = None, nodes: int = 0, owner: int | None = None, say: Say = lambda text: None
) -> Running:
    """
    Start what *folder* holds, or make it first, and return when the collection can be searched.

    *nodes* 0 is a Solr without ZooKeeper; from 1 on it is a SolrCloud of that size. *port* is the first node's; None
    takes the one of the last time, or a free one. With *owner* all of them end when the process of that number does.
    What runs already is returned as it is.

    Raises:
        CannotRunSolr: Java or Maven is absent, a port is taken, or Solr does not come up; nothing is left running.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        state = _read(folder)
        if state is not None and all(_is_alive(process) for process in state.processes):
            say("It is already running.")
            return state
        _end(state.processes if state is not None else ())
        _check_kind(folder, nodes)
        java, lib = tool("java", package="a JDK (tested with Java 17; Debian: default-jdk-headless)"), jars(say)
        ports = _ports(folder, port, nodes)
        starter = _Starter(folder, java, lib, owner)
        try:
            running = _cloud(starter, ports, say) if nodes else _single(starter, ports[0], say)
        except BaseException:
            _end(starter.processes)
            (folder / _STATE).unlink(missing_ok=True)
            raise
    return running


def revived(folder: Path, *, owner: int | None = None) -> Running:
    """
    Start again the nodes of *folder* that have ended, while the others continue; return when they answer searches.

    Raises:
        CannotRunSolr: nothing was started there, or a node does not come up.
    """
    folder = folder.absolute()
    with _locked(folder):
        state = _read(folder)
        if state is None:
            raise CannotRunSolr("Nothing was started in this folder.")
        keeper = next((f"127.0.0.1:{other.port}" for other in state.processes if other.role == "zookeeper"), "")
        starter = _Starter(folder, tool("java", package="a JDK"), jars(lambda text: None), owner)
        nodes = []
        for process in state.processes:
            if _is_alive(process) or not process.role.startswith("node"):
                starter.processes.append(process)
            else:
                nodes.append(starter.node(int(process.role.removeprefix("node")), process.port, keeper))
        running = _state_of(starter, state.url)
        for process in nodes:
            _wait_for(process, f"http://127.0.0.1:{process.port}/solr/{COLLECTION}/select?q=*:*&rows=0", folder)
        return running


def stopped(folder: Path) -> int:
    """Stop what *folder* started, the last first, and return how many programs ended; the data stays."""
    if not folder.is_dir():
        return 0
    with _locked(folder):
        state = _read(folder)
        ended = _end(state.processes) if state is not None else 0
        (folder / _STATE).unlink(missing_ok=True)
        return ended


def status(folder: Path) -> Running | None:
    """Return what *folder* runs now, None when any part of it has ended or nothing was started."""
    state = _read(folder)
    return state if state is not None and all(_is_alive(process) for process in state.processes) else None


def signalled(process: Process, *, how: signal.Signals = signal.SIGKILL) -> bool:
    """Send one program *how*, say whether it was there: for trials of a lost or paused node."""
    if not _is_alive(process):
        return False
    os.kill(process.pid, how)
    return True


class _Starter:
    """Starts programs of one folder and remembers them."""

    def __init__(self, folder: Path, java: str, lib: Path, owner: int | None) -> None:
        self.folder, self.java, self.lib = folder, java, lib
        self.owner = "" if owner is None else str(owner)
        self.flags = java_flags(folder, owner)
        self.processes: list[Process] = []
        (folder / "logs").mkdir(exist_ok=True)
        self.classes = launcher(lib)

    def node(self, number: int, port: int, zookeeper: str) -> Process:
        home = self.folder / f"node{number}"
        home.mkdir(exist_ok=True)
        (home / "solr.xml").write_bytes(shipped("solr.xml"))
        arguments = [str(home), str(port), zookeeper]
        return self.run(f"node{number}", port, [*arguments, self.owner] if self.owner else arguments)

    def keeper(self, port: int) -> Process:
        arguments = ["--zookeeper", str(self.folder / "zoo.cfg")]
        return self.run("zookeeper", port, [*arguments, self.owner] if self.owner else arguments)

    def run(self, role: str, port: int, arguments: Sequence[str]) -> Process:
        flags = [*self.flags, f"-Dsolr.log.dir={self.folder}/logs", "-cp", f"{self.classes}{os.pathsep}{self.lib}/*"]
        command = [self.java, *flags, "Launcher", *arguments]
        with (self.folder / "logs" / f"{role}.log").open("ab") as log:
            child = subprocess.Popen(  # noqa: S603 - our own command
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        # Looked after by its number from here on, also by another run; Popen would warn that it is still there.
        child.returncode = 0
        process = Process(role, child.pid, _began(child.pid), port)
        self.processes.append(process)
        # Written immediately, so that an interrupted start can still be stopped.
        _write(self.folder, Running("", tuple(self.processes)))
        return process


def java_flags(folder: Path, owner: int | None) -> tuple[str, ...]:
    """Return the flags of Java: ours, then those of the folder's own file, of which the later ones win."""
    flags = _JAVA if owner is None else (*_JAVA, *_BRIEF_JAVA)
    return (*flags, *(own.read_text().split() if (own := folder / JAVA_OPTIONS).exists() else ()))


def _single(starter: _Starter, port: int, say: Say) -> Running:
    for collection, (_, packaged) in CONFIG_SETS.items():
        core = starter.folder / "node1" / collection
        if not (core / "core.properties").exists():
            (core / "conf").mkdir(parents=True, exist_ok=True)
            for name, body in config_set(packaged).items():
                (core / "conf" / name).write_bytes(body)
            (core / "core.properties").write_text(f"name={collection}\n", encoding="utf-8")
    say(f"Starting Solr on port {port}…")
    process = starter.node(1, port, "")
    _wait_for(process, f"http://127.0.0.1:{port}/solr/{COLLECTION}/select?q=*:*&rows=0", starter.folder)
    return _state_of(starter, f"http://127.0.0.1:{port}/solr/{COLLECTION}")


def _cloud(starter: _Starter, ports: Sequence[int], say: Say) -> Running:
    zookeeper, *nodes = ports
    say(f"Starting ZooKeeper on port {zookeeper}…")
    (starter.folder / "zoo.cfg").write_text(_ZOOKEEPER.format(folder=starter.folder, port=zookeeper), encoding="utf-8")
    keeper = starter.keeper(zookeeper)
    _wait_for_port(keeper)
    say(f"Starting {len(nodes)} nodes on ports {', '.join(map(str, nodes))}…")
    running = [starter.node(number, port, f"127.0.0.1:{zookeeper}") for number, port in enumerate(nodes, 1)]
    for process in running:
        _wait_for(process, f"http://127.0.0.1:{process.port}/solr/admin/info/system", starter.folder)
    _make_collections(nodes, say)
    for process in running:
        url = f"http://127.0.0.1:{process.port}/solr/{COLLECTION}/select?q=*:*&rows=0&shards.tolerant=false"
        _wait_for(process, url, starter.folder)
    return _state_of(starter, f"zookeeper://127.0.0.1:{zookeeper}#{COLLECTION}")


def _make_collections(nodes: Sequence[int], say: Say) -> None:
    admin = f"http://127.0.0.1:{nodes[0]}/solr/admin"
    with requests.Session() as session:
        session.trust_env = False
        listed = session.get(f"{admin}/collections?action=LIST", timeout=30).json().get("collections", ())
        for collection, (config, packaged) in CONFIG_SETS.items():
            if collection in listed:
                continue
            say(f"Uploading the config set and creating the collection {collection}…")
            upload = {"action": "UPLOAD", "name": config, "overwrite": "true"}
            _succeed(session.post(f"{admin}/configs", params=upload, data=zipped(config_set(packaged)), timeout=60))
            create = {
                "action": "CREATE",
                "name": collection,
                "collection.configName": config,
                "numShards": str(SHARDS),
                "replicationFactor": str(min(2, len(nodes))),
            }
            _succeed(session.get(f"{admin}/collections", params=create, timeout=START_LIMIT_S))


def _succeed(reply: requests.Response) -> None:
    if reply.status_code != 200:
        raise CannotRunSolr(f"Solr refused to create the collection (status {reply.status_code}); see its logs.")


def config_set(packaged: str = "conf") -> Mapping[str, bytes]:
    """Return the config set in the folder *packaged*: file name → content."""
    folder = resources.files("datafari_rag_trials.resources").joinpath("solr", packaged)
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return *files* as the archive in which Solr takes a config set."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return packed.getvalue()


def _state_of(starter: _Starter, url: str) -> Running:
    running = Running(url, tuple(starter.processes))
    _write(starter.folder, running)
    return running


def _check_kind(folder: Path, nodes: int) -> None:
    """Refuse to make a SolrCloud of a folder that holds a lone Solr, and the other way round."""
    if not (folder / "node1").exists() or (folder / "zookeeper").exists() == bool(nodes):
        return
    content, way = ("a standalone Solr", "without --cloud") if nodes else ("a SolrCloud", "with --cloud N")
    raise CannotRunSolr(f"This folder contains {content}: start it {way}, or use another --dir.")


def _ports(folder: Path, own_port: int | None, nodes: int) -> list[int]:
    """Return ZooKeeper's port (with *nodes*) and each node's: those of the last time by default."""
    book, number = folder / "ports.json", 1 + nodes if nodes else 1
    last: list[int] = []
    with suppress(OSError, ValueError):
        last = json.loads(book.read_text(encoding="utf-8"))
    if len(last) == number and own_port in (None, last[-max(1, nodes)]):
        ports = last
    else:
        first = _free_ports(number) if own_port is None else []
        ports = first or [*_free_ports(number - max(1, nodes)), *range(own_port or 0, (own_port or 0) + max(1, nodes))]
    for port in ports:
        _check_free(port)
    book.write_text(json.dumps(ports), encoding="utf-8")
    return ports


def _free_ports(number: int) -> list[int]:
    """
    Return free ports below those that systems hand out to clients.

    A port of a client could be in use at the next start; worse, a client that connects to it repeatedly while
    no program listens may be given the same number and reach itself.
    """
    ports: list[int] = []
    while len(ports) < number:
        port = random.SystemRandom().randrange(*_PORTS)
        with suppress(CannotRunSolr):
            _check_free(port)
            ports += [port] if port not in ports else []
    return ports


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise CannotRunSolr(f"Port {port} is in use: choose another one with --port.") from None


def _wait_for(process: Process, url: str, folder: Path) -> None:
    limit = time.monotonic() + START_LIMIT_S
    with requests.Session() as session:
        session.trust_env = False
        while time.monotonic() < limit:
            with suppress(requests.RequestException):
                if session.get(url, timeout=10).status_code == 200:
                    return
            if not _is_alive(process):
                break
            time.sleep(_POLL_S)
    raise CannotRunSolr(f"Solr did not start; its log: {folder / 'logs' / process.role}.log")


def _wait_for_port(process: Process) -> None:
    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit and _is_alive(process):
        with suppress(OSError), socket.create_connection(("127.0.0.1", process.port), timeout=1):
            return
        time.sleep(_POLL_S)
    raise CannotRunSolr("ZooKeeper did not start; its log is in the folder's logs.")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(folder: Path) -> Running | None:
    try:
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        return Running(state["url"], tuple(Process(**process) for process in state["processes"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write(folder: Path, running: Running) -> None:
    draft = folder / f"{_STATE}.new"
    draft.write_text(json.dumps(asdict(running), indent=1), encoding="utf-8")
    draft.replace(folder / _STATE)


def _end(processes: Sequence[Process]) -> int:
    """Ask each program to end, the last started first, and insist after a while; return how many were there."""
    alive = [process for process in reversed(processes) if _is_alive(process)]
    for process in alive:
        # ZooKeeper last, after the nodes have disconnected from it.
        os.kill(process.pid, signal.SIGTERM)
        limit = time.monotonic() + STOP_LIMIT_S
        while _is_alive(process):
            if time.monotonic() > limit:
                os.kill(process.pid, signal.SIGKILL)
            time.sleep(_POLL_S / 4)
    return len(alive)


def _is_alive(process: Process) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    return process.began != "" and _began(process.pid) == process.began


def _began(pid: int) -> str:
    """Return when the process began, "" when there is none (or only what its parent has not yet looked at)."""
    try:
        # The program's name is in brackets and may contain any text; fields 3 (state), 20 (threads) and 22 (start)
        # follow it. While a thread is left after the first one, Java's own way to end, ports are still in use.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return "" if fields[0] in "ZX" and int(fields[17]) < 2 else fields[19]
    except OSError:
        if Path("/proc/self/stat").exists():
            return ""
    listed = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return listed.stdout.strip()
