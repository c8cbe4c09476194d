"""
A night of mixed traffic in parts that add up: `make night NIGHT_MINUTES=15`, as often as the machine has time.

The history of `test_history` (rights change, documents go, readers search with their rights) with all that stands
before and beside it: the production server whose readers stream answers, revocations, reloads that change the model
from an honest one to a slow one, a lying one, one that breaks off and one that is busy, `passages sync` that follows,
and a node that is killed and comes back. What a part came to is kept in `var/night`; all parts together make the
picture and the lines of docs/sizing.md. Ends with 1 where a reader saw a hidden version, a failure had no label, or a
stream no end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import requests

from benchmarks.processes import memory_kib
from benchmarks.soak import write_page
from datafari_rag_trials.solr import process as solr_process
from tests.end_to_end.history import Anomaly, Read, anomalies, unexcused
from tests.end_to_end.processes import Running, service, stub_llm, write_settings
from tests.end_to_end.test_history import TOKENS, History, going
from tests.end_to_end.test_solr_cloud_killed import nodes_of, wait_until_missed, wait_until_whole
from tests.real_solr import running

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "var" / "night"
PAGE, PICTURE = ROOT / "docs" / "sizing.md", ROOT / "docs" / "images" / "night.png"
MARKS = ("<!-- night: written by make night -->", "<!-- end of night -->")
MODELS = ("quote", "first-2000ms-words-20-gap-100ms", "miscite", "quote-cut-after-5", "gullible", "status-503")
"""Honest, slow, lying about its sources, broken off, obeying what documents say, and busy."""

RELOAD_S, REVOKE_S, SAMPLE_S, STREAMERS, MOST_S, HOUR_S = 30.0, 20.0, 15.0, 4, 120.0, 3_600.0
ASK = "/search/select?action=rag&q=What+does+the+pump+have"
SEEN = re.compile(r"pump of (d\d\d) has version(\d+)x")


@dataclass
class Part:
    """What one part came to; *samples* are seconds, memory of the workers in MiB, answers and kills so far."""

    seed: int
    minutes: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    """By how they ended: "OK", the label of a failure, or what should not be."""
    bad: list[str] = field(default_factory=list)
    samples: list[tuple[float, float, int, int]] = field(default_factory=list)
    faults: list[tuple[float, float]] = field(default_factory=list)
    """When each node was killed, and when every replica was well again, in seconds of the part."""
    done: Counter[str] = field(default_factory=Counter)
    """What was done meanwhile: reloads, revocations, kills, runs of sync, reads, writes."""


class Night:
    """One part while it goes on."""

    def __init__(self, folder: Path, found: Running, part: Part, settings: Mapping[str, str]) -> None:
        self.folder, self.found, self.part, self.settings = folder, found, part, settings
        self.is_over = threading.Event()
        self.reads: list[Read] = []

    def end(self, work: Callable[[], None]) -> None:
        """Do *work*; that it broke off is among what should not be."""
        try:
            work()
        except Exception as error:  # whatever it is, the part has to tell it
            self.part.bad.append(f"broken off: {error!r}")
            raise

    def stream(self, name: str, number: int, pause_s: float) -> None:
        """Ask as *name*, streamed and whole in turn, until it is over."""
        with requests.Session() as session:
            session.trust_env = False
            while not self.is_over.wait(pause_s):
                number += 1
                sent_s = time.monotonic()
                body, ended = self._asked(session, name, is_streamed=number % 2 == 0)
                self.part.answers[ended] += 1
                seen = {document: int(version) for document, version in SEEN.findall(body)}
                self.reads.append(Read(name, sent_s, time.monotonic(), seen))

    def _asked(self, session: requests.Session, name: str, *, is_streamed: bool) -> tuple[str, str]:
        """Return all that was received, and how it ended."""
        url = self.found.url + ASK + ("&stream=true" if is_streamed else "")
        try:
            reply = session.get(url, headers={"X-Remote-User": name}, timeout=MOST_S)
            events = [json.loads(line) for line in (reply.text.splitlines() if is_streamed else [reply.text])]
        except (requests.RequestException, ValueError) as error:
            return "", f"no end: {type(error).__name__}"
        return reply.text, _ending(events)

    def change(self) -> None:
        """Reload with another model, and revoke rights, until it is over."""
        rng, models, reload_s, revoke_s = random.Random(self.part.seed), itertools.cycle(MODELS), 0.0, 0.0
        while not self.is_over.wait(1.0):
            now = time.monotonic()
            if now > reload_s:
                model, reload_s = next(models), now + RELOAD_S
                write_settings(self.folder, {**self.settings, "rag.model": model})
                self.found.process.send_signal(signal.SIGHUP)
                self.part.done[f"with {model}"] += 1
            if now > revoke_s:
                revoke_s = now + REVOKE_S
                user = {"user": rng.choice(TOKENS)}
                reply = requests.post(
                    f"{self.found.url}/admin/revoke", json=user, headers={"X-Remote-User": "root"}, timeout=60
                )
                self.part.done["revocations" if reply.ok else f"revocation refused: {reply.status_code}"] += 1

    def sync(self) -> None:
        """Follow the changes, killed and begun again every minute."""
        conf = self.folder / "sync.properties"
        conf.write_text(f"solr.url={self.settings['solr.url']}\n", encoding="ascii")
        conf.chmod(0o600)
        command = [sys.executable, "-m", "datafari_rag", "passages", "sync", "--conf", str(conf), "--follow", "2"]
        while not self.is_over.is_set():
            with (self.folder / "sync.log").open("ab") as log:
                running_sync = subprocess.Popen(command, stdout=log, stderr=log)
            self.is_over.wait(60)
            running_sync.kill()
            running_sync.wait(30)
            self.part.done["runs of sync"] += 1

    def sample(self) -> None:
        """Note memory and answers until it is over."""
        began_s = time.monotonic()
        while not self.is_over.wait(SAMPLE_S):
            memory = sum(map(memory_kib, self.found.workers())) / 1024
            row = (time.monotonic() - began_s, memory, self.part.answers.total(), self.part.done["kills"])
            self.part.samples.append(row)


def _ending(events: Sequence[Mapping[str, Any]]) -> str:
    """Return how an answer ended, a whole one or the events of a stream: OK, a failure's label, or what it lacks."""
    last = events[-1] if events else {}
    if "type" in last and last["type"] != "stream.completed":
        return f"no end: {last['type']}"
    status = last.get("data", last).get("status")
    error = events[-2].get("data", {}) if len(events) > 1 else last.get("content", {}).get("error", {})
    return "OK" if status == "OK" else str(error.get("label") or "no label")


