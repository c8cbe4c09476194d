from __future__ import annotations

import re

from datafari_rag.core.documents import Document, Extract
from datafari_rag.web.ops.metrics import Metrics


def newest(metrics: Metrics) -> float:
    (found,) = re.findall(r"^datafari_rag_newest_document_timestamp_seconds (\S+)", metrics.exposition().decode(), re.M)
    return float(found)


def shown(*dates: str | None) -> list[Extract]:
    return [Extract(1, "a", Document("a", "text", last_modified=date), (), "text") for date in dates]


def test_the_newest_date_that_was_shown_is_kept_to_the_hour() -> None:
    metrics = Metrics()
    metrics.freshness.note_documents(shown(None, "no date"), now_s=10_000.0)
    assert newest(metrics) == 0.0
    metrics.freshness.note_documents(shown("1970-01-01T02:30:00Z", "1970-01-01T01:00:00Z"), now_s=10_000.0)
    assert newest(metrics) == 7200.0
    metrics.freshness.note_documents(shown("1970-01-01T01:00:00Z"), now_s=10_000.0)
    assert newest(metrics) == 7200.0


def test_a_date_that_lies_ahead_is_not_believed() -> None:
    metrics = Metrics()
    metrics.freshness.note_documents(shown("2999-01-01T00:00:00Z"), now_s=10_000.0)
    assert newest(metrics) == 0.0
