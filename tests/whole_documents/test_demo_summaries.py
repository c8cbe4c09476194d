"""Summaries without a model of documents that ship with the package: every sentence is proved."""

from __future__ import annotations

import gzip
import json
from importlib import resources

import pytest

from datafari_rag.core.access import ANONYMOUS
from datafari_rag.core.ask import Ask, DocumentWork
from datafari_rag.core.documents import Document
from datafari_rag.core.events import Finished
from datafari_rag.whole_documents import worked
from tests.fakes import FakeModel, FakeRetriever, parts_of
from tests.settings import settings_with

DEMO = resources.files("datafari_rag.resources") / "demo" / "docs.jsonl.gz"
ROWS = [json.loads(line) for line in gzip.decompress(DEMO.read_bytes()).splitlines()]
EVERY_TWELFTH = [Document(row["id"], row["content"], title=row["title"]) for row in ROWS[::12]]


@pytest.mark.parametrize("document", EVERY_TWELFTH, ids=lambda document: document.id)
def test_every_sentence_is_verified_or_supported(document: Document) -> None:
    settings = settings_with(rag_api_endpoint="builtin:extractive")
    parts = parts_of(FakeRetriever(document), FakeModel())
    ask, work = Ask("", document_ids=(document.id,)), DocumentWork("summarize")
    *_, finished = worked(ask, work, ANONYMOUS, settings=settings, dependencies=parts)
    assert isinstance(finished, Finished)
    assert finished.citations
    assert {one.status for one in finished.citations} <= {"verified", "quoted"}
    assert all(document.text[one.start : one.end] == one.quote for one in finished.citations)
    starts = [one.start or 0 for one in finished.citations]
    assert starts == sorted(starts)
