"""The port suite of retrievers on a real Solr."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.solr.factory import retriever_for
from datafari_rag.ports import Retriever
from tests.adapters.retriever_suite import *  # noqa: F403
from tests.adapters.retriever_suite import Load
from tests.real_solr import Collection
from tests.settings import settings_with

pytestmark = pytest.mark.solr


@pytest.fixture
def retriever(solr_collection: Collection) -> Retriever:
    return solr_collection.retriever


@pytest.fixture
def load(solr_collection: Collection) -> Load:
    return solr_collection.load


@pytest.mark.parametrize("name", ["body", "author"])
def test_a_mapped_field_that_no_document_has_is_named(solr_collection: Collection, load: Load, name: str) -> None:
    load([{"id": "a", "exactContent": "The ferry leaves at nine.", "allow_token_document": ["__nosecurity__"]}])
    mapped = settings_with(solr_collection.settings, solr_fields={"exactContent": name, "content_prefix": ""})

    assert solr_collection.retriever.probe() is None
    assert retriever_for(mapped).probe() == (
        f"No document has a text in the field {name}: set exactContent in solr.fields."
    )