def _kill(folder: Path, history: History, part: Part, until_s: float, every_s: float) -> None:
    """Kill a node every *every_s*, wait until it is back, until *until_s*."""
    rng = random.Random(f"{part.seed} kills")
    while time.monotonic() + every_s / 2 < until_s:
        time.sleep(every_s / 2)
        node, began_s = rng.choice(nodes_of(folder)), time.monotonic()
        solr_process.signalled(node, how=signal.SIGKILL)
        part.done["kills"] += 1
        wait_until_missed(folder, node)
        solr_process.revived(folder, owner=os.getpid())
        wait_until_whole(folder)
        history.spans.append((began_s, time.monotonic()))
        time.sleep(max(0.0, min(every_s / 2, until_s - time.monotonic())))
    time.sleep(max(0.0, until_s - time.monotonic()))


@contextmanager
def _served(folder: Path, url: str, part: Part) -> Iterator[Night]:
    users = folder / "users.json"
    users.write_text(json.dumps({name: [name] for name in TOKENS}), encoding="utf-8")
    with stub_llm(folder) as model:
        settings = {
            "solr.url": url,
            "rag.api.endpoint": f"{model.url}/v1/chat/completions",
            "rag.model": MODELS[0],
            "security.identity": "header",
            "security.tokens.file": str(users),
            "security.admins": "root",
            "log.level": "WARNING",
        }
        with service(folder, settings, workers=2) as found:
            yield Night(folder, found, part, settings)


def run(part: Part, minutes: float, every_s: float, pause_s: float) -> None:
    """Run one part, and check what was seen in it."""
    history = History(seed=part.seed, pause_s=pause_s)
    with tempfile.TemporaryDirectory(prefix="night-") as place:
        folder = Path(place)
        with running(folder / "solr", nodes=2) as cloud, _served(folder, cloud.url, part) as night:
            works = [night.change, night.sync, night.sample]
            works += [
                partial(night.stream, TOKENS[number % len(TOKENS)], number, pause_s) for number in range(STREAMERS)
            ]
            threads = [threading.Thread(target=night.end, args=(work,)) for work in works]
            wait_until_whole(folder / "solr")
            began_s = time.monotonic()
            with going(history, cloud.url):
                for one in threads:
                    one.start()
                try:
                    _kill(folder / "solr", history, part, began_s + minutes * 60, every_s)
                finally:
                    night.is_over.set()
                    for one in threads:
                        one.join(MOST_S + 60)
            part.minutes = (time.monotonic() - began_s) / 60
            still = re.findall(r"^datafari_rag_open_streams (\S+)", night.found.get("/metrics").text, re.M)
            part.bad += [] if still in ([], ["0.0"]) else [f"streams still open: {still}"]
    part.done |= Counter({"writes": len(history.writes), "reads": len(history.reads)})
    part.done |= history.failed
    # An answer has some of the documents, a search all of them.
    found = anomalies(history.writes, history.reads)
    found += [one for one in anomalies(history.writes, night.reads) if one.kind != "lost"]
    part.bad += _together(unexcused(found, history.spans), began_s)
    part.faults += [(begin - began_s, end - began_s) for begin, end in history.spans]
    part.bad += [end for end in part.answers if end.startswith("no ")]


