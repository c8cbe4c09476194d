"""`datafari-rag index` with an embedding model: vectors beside the documents, and what a kill leaves of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from datafari_rag.adapters.settings.file import snapshot_of
from datafari_rag.adapters.vectors.factory import meaning_for
from datafari_rag.bootstrap import create_app, retriever_for
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.errors import EmbeddingError, SearchUnavailable
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.settings.table import Settings
from tests.commands.test_index import Place, killed_after, write_version
from tests.required import library
from tests.settings import settings_with
from tests.tiny_model import tiny_model

library("onnxruntime", "make .venv/.dev")
library("tokenizers", "make .venv/.dev")

ANYBODY = filter_for(ANONYMOUS, mode="tokens", anonymous="public")


class Vectors(Place):
    """A place whose settings name a model of a few hundred bytes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.model = tiny_model(folder / "model")
        self.configure()

    def configure(self, *lines: str) -> None:
        wanted = (f"solr.url=embedded:{self.index}", f"embeddings.endpoint=onnx:{self.model}", *lines)
        self.conf.write_text("\n".join(("rag.api.endpoint=builtin:extractive", *wanted)))

    def settings(self) -> Settings:
        return snapshot_of(self.conf, environ={}).settings

    def near(self, question: str, documents: int = 1) -> list[str]:
        """Return the names of the nearest documents."""
        meaning = meaning_for(self.settings(), retriever_for(self.settings()))
        assert meaning is not None
        vector = meaning.embedder.embed([question], "query")[0]
        search = NearSearch(vector, meaning.embedder.model.key, documents)
        found = meaning.passages.compared(meaning.passages.nearest(search, ANYBODY), search, ANYBODY)
        for document in found:
            assert all(document.text[near.start : near.end].strip() for near in document.near)
        return [document.id.rpartition("/")[2] for document in found]


@pytest.fixture
def place(tmp_path: Path) -> Vectors:
    place = Vectors(tmp_path)
    for name, text in (("a", "pump pump"), ("b", "parents holiday"), ("c", "cat")):
        (place.files / f"{name}.txt").write_text(text)
    return place


def test_documents_are_found_by_meaning_when_the_command_returns(place: Vectors) -> None:
    assert place.run(place.files).exit_code == 0
    assert place.near("leave") == ["b.txt"] and place.near("cat") == ["c.txt"]
    assert "0 documents written" in place.run(place.files).stdout


def test_a_document_that_is_gone_is_found_by_nothing(place: Vectors) -> None:
    place.run(place.files)
    (place.files / "b.txt").unlink()
    place.run(place.files)
    assert sorted(place.near("leave", 9)) == ["a.txt", "c.txt"]


def test_vectors_that_are_switched_on_later_come_with_the_next_run(place: Vectors) -> None:
    place.conf.write_text(f"solr.url=embedded:{place.index}")
    place.run(place.files)
    place.configure()
    with pytest.raises(SearchUnavailable):
        place.near("leave")
    assert "3 documents written" in place.run(place.files).stdout
    assert place.near("leave") == ["b.txt"]


def test_another_model_is_named_until_every_path_was_indexed_with_it(place: Vectors, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "d.txt").write_text("leave")
    place.run(place.files)
    place.run(tmp_path / "more")
    tiny_model(place.model, name="another")
    with pytest.raises(EmbeddingError):
        place.near("leave")
    told = place.run(place.files)
    assert "3 documents written" in told.stdout
    assert "Warning: 1 documents of other PATHs have vectors of another embedding model" in told.stderr
    assert place.near("leave") == ["b.txt"]
    assert "Warning" not in place.run(tmp_path / "more").stderr
    assert place.near("leave") == ["d.txt"]


def test_a_model_that_cannot_be_used_stops_the_command_and_is_named(place: Vectors) -> None:
    (place.model / "model.onnx").unlink()
    told = place.run(place.files)
    assert (
        told.exit_code == 1 and "The folder of the embedding model has no model.onnx: docs/embeddings.md" in told.stderr
    )


def test_a_bad_value_is_told_with_its_line(place: Vectors) -> None:
    place.configure("embeddings.token=${NO_SUCH_VARIABLE}")
    told = place.run(place.files)
    assert told.exit_code == 1 and "rag.properties:4: " in told.stderr


def test_a_kill_at_any_moment_leaves_vectors_of_the_documents_that_are_there(place: Vectors) -> None:
    state = write_version(place, 0)
    run_s = killed_after(place, None)
    rng = random.Random(4)
    for version in range(1, 5):
        new = write_version(place, version)
        killed_after(place, rng.uniform(0.3, 1.1) * run_s)
        found = place.texts()
        assert {*found} - {"a.txt", "c.txt"} in ({*state}, {*new})
        assert {*place.near("version of", 9999)} == {*found}
        state = {name: text for name, text in found.items() if name not in ("a.txt", "c.txt")}
    killed_after(place, None)
    assert {*place.near("version of", 9999)} == {*place.texts()}
    assert len(list(place.index.glob("passages-*.bin"))) <= 9


@pytest.mark.parametrize(
    ("lines", "by"),
    [
        pytest.param((), "both", id="as shipped"),
        pytest.param(("retrieval.method=bm25",), "words", id="words alone"),
        pytest.param(("retrieval.method=vector",), "both", id="meaning alone, read as hybrid"),
        pytest.param(("retrieval.method=rrf",), "both", id="by ranks, read as hybrid"),
    ],
)
def test_the_header_says_what_an_answer_was_found_by(place: Vectors, lines: tuple[str, ...], by: str) -> None:
    (place.files / "d.txt").write_text("The pump in hall 3 is serviced by the maintenance team in May.")
    place.run(place.files)
    place.configure(*lines)
    client = create_app(place.conf).test_client()
    asked = "/search/select?action=rag&format=text&q=when+is+the+pump+serviced"
    reply = client.get(asked)
    assert (reply.status_code, reply.headers.get("X-RAG-Retrieval")) == (200, by), reply.text


def test_an_answer_is_made_by_words_where_the_model_is_gone(place: Vectors) -> None:
    (place.files / "d.txt").write_text("The pump in hall 3 is serviced by the maintenance team in May.")
    place.run(place.files)
    (place.model / "model.onnx").write_bytes(b"no model any more")
    reply = create_app(place.conf).test_client().get("/search/select?action=rag&q=when+is+the+pump+serviced")
    assert (reply.status_code, reply.headers["X-RAG-Retrieval"]) == (200, "words")
    (place.model / "model.onnx").unlink()
    reply = create_app(place.conf).test_client().get("/search/select?action=rag&q=when+is+the+pump+serviced")
    assert (reply.status_code, reply.headers["X-RAG-Retrieval"]) == (200, "words")


def test_without_an_endpoint_nothing_of_it_is_built(place: Vectors) -> None:
    settings = settings_with(place.settings(), embeddings_endpoint="")
    assert meaning_for(settings, retriever_for(settings)) is None
