"""A real SolrCloud: two nodes, two shards of two replicas each, found by its ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from datafari_rag.adapters.solr.factory import retriever_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.core.access import User, filter_for
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.core.settings.table import SolrLimits
from datafari_rag_trials.solr.process import Running
from tests.end_to_end.conftest import Fill
from tests.settings import settings_with

pytestmark = [pytest.mark.solr, pytest.mark.cloud, pytest.mark.slow]

PUMP = Search("pump", Step("asked", ("pump",)), 100)
PUBLIC = filter_for(User(), mode="tokens", anonymous="public")
STAFF = filter_for(User("ann", frozenset({"staff"})), mode="tokens", anonymous="public")


@pytest.fixture(scope="module")
def cloud(fill_cloud: Fill) -> Running:
    return fill_cloud(
        [
            {"id": f"d{number:02}", "exactContent": "pump " * (1 + number % 7) + f"word{number}", "language": "en"}
            | ({"allow_token_document": ["staff"]} if number % 2 else {})
            for number in range(40)
        ]
    )


@pytest.fixture
def retriever(cloud: Running) -> Iterator[SolrRetriever]:
    engine = retriever_for(settings_with(solr_url=cloud.url, solr_limits=SolrLimits(wait_s=5.0)))
    yield engine
    engine.close()


def test_all_shards_are_searched_and_rights_hold_on_each(retriever: SolrRetriever) -> None:
    assert retriever.search(PUMP, PUBLIC).total == 20
    assert retriever.search(PUMP, STAFF).total == 40
    page = retriever.browse(Browse("pump", rows=0, facet_fields=("language",)), PUBLIC)
    assert page["facet_counts"]["facet_fields"]["language"] == ["en", 20]  # type: ignore[index]
    assert retriever.fetch("d01", "exactContent", PUBLIC) is None
    assert retriever.fetch("d01", "exactContent", STAFF) is not None


def test_snippets_and_pages_come_in_one_pass_from_all_shards(retriever: SolrRetriever) -> None:
    found = retriever.search(replace(PUMP, content="highlighting"), STAFF)
    assert len(found.documents) == 40
    assert all("pump" in one.text for one in found.documents)
    page = retriever.browse(Browse("pump", rows=50, wants_highlighting=True), STAFF)
    ids = [row["id"] for row in page["response"]["docs"]]  # type: ignore[index] # Solr's own shape
    assert len(ids) == len(set(ids)) == 40
    assert set(page["highlighting"]) == set(ids)  # type: ignore[call-overload] # as above


def test_the_same_question_finds_the_same_documents_whichever_node_answers(retriever: SolrRetriever) -> None:
    answers = {tuple((d.id, round(d.score, 4)) for d in retriever.search(PUMP, STAFF).documents) for _ in range(12)}

    assert len(answers) == 1


def test_the_documents_are_ranked_as_on_one_node(retriever: SolrRetriever) -> None:
    scores: dict[int, set[float]] = {}
    for document in retriever.search(PUMP, STAFF).documents:
        scores.setdefault(document.text.count("pump"), set()).add(round(document.score, 4))

    # The same words weigh the same on both shards: statistics are those of the whole collection.
    assert all(len(found) == 1 for found in scores.values())
