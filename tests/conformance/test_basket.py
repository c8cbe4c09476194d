"""A basket in every dialect: these documents alone, hidden ones as absent ones, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.bootstrap import retriever_for
from datafari_rag.core.ask import MAX_DOCUMENTS
from datafari_rag_trials.conformance.doors import Door, Ids
from tests.conformance.promises import promise
from tests.fakes import FakeModel, app_of, fake_snapshot
from tests.settings import settings_with

QUESTION = "Who mended the pump?"
TITLES = {"ferry": "Ferry log", "harbour": "Harbour log", "hidden": "Secret log"}


@pytest.fixture(scope="module")
def model() -> FakeModel:
    return FakeModel("Somebody mended it [1].")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[FlaskClient]:
    """A service over three documents, of which the anonymous user may see two."""
    folder = tmp_path_factory.mktemp("basket") / "index"
    with closing(EmbeddedWriter(folder)) as writer:
        writer.add([_document(name, title) for name, title in TITLES.items()])
        writer.commit()
    settings = settings_with(solr_url=f"embedded:{folder}")
    line = fake_snapshot(settings=settings)
    parts = replace(line.dependencies, retriever=retriever_for(settings), model=model)
    yield app_of(replace(line, dependencies=parts)).test_client()


def _document(name: str, title: str) -> dict[str, object]:
    text = f"The pump of the {name} was mended by the {name} master. Nobody else mended the pump."
    rights = {"allow_token_document": ["secret"]} if name == "hidden" else {}
    texts = {"exactContent": text, "content_en": text, "preview_content": text}
    return {"id": name, "title": title, "url": f"http://x/{name}", "language": "en", **texts, **rights}


def asked(door: Door, client: FlaskClient, ids: Ids) -> Any:
    return door.ask(client, QUESTION, door.basket(ids))


_OF_REQUEST = re.compile(
    r'"(id|created|created_at|memoryId|item_id|QTime|ms|elapsedMs|completed_at)": ?("[^"]*"|[-0-9.e]+)'
)


def said(door: Door, client: FlaskClient, ids: Ids) -> tuple[int, str]:
    response = asked(door, client, ids)
    return response.status_code, _OF_REQUEST.sub("-", response.get_data(as_text=True))


@pytest.mark.parametrize("name", ["ferry", "harbour"])
@promise
def test_the_answer_is_made_of_these_documents_alone(door: Door, client: FlaskClient, name: str) -> None:
    seen = door.seen(asked(door, client, [name, "hidden", "absent", name]).get_data())
    assert seen.labels == (TITLES[name],)


@pytest.mark.parametrize("beside", [[], ["ferry"]], ids=["alone", "beside one that is seen"])
@promise
def test_a_hidden_document_is_as_an_absent_one_to_the_byte(door: Door, client: FlaskClient, beside: list[str]) -> None:
    assert said(door, client, ["hidden", *beside]) == said(door, client, ["absent", *beside])


@promise
def test_nothing_found_in_an_empty_basket(door: Door, client: FlaskClient, model: FakeModel) -> None:
    before = len(model.prompts)
    response = asked(door, client, [])
    assert len(model.prompts) == before
    assert not any(title in response.get_data(as_text=True) for title in TITLES.values())
    assert said(door, client, []) == said(door, client, ["absent"])


@pytest.mark.parametrize("ids", [[str(one) for one in range(MAX_DOCUMENTS + 1)], ["x" * 2049]], ids=["1,001", "long"])
@promise
def test_too_many_ids_and_too_long_ones_are_refused(door: Door, client: FlaskClient, ids: list[str]) -> None:
    response = asked(door, client, ids)
    assert response.status_code == door.status(400)
    assert door.said(json.loads(response.get_data()))


@pytest.mark.parametrize("body", [{"documents": ["ferry"]}, {"documents": ["ferry", "hidden"], "passages": 100}])
def test_retrieve_gives_the_passages_of_these_documents_alone(client: FlaskClient, body: dict[str, object]) -> None:
    found = client.post("/retrieve", json={"question": QUESTION, **body}).get_json()["passages"]
    assert found and {one["document"]["title"] for one in found} == {"Ferry log"}


@pytest.mark.parametrize("beside", [[], ["ferry"]], ids=["alone", "beside one that is seen"])
def test_retrieve_does_not_tell_hidden_from_absent(client: FlaskClient, beside: list[str]) -> None:
    replies = [
        client.post("/retrieve", json={"question": QUESTION, "documents": [name, *beside]}).get_data()
        for name in ("hidden", "absent")
    ]
    assert replies[0] == replies[1]
