"""The collection in Datafari's shape on two shards: what needs no change of its handler holds there as on one node."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import pytest
import requests

from datafari_rag.adapters.solr.factory import beside
from tests.datafari_solr import CONFIG_SET, DATAFARI
from tests.end_to_end.conftest import Fill
from tests.end_to_end.test_datafari import (
    DOCUMENTS,
    Datafari,
    engine,  # noqa: F401 - a fixture of these tests
    test_a_filter_is_read_as_its_field_reads_it,  # noqa: F401 - run here again
    test_a_filter_that_its_field_cannot_have_is_refused,  # noqa: F401 - as above
    test_a_pasted_list_leaves_room_for_the_question_beside_it,  # noqa: F401 - as above
    test_a_snippet_goes_on_to_the_end_of_its_sentence_whatever_the_handler_says,  # noqa: F401 - as above
    test_a_text_is_read_where_it_is,  # noqa: F401 - as above
    test_a_title_that_the_collection_does_not_copy_is_found,  # noqa: F401 - as above
    test_an_elevated_document_is_no_source_of_an_answer_and_first_in_a_plain_search,  # noqa: F401 - as above
    test_solr_says_itself_that_clauses_are_too_many,  # noqa: F401 - as above
    test_the_doctor_has_two_ways_out_of_a_handler_that_filters_by_itself,  # noqa: F401 - as above
    test_the_doctor_sees_what_is_in_effect_wherever_it_is_configured,  # noqa: F401 - as above
)

pytestmark = [pytest.mark.solr, pytest.mark.cloud, pytest.mark.slow]


@pytest.fixture(scope="module")
def collection(fill_cloud: Fill) -> Iterator[Datafari]:
    cloud = fill_cloud([])
    node = next(process for process in cloud.processes if process.role.startswith("node"))
    admin = f"http://127.0.0.1:{node.port}/solr/admin"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in CONFIG_SET.items():
            archive.writestr(name, body)
    create = {"action": "CREATE", "name": DATAFARI, "collection.configName": DATAFARI, "numShards": "2"}
    with requests.Session() as session:
        session.trust_env = False
        upload = {"action": "UPLOAD", "name": DATAFARI, "overwrite": "true"}
        session.post(f"{admin}/configs", params=upload, data=packed.getvalue(), timeout=60).raise_for_status()
        session.get(f"{admin}/collections", params=create, timeout=180).raise_for_status()
    found = Datafari(f"http://127.0.0.1:{node.port}/solr/{DATAFARI}", solr_url=beside(cloud.url, DATAFARI))
    found.load(*DOCUMENTS)
    yield found
    found.engine.close()
    with requests.Session() as session:
        session.trust_env = False
        session.get(f"{admin}/collections", params={"action": "DELETE", "name": DATAFARI}, timeout=180)


@pytest.fixture
def datafari(collection: Datafari) -> Datafari:
    """The collection as it is: a set of `useParams` reaches the nodes of a cloud in their own time."""
    return collection
