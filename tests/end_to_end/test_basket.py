"""Baskets that nobody fills by hand, against the running service on both engines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.ask import MAX_DOCUMENTS
from tests.end_to_end.processes import Running, service, stub_llm
from tests.real_solr import Collection

QUESTION = "Who mended the pump?"
ASCII = "".join(map(chr, range(0x20, 0x7F)))
ODD_IDS = (
    "plain",
    ASCII,
    "a,b",
    "a b",
    'quoted "id" \\ back\\slash',
    "{!terms f=id}plain",
    "plain\n\tor *:*",
    "a\x1fb\x00c",
    "été 漢字 👩‍👩‍👧 \u202e\u2028",
    "x" * 2048,
    "${id}#plain&fq=*:*%20+",
)
"""Ids of documents: each holds what is syntax somewhere."""

HIDDEN = "hidden"

Document = Mapping[str, object]


@dataclass(frozen=True)
class Served:
    """A service with a model that cites, and what replaces all documents of its engine."""

    running: Running
    load: Callable[[Sequence[Document]], None]

    def post(self, path: str, body: object, **more: Any) -> requests.Response:
        return self.running.session.post(f"{self.running.url}{path}", json=body, timeout=120, **more)

    def retrieved(self, documents: object, **more: object) -> requests.Response:
        return self.post("/retrieve", {"question": QUESTION, "documents": documents, **more})

    def found(self, documents: object, **more: object) -> set[str]:
        response = self.retrieved(documents, **more)
        assert response.status_code == 200, response.text
        return {one["document"]["id"] for one in response.json()["passages"]}


def document(name: str) -> Document:
    text = f"The pump was mended by the master of house {len(name)}. Nobody else mended the pump of that house."
    rights = {"allow_token_document": ["secret"]} if name == HIDDEN else {}
    return {
        "id": name,
        "title": f"Log {len(name)}",
        "language": "en",
        "exactContent": text,
        "content_en": text,
        **rights,
    }


EVERY = [document(one) for one in (*ODD_IDS, HIDDEN)]


@pytest.fixture(scope="module", params=["embedded", pytest.param("solr", marks=pytest.mark.solr)])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp(request.param)
    there: list[str] = []

    def written(documents: Sequence[Document]) -> None:
        with closing(EmbeddedWriter(folder / "index")) as writer:
            writer.delete(there)
            writer.add(documents)
            writer.commit()
        there[:] = [str(one["id"]) for one in documents]

    url, load = "embedded:index", written
    if request.param == "solr":
        collection: Collection = request.getfixturevalue("solr_collection")
        url, load = collection.settings.solr.url, collection.load
    load(EVERY)
    with stub_llm(folder) as model:
        endpoint = f"{model.url}/v1/chat/completions"
        settings = {"solr.url": url, "rag.api.endpoint": endpoint, "rag.model": "cite-gap-30ms", "rag.maxFiles": "20"}
        with service(folder, settings) as running:
            yield Served(running, load)


@pytest.mark.parametrize("name", ODD_IDS, ids=[ascii(one[:20]) for one in ODD_IDS])
def test_an_id_of_any_characters_is_found_and_nothing_else(served: Served, name: str) -> None:
    assert served.found([name]) == {name}
    answer = served.post("/rest/v2.0/ai", {"action": "rag", "query": QUESTION, "filters": {"id": [name]}}).json()
    assert [one["id"] for one in answer["content"]["sources"]] == [name]
    form = [("action", "rag"), ("q", QUESTION), ("documents", name)]
    told = served.running.session.post(f"{served.running.url}/search/select", data=form, timeout=60).json()
    assert [one["id"] for one in told["content"]["documents"]] == [name]


def test_every_character_is_taken_and_finds_nothing_that_it_does_not_name(served: Served) -> None:
    """Of the first planes, each in an id of its own or with its neighbours."""
    alone = ["plain" + chr(point) for point in range(0x300)]
    assert served.found(alone) == set()
    known = [chr(point) for point in range(0x20000) if not 0xD800 <= point < 0xE000]
    many = ["".join(known[at : at + 512]) for at in range(0, len(known), 512)]
    assert served.found([*many, "plain"]) == {"plain"}


def test_half_a_character_is_refused_or_finds_nothing(served: Served) -> None:
    body = '{"question": "Who mended the pump?", "documents": ["\\ud800", "plain"]}'
    headers = {"Content-Type": "application/json"}
    response = served.running.session.post(f"{served.running.url}/retrieve", data=body, headers=headers, timeout=60)
    assert response.status_code == 400 and response.json()["error"]["label"] == "badRequest"


def test_a_thousand_ids_are_taken_and_one_more_is_not(served: Served) -> None:
    most = [f"absent {number}" for number in range(MAX_DOCUMENTS - 1)]
    assert served.found([*most, "plain"]) == {"plain"}
    refused = served.retrieved([*most, "plain", "a b"])
    error = refused.json()["error"]
    assert (refused.status_code, error["label"], error["field"]) == (400, "tooManyValues", "documents")


def test_the_same_id_a_hundred_times_is_one(served: Served) -> None:
    assert served.retrieved(["plain"] * 100).content == served.retrieved(["plain"]).content


def test_an_empty_list_finds_nothing_and_says_so(served: Served) -> None:
    assert served.retrieved([]).json()["passages"] == []
    answer = served.post("/rest/v2.0/ai", {"action": "rag", "query": QUESTION, "filters": {"id": []}}).json()
    assert answer["content"]["error"]["cause"] == "noDocuments"


def test_a_hidden_id_in_the_basket_changes_not_a_byte(served: Served) -> None:
    assert served.found(None) - set(ODD_IDS) == set()
    assert served.retrieved([HIDDEN, "plain"]).content == served.retrieved(["plain"]).content
    assert served.retrieved([HIDDEN]).content == served.retrieved(["absent"]).content


@pytest.mark.parametrize(("passages", "status"), [(0, 400), (1, 200), (100, 200), (101, 400), (1_000_000, 400)])
def test_the_limit_of_passages(served: Served, passages: int, status: int) -> None:
    response = served.retrieved(None, passages=passages)
    assert response.status_code == status
    if status == 200:
        assert 0 < len(response.json()["passages"]) <= passages
    else:
        assert response.json()["error"]["field"] == "passages"


def test_a_document_that_is_deleted_while_the_answer_is_made(served: Served) -> None:
    """What was read is answered from and proved; the next question finds nothing, as if it had never been there."""
    served.load(EVERY)
    body = {"action": "rag", "query": QUESTION, "filters": {"id": ["plain"]}}
    events = []
    with served.post("/rest/v2.0/ai/stream", body, stream=True) as response:
        for line in response.iter_lines():
            events.append(json.loads(line))
            if [one["type"] for one in events].count("message.delta") == 1 and events[-1]["type"] == "message.delta":
                served.load([one for one in EVERY if one["id"] != "plain"])
                assert served.found(["plain"]) == set()
    try:
        final = next(one["data"] for one in events if one["type"] == "message.final")
        assert [one["status"] for one in final["citations"]] == ["verified"]
        assert final["citations"][0]["document_id"] == "plain"
        assert (events[-1]["type"], events[-1]["data"]) == ("stream.completed", {"status": "OK"})
        ended = served.post("/rest/v2.0/ai", body).json()["content"]["error"]
        never = served.post("/rest/v2.0/ai", body | {"filters": {"id": ["never"]}}).json()["content"]["error"]
        assert ended == never
        gone = served.running.get("/documents?id=plain", Accept="application/json")
        assert gone.status_code == 404
    finally:
        served.load(EVERY)
