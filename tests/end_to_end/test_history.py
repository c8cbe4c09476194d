"""
A real SolrCloud whose rights change and whose documents go while readers ask and nodes are killed or paused.

No user ever sees a version that its rights hide from them. A version that was replaced and visible before they asked,
or a deleted document, is seen by no user, and nothing that they may see is lost, except while a killed or paused node
comes back: then Solr may answer from the state of before. `.ci/measure history` runs it for half an hour, keeps all of
it, and prints a summary.
"""

from __future__ import annotations

import json
import os
import platform
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.core.access import User, filter_for
from datafari_rag.core.errors import SearchError
from datafari_rag.core.search_request import Search, Step
from datafari_rag.core.settings.table import SolrLimits
from datafari_rag_trials.solr import process as solr_process
from tests.end_to_end.history import Anomaly, Read, Write, anomalies, rows, unexcused
from tests.end_to_end.matrix import Record, tell
from tests.end_to_end.test_solr_cloud_killed import nodes_of, wait_until_missed, wait_until_whole
from tests.real_solr import running
from tests.settings import settings_with

MINUTES = float(os.environ.get("HISTORY_MINUTES", "1"))
PLACE = os.environ.get("HISTORY_FILE", "")
"""Where the history is kept; empty: beside the test's other files."""
"""The page that gets the summary; empty: none."""
TOKENS = ("red", "green", "blue")
DOCUMENTS, WRITERS = 40, 2
ALL = Search("pump", Step("asked", ("pump",)), DOCUMENTS + 10)
PAUSED_S, BETWEEN_S = 4.0, 8.0

W1 = Write("d", 1, ("red",), 0.0, 1.0)
READ = Read("red", 10.0, 11.0, {"d": 1})


def write(version: int, allowed: tuple[str, ...] | None, sent_s: float, acked_s: float | None) -> Write:
    return Write("d", version, allowed, sent_s, acked_s)


def read(seen: dict[str, int], token: str = "red") -> Read:
    return Read(token, 10.0, 11.0, seen)


CASES: dict[str, tuple[list[Write], Read, list[str]]] = {
    "what is there": ([W1], read({"d": 1}), []),
    "for others": ([W1], read({}, "blue"), []),
    "hidden": ([W1], read({"d": 1}, "blue"), ["hidden"]),
    "lost": ([W1], read({}), ["lost"]),
    "too old": ([W1, write(2, ("red",), 2.0, 3.0)], read({"d": 1}), ["too old"]),
    "deleted": ([W1, write(2, None, 2.0, 3.0)], read({"d": 1}), ["deleted"]),
    "of a deletion": ([W1, write(2, None, 2.0, 3.0)], read({"d": 2}), ["of a deletion"]),
    "never written": ([W1], read({"d": 7}), ["never written"]),
    "written after the read": ([W1, write(2, ("red",), 12.0, 13.0)], read({"d": 2}), ["never written"]),
    "an unknown document": ([], read({"x": 1}), ["never written"]),
    "old or new while a write is open": ([W1, write(2, ("red",), 9.0, 12.0)], read({"d": 1}), []),
    "new while a write is open": ([W1, write(2, ("red",), 9.0, 12.0)], read({"d": 2}), []),
    "gone while a deletion is open": ([W1, write(2, None, 9.0, 12.0)], read({}), []),
    "still there while a deletion is open": ([W1, write(2, None, 9.0, 12.0)], read({"d": 1}), []),
    "hidden by an open write": ([W1, write(2, ("blue",), 9.0, None)], read({}), []),
    "a failed write may have worked": ([W1, write(2, None, 2.0, None)], read({}), []),
    "a failed write may not have worked": ([W1, write(2, None, 2.0, None)], read({"d": 1}), []),
    "a failed write is over with the next": (
        [W1, write(2, None, 2.0, None), write(3, ("red",), 4.0, 5.0)], read({"d": 1}), ["too old"]),
    "lost though a write is open that gives the same right": (
        [W1, write(2, ("red", "blue"), 9.0, 12.0)], read({}), ["lost"]),
    "not there before the first write was acknowledged": ([write(1, ("red",), 9.0, 12.0)], read({}), []),
}  # fmt: skip


