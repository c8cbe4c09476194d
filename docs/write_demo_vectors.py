"""
Write the vectors of the demo's documents, which come with the package: `.venv/bin/python docs/write_demo_vectors.py`.

Needs the extra `vectors` and the model, which `datafari-rag model get bge-small-en` fetches. Some two minutes of CPU;
to be run again when the corpus, the model, or how documents are cut into pieces changes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tantivy import Query

from datafari_rag.adapters.embedded.replies import stored_of
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.vector_files import Rows, listed, mapped
from datafari_rag.adapters.vectors.factory import embedder_for, file_bytes
from datafari_rag.commands.demo.command import MODEL
from datafari_rag.commands.demo.index import VECTORS, build_demo_index
from datafari_rag.commands.model import default_folder
from datafari_rag.core.meaning.near_search import context_of, pieces_of
from datafari_rag.core.settings.answers import ONNX, EmbeddingsSettings
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel

INTO = Path(__file__).parent.parent / "datafari_rag" / "resources" / "demo" / VECTORS


def rows_in(index: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each passage of *index* as its model was given it, with its vector."""
    view = EmbeddedRetriever(index).view()
    vectors: dict[int, list[Rows]] = {}
    for rows in mapped(index, listed(index).generations[-1]):
        for row in rows:
            vectors.setdefault(int(row["block"]), []).append(row)
    for _, place in view.searcher.search(Query.all_query(), limit=view.searcher.num_docs, count=False).hits:
        stored = stored_of(view.searcher.doc(place))
        text, title = str(stored["exactContent"][0]), str(stored.get("title", [""])[0])
        own = vectors.get(stored.get("block", [0])[0], [])
        for piece, row in zip(pieces_of(text), own, strict=False):
            assert (piece.start, piece.end) == (int(row["start"]), int(row["end"]))  # noqa: S101 # a script
            yield context_of(piece, text, title), row["vector"].tobytes()


def main() -> None:
    """Build the demo's index with the model, without what is shipped now, and write the file anew."""
    INTO.unlink(missing_ok=True)
    embedder = embedder_for(Settings(embeddings=EmbeddingsSettings(f"{ONNX}{default_folder(MODEL)}")))
    with tempfile.TemporaryDirectory() as folder:
        index = Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "index"
        if not sys.argv[1:]:
            build_demo_index(index, embedder)
        generation = listed(index).generations[-1]
        model = EmbeddingModel(generation.name, generation.key, generation.dimensions)
        INTO.write_bytes(file_bytes(model, rows_in(index)))


if __name__ == "__main__":
    main()
