"""The real Solr that several folders share, and who runs which test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gevent.monkey
import pytest
from hypothesis import HealthCheck, settings

from datafari_rag.commands.demo.index import build_demo_index
from tests.datafari_solr import put_datafari
from tests.real_solr import Collection, put_other_collection, running

# A slow machine is no fault of what is tested: an example may take as long as it takes, and so may its making.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("any machine")

pytest.register_assert_rewrite("tests.adapters.retriever_suite")

# Each prints a table at the end of the run. Here, since with several processes only this file is read by the one that
# prints.
pytest_plugins = (
    "tests.attack.report",
    "tests.clients.sights",
    "tests.end_to_end.matrix",
    "tests.missing",
    "tests.security.telling",
    "tests.sharing",
)


@pytest.fixture(scope="session")
def solr_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The value for solr.url of a real Solr with an empty collection; every test fills it again."""
    folder = tmp_path_factory.mktemp("solr")
    put_other_collection(folder)
    put_datafari(folder)
    with running(folder) as solr:
        yield solr.url


@pytest.fixture(scope="session")
def solr_collection(solr_url: str) -> Collection:
    """That Solr with the two verbs of the port suite."""
    return Collection(solr_url)


@pytest.fixture(scope="session")
def demo_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index of the demo's documents, for services that only read it."""
    place = tmp_path_factory.mktemp("demo") / "index"
    build_demo_index(place)
    return place


@pytest.fixture(autouse=True)
def _standard_library() -> Iterator[None]:
    """Fail the test that starts a server in this process: gevent's parts of the library would break later tests."""
    yield
    assert not gevent.monkey.is_module_patched("socket"), "start servers in a process of their own"
