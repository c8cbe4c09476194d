"""The index of the shipped corpus: made once, in a few seconds, and left alone while it is current."""

from __future__ import annotations

import hashlib
from contextlib import closing
from importlib import resources
from pathlib import Path

from datafari_rag.adapters.embedded_schema import META_FILE, write_whole
from datafari_rag.adapters.embedded_writer import EmbeddedWriter
from datafari_rag.ingest.manifest import Manifest
from datafari_rag.ingest.run import Order, Run
from datafari_rag.ingest.silent import Silent

CORPUS = "docs.jsonl.gz"
MARK = "demo-corpus.sha256"


def build_demo_index(directory: Path) -> None:
    """
    Put the shipped pages, with their rights, into an embedded index in *directory*; return at once when it has them.

    Raises:
        SearchUnavailable: the index there is damaged, of another version, or being written to.
        ManifestError: its list of documents cannot be kept.
    """
    corpus = resources.files("datafari_rag.resources") / "demo" / CORPUS
    digest = hashlib.sha256(corpus.read_bytes()).hexdigest()
    if _marked(directory) == digest:
        return
    with resources.as_file(corpus) as path, closing(EmbeddedWriter(directory)) as writer:
        # The root's name is not the file's place, which differs between installations.
        with closing(Manifest(directory / "manifest.sqlite", "demo")) as manifest:
            Run(Order(path), writer, manifest, Silent()).go()
        write_whole(directory / MARK, digest)


def _marked(directory: Path) -> str:
    try:
        return (directory / MARK).read_text(encoding="utf-8") if (directory / META_FILE).exists() else ""
    except OSError:
        return ""
