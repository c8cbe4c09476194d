"""A real Solr that pauses, dies and comes back, and one very long document: what the retriever makes of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.errors import SearchError, SearchTimeout, SearchUnavailable
from datafari_rag.core.query.search_request import Search, Step
from datafari_rag.core.settings.table import Settings
from datafari_rag.devtools import solr_process
from datafari_rag.devtools.solr_process import Running
from tests.real_solr import running

pytestmark = pytest.mark.solr

ACCESS = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
PUMP = Search("pump", Step("asked", ("pump",)), 5)
LONG = "Nothing of the kind stands here. " * 300_000 + "At last there is a pump. " + "Nothing more. " * 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("solr")


@pytest.fixture(scope="module")
def solr(folder: Path) -> Iterator[Running]:
    with running(folder) as started:
        writer = writer_for(Settings(solr_url=started.url))
        writer.add([{"id": "long", "exactContent": LONG, "language": "en"}])
        writer.commit()
        writer.close()
        yield started


@pytest.fixture
def retriever(solr: Running) -> Iterator[SolrRetriever]:
    engine = retriever_for(Settings(solr_url=solr.url, solr_timeout_s=20.0))
    yield engine
    engine.close()


def found_at_last(retriever: SolrRetriever) -> None:
    limit = time.monotonic() + 60
    while True:
        try:
            retriever.search(PUMP, ACCESS)
        except SearchError:
            assert time.monotonic() < limit
            time.sleep(0.2)
        else:
            return


def test_a_document_of_ten_million_characters_comes_whole_and_is_cut_where_its_words_are(
    retriever: SolrRetriever,
) -> None:
    (whole,) = retriever.search(PUMP, ACCESS).documents
    snippet = Search("pump", PUMP.step, 5, content="highlighting", fragment_chars=100)
    (cut,) = retriever.search(snippet, ACCESS).documents

    assert whole.text == LONG
    assert "there is a pump" in cut.text
    assert len(cut.text) < 1000


def test_a_paused_solr_is_a_time_out_and_comes_back_by_itself(solr: Running) -> None:
    retriever = retriever_for(Settings(solr_url=solr.url, solr_timeout_s=1.0))
    found_at_last(retriever)
    (process,) = solr.processes
    try:
        assert solr_process.signalled(process, how=signal.SIGSTOP)
        with pytest.raises(SearchTimeout):
            retriever.search(PUMP, ACCESS)
        assert "no answer in time" in (retriever.probe() or "")
    finally:
        os.kill(process.pid, signal.SIGCONT)

    found_at_last(retriever)
    retriever.close()


def test_a_dead_solr_is_unavailable_and_found_again_when_it_is_started_again(
    folder: Path, solr: Running, retriever: SolrRetriever
) -> None:
    found_at_last(retriever)
    assert solr_process.signalled(solr.processes[0])
    with pytest.raises(SearchUnavailable):
        retriever.search(PUMP, ACCESS)
    assert retriever.probe() is not None

    again = solr_process.started(folder, owner=os.getpid())

    assert again.url == solr.url
    assert len(retriever.search(PUMP, ACCESS).documents) == 1
