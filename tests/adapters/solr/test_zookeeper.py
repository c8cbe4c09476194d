from __future__ import annotations

import json
import socket

import pytest

from datafari_rag.adapters.solr.zookeeper import CloudAddresses, Ensemble, _hosts, ensemble_of
from datafari_rag.core.errors import SearchUnavailable


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
        addresses.current()
    addresses.close()

    assert caught.value.log == "ZooKeeper: KazooTimeoutError"


def test_only_nodes_with_an_active_part_hold_the_collection() -> None:
    state = json.loads(
        """{"shards": {"s1": {"replicas": {"r1": {"node_name": "a:1_solr", "state": "active"},
            "r2": {"node_name": "b:1_solr", "state": "down"}}}, "s2": {"replicas": {}}}}"""
    )

    assert _hosts(state) == {"a:1_solr"}
    assert _hosts(None) == frozenset()
