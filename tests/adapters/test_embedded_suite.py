"""The embedded index in the suite that every retriever passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from tests.adapters.retriever_suite import *  # noqa: F403 - the tests themselves
from tests.adapters.retriever_suite import Load


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@pytest.fixture(scope="module")
def retriever(directory: Path) -> EmbeddedRetriever:
    return EmbeddedRetriever(directory)


@pytest.fixture(scope="module")
def load(directory: Path) -> Iterator[Load]:
    known: set[str] = set()
    with closing(EmbeddedWriter(directory)) as writer:

        def replace(documents: Sequence[Mapping[str, object]]) -> None:
            writer.delete(sorted(known))
            known.clear()
            known.update(str(document["id"]) for document in documents)
            writer.add(documents)
            writer.commit()

        yield replace