def _together(found: Sequence[Anomaly], began_s: float) -> list[str]:
    """Return what cannot be, one line for each version that was seen: how often, and from when to when."""
    reads: dict[tuple[str, str, int | None], list[float]] = {}
    for one in found:
        reads.setdefault((one.kind, one.document, one.version), []).append(one.read.sent_s - began_s)
    return [
        f"{kind}: {document}, version {version}, {len(at)} reads, {min(at):.1f} to {max(at):.1f} s"
        for (kind, document, version), at in reads.items()
    ]


def drift(part: Part) -> float:
    """
    Return by how many hundredths memory grew after the first hour, from the first quarter of that time to the last.

    Of a part that is hardly longer than an hour, or shorter, it is the second half.
    """
    last_s = part.samples[-1][0] if part.samples else 0.0
    from_s = HOUR_S if last_s > 1.2 * HOUR_S else last_s / 2
    memory = [row[1] for row in part.samples if row[0] >= from_s]
    quarter = math.ceil(len(memory) / 4)
    early, late = memory[:quarter], memory[-quarter:]
    return 100 * (sum(late) / sum(early) - 1) if memory else 0.0


def told(parts: Sequence[Part]) -> list[str]:
    """Return the lines of the page: what all parts together came to."""
    answers, done, bad = Counter[str](), Counter[str](), [one for part in parts for one in part.bad]
    for part in parts:
        answers += part.answers
        done += part.done
    failures = [(end, count) for end, count in sorted(answers.items()) if end != "OK"]
    failures += [(what, count) for what, count in sorted(done.items()) if ": " in what]
    failed = ", ".join(f"{count:,} × `{end}`" for end, count in failures) or "none"
    reloads = sum(count for what, count in done.items() if what.startswith("with "))
    drifts = ", ".join(f"{drift(part):+.1f} %" for part in parts)
    minutes = sum(part.minutes for part in parts)
    return [
        f"{minutes:.0f} minutes in {len(parts)} parts: {answers.total():,} answers over HTTP,",
        f"half of them streamed, {answers['OK']:,} good. Failures, each told with its label: {failed}.",
        f"Meanwhile {done['writes']:,} writes, {done['reads']:,} searches, {done['revocations']:,} revocations,",
        f"{reloads} reloads, {done['runs of sync']} `passages sync` killed, {done['kills']} nodes killed.",
        f"**{len(bad)} hidden versions, failures without a label, or streams without an end.**",
        f"Memory of both workers after the first hour of a part, else in its second half: {drifts}.",
    ]


def draw(parts: Sequence[Part], file: Path) -> None:
    """Draw the memory and the answers of all parts, one after the other, with the kills."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (memory, answers) = plt.subplots(2, 1, figsize=(9, 5), sharex=True, layout="constrained")
    begun = 0.0
    for part in parts:
        minutes = [begun + row[0] / 60 for row in part.samples]
        memory.plot(minutes, [row[1] for row in part.samples], color="tab:blue")
        answers.plot(minutes, [row[2] for row in part.samples], color="tab:green")
        kills = [
            at for at, row, last in zip(minutes[1:], part.samples[1:], part.samples, strict=False) if row[3] > last[3]
        ]
        for axis in (memory, answers):
            axis.axvline(begun, color="lightgrey")
            for at in kills:
                axis.axvline(at, color="tab:red", linestyle=":")
        begun += part.minutes
    memory.set_ylabel("memory of both workers, MiB")
    memory.set_ylim(0, 1.2 * max(row[1] for part in parts for row in part.samples))
    answers.set_ylabel("answers in this part")
    answers.set_xlabel("minutes (grey: a part begins; red: a node is killed)")
    figure.savefig(file, dpi=100)


def main() -> int:
    """Run one more part, and tell what all of them came to."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[1])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--kill-minutes", type=float, default=20.0, help="a node is killed every so many minutes")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two questions of one client")
    parser.add_argument("--write", action="store_true", help="put lines and picture into docs/sizing.md")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(file.stem.removeprefix("part-")) for file in FOLDER.glob("part-*.json")), default=-1)
    if options.minutes:
        part = Part(seed=1_000 + number)
        run(part, options.minutes, options.kill_minutes * 60, options.pause)
        (FOLDER / f"part-{number:03}.json").write_text(json.dumps(vars(part), indent=1), encoding="utf-8")
    parts = [
        Part(**{**kept, "answers": Counter(kept["answers"]), "done": Counter(kept["done"])})
        for kept in (json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("part-*.json")))
    ]
    lines = told(parts)
    sys.stdout.write("\n".join([*lines, *(one for part in parts for one in part.bad)]) + "\n")
    if options.write:
        write_page(lines, PAGE, marks=MARKS)
        draw(parts, PICTURE)
    return int(any(part.bad for part in parts))


if __name__ == "__main__":
    sys.exit(main())
