"""The links of citations over real indexes: each opens the document that was cited, and its very text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from datafari_rag.bootstrap import create_app
from datafari_rag.commands.main import main
from tests.fakes import FLIGHT, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

QUESTION = "When does the ferry leave?"
JSON = {"Accept": "application/json"}


def client_of(folder: Path, **rows: str) -> FlaskClient:
    """Return a client of a service over two indexes, in which the same id names another document."""
    for name, hour in (("main", "nine"), ("islands", "seven")):
        conf, docs = folder / f"{name}.properties", folder / f"{name}.jsonl"
        settings = {
            "solr.url": f"embedded:{folder / name}",
            "rag.api.endpoint": "builtin:extractive",
            "rag.model": "",
            "security.mode": "none",
            "openai.indexes": f"default,islands=embedded:{folder / 'islands'}",
            **rows,
        }
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        conf.chmod(0o600)
        text = f"The ferry leaves at {hour} in the morning. It carries cars and bicycles."
        docs.write_text(json.dumps({"id": "ferry", "title": "Ferry", "content": text, "language": "en"}) + "\n")
        done = CliRunner().invoke(main, ["index", str(docs), "--conf", str(conf)])
        assert done.exit_code == 0, done.output
    return create_app(str(folder / "main.properties")).test_client()


def link_of(client: FlaskClient, index: str) -> str:
    """Return the path of the link of the first citation of an answer from *index*."""
    body = {"messages": [{"role": "user", "content": QUESTION}], "index_name": index, "model": "datafari"}
    reply: Any = client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    parts = urlsplit(reply.get_json()["choices"][0]["message"]["annotations"][0]["url_citation"]["url"])
    return f"{parts.path}?{parts.query}"


@pytest.mark.parametrize(("index", "hour"), [("default", "nine"), ("islands", "seven")])
def test_a_link_opens_the_document_of_the_index_that_was_searched(tmp_path: Path, index: str, hour: str) -> None:
    client = client_of(tmp_path)
    opened = client.get(link_of(client, index), headers=JSON)
    assert opened.status_code == 200, opened.text
    assert hour in opened.get_json()["text"]


def test_an_index_that_is_not_there_has_no_documents(tmp_path: Path) -> None:
    assert client_of(tmp_path).get("/documents?id=ferry&index=none", headers=JSON).status_code == 404


def test_a_link_to_a_snippet_opens_the_text_that_it_was_cut_from(tmp_path: Path) -> None:
    client = client_of(tmp_path, **{"rag.solrField": "highlighting"})
    link = link_of(client, "default")
    assert "field=highlighting" in link
    opened = client.get(link, headers=JSON)
    assert opened.status_code == 200, opened.text
    assert (opened.get_json()["field"], opened.get_json()["start"]) == ("exactContent", None)


def test_the_field_of_a_language_may_be_opened_and_none_that_is_no_text(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    opened = client.get("/documents?id=ferry&field=content_en&start=4&end=9", headers=JSON)
    assert opened.status_code == 200, opened.text
    assert (opened.get_json()["field"], opened.get_json()["text"][4:9]) == ("content_en", "ferry")
    for field in ("allow_token_document", "*", "title", "content_xx", "id"):
        assert client.get(f"/documents?id=ferry&field={field}", headers=JSON).status_code == 404


BELOW = "/rag"
ASKED = {"messages": [{"role": "user", "content": "When does the plane take off?"}]}
REPLIES: dict[str, tuple[str, dict[str, Any]]] = {
    "RagAPI": ("/search/select?action=rag&q=plane", {}),
    "RagAPI, streamed": ("/search/select?action=rag&stream=true&q=plane", {}),
    "Datafari 7": ("/rest/v2.0/ai", {"json": {"query": "When does the plane take off?"}}),
    "passages": ("/retrieve", {"json": {"question": "plane"}}),
    "chat completions": ("/v1/chat/completions", {"json": {"model": "datafari", **ASKED}}),
    "a check": ("/grounding/check", {"json": {"answerCandidate": FLIGHT.text, "documentIds": ["javascript:1"]}}),
    "a stored text": ("/documents?id=javascript%3A1", {"headers": JSON}),
}


@pytest.mark.parametrize(("path", "sent"), REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("root", ["", BELOW])
def test_a_document_without_an_address_is_shown_below_our_own_path(root: str, path: str, sent: dict[str, Any]) -> None:
    settings = settings_with(server_public_url=f"https://search.example{root}")
    retriever = FakeRetriever(replace(FLIGHT, id="javascript:1", url=None))
    client = app_of(fake_snapshot(retriever, FakeModel(FLIGHT.text), settings=settings)).test_client()
    reply = client.open(root + path, method="POST" if "json" in sent else "GET", **sent)
    assert reply.status_code == 200, reply.text
    assert f'"{root}/documents?id=javascript%3A1"' in reply.text, reply.text
    assert not root or '"/documents?' not in reply.text
