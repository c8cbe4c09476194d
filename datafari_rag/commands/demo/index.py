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
from datafari_rag.ingest.manifest import Manifest
from datafari_rag.ingest.run import IndexOrder, IndexRun
from datafari_rag.ingest.sandbox import Sandbox

CORPUS = "docs.jsonl.gz"
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


def build_demo_index(directory: Path) -> None:
    """
    Put the shipped pages, with their rights, into an embedded index in *directory*; return at once when it has them.

    A demo index of another version is created again.

    Raises:
        SearchUnavailable: the index there is damaged, or being written to.
        ManifestError: its list of documents cannot be kept.
    """
    corpus = resources.files("datafari_rag.resources") / "demo" / CORPUS
    wanted = (hashlib.sha256(corpus.read_bytes()).hexdigest(), json.dumps(versions()))
    found = _marked(directory)
    if found == wanted and (directory / META_FILE).exists():
        return
    if found is not None and found[1] != wanted[1]:
        shutil.rmtree(directory)
    with resources.as_file(corpus) as path, closing(EmbeddedWriter(directory)) as writer, Sandbox() as reader:
        # The root's name is not the file's place, which differs between installations.
        with closing(Manifest(directory / "manifest.sqlite", "demo")) as manifest:
            IndexRun(IndexOrder(path), writer, manifest, SilentListener(), reader).go()
        write_whole(directory / MARK, "\n".join(wanted))


def _marked(directory: Path) -> tuple[str, str] | None:
    """Return the corpus and the versions that a demo index was made of; None when *directory* holds none."""
    try:
        corpus, _, made_by = (directory / MARK).read_text(encoding="utf-8").partition("\n")
    except OSError:
        return None
    return corpus, made_by
