"""Documents on their way into an index with vectors: cut, embedded, handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from datafari_rag.core.errors import EmbeddingsUnavailable, RagError
from datafari_rag.core.meaning.near_search import PieceVector
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from datafari_rag.ingest.embedding import EmbeddingWriter
from datafari_rag.ingest.run import IndexOrder, IndexRun
from datafari_rag.ingest.sandbox import Sandbox
from tests.ingest.house import FakeWriter, Heard

TEXT = "Employees may take parental leave after the birth of a child, for up to six months in all. " * 10


class Embedded(FakeWriter):
    """An engine that keeps vectors as well."""

    vectors: dict[str, Sequence[PieceVector]]
    made: EmbeddingModel

    def add_embedded(
        self,
        documents: Sequence[Mapping[str, object]],
        pieces: Mapping[str, Sequence[PieceVector]],
        made: EmbeddingModel,
    ) -> None:
        self.add(documents)
        self.vectors = dict(pieces)
        self.made = made

    def unembedded(self, made: EmbeddingModel) -> int:
        return 7


class Lengths:
    """A model that distinguishes texts by their length, and remembers them."""

    def __init__(self, error: RagError | None = None) -> None:
        self.model = EmbeddingModel("lengths", "k1", 2, frozenset({"en"}))
        self.error = error
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        if self.error is not None:
            raise self.error
        self.texts += texts
        return [unit_vector([1.0, len(text)]) for text in texts]


def document(name: str, text: object = TEXT, language: str = "en") -> Mapping[str, object]:
    return {"id": name, "exactContent": text, "language": language, "title": "Handbook"}


def test_how_far_a_long_text_is_is_heard() -> None:
    shares: list[float] = []
    into = EmbeddingWriter(Embedded(), Lengths())
    into.heard = shares.append
    into.add([document("a", TEXT * 200)])
    assert len(shares) > 2 and shares == sorted(shares) and shares[-1] == 1.0


def test_every_piece_has_the_vector_of_its_words_under_the_title() -> None:
    engine, model = Embedded(), Lengths()
    EmbeddingWriter(engine, model).add([document("a"), document("b", "A short text.")])
    assert {name: len(own) for name, own in engine.vectors.items()} == {"a": 3, "b": 1}
    for name, text in (("a", TEXT), ("b", "A short text.")):
        for piece in engine.vectors[name]:
            words = f"Handbook\n{text[piece.start : piece.end]}"
            assert words in model.texts and piece.vector == unit_vector([1.0, len(words)])
    assert engine.made == replace(model.model, spread=engine.made.spread) and engine.made.spread


@pytest.mark.parametrize("text", ["", "   ", None])
def test_a_document_without_words_is_written_without_vectors(text: object) -> None:
    engine, model = Embedded(), Lengths()
    EmbeddingWriter(engine, model).add([document("a", text)])
    assert (engine.written, model.texts) == (["a"], [])


def test_a_language_that_the_model_does_not_know_is_written_without_vectors() -> None:
    engine = Embedded()
    EmbeddingWriter(engine, Lengths()).add([document("fr", language="fr"), document("en")])
    assert engine.written == ["fr", "en"] and not engine.vectors["fr"] and engine.vectors["en"]


def test_nothing_is_written_where_vectors_cannot_be_made() -> None:
    engine = Embedded()
    with pytest.raises(EmbeddingsUnavailable):
        EmbeddingWriter(engine, Lengths(EmbeddingsUnavailable())).add([document("a")])
    assert engine.written == []


def test_all_else_is_handed_on() -> None:
    engine = Embedded()
    writer = EmbeddingWriter(engine, Lengths())
    writer.add([document("a")])
    writer.delete(["b"])
    writer.commit()
    assert ({*engine.found}, engine.commits, writer.unembedded()) == ({"a"}, 1, 7)
    writer.add([document("c")])
    writer.close()
    assert engine.coming == {}


def run(folder: Path, engine: FakeWriter, vectors: str) -> int:
    order = IndexOrder(folder / "in", vectors=vectors)
    with Sandbox() as reader:
        return IndexRun(order, engine, Heard(), reader).go().documents


def test_another_model_makes_every_document_be_written_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(TEXT)
    engine = Embedded()
    model = Lengths()
    forms = ["", EmbeddingWriter(engine, model).form]
    model.model = replace(model.model, key="k2")
    forms.append(EmbeddingWriter(engine, model).form)
    assert len({*forms}) == 3
    assert [run(tmp_path, engine, form) for form in (*forms, forms[-1], "", "")] == [1, 1, 1, 0, 1, 0]
