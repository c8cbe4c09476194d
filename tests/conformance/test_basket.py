"""A basket in every dialect: these documents alone, hidden ones as absent ones, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.bootstrap import retriever_for
from datafari_rag.core.ask import MAX_DOCUMENTS
from datafari_rag.core.settings.records import ReplyShape
from tests.conformance.dialects import DIALECTS, Dialect
from tests.fakes import FakeModel, app_of, fake_snapshot
from tests.settings import settings_with

QUESTION = "Who mended the pump?"
TITLES = {"ferry": "Ferry log", "harbour": "Harbour log", "hidden": "Secret log"}

Ids = Sequence[str]


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
    settings = settings_with(solr_url=f"embedded:{folder}", rag_reply=ReplyShape(linebreaks="newline"))
    line = fake_snapshot(settings=settings)
    parts = replace(line.dependencies, retriever=retriever_for(settings), model=model)
    yield app_of(replace(line, dependencies=parts)).test_client()


def _document(name: str, title: str) -> dict[str, object]:
    text = f"The pump of the {name} was mended by the {name} master. Nobody else mended the pump."
    rights = {"allow_token_document": ["secret"]} if name == "hidden" else {}
    texts = {"exactContent": text, "content_en": text, "preview_content": text}
    return {"id": name, "title": title, "url": f"http://x/{name}", "language": "en", **texts, **rights}


def _as_documents(ids: Ids) -> Mapping[str, object]:
    return {"documents": ids}


def _as_override(ids: Ids) -> Mapping[str, object]:
    return {"context": {"overrides": {"documents": ids}}}


SPELLED: Mapping[str, Callable[[Ids], Mapping[str, object]]] = {
    "ai": lambda ids: {"filters": {"id": ids}},
    "chat": _as_override,
    "choices": _as_override,
    "published": _as_override,
}


def asked(dialect: Dialect, client: FlaskClient, ids: Ids) -> Any:
    more = SPELLED.get(dialect.name, _as_documents)(ids)
    if dialect.name == "openai":
        more = {**more, "index_name": "default"}
    return dialect.asked(client, QUESTION, more)


_OF_REQUEST = re.compile(
    r'"(id|created|created_at|memoryId|item_id|QTime|ms|elapsedMs|completed_at)": ?("[^"]*"|[-0-9.e]+)'
)


def said(dialect: Dialect, client: FlaskClient, ids: Ids) -> tuple[int, str]:
    response = asked(dialect, client, ids)
    return response.status_code, _OF_REQUEST.sub("-", response.get_data(as_text=True))


every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=str)


@every_dialect
@pytest.mark.parametrize("name", ["ferry", "harbour"])
def test_the_answer_is_made_of_these_documents_alone(dialect: Dialect, client: FlaskClient, name: str) -> None:
    seen = dialect.seen(asked(dialect, client, [name, "hidden", "absent", name]).get_data())
    assert seen.labels == (TITLES[name],)


@every_dialect
@pytest.mark.parametrize("beside", [[], ["ferry"]], ids=["alone", "beside one that is seen"])
def test_a_hidden_document_is_as_an_absent_one_to_the_byte(
    dialect: Dialect, client: FlaskClient, beside: list[str]
) -> None:
    assert said(dialect, client, ["hidden", *beside]) == said(dialect, client, ["absent", *beside])


@every_dialect
def test_nothing_is_found_in_an_empty_basket(dialect: Dialect, client: FlaskClient, model: FakeModel) -> None:
    """RagAPI's form has no empty list: there an empty id is no id."""
    if dialect.name == "ragapi":
        pytest.skip("has no empty list")
    before = len(model.prompts)
    response = asked(dialect, client, [])
    assert len(model.prompts) == before
    assert not any(title in response.get_data(as_text=True) for title in TITLES.values())
    assert said(dialect, client, []) == said(dialect, client, ["absent"])


@every_dialect
@pytest.mark.parametrize("ids", [[str(one) for one in range(MAX_DOCUMENTS + 1)], ["x" * 2049]], ids=["1,001", "long"])
def test_too_many_ids_and_too_long_ones_are_refused(dialect: Dialect, client: FlaskClient, ids: list[str]) -> None:
    response = asked(dialect, client, ids)
    assert response.status_code == dialect.status(400)
    assert dialect.said(json.loads(response.get_data()))


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
