"""The whole service over a real Solr with the demo documents and their rights; the model a stub, or /invoke."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.processes import Running, service, stub_llm, write_settings
from tests.real_solr import Collection
from tests.support.server import Asked, Reply, serving
from tests.support.waiting import until

pytestmark = pytest.mark.solr

DEMO = resources.files("datafari_rag.resources") / "demo"
ENUMS = "/search/select?action=rag&q=How+are+Enums+and+Flags+different%3F"
COPY = "/Datafari/rest/v2.0/search/select?action=rag&q=How+do+I+copy+a+file%3F"


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory, solr_collection: Collection) -> Collection:
    """The demo pages, put into Solr by the command that an administrator would use."""
    folder = tmp_path_factory.mktemp("documents")
    solr_collection.load([])
    write_settings(folder, {"solr.url": solr_collection.settings.solr.url})
    (folder / "docs.jsonl").write_bytes(gzip.decompress((DEMO / "docs.jsonl.gz").read_bytes()))
    arguments = ["-m", "datafari_rag", "index", "docs.jsonl", "--conf", "rag.properties"]
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "237 documents written" in done.stdout
    return solr_collection


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with stub_llm(tmp_path_factory.mktemp("stub")) as found:
        yield found


def settings_for(collection: Collection, **changes: str) -> dict[str, str]:
    return {
        "solr.url": collection.settings.solr.url,
        "security.identity": "header",
        "security.tokens.file": str(DEMO / "users.json"),
        "rag.maxJsonLength": "4000",
        "rag.api.endpoint": "builtin:extractive",
        "security.admins": "admin",
        **{name.replace("__", "."): value for name, value in changes.items()},
    }


@pytest.fixture(scope="module")
def extractive(tmp_path_factory: pytest.TempPathFactory, collection: Collection) -> Iterator[Running]:
    with service(tmp_path_factory.mktemp("extractive"), settings_for(collection)) as found:
        yield found


def ids(content: dict[str, Any]) -> list[str]:
    return [document["id"] for document in content["documents"]]


def test_two_users_with_different_rights_get_different_documents(extractive: Running) -> None:
    alice = extractive.get(ENUMS, X_Remote_User="alice").json()["content"]
    bob = extractive.get(ENUMS, X_Remote_User="bob").json()["content"]

    assert "py-howto-enum" in ids(alice)
    assert "py-howto-enum" not in ids(bob)


def test_an_answer_has_its_sentence_cited_and_the_citation_opens_at_its_quote(extractive: Running) -> None:
    content = extractive.get(COPY).json()["content"]
    placed = [citation for citation in content["citations"] if citation["quote"] is not None]
    citation = placed[0]
    opened = extractive.get(
        f"/documents?id={citation['document_id']}&field={citation['field']}", Accept="application/json"
    ).json()

    assert citation["quote"]
    assert opened["text"][citation["start"] : citation["end"]] == citation["quote"]


@pytest.mark.parametrize(("user", "status"), [("alice", 200), ("bob", 404), ("", 404)])
def test_a_document_opens_for_those_who_may_read_it(extractive: Running, user: str, status: int) -> None:
    response = extractive.get("/documents?id=py-howto-enum", X_Remote_User=user, Accept="application/json")

    assert response.status_code == status


def test_plain_search_speaks_solrs_json_and_counts_only_what_may_be_seen(extractive: Running) -> None:
    query = "/search/select?q=*:*&rows=3&facet=true&facet.field=language&fl=id,title"
    everybody = extractive.get(query).json()
    admin = extractive.get(query, X_Remote_User="admin").json()

    assert everybody["response"]["numFound"] == 25
    assert admin["response"]["numFound"] == 237
    assert admin["facet_counts"]["facet_fields"]["language"][1] == 237
    assert not any("token" in name for name in admin["response"]["docs"][0])


def test_the_three_values_of_solr_field_choose_where_extracts_come_from(tmp_path: Path, collection: Collection) -> None:
    values = settings_for(collection) | {"rag.hl.fragsize": "300", "rag.evidence.min": "0"}
    seen = {}
    with service(tmp_path, values | {"rag.solrField": "exactContent"}) as found:
        for number, field in enumerate(("exactContent", "preview_content", "highlighting"), 1):
            # The number of documents says that the file is taken up.
            write_settings(tmp_path, values | {"rag.solrField": field, "rag.maxFiles": str(number)})
            found.process.send_signal(signal.SIGHUP)
            until(lambda number=number: len(found.get(COPY).json()["content"]["documents"]) == number)  # type: ignore[misc]
            seen[field] = found.get(COPY).json()["content"]

    for field, content in seen.items():
        assert all(document["content"] for document in content["documents"])
        assert {citation["field"] for citation in content["citations"] if citation["field"]} <= {field}


def test_the_openai_request_has_the_seeds_keys_roles_and_order(
    tmp_path: Path, collection: Collection, stub: Running
) -> None:
    changes = {"rag.api.endpoint": f"{stub.url}/v1/chat/completions", "rag.model": "echo", "rag.api.token": "sk-1"}
    with service(tmp_path, settings_for(collection) | changes) as found:
        shown = found.get(f"{COPY}&format=stepbystep").json()["content"]["documents"]
    sent = stub.get("/requests").json()
    body = (sent["requests"] if isinstance(sent, dict) else sent)[-1]["body"]

    assert {"model", "messages", "temperature", "max_tokens"} <= set(body)
    assert [message["role"] for message in body["messages"]] == ["system", *["user"] * len(shown), "user"]
    assert body["messages"][1]["content"].startswith("Document 1. ")
    told = [message["content"] for message in body["messages"][1:-1]]
    # The headings above a passage are named between the passages, on separate lines.
    without_headings = [re.sub(r"^# .*$", "", text, flags=re.MULTILINE) for text in told]
    for document, text in zip(shown, without_headings, strict=True):
        assert " ".join(document["content"].split()) in " ".join(text.split())
    assert body["messages"][-1]["content"] == "How do I copy a file?"
    assert (body["temperature"], body["max_tokens"]) == (0.7, 250)
    assert "numbered steps" in body["messages"][0]["content"]


def test_a_reranker_orders_what_solr_found_and_is_sent_nothing_hidden(tmp_path: Path, collection: Collection) -> None:
    def on_enums(asked: Asked) -> Reply:
        """Prefer texts on enums, then longer ones."""
        texts = json.loads(asked.body)["texts"]
        scores = [100.0 * text.count("Enum") + len(text) / 10 for text in texts]
        return Reply(json.dumps([{"index": at, "score": one} for at, one in enumerate(scores)]).encode())

    with serving(on_enums) as server:
        changes = {"rerank__endpoint": f"{server.url}/rerank", "rerank__options": '{"timeout_s": 30}'}
        with service(tmp_path, settings_for(collection, **changes)) as found:
            alice = found.get(ENUMS, X_Remote_User="alice").json()["content"]
            of_alice = b"".join(one.body for one in server.asked)
            server.asked.clear()
            found.get(ENUMS, X_Remote_User="bob")
            of_bob = b"".join(one.body for one in server.asked)
    assert ids(alice)[0] == "py-howto-enum"
    assert b"Enum HOWTO" in of_alice
    assert b"Enum HOWTO" not in of_bob and b"texts" in of_bob