@pytest.mark.parametrize(("writes", "seen", "kinds"), CASES.values(), ids=CASES.keys())
def test_the_checker_finds_what_cannot_be_and_nothing_else(writes: list[Write], seen: Read, kinds: list[str]) -> None:
    assert [one.kind for one in anomalies(writes, [seen])] == kinds


@pytest.mark.parametrize(
    ("kind", "span", "is_excused"),
    [("too old", (9.0, 10.5), True), ("deleted", (10.5, 30.0), True), ("lost", (0.0, 9.0), False),
     ("too old", (12.0, 13.0), False), ("hidden", (0.0, 30.0), False), ("never written", (0.0, 30.0), False)],
)  # fmt: skip
def test_a_fault_explains_an_old_answer_and_never_a_hidden_one(
    kind: str, span: tuple[float, float], is_excused: bool
) -> None:
    assert unexcused([Anomaly(kind, "d", 1, READ)], [span]) == ([] if is_excused else [Anomaly(kind, "d", 1, READ)])


def test_the_summary_counts_what_was_done_what_failed_and_what_is_left() -> None:
    history = History(5, [W1], [READ, read({"d": 1, "e": 2})])
    history.faults.update(killed=2)
    history.failed.update({"read: searchTimeout": 3})
    late, hidden = Anomaly("too old", "d", 1, READ), Anomaly("hidden", "d", 1, READ)
    said = " ".join(summary(history, [late, hidden], [hidden]))
    assert "1 writes of 40 documents" in said
    assert "2 reads by 3 readers, in which 3 versions were checked; nodes: 2 killed. **1 anomalies.**" in said
    assert "Failed requests: 3 × read: searchTimeout." in said
    assert said.endswith("came back: 1 too old.")


@dataclass
class History:
    """What happened so far, by the clock of this process."""

    seed: int
    writes: list[Write] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    spans: list[tuple[float, float]] = field(default_factory=list)
    """When each fault began, and when every replica was well again."""
    is_over: threading.Event = field(default_factory=threading.Event)
    pause_s: float = 0.05
    """Of each writer and reader after what it did."""

    def write_all(self, url: str, number: int) -> None:
        """Change the documents of one writer until it is over; a change that failed is made again."""
        rng, writer = random.Random(f"{self.seed} {number}"), writer_for(settings_with(solr_url=url))
        versions = {f"d{one:02}": 0 for one in range(DOCUMENTS) if one % WRITERS == number}
        while not self.is_over.wait(self.pause_s):
            document = rng.choice(sorted(versions))
            versions[document] += 1
            allowed = None if rng.random() < 0.2 else tuple(rng.sample(TOKENS, rng.randint(1, 2)))
            self.writes.append(self._written(writer, document, versions[document], allowed))

    def _written(self, writer: object, document: str, version: int, allowed: tuple[str, ...] | None) -> Write:
        sent_s, acked_s = time.monotonic(), None
        try:
            if allowed is None:
                writer.delete([document])  # type: ignore[attr-defined] # a `Writer`
            else:
                text = f"The pump of {document} has version{version}x."
                row = {"id": document, "exactContent": text, "language": "en", "allow_token_document": list(allowed)}
                writer.add([{**row, "deny_token_document": ["dead"]}])  # type: ignore[attr-defined]
            writer.commit()  # type: ignore[attr-defined]
            acked_s = time.monotonic()
        except SearchError as error:
            self.failed[f"write: {error.label}"] += 1
        return Write(document, version, allowed, sent_s, acked_s)

    def read_all(self, url: str, token: str) -> None:
        """Ask for everything with *token* until it is over."""
        access = filter_for(User("ann", frozenset({token})), mode="tokens", anonymous="public")
        retriever = retriever_for(settings_with(solr_url=url, solr_limits=SolrLimits(wait_s=5.0)))
        while not self.is_over.wait(self.pause_s):
            sent_s = time.monotonic()
            try:
                found = retriever.search(ALL, access)
            except SearchError as error:
                self.failed[f"read: {error.label}"] += 1
                continue
            if found.is_partial:
                self.failed["read: partial"] += 1
                continue
            # Half an hour has a hundred thousand answers: each name is kept once.
            seen = {sys.intern(one.id): int(re.findall(r"version(\d+)x", one.text)[0]) for one in found.documents}
            self.reads.append(Read(token, sent_s, time.monotonic(), seen))
        retriever.close()

    def break_nodes(self, folder: Path, until_s: float) -> None:
        """Kill or pause one of the nodes in turn, and wait until it is back, until *until_s*."""
        rng = random.Random(f"{self.seed} faults")
        while time.monotonic() < until_s:
            node, began_s = rng.choice(nodes_of(folder)), time.monotonic()
            if rng.random() < 0.5:
                self.faults["killed"] += 1
                solr_process.signalled(node, how=signal.SIGKILL)
                wait_until_missed(folder, node)
                solr_process.revived(folder, owner=os.getpid())
            else:
                self.faults["paused"] += 1
                solr_process.signalled(node, how=signal.SIGSTOP)
                time.sleep(PAUSED_S)
                solr_process.signalled(node, how=signal.SIGCONT)
            wait_until_whole(folder)
            self.spans.append((began_s, time.monotonic()))
            time.sleep(min(BETWEEN_S, max(0.0, until_s - time.monotonic())))


