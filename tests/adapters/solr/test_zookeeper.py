from __future__ import annotations

import gc
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from datafari_rag.adapters.settings.file import SettingsFile
from datafari_rag.adapters.solr.zookeeper import CloudAddresses, Ensemble, _hosts, ensemble_of
from datafari_rag.bootstrap import Runtime
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.search_request import Browse
from datafari_rag.web.user import Signer
from tests.support.waiting import HANGS_S


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("zookeeper://h:2181#docs", Ensemble("h:2181", "", "docs")),
        ("zookeeper://h1:2181,h2:2181/solr#FileShare", Ensemble("h1:2181,h2:2181", "/solr", "FileShare")),
        ("zookeeper://h1,h2/a/b/#x-1.y", Ensemble("h1,h2", "/a/b", "x-1.y")),
    ],
)
def test_an_address_names_hosts_chroot_and_collection(address: str, wanted: Ensemble) -> None:
    assert ensemble_of(address) == wanted


@pytest.mark.parametrize("address", ["zookeeper://h:2181", "zookeeper://#x", "http://h#x", "zookeeper://h#a/b", ""])
def test_another_form_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        ensemble_of(address)


def test_a_zookeeper_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    addresses = CloudAddresses(Ensemble(f"127.0.0.1:{port}", "", "docs"), timeout_s=0.3)

    with pytest.raises(SearchUnavailable) as caught:
        addresses(False)
    addresses.close()

    assert caught.value.log == "ZooKeeper: no answer in time"


def test_only_nodes_with_an_active_part_hold_the_collection() -> None:
    state = json.loads(
        """{"shards": {"s1": {"replicas": {"r1": {"node_name": "a:1_solr", "state": "active"},
            "r2": {"node_name": "b:1_solr", "state": "down"}}}, "s2": {"replicas": {}}}}"""
    )

    assert _hosts(state) == {"a:1_solr"}
    assert _hosts(None) == frozenset()


CLOSE = struct.pack(">i", -11)
"""The type of the request by which a client closes its session."""


class ZooKeeper:
    """Greets a client and says nothing more; *is_left* is set when the client closes its session."""

    def __init__(self, port: int) -> None:
        self.port, self.is_met, self.is_left = port, threading.Event(), threading.Event()


@contextmanager
def zookeeper() -> Iterator[ZooKeeper]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = ZooKeeper(server.getsockname()[1])

        def greet() -> None:
            caller, _ = server.accept()
            with caller:
                caller.settimeout(HANGS_S)
                caller.recv(1000)
                caller.sendall(struct.pack(">iiiqi16s?", 37, 0, 10_000, 1, 16, b"p" * 16, False))
                found.is_met.set()
                while not found.is_left.is_set() and (data := caller.recv(1000)):
                    if CLOSE in data:
                        found.is_left.set()

        threading.Thread(target=greet, daemon=True).start()
        yield found


def test_a_reload_that_replaces_the_search_engine_ends_its_connection_to_zookeeper(tmp_path: Path) -> None:
    conf = tmp_path / "rag.properties"
    with zookeeper() as keeper:
        address = f"zookeeper://127.0.0.1:{keeper.port}#docs"
        conf.write_text(f"solr.url={address}\nsolr.limits.wait_s=11\n", encoding="utf-8")
        file = SettingsFile(conf)
        house = Runtime(file, Signer())
        access = filter_for(ANONYMOUS, mode="none", anonymous="public")
        with pytest.raises(SearchUnavailable):
            house.snapshot().dependencies.retriever.browse(Browse("x"), access)
        assert keeper.is_met.is_set() and not keeper.is_left.is_set()

        conf.write_text(f"solr.url={address}\nsolr.limits.wait_s=12\n", encoding="utf-8")
        file.reload()
        house.snapshot()
        # The failed search above holds its own frames in a circle.
        gc.collect()

        assert keeper.is_left.wait(HANGS_S)
