"""One world: built of a seed, run to its end, with what broke in it and the hash of all that happened."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from werkzeug.test import EnvironBuilder

from datafari_rag.adapters.machine import Machine
from datafari_rag.adapters.observability.audit_trail import KEY_BYTES, KEY_FILE
from datafari_rag.adapters.settings.file import SettingsFile, SettingsSnapshot
from tests.simulation.network import Network
from tests.simulation.plan import Change, Plan, planned
from tests.simulation.readers import SPEECHES, STREAMS, Visit
from tests.simulation.scheduler import NeverEnds, Scheduler, SimulatedSignal
from tests.simulation.servers import SimulatedAuthority, SimulatedModel, SimulatedSolr, Weather
from tests.simulation.service import SimulatedApplication
from tests.simulation.truth import Truth, canary, some_acl, some_tokens
from tests.simulation.watch import Watch

EPOCH_S = 1_700_000_000.0
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Outcome:
    """What came of one world: its *violations*, the *digest* of all events, and the events where they were kept."""

    seed: int
    violations: tuple[str, ...]
    digest: str
    events: tuple[str, ...]
    simulated_s: float
    visits: int


def run(seed: int, *, keeps_events: bool = False) -> Outcome:
    """Run the world of *seed*."""
    # What a world holds is deleted with it: a folder in memory is ten times faster.
    folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        with _silence():
            return World(seed, folder, keeps_events=keeps_events).outcome()
    finally:
        shutil.rmtree(folder)


@contextmanager
def _silence() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class WorldsFile(SettingsFile):
    """A settings file under which the service's constants have the *waits* of a world."""

    def __init__(self, waits: dict[str, float], path: Path, **clocks: Any) -> None:
        self._waits = waits
        super().__init__(path, environ={}, **clocks)

    def _read(self) -> SettingsSnapshot:
        snapshot, waits = super()._read(), self._waits
        solr, llm = snapshot.settings.solr, snapshot.settings.llm
        of_solr = solr.limits.replaced(connect_s=waits["connect_s"], retries=waits["solr_retries"])
        of_llm = llm.limits.replaced(connect_s=waits["connect_s"], breaker_reset_s=waits["breaker_reset_s"])
        changed = snapshot.settings.replaced(solr=solr.replaced(limits=of_solr), llm=llm.replaced(limits=of_llm))
        return replace(snapshot, settings=changed)


