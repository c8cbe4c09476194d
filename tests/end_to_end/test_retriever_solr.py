"""The port suite of retrievers on a real Solr."""

from __future__ import annotations

import pytest

from datafari_rag.ports import Retriever
from tests.adapters.retriever_suite import *  # noqa: F403
from tests.adapters.retriever_suite import Load
from tests.real_solr import Collection

pytestmark = pytest.mark.solr


@pytest.fixture
def retriever(solr_collection: Collection) -> Retriever:
    return solr_collection.retriever


@pytest.fixture
def load(solr_collection: Collection) -> Load:
    return solr_collection.load
