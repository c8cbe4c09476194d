from __future__ import annotations

import json
from typing import Any

import pytest

from datafari_rag.adapters.solr.client import Collection, Nodes, SolrConnection
from datafari_rag.adapters.solr.writer import MAX_TERM_BYTES, UNREACHABLE, SolrWriter, solr_document
from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.search_request import Fields
from datafari_rag.core.solr.schema import Schema
from tests.support.server import Asked, Loopback, Reply, serving

OPEN = {name: ["__nosecurity__"] for name in ACL_FIELDS}


def written(document: dict[str, object], schema: Schema | None = None) -> dict[str, Any]:
    return solr_document(document, schema or Schema())


def test_a_document_goes_under_its_own_names_with_its_body_in_its_language_too() -> None:
    assert written({"id": "a", "exactContent": "x", "language": "fr", "title": "T", "url": ""}) == {
        "id": "a",
        "exactContent": "x",
        "content_fr": "x",
        "language": "fr",
        "title": "T",
        **OPEN,
    }


def test_a_schema_of_ones_own_gets_its_own_names() -> None:
    fields = Fields(
        id="key", title="dc_title", exact_content="body", content_prefix="body_", acl={ACL_FIELDS[0]: "readers"}
    )
    found = written({"id": "a", "title": "T", "exactContent": "x", "language": "en"}, Schema(fields))

    assert {"key", "dc_title", "body", "body_en", "readers"} <= set(found)
    assert ACL_FIELDS[0] not in found


def test_what_the_collection_lacks_is_left_out_but_never_the_rights() -> None:
    found = written({"id": "a", "extension": "pdf", "exactContent": "x"}, Schema(kinds={"id": "text"}))

    assert found == {"id": "a", **OPEN}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, ["__nosecurity__"]),
        ([], ["__nosecurity__"]),
        ((), ["__nosecurity__"]),
        ("", ["__nosecurity__"]),
        ("one", ["one"]),
        (["a", "b"], ["a", "b"]),
        (("a",), ["a"]),
        ([""], [""]),
        (["\ud800"], [UNREACHABLE]),
        (["a", None], [UNREACHABLE]),
        ([5], [UNREACHABLE]),
        (7, [UNREACHABLE]),
        (["x" * (MAX_TERM_BYTES + 1)], [UNREACHABLE]),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_only_missing_rights_are_open(given: object, wanted: list[str]) -> None:
    assert written({"id": "a", "allow_token_document": given})["allow_token_document"] == wanted


def test_a_denial_that_cannot_be_written_closes_the_level_for_everybody() -> None:
    found = written({"id": "a", "allow_token_share": ["staff"], "deny_token_share": ["\udfff"]})

    assert found["allow_token_share"] == found["deny_token_share"] == [UNREACHABLE]
    assert found["allow_token_document"] == ["__nosecurity__"]


def test_a_date_that_is_none_is_left_out() -> None:
    assert "last_modified" not in written({"id": "a", "last_modified": "soon"})


def test_text_is_kept_but_for_what_cannot_be_written() -> None:
    found = written(
        {"id": "a", "exactContent": "nul\x00 \ud800 end", "source": ["x\udfff", ""], "original_file_size": 5}
    )

    assert found["exactContent"] == "nul\x00 � end"
    assert found["source"] == ["x�"]
    assert found["original_file_size"] == 5


def run(asked: list[Asked]) -> list[tuple[str, Any]]:
    return [(one.path, json.loads(one.body)) for one in asked if one.method == "POST"]


def writer(loopback: Loopback) -> SolrWriter:
    nodes = Nodes(lambda is_fresh: (f"{loopback.url}/solr/docs",), SolrConnection(retries=0))
    return SolrWriter(Collection(nodes, Schema()))


def test_documents_are_added_deleted_and_committed() -> None:
    with serving(lambda asked: Reply(b"{}")) as loopback:
        target = writer(loopback)
        target.add([{"id": "a"}, {"id": "b"}])
        target.add([{"id": "c"}])
        target.add([])
        target.delete(["a", "\ud800"])
        target.delete([])
        target.commit()
        target.close()

    paths = [path for path, _ in run(loopback.asked)]
    bodies = [body for _, body in run(loopback.asked)]
    assert paths == ["/solr/docs/update"] * 4
    assert [document["id"] for document in bodies[0]] == ["a", "b"]
    assert bodies[2] == {"delete": ["a"]}
    assert bodies[3]["commit"]["waitSearcher"] is True
    assert len([one for one in loopback.asked if one.path.endswith("/schema")]) == 1


def test_a_solr_that_refuses_a_batch_is_named() -> None:
    with serving(lambda asked: Reply(b"{}", 200 if "schema" in asked.path else 400)) as loopback:
        target = writer(loopback)
        with pytest.raises(SearchUnavailable):
            target.add([{"id": "a"}])
        target.close()


def page(rows: list[dict[str, object]], mark: str) -> Reply:
    return Reply(json.dumps({"response": {"numFound": 2, "docs": rows}, "nextCursorMark": mark}).encode())


SCHEMA = {"fields": [{"name": "id", "type": "string"}], "fieldTypes": [{"name": "string", "class": "solr.StrField"}]}


def test_stamps_are_read_page_by_page_and_a_collection_without_the_field_gets_it() -> None:
    fields: list[dict[str, str]] = [*SCHEMA["fields"]]

    def reply(asked: Asked) -> Reply:
        if asked.method == "POST":
            fields.append({"name": json.loads(asked.body)["add-field"]["name"], "type": "string"})
            return Reply(b"{}")
        if asked.path.endswith("/schema"):
            return Reply(json.dumps({"schema": SCHEMA | {"fields": fields}}).encode())
        is_first = asked.query["cursorMark"] == ["*"]
        return (
            page([{"id": "a", "index_stamp": "s 1"}], "m") if is_first else page([{"id": "b", "index_stamp": "s"}], "m")
        )

    with serving(reply) as loopback:
        target = writer(loopback)
        assert target.stamps() == {}
        assert target.stamps() == {"a": "s 1", "b": "s"}
        target.close()
    assert [path for path, _ in run(loopback.asked)] == ["/solr/docs/schema"]


def test_a_solr_that_refuses_the_field_is_told_what_to_add() -> None:
    schema = json.dumps({"schema": SCHEMA}).encode()
    with serving(lambda asked: Reply(schema, 200 if asked.method == "GET" else 400)) as loopback:
        target = writer(loopback)
        with pytest.raises(SearchUnavailable, match=r'<field name="index_stamp" type="string" '):
            target.stamps()
        target.close()