class World:
    """Everything of one seed."""

    def __init__(self, seed: int, folder: Path, *, keeps_events: bool) -> None:
        self.seed, self.folder = seed, folder
        self._digest, self._events = hashlib.blake2b(digest_size=16), list[str]()
        self._keeps_events = keeps_events
        # A stream of chance for each: what is drawn for one does not move the others.
        self.random = Random(f"{seed} world")
        self.scheduler = Scheduler(Random(f"{seed} order"))
        self.plan: Plan = planned(Random(f"{seed} plan"))
        self.network = Network(self.scheduler, Random(f"{seed} network"), self.log)
        self.truth = Truth()
        self.watch = Watch(self.truth, lambda: self.scheduler.now)
        self.jump_s = 0.0
        self.disk = ""
        self.is_disk_busy = False
        self.busy = 0
        self.faults_end_s = -1e9
        self.live_faults = 0
        self._populate()
        self._connect()
        self.app = SimulatedApplication(self._settings_file(), self._machine())

    def log(self, *happening: object) -> None:
        """Take one event into the hash."""
        line = f"{self.scheduler.now:.6f} {' '.join(map(str, happening))}"
        self._digest.update(line.encode() + b"\n")
        if self._keeps_events:
            self._events.append(line)

    def outcome(self) -> Outcome:
        """Let the world happen."""
        self.busy = len(self.plan.visits) + len(self.plan.changes)
        for visit in self.plan.visits:
            self.scheduler.spawn(visit.id, lambda visit=visit: self._visited(visit), visit.began)
        for number, change in enumerate(self.plan.changes):
            self.scheduler.spawn(f"change-{number}", lambda change=change: self._changed(change), change.at_s)
        try:
            self.scheduler.run()
        except NeverEnds:
            self.watch.found("the world does not end")
        self._check_end()
        self.scheduler.end()
        violations = tuple(self.watch.violations)
        self.log("violations", len(violations))
        return Outcome(
            self.seed,
            violations,
            self._digest.hexdigest(),
            tuple(self._events),
            self.scheduler.now,
            len(self.watch.visits),
        )

    # Building

    def _populate(self) -> None:
        for user in ("alice", "bob", "carol"):
            self.truth.tokens[user] = [(-1e9, some_tokens(user, self.random))]
        for number in range(self.random.randint(3, 6)):
            self.truth.acls[f"doc{number}"] = [(-1e9, some_acl(self.random))]

    def _connect(self) -> None:
        self.nodes = [SimulatedSolr(self.network, self.truth) for _ in range(2)]
        self.authority = SimulatedAuthority(self.network, self.truth)
        self.authority.note_call = self.watch.asked_authority(self.authority)
        self.models = [
            SimulatedModel(self.network, name, note=self.watch.asked_model, told=self.watch.told)
            for name in ("model-a", "model-b")
        ]
        named = {"solr-a": self.nodes[0], "solr-b": self.nodes[1], "authority": self.authority}
        self.network.servers = {**named, "model-a": self.models[0], "model-b": self.models[1]}

    def _machine(self) -> Machine:
        scheduler, random = self.scheduler, Random(f"{self.seed} chance")
        return Machine(
            monotonic=lambda: scheduler.now,
            wall=self._wall,
            sleep=scheduler.sleep,
            chance=random.random,
            client=self.network.client,
            signal=lambda: SimulatedSignal(scheduler),
            nonce=lambda: f"{random.getrandbits(64):016x}",
            at_disk=self._at_disk,
            write=self._written,
        )

    def _wall(self) -> float:
        return EPOCH_S + self.scheduler.now + self.jump_s

    def _settings_file(self) -> SettingsFile:
        audit = self.folder / "audit"
        audit.mkdir()
        (audit / KEY_FILE).write_text("5e" * KEY_BYTES)
        self.path = self.folder / "rag.properties"
        self._write_settings(self.plan.settings)
        return WorldsFile(self.plan.waits, self.path, clock=lambda: self.scheduler.now, wall=self._wall)

    def _write_settings(self, settings: dict[str, str], *, cut: float = 1.0) -> None:
        """Write the file, or the first part of it, with the time stamp of this world."""
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self.path.write_text(text[: int(len(text) * cut)])
        stamp = int(self._wall() * 1e9)
        os.utime(self.path, ns=(stamp, stamp))

    def _written(self, handle: int, data: bytes) -> int:
        """Be the disk: full after half a line, slow, or well."""
        if self.disk == "full":
            os.write(handle, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "no space")
        if self.disk == "slow":
            self.scheduler.sleep(5.0)
        return os.write(handle, data)

    def _at_disk(self, work: Callable[[], None]) -> None:
        """Be the one thread that waits for the disk."""
        while self.is_disk_busy:
            self.scheduler.sleep(0.01)
        self.is_disk_busy = True
        try:
            work()
        finally:
            self.is_disk_busy = False

    # What happens

    def _visited(self, visit: Visit) -> None:
        watch, scheduler = self.watch, self.scheduler
        snapshot = self.app.runtime.snapshot()
        visit.began, visit.settings = scheduler.now, snapshot.settings
        visit.cache_s = snapshot.settings.security.cache_s
        watch.visits[visit.id] = visit
        calm_s = self.faults_end_s + snapshot.settings.llm.limits.breaker_reset_s + 1
        is_calm = self.live_faults == 0 and scheduler.now > calm_s and not watch.open_breakers(visit)
        changes = len(self._changes_seen())
        self.log("visit", visit.id, visit.user, visit.speech.path)
        task = scheduler.current
        if visit.leaves_after_s is not None and task is not None:
            scheduler.spawn("leaves", lambda: scheduler.kill(task) if visit.is_watched else None, visit.leaves_after_s)
        try:
            visit.read(self.app, scheduler.sleep, self._piece)
        finally:
            visit.ended = scheduler.now
            self.log("end", visit.id, visit.status, len(visit.body), visit.has_left)
            # First of all: whatever follows may raise, and the world has to end.
            self._finished()
            watch.ended(visit)
            if is_calm and self.live_faults == 0 and changes == len(self._changes_seen()) and not visit.has_left:
                self._check_calm(visit)

    def _changes_seen(self) -> list[float]:
        return [change.at_s for change in self.plan.changes if change.at_s <= self.scheduler.now]

    def _piece(self, visit: Visit, data: bytes) -> None:
        self._digest.update(data)
        self.watch.piece(visit, data)

    def _check_calm(self, visit: Visit) -> None:
        """Check that what nothing kept from working worked."""
        settings = visit.settings
        is_limited = settings.server.rate.user and b"Too many requests" in visit.body
        is_full = b"as many questions as it can" in visit.body
        is_refused = visit.user is None and settings.security.anonymous == "refuse"
        # An answer's time passes as well while its reader takes a piece.
        total_s = settings.llm.limits.total_s
        is_slow = visit.ended - visit.began > total_s and visit.write_s > 0
        is_changed = len(self.truth.token_sets(visit.user, visit.began - visit.cache_s)) > 2
        is_unusual = is_limited or is_full or is_refused or is_slow or is_changed or self.watch.was_probed(visit)
        if is_unusual or visit.speech.name in ("page", "document"):
            return
        wanted = {canary(document) for document in self.truth.visible_now(visit.user)}
        if wanted and (visit.status != 200 or not wanted & visit.seen):
            self.watch.found("no answer although nothing is broken", visit, (visit.status, visit.body[:300]))

    def _changed(self, change: Change) -> None:
        self.log("change", change.kind, change.what, change.more)
        getattr(self, f"_change_{change.kind}")(change)
        self._finished()

    def _change_weather(self, change: Change) -> None:
        weather: Weather = self.network.servers[change.what].weather  # type: ignore[attr-defined] # each has it
        weather.fault, weather.chance = change.more, change.chance
        self.live_faults += 1
        self.scheduler.sleep(change.lasts_s)
        weather.fault = ""
        self._healed()

    def _change_disk(self, change: Change) -> None:
        self.disk = change.more
        self.scheduler.sleep(change.lasts_s)
        self.disk = ""

    def _healed(self) -> None:
        self.live_faults -= 1
        self.faults_end_s = self.scheduler.now

    def _change_tokens(self, change: Change) -> None:
        states = self.truth.tokens[change.what]
        states.append((self.scheduler.now, some_tokens(change.what, self.random)))

    def _change_rights(self, change: Change) -> None:
        document = self.random.choice(sorted(self.truth.acls))
        deleted = change.more == "deleted" and self.truth.acl_now(document) is not None
        self.truth.acls[document].append((self.scheduler.now, None if deleted else some_acl(self.random)))

    def _change_settings(self, change: Change) -> None:
        self.live_faults += 1
        settings = {**self.plan.settings, **dict(change.settings)}
        if change.more == "broken":
            self._write_settings({**settings, "solr.limits.wait_s": "soon"}, cut=self.random.uniform(0.3, 1.0))
            self.scheduler.sleep(change.lasts_s)
        # Everything is built anew: caches and breakers, too.
        self.watch.has_new_rights = self.watch.has_new_chain = True
        self._write_settings(settings)
        self.scheduler.sleep(3.0)
        self._healed()

    def _change_clock(self, change: Change) -> None:
        self.watch.has_jumped = True
        self.jump_s += change.chance

    # The end

    def _finished(self) -> None:
        self.busy -= 1
        if self.busy == 0:
            self.scheduler.spawn("recovery", self._recovered)

    def _recovered(self) -> None:
        """Check that after the last fault everything works again, and end the process."""
        settings = self.app.runtime.snapshot().settings
        self.scheduler.sleep(61.0 + settings.llm.limits.breaker_reset_s)
        self.busy = 99
        # Where a breaker is still open this reader's request is its probe, and they leave while the model is asked.
        leaving = Visit(899, "alice", STREAMS[1], "What is the budget in the report of qx899k?", leaves_after_s=0.7)
        self.scheduler.spawn(leaving.id, lambda: self._visited(leaving))
        self.scheduler.sleep(20.0)
        for number, user in enumerate(("alice", "bob", "carol"), start=900):
            speech = self.random.choice(SPEECHES[:-2])
            visit = Visit(number, user, speech, f"What is the budget in the report of qx{number}k?")
            self._visited(visit)
        environ, statuses = (
            EnvironBuilder("/health/ready", headers={"X-Request-ID": "ready"}).get_environ(),
            list[str](),
        )
        body = b"".join(self.app.wsgi_app(environ, lambda status, headers: statuses.append(status)))
        if statuses != ["200 OK"]:
            self.watch.found("not ready after the last fault", None, body[:300])
        trail = self.app.runtime.snapshot().audit
        if trail is not None:
            trail.close()

    def _check_end(self) -> None:
        watch = self.watch
        for name, defect in self.scheduler.defects:
            watch.found("a defect", None, f"{name} {defect!r}")
        for task in self.scheduler.tasks:
            if not task.is_done:
                watch.found("waits for ever", None, task.name)
        if self.app.worker.streams.open:
            watch.found("places of streams are not given back", None, self.app.worker.streams.open)
        if self.network.open:
            watch.found("connections are not closed", None, self.network.open)
        watch.check_rates()
        watch.check_searches(self.nodes, self.authority)
        watch.check_audit(self.folder / "audit")