@contextmanager
def going(history: History, url: str) -> Iterator[None]:
    """Let writers and readers go on as long as the block."""
    writers = [threading.Thread(target=history.write_all, args=(url, number)) for number in range(WRITERS)]
    readers = [threading.Thread(target=history.read_all, args=(url, token)) for token in TOKENS]
    for one in (*writers, *readers):
        one.start()
    try:
        yield
    finally:
        history.is_over.set()
        for one in (*writers, *readers):
            one.join(120)


def kept(history: History, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    found = rows(history.writes, history.reads)
    place.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")


def summary(history: History, every: list[Anomaly], found: list[Anomaly]) -> list[str]:
    """Return the lines of the page: what was done, what failed, and what of *every* anomaly is left as *found*."""
    failed = ", ".join(f"{count} × {what}" for what, count in sorted(history.failed.items())) or "nothing"
    faults = ", ".join(f"{count:,} {what}" for what, count in sorted(history.faults.items()))
    before = Counter(one.kind for one in every) - Counter(one.kind for one in found)
    old = ", ".join(f"{count:,} {kind}" for kind, count in sorted(before.items())) or "none"
    where = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    seen = sum(len(one.seen) for one in history.reads)
    return [
        f"{MINUTES:g} minutes, seed {history.seed} ({where}):",
        f"{len(history.writes):,} writes of {DOCUMENTS} documents by {WRITERS} writers,",
        f"{len(history.reads):,} reads by {len(TOKENS)} readers, in which {seen:,} versions were checked;",
        f"nodes: {faults}. **{len(found)} anomalies.** Failed requests: {failed}.",
        f"Answers of the state of before while a node came back: {old}.",
    ]


@pytest.mark.slow
@pytest.mark.solr
@pytest.mark.cloud
def test_nobody_sees_what_its_rights_hide_while_rights_change_and_nodes_go(
    tmp_path: Path, record_property: Record
) -> None:
    history = History(seed=int(os.environ.get("HISTORY_SEED", "24")))
    with running(tmp_path / "solr", nodes=2) as cloud:
        with going(history, cloud.url):
            history.break_nodes(tmp_path / "solr", time.monotonic() + MINUTES * 60)
        wait_until_whole(tmp_path / "solr")
    place = Path(PLACE) if PLACE else tmp_path / "history.jsonl"
    kept(history, place)
    every = anomalies(history.writes, history.reads)
    found = unexcused(every, history.spans)
    lines = summary(history, every, found)
    said = " ".join(lines[1:]).replace("**", "")
    fault = f"SolrCloud: rights change for {MINUTES:g} minutes"
    tell(record_property, fault, said, then="nobody saw what was hidden from them")
    assert found == [], (said, place, Counter(one.kind for one in found), found[:3])
    assert len(history.reads) > 50
    assert history.faults.total() > 0
