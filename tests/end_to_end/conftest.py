"""One SolrCloud of two nodes for all files that need one: its three programs take a quarter of a minute to start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import requests

from datafari_rag.adapters.solr.factory import writer_for
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.process import COLLECTION, Running
from tests.real_solr import running
from tests.settings import settings_with

Fill = Callable[[Sequence[Mapping[str, object]]], Running]


@pytest.fixture(scope="session")
def cloud_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the cloud, which runs as long as the session."""
    folder = tmp_path_factory.mktemp("cloud")
    with running(folder, nodes=2):
        yield folder


@pytest.fixture(scope="session")
def fill_cloud(cloud_folder: Path) -> Fill:
    """Make documents all that the cloud holds, and return it, whole: a node that is down is started again."""

    def fill(documents: Sequence[Mapping[str, object]]) -> Running:
        cloud = solr_process.started(cloud_folder, nodes=2, owner=os.getpid())
        node = next(process for process in cloud.processes if process.role.startswith("node"))
        update = f"http://127.0.0.1:{node.port}/solr/{COLLECTION}/update"
        requests.post(update, json={"delete": {"query": "*:*"}}, timeout=60).raise_for_status()
        writer = writer_for(settings_with(solr_url=cloud.url))
        writer.add(documents)
        writer.commit()
        writer.close()
        return cloud

    return fill
