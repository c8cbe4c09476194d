"""Attaching to a collection that was there before (docs/attach.md): other names, nothing stemmed, its own rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.commands.doctor import doctor
from datafari_rag.commands.index import forget, index
from datafari_rag.core.access import ACL_FIELDS, Filter, User, filter_for
from datafari_rag.core.search_request import Browse, Content, Search, Step
from datafari_rag.core.settings.table import Settings
from tests.real_solr import OTHER
from tests.settings import settings_with

pytestmark = pytest.mark.solr

NAMES = {
    "id": "key",
    "title": "dc_title",
    "url": "link",
    "exactContent": "body",
    **{name: f"acl_{name.removesuffix('_document')}" for name in ACL_FIELDS},
}


def who(*tokens: str) -> Filter:
    return filter_for(User("ann", frozenset(tokens)), mode="tokens", anonymous="public")


def asked(*words: str, content: Content = "exactContent") -> Search:
    return Search(" ".join(words), Step("asked", words), 10, content=content)


@pytest.fixture
def settings(solr_url: str) -> Settings:
    return settings_with(
        solr_url=solr_url.replace("FileShare", OTHER), solr_handler="/find", solr_fields=NAMES, solr_facets=("size",)
    )


@pytest.fixture
def retriever(settings: Settings) -> Iterator[SolrRetriever]:
    writer = writer_for(settings)
    writer.add(
        [
            {"id": "open", "title": ["Pump manual", "second title"], "exactContent": "How to start it", "url": "u"},
            {"id": "hers", "exactContent": "The pump of the cellar", "allow_token_document": ["s 1"]},
        ]
    )
    writer.commit()
    writer.close()
    engine = retriever_for(settings)
    yield engine
    engine.close()


def test_title_and_text_are_searched_under_their_own_names(retriever: SolrRetriever) -> None:
    found = retriever.search(asked("pump"), who("s 1")).documents

    assert {d.id: (d.title, d.text, d.url) for d in found} == {
        "open": ("Pump manual", "How to start it", "u"),
        "hers": (None, "The pump of the cellar", None),
    }
    snippets = retriever.search(asked("pump", content="highlighting"), who("s 1")).documents
    assert {d.id: d.text for d in snippets} == {"open": "", "hers": "The pump of the cellar"}


def test_rights_hold_under_their_own_names_and_are_not_shown(retriever: SolrRetriever) -> None:
    assert [d.id for d in retriever.search(asked("pump"), who("other")).documents] == ["open"]
    page = retriever.browse(Browse("pump", sort=("title", False), facet_fields=("size", "language")), who("s 1"))
    assert "s 1" not in str(page)
    assert "acl_" not in str(page)
    assert "fq" not in str(page)
    assert retriever.fetch("hers", "body", who()) is None
    opened = retriever.fetch("hers", "body", who("s 1"))
    assert opened is not None
    assert opened.text == "The pump of the cellar"
    assert retriever.fetch("hers", "acl_allow_token", who("s 1")) is None


def test_the_doctor_says_what_works_and_what_is_left_out(
    tmp_path: Path, settings: Settings, retriever: SolrRetriever
) -> None:
    conf = tmp_path / "rag.properties"
    lines = f"solr.url={settings.solr.url}", "solr.handler=/find", f"solr.fields={json.dumps(NAMES)}"
    conf.write_text("\n".join(lines))

    said = CliRunner().invoke(doctor, ["--conf", str(conf), "--no-model"])

    assert said.exit_code == 0, said.output
    assert "OK      field body: exists" in said.output
    assert "OK      searched titles: dc_title" in said.output
    assert "HINT    stemmed text" in said.output
    assert "HINT    field title_sort" in said.output
    assert "OK      field acl_deny_token_share: exists in every document" in said.output
    assert "OK      rights: 1 of 2 documents are public" in said.output


def test_the_doctor_says_that_the_names_do_not_fit(tmp_path: Path, settings: Settings) -> None:
    conf = tmp_path / "rag.properties"
    conf.write_text(f"solr.url={settings.solr.url}\nsolr.handler=/find")

    said = CliRunner().invoke(doctor, ["--conf", str(conf), "--no-model"])

    assert said.exit_code == 1
    assert "PROBLEM field exactContent: is missing" in said.output
    assert 'solr.fields={"exactContent": "NAME"}' in said.output
    assert "PROBLEM field allow_token_document: is missing: every search fails" in said.output


def test_index_gives_the_collection_the_field_that_it_lacks_and_knows_what_it_wrote(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "files" / name).write_text(f"The ferry of {name} leaves at nine.")
    conf = tmp_path / "rag.properties"
    conf.write_text(f"solr.url={settings.solr.url}\nsolr.fields={json.dumps(NAMES)}\n")
    said = []
    for number in range(3):
        if number == 2:
            (tmp_path / "files" / "a.txt").unlink()
        said.append(CliRunner().invoke(index, [str(tmp_path / "files"), "--conf", str(conf)]).output)
    assert [line.partition(" unchanged")[0] for line in said] == [
        "2 documents written, 0 removed, 0 files",
        "0 documents written, 0 removed, 2 files",
        "0 documents written, 1 removed, 1 file",
    ]
    gone = CliRunner().invoke(forget, [str(tmp_path / "files"), "--conf", str(conf)])
    assert gone.stdout == "1 document removed\n", gone.output
