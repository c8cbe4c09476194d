"""
A real SolrCloud with nodes that are killed under load: callers do not notice one; the loss of all is reported.

Two nodes, two shards of two replicas each. What each kill cost is printed.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from datafari_rag.adapters.http import Client, Reply, Request
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.adapters.solr.zookeeper import FRESH_S
from datafari_rag.core.access import User, filter_for
from datafari_rag.core.errors import SearchError, SearchUnavailable
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.core.settings.table import SolrLimits
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.process import CONFIG_SET, Process, Running
from tests.end_to_end.conftest import Fill
from tests.end_to_end.matrix import Record, tell
from tests.end_to_end.processes import Running as Service
from tests.end_to_end.processes import service
from tests.settings import settings_with
from tests.support.waiting import until

pytestmark = [pytest.mark.solr, pytest.mark.cloud, pytest.mark.slow]

PUMP = Search("pump", Step("asked", ("pump",)), 100)
STAFF = filter_for(User("ann", frozenset({"staff"})), mode="tokens", anonymous="public")
DOCUMENTS = 40
PATIENCE_S, SOON_S = 60.0, 5.0
"""How long a busy machine may take where a killed node refuses at once, and where one comes up and may hang."""

LIMITS = {"solr.limits.wait_s": f"{PATIENCE_S:g}"}
CALLERS, PAUSE_S, DENSE_S = 4, 0.1, 0.02
"""Callers at the same time, and their pause: without one they would take the cores on which a node has to come up."""
ASK = "/search/select?action=rag&q=What+does+the+pump+need"


@pytest.fixture(scope="module")
def folder(cloud_folder: Path) -> Iterator[Path]:
    yield cloud_folder
    # No later file needs its three programs, and who does starts them again.
    solr_process.stopped(cloud_folder)


@pytest.fixture(scope="module")
def cloud(folder: Path, fill_cloud: Fill) -> Running:
    found = fill_cloud(documents())
    wait_until_whole(folder)
    return found


def documents() -> list[dict[str, str]]:
    text = "The pump needs oil every spring. "
    return [
        {"id": f"d{number:02}", "exactContent": text * (1 + number % 7) + f"word{number}", "language": "en"}
        for number in range(DOCUMENTS)
    ]


def _fill(url: str) -> None:
    writer = writer_for(settings_with(solr_url=url))
    writer.add(documents())
    writer.commit()
    writer.close()


@dataclass
class Load:
    """What callers saw who ask without a pause: how long each took, how often one request was sent, what failed."""

    took_s: list[float] = field(default_factory=list)
    tries: Counter[int] = field(default_factory=Counter)
    totals: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    good_at: list[float] = field(default_factory=list)
    why: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        again = sum(count for tries, count in self.tries.items() if tries > 1)
        tries = f", {again} asked a second time, none more than {max(self.tries)} times" if self.tries else ""
        return f"{len(self.took_s)} searches, {len(self.failures)} failed{tries}, slowest {max(self.took_s):.2f} s"


@contextmanager
def loaded(ask: Callable[[Load], None], *, pause_s: float = PAUSE_S) -> Iterator[Load]:
    """Let callers *ask* over and over as long as the block, each with a pause of *pause_s*."""
    load, is_over = Load(), threading.Event()

    def caller() -> None:
        while not is_over.is_set():
            began = time.monotonic()
            try:
                ask(load)
                load.good_at.append(time.monotonic())
            except SearchError as error:
                load.failures.append(error.label)
                load.why[error.log] += 1
                is_over.wait(0.05)
            load.took_s.append(time.monotonic() - began)
            is_over.wait(pause_s)

    threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        is_over.set()
        for thread in threads:
            thread.join(60)


@dataclass
class Counted:
    """A retriever that counts how often each request of a search is sent, to whichever node."""

    retriever: SolrRetriever
    sent: threading.local

    def __call__(self, load: Load) -> None:
        self.sent.requests = Counter()
        load.totals[self.retriever.search(PUMP, STAFF).total] += 1
        load.tries[max(self.sent.requests.values())] += 1


@contextmanager
def counted(url: str, *, wait_s: float = PATIENCE_S) -> Iterator[Counted]:
    sent = threading.local()
    sent.requests = Counter()

    class Noting(Client):
        def open(self, request: Request) -> Reply:
            sent.requests[urlsplit(request.url).path, request.body] += 1
            return super().open(request)

    limits = settings_with(solr_url=url, solr_limits=SolrLimits(wait_s=wait_s))
    retriever = retriever_for(limits, machine=replace(MACHINE, client=Noting))
    try:
        retriever.search(PUMP, STAFF)  # the collection's description is asked for once
        yield Counted(retriever, sent)
    finally:
        retriever.close()


def nodes_of(folder: Path) -> list[Process]:
    running = json.loads((folder / "running.json").read_text())["processes"]
    return [Process(**one) for one in running if one["role"].startswith("node")]


def cluster(node: Process) -> Mapping[str, Any]:
    """Return what *node* knows of the cluster."""
    found = requests.get(f"http://127.0.0.1:{node.port}/solr/admin/collections?action=CLUSTERSTATUS", timeout=30)
    known: Mapping[str, Any] = found.json()["cluster"]
    return known


def wait_until_whole(folder: Path) -> None:
    """Wait until every replica of every collection is active, on a node that lives, and answers by itself."""
    until(lambda: all(_is_whole(node) for node in nodes_of(folder)))


def _is_whole(node: Process) -> bool:
    try:
        known = cluster(node)
        replicas = [
            replica
            for collection in known["collections"].values()
            for shard in collection["shards"].values()
            for replica in shard["replicas"].values()
        ]
        return all(
            one["state"] == "active"
            and one["node_name"] in known["live_nodes"]
            and requests.get(f"{one['base_url']}/{one['core']}/select?q=*:*&distrib=false", timeout=30).ok
            for one in replicas
        )
    except (requests.RequestException, KeyError, ValueError):
        return False


def wait_until_missed(folder: Path, dead: Process) -> None:
    """Wait until the others know that *dead* is gone: until then its replicas count as active and it as alive."""
    other = next(node for node in nodes_of(folder) if node != dead)
    until(lambda: not any(f":{dead.port}_" in name for name in cluster(other)["live_nodes"]))


def asks(found: Service) -> Callable[[Load], None]:
    """Return what lets a caller ask a service and raises where it refuses."""

    def ask(load: Load) -> None:
        reply = requests.get(f"{found.url}{ASK}", timeout=2 * PATIENCE_S)
        if reply.status_code != 200:
            raise SearchUnavailable(log=reply.text)

    return ask


ONE_KILL = pytest.param("1 kill", 1, PAUSE_S, id="one kill")
FIRST, *AGAIN = (pytest.param(f"10 kills, run {run} of 3", 10, DENSE_S, id=f"ten, {run}") for run in (1, 2, 3))
# `.ci/measure faults` runs them all.
RUNS = [FIRST, *(pytest.param(*run.values, id=run.id, marks=pytest.mark.trials) for run in AGAIN)]


MORE = 10


def some_more(load: Load) -> None:
    """Return when some more searches have been answered."""
    so_far = len(load.good_at)
    until(lambda: len(load.good_at) > so_far + MORE)


@pytest.mark.parametrize(("name", "kills", "pause_s"), [ONE_KILL, *RUNS])
def test_nodes_killed_in_turn_under_load_fail_no_request_of_searchers_and_of_the_service(
    folder: Path, cloud: Running, tmp_path: Path, name: str, kills: int, pause_s: float, record_property: Record
) -> None:
    """They come back under the same load, which must not be noticed either."""
    settings = {
        "solr.url": cloud.url,
        "rag.api.endpoint": "builtin:extractive",
        "rag.reply.http_errors": "true",
        **LIMITS,
    }
    ready: list[int] = []
    with (
        service(tmp_path, settings) as found,
        counted(cloud.url) as ask,
        loaded(ask, pause_s=pause_s) as load,
        loaded(asks(found), pause_s=pause_s) as answers,
    ):
        for number in range(kills):
            some_more(load)
            victim = nodes_of(folder)[number % 2]
            solr_process.signalled(victim, how=signal.SIGKILL)
            # Before the others know of it, and after.
            ready.append(found.get("/health/ready").status_code)
            wait_until_missed(folder, victim)
            ready.append(found.get("/health/ready").status_code)
            solr_process.revived(folder, owner=os.getpid())
            wait_until_whole(folder)
    fault = f"SolrCloud: {name}, of one of two nodes in turn, under load"
    tell(record_property, fault, str(load), then="they came back under the same load")
    asked = f"SolrCloud: {'a node killed' if kills == 1 else name}, the service asked"
    tell(record_property, asked, str(answers), then=f"readiness HTTP {', '.join(map(str, sorted(set(ready))))}")

    assert load.failures == [], load.why
    assert set(load.totals) == {DOCUMENTS}
    assert max(load.tries) <= 2
    assert answers.failures == [], answers.why
    assert len(answers.good_at) > kills
    assert set(ready) == {200}


def test_with_all_nodes_gone_each_request_says_so_and_the_first_one_after_is_good(
    folder: Path, cloud: Running, record_property: Record
) -> None:
    with counted(cloud.url, wait_s=SOON_S) as ask, loaded(ask) as load:
        some_more(load)
        killed_at = time.monotonic()
        for node in nodes_of(folder):
            solr_process.signalled(node, how=signal.SIGKILL)
        until(lambda: len(load.failures) > MORE)
        named = set(load.failures)
        assert ask.retriever.probe() is not None
        solr_process.revived(folder, owner=os.getpid())
        back_at = time.monotonic()
        until(lambda: any(at > back_at for at in load.good_at))
        first_s = min(at for at in load.good_at if at > back_at) - back_at
    wait_until_whole(folder)
    saw = f"{len(load.failures)} searches failed, the slowest after {max(load.took_s):.2f} s"
    then = f"good again {first_s:.2f} s after the nodes were back"
    tell(record_property, "SolrCloud: all nodes gone", saw, label="searchUnavailable", then=then)

    # While they come up they take connections and may not answer in time.
    assert named == {"searchUnavailable"}
    assert set(load.failures) <= {"searchUnavailable", "searchTimeout"}
    assert min(at for at in load.good_at) < killed_at


@pytest.fixture
def thin(folder: Path, cloud: Running) -> Iterator[str]:
    """Make a collection whose shards have one replica each, one on each node; return its address."""
    admin = f"http://127.0.0.1:{nodes_of(folder)[0].port}/solr/admin/collections"
    named = {"name": "thin", "collection.configName": CONFIG_SET, "numShards": "2", "replicationFactor": "1"}
    made = requests.get(admin, params={"action": "CREATE", **named}, timeout=120)
    assert made.status_code == 200, made.text
    url = cloud.url.rpartition("#")[0] + "#thin"
    _fill(url)
    yield url
    requests.get(admin, params={"action": "DELETE", "name": "thin"}, timeout=120)


def test_a_missing_shard_is_an_error_or_said_in_the_answer_as_the_settings_have_it(
    folder: Path, thin: str, tmp_path: Path, record_property: Record
) -> None:
    settings = {"solr.url": thin, "rag.api.endpoint": "builtin:extractive", "rag.reply.http_errors": "true", **LIMITS}
    strict = retriever_for(settings_with(solr_url=thin, solr_limits=SolrLimits(wait_s=PATIENCE_S)))
    tolerant = retriever_for(
        settings_with(solr_url=thin, solr_limits=SolrLimits(wait_s=PATIENCE_S), solr_shards_tolerant=True)
    )
    assert [engine.search(PUMP, STAFF).total for engine in (strict, tolerant)] == [DOCUMENTS] * 2
    assert not tolerant.search(PUMP, STAFF).is_partial

    solr_process.signalled(nodes_of(folder)[1], how=signal.SIGKILL)
    try:
        for _ in range(3):
            with pytest.raises(SearchUnavailable):
                strict.search(PUMP, STAFF)
            found = tolerant.search(PUMP, STAFF)
            assert found.is_partial
            assert 0 < found.total < DOCUMENTS
        page = tolerant.browse(Browse("pump", rows=0), STAFF)
        assert page["responseHeader"]["partialResults"] is True  # type: ignore[index]
        with service(tmp_path, settings | {"solr.shards.tolerant": "true"}) as answering:
            reply = answering.get(ASK).json()
            assert (reply["status"], reply["content"]["partial_results"]) == ("OK", True)
        with service(tmp_path, settings) as refusing:
            reply = refusing.get(ASK).json()
            label = reply["content"]["error"]["label"]
            assert label == "searchUnavailable"
        tell(record_property, "SolrCloud: a shard missing", "HTTP 502", label=label)
        tell(record_property, "SolrCloud: a shard missing, solr.shards.tolerant", "HTTP 200 with partial_results")
    finally:
        solr_process.revived(folder, owner=os.getpid())
        wait_until_whole(folder)
    assert strict.search(PUMP, STAFF).total == DOCUMENTS
    assert not tolerant.search(PUMP, STAFF).is_partial
    strict.close()
    tolerant.close()


def test_searches_go_on_while_zookeeper_is_away(folder: Path, cloud: Running) -> None:
    retriever = retriever_for(settings_with(solr_url=cloud.url, solr_limits=SolrLimits(wait_s=PATIENCE_S)))
    assert retriever.search(PUMP, STAFF).total == DOCUMENTS
    keeper = next(process for process in cloud.processes if process.role == "zookeeper")
    solr_process.signalled(keeper, how=signal.SIGSTOP)
    try:
        # Longer than a list of nodes is believed, shorter than Solr itself waits for its ZooKeeper.
        time.sleep(FRESH_S + 0.2)
        assert [retriever.search(PUMP, STAFF).total for _ in range(5)] == [DOCUMENTS] * 5
    finally:
        solr_process.signalled(keeper, how=signal.SIGCONT)
        retriever.close()
        # Nodes may find long after this that their session with ZooKeeper has expired: the next test gets new ones.
        until(lambda: not any(solr_process.signalled(node) for node in nodes_of(folder)))
        solr_process.revived(folder, owner=os.getpid())
        wait_until_whole(folder)
