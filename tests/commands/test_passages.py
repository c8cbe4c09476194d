"""`datafari-rag passages sync` as an administrator runs it, and the service over what it wrote."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from datafari_rag.bootstrap import create_app
from datafari_rag.commands.main import main
from tests.passages_in_solr import TwoCollections
from tests.real_solr import Collection
from tests.tiny_model import tiny_model

QUESTION = "/search/select?action=rag&q=When+do+parents+have+holiday%3F"
PAGES = [
    {"id": f"p{n}", "title": "Notes", "language": "en", "exactContent": f"Note {n}. " + "parents holiday pump. " * 60}
    for n in range(40)
]


def settings_in(folder: Path, url: str, **changes: str) -> Path:
    conf = folder / "rag.properties"
    told = {
        "solr.url": url,
        "rag.api.endpoint": "builtin:extractive",
        "embeddings.endpoint": f"onnx:{tiny_model(folder / 'model')}",
        **changes,
    }
    conf.write_text("".join(f"{key}={value}\n" for key, value in told.items()))
    return conf


@pytest.fixture
def solr(solr_collection: Collection) -> Iterator[TwoCollections]:
    both = TwoCollections(solr_collection)
    both.clear()
    yield both
    both.clear()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"solr.url": "embedded:x"}, "has its own passages"),
    ],
    ids=["the embedded index"],
)
def test_what_makes_no_sense_is_told(tmp_path: Path, changes: dict[str, str], told: str) -> None:
    conf = settings_in(tmp_path, "http://127.0.0.1:9/solr/FileShare", **changes)
    said = CliRunner().invoke(main, ["passages", "sync", "--conf", str(conf)])

    assert (said.exit_code, told in said.output) == (1, True)


def test_a_solr_that_is_away_is_named(tmp_path: Path) -> None:
    conf = settings_in(tmp_path, "http://127.0.0.1:9/solr/FileShare")
    said = CliRunner().invoke(main, ["passages", "sync", "--conf", str(conf)])

    assert said.exit_code == 1 and "solr.vector.collection does not respond" in said.output


@pytest.mark.solr
def test_a_service_finds_by_both_what_was_synced_and_by_words_alone_what_was_not(
    solr: TwoCollections, tmp_path: Path
) -> None:
    solr.documents.load(PAGES)
    conf = settings_in(tmp_path, solr.settings.solr.url)
    client = create_app(conf).test_client()
    before = client.get(QUESTION)
    unready: Any = client.get("/health/ready").get_json()
    said = CliRunner().invoke(main, ["passages", "sync", "--conf", str(conf)])
    client = create_app(conf).test_client()
    after = client.get(QUESTION)
    ready: Any = client.get("/health/ready").get_json()

    assert said.exit_code == 0 and said.output.startswith("40 documents written as ")
    assert (before.status_code, before.headers["X-RAG-Retrieval"]) == (200, "words")
    assert (after.status_code, after.headers["X-RAG-Retrieval"]) == (200, "both")
    for one, is_ok in ((unready, False), (ready, True)):
        assert one["status"] == "ready"
        assert [part["ok"] for part in one["dependencies"] if part["what"] == "meaning"] == [is_ok]


@pytest.mark.solr
def test_without_a_model_passages_are_written_and_answers_by_words_read_them(
    solr: TwoCollections, tmp_path: Path
) -> None:
    solr.documents.load(PAGES)
    conf = settings_in(tmp_path, solr.settings.solr.url, **{"embeddings.endpoint": ""})
    said = CliRunner().invoke(main, ["passages", "sync", "--conf", str(conf)])
    answer = create_app(conf).test_client().get(QUESTION)

    assert (said.exit_code, said.output.split(" as ")[0]) == (0, "40 documents written")
    assert len(solr.stored()) >= 40 and not any("vector_model" in one for one in solr.stored())
    assert (answer.status_code, answer.headers["X-RAG-Retrieval"]) == (200, "words")
    assert "parents holiday" in answer.get_data(as_text=True)


@pytest.mark.solr
@pytest.mark.slow
def test_a_run_that_is_killed_is_repaired_by_the_next_and_two_at_once_do_no_harm(
    solr: TwoCollections, tmp_path: Path
) -> None:
    solr.documents.load(PAGES)
    conf = settings_in(tmp_path, solr.settings.solr.url)
    command = [sys.executable, "-m", "datafari_rag", "passages", "sync", "--conf", str(conf)]
    rng = random.Random(18)
    for _ in range(4):
        both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
        time.sleep(rng.uniform(0.5, 4.0))
        for one in both:
            one.kill()
            one.wait()
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)

    assert "0 problems" in said.stdout and again.stdout.startswith("0 documents written")
    stored = solr.stored()
    assert {one["parent_doc"] for one in stored} == {page["id"] for page in PAGES}
    for page in PAGES:
        own = sorted((one for one in stored if one["parent_doc"] == page["id"]), key=lambda one: one["chunk_index"])  # type: ignore[arg-type, return-value]
        assert "".join(str(one["embedded_content"]) for one in own) == str(page["exactContent"])
