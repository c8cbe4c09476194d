"""The index of the shipped corpus: made once, in a few seconds, and left alone while it is current."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from importlib import resources
from pathlib import Path

from datafari_rag.adapters.embedded.files import META_FILE, write_whole
from datafari_rag.adapters.embedded.schema import versions
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.vectors.factory import shipped
from datafari_rag.ingest.embedding import FORM as EMBEDDING_FORM
from datafari_rag.ingest.embedding import EmbeddingWriter
from datafari_rag.ingest.manifest import Manifest
from datafari_rag.ingest.run import IndexOrder, IndexRun
from datafari_rag.ingest.sandbox import Sandbox
from datafari_rag.ports import Embedder, Writer

CORPUS = "docs.jsonl.gz"
VECTORS = "vectors-bge-small-en.bin"
"""The vectors of its passages, as the model of that name makes them."""

MARK = "demo-corpus.sha256"


class SilentListener:
    """A listener for a run of a few seconds without progress output."""

    def started(self, total_bytes: int) -> None:
        """Say nothing."""

    def reading(self, path: str) -> None:
        """Say nothing."""

    def advanced(self, size_bytes: int, documents: int) -> None:
        """Say nothing."""

    def failed(self, where: str, why: str) -> None:
        """Say nothing."""


def build_demo_index(directory: Path, embedder: Embedder | None = None) -> None:
    """
    Index the shipped pages, with their rights, in *directory*; return immediately when the index has them.

    With *embedder* they have vectors: the shipped ones, where its model made them. A demo index of another version is
    created again.

    Raises:
        SearchUnavailable: the index there is damaged, or being written to.
        ManifestError: its list of documents cannot be kept.
        EmbeddingError: the model cannot be used.
    """
    corpus = resources.files("datafari_rag.resources") / "demo" / CORPUS
    form = {} if embedder is None else {"vectors": [EMBEDDING_FORM, embedder.model.key]}
    wanted = (hashlib.sha256(corpus.read_bytes()).hexdigest(), json.dumps({**versions(), **form}))
    found = _marked(directory)
    if found == wanted and (directory / META_FILE).exists():
        return
    if found is not None and found[1] != wanted[1]:
        shutil.rmtree(directory)
    with resources.as_file(corpus) as path, closing(EmbeddedWriter(directory)) as writer, Sandbox() as reader:
        # The root's name is not the file's place, which differs between installations.
        with closing(Manifest(directory / "manifest.sqlite", "demo")) as manifest:
            IndexRun(IndexOrder(path), _embedding(writer, embedder), manifest, SilentListener(), reader).go()
        write_whole(directory / MARK, "\n".join(wanted))


def _embedding(writer: EmbeddedWriter, embedder: Embedder | None) -> Writer:
    if embedder is None:
        return writer
    file = resources.files("datafari_rag.resources") / "demo" / VECTORS
    return EmbeddingWriter(writer, shipped(file.read_bytes(), embedder) if file.is_file() else embedder)


def _marked(directory: Path) -> tuple[str, str] | None:
    """Return the corpus and the versions that a demo index was made of; None when *directory* holds none."""
    try:
        corpus, _, made_by = (directory / MARK).read_text(encoding="utf-8").partition("\n")
    except OSError:
        return None
    return corpus, made_by
