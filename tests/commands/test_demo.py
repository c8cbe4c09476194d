"""The shipped corpus: large enough, with rights that differ, made once, and licensed."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.adapters.embedded.passages import EmbeddedPassages
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.commands.demo.command import _keep_endpoint
from datafari_rag.commands.demo.index import build_demo_index
from datafari_rag.core.access import User, filter_for
from datafari_rag.core.search_request import Browse, Search, Step
from datafari_rag.core.text.tokens import sought_in
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector

DEMO = resources.files("datafari_rag.resources") / "demo"
USERS: dict[str, list[str]] = json.loads((DEMO / "users.json").read_text(encoding="utf-8"))
QUESTIONS = [json.loads(line) for line in (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo") / "index"
    build_demo_index(place)
    return place


def seen_by(directory: Path, *tokens: str) -> set[str]:
    access = filter_for(User("somebody", frozenset(tokens)), mode="tokens", anonymous="public")
    response: Any = EmbeddedRetriever(directory).browse(Browse(None, rows=1000, fields=("id",)), access)["response"]
    return {row["id"] for row in response["docs"]}


def test_users_see_different_documents(directory: Path) -> None:
    anybody, seen = seen_by(directory), {name: seen_by(directory, *tokens) for name, tokens in USERS.items()}
    assert seen.keys() == {"alice", "bob", "admin"}
    assert len(seen["admin"]) >= 100
    assert seen["alice"] & seen["bob"] == anybody != set()
    assert anybody < seen["alice"] < seen["admin"]
    assert anybody < seen["bob"] < seen["admin"]


def test_a_second_build_leaves_the_index_as_it_is(directory: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in directory.iterdir()}
    build_demo_index(directory)
    assert {path.name: path.stat().st_mtime_ns for path in directory.iterdir()} == before


def test_a_build_that_broke_off_is_made_whole(tmp_path: Path) -> None:
    build_demo_index(tmp_path)
    (tmp_path / "demo-corpus.sha256").unlink()
    build_demo_index(tmp_path)
    assert len(seen_by(tmp_path, *USERS["admin"])) == 237


def test_an_index_of_another_version_is_made_anew(tmp_path: Path) -> None:
    build_demo_index(tmp_path / "index")
    (tmp_path / "index" / "demo-corpus.sha256").write_text("of another\n{}")
    (tmp_path / "index" / "datafari-rag.json").write_text('{"schema": 0}')
    build_demo_index(tmp_path / "index")
    assert len(seen_by(tmp_path / "index", *USERS["admin"])) == 237


class Counting:
    """Makes vectors without a model, and remembers what it had to embed."""

    def __init__(self) -> None:
        self.model = EmbeddingModel("counting", "counting", 2, frozenset({"en"}))
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        self.asked += texts
        return [unit_vector([1.0, float(number)]) for number, _ in enumerate(texts)]


def test_with_meaning_the_passages_are_embedded_once(tmp_path: Path) -> None:
    embedder = Counting()
    build_demo_index(tmp_path / "index", embedder)
    retriever = EmbeddedRetriever(tmp_path / "index")
    passages = EmbeddedPassages(retriever)
    assert passages.probe(embedder.model) is None and passages.spread(embedder.model)
    before = len(embedder.asked)
    assert before > 1000
    build_demo_index(tmp_path / "index", embedder)
    assert len(embedder.asked) == before
    assert len(seen_by(tmp_path / "index", *USERS["admin"])) == 237


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        pytest.param(["--meaning", "onnx:nowhere"], 1, "has no model.onnx: docs/embeddings.md says", id="no model"),
        pytest.param([".", "--meaning", "onnx:nowhere"], 1, "has no model.onnx", id="for a folder of one's own"),
        pytest.param([".", "--meaning", "bge"], 2, "onnx:FOLDER or the address", id="a name alone"),
        pytest.param([".", "--meaning", "onnx:x"], 1, "install 'datafari-rag[vectors]'", id="without the libraries"),
    ],
)
def test_what_meaning_needs_is_said(arguments: list[str], code: int, sentence: str, tmp_path: Path) -> None:
    # In a process of its own: a server replaces parts of the standard library.
    environ = {**os.environ, "DATAFARI_RAG_HOME": str(tmp_path / "home")}
    if "vectors" in sentence:
        (tmp_path / "onnxruntime.py").write_text("raise ImportError")
        environ["PYTHONPATH"] = str(tmp_path)
    command = [sys.executable, "-m", "datafari_rag", "demo", *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_each_question_has_its_answer_in_its_document_and_finds_it(directory: Path, question: dict[str, Any]) -> None:
    access = filter_for(User("admin", frozenset(USERS["admin"])), mode="tokens", anonymous="public")
    words = sought_in(question["question"], "en")
    found = EmbeddedRetriever(directory).search(Search("", Step("any word", words, "OR"), 3), access).documents
    texts = [" ".join(document.text.lower().split()) for document in found if document.id in question["doc_ids"]]
    assert any(" ".join(answer.lower().split()) in text for answer in question["answers"] for text in texts)


def test_the_licences_of_the_sources_are_there() -> None:
    assert "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2" in (DEMO / "LICENSE-Python.txt").read_text(encoding="utf-8")
    assert "UNIVERSITY OF CALIFORNIA" in (DEMO / "LICENSE-PostgreSQL.txt").read_text(encoding="utf-8")
    notice = (DEMO / "README.md").read_text(encoding="utf-8")
    assert "https://docs.python.org/3.11/" in notice
    assert "https://www.postgresql.org/docs/15/" in notice
    urls = [json.loads(line)["url"] for line in gzip.decompress((DEMO / "docs.jsonl.gz").read_bytes()).splitlines()]
    assert all(url.startswith(("https://docs.python.org/3.11/", "https://www.postgresql.org/docs/15/")) for url in urls)


def test_the_model_of_a_folder_is_kept_where_other_commands_find_it_and_taken_out_again(tmp_path: Path) -> None:
    conf = tmp_path / "rag.properties"
    conf.write_text("solr.url=embedded:index\n")
    _keep_endpoint(conf, f"onnx:{tmp_path}")
    assert f"embeddings.endpoint=onnx:{tmp_path}" in conf.read_text()
    _keep_endpoint(conf, "")
    assert "\nembeddings.endpoint=onnx" not in conf.read_text()
