"""One very long document in a real Solr. What a Solr that pauses, dies or comes back does is in test_faults.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.search_request import Search, Step
from datafari_rag.core.settings.table import SolrLimits
from tests.real_solr import Collection
from tests.settings import settings_with

pytestmark = pytest.mark.solr

ACCESS = filter_for(ANONYMOUS, mode="tokens", anonymous="public")
PUMP = Search("pump", Step("asked", ("pump",)), 5)
LONG = "Nothing of the kind stands here. " * 300_000 + "At last there is a pump. " + "Nothing more. " * 1000


@pytest.fixture
def retriever(solr_collection: Collection) -> Iterator[SolrRetriever]:
    solr_collection.load([])
    # The product's own writer, which waits as long as ten million characters take.
    writer = writer_for(solr_collection.settings)
    writer.add([{"id": "long", "exactContent": LONG, "language": "en"}])
    writer.commit()
    writer.close()
    engine = retriever_for(
        settings_with(solr_url=solr_collection.settings.solr.url, solr_limits=SolrLimits(wait_s=20.0))
    )
    yield engine
    engine.close()
    solr_collection.load([])


def test_a_document_of_ten_million_characters_comes_whole_and_is_cut_where_its_words_are(
    retriever: SolrRetriever,
) -> None:
    (whole,) = retriever.search(PUMP, ACCESS).documents
    snippet = Search("pump", PUMP.step, 5, content="highlighting", fragment_chars=100)
    (cut,) = retriever.search(snippet, ACCESS).documents

    assert whole.text == LONG
    assert "there is a pump" in cut.text
    assert len(cut.text) < 1000
