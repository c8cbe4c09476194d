"""The texts of `tests/data/hostile`, whose README says where they are from, and honest questions to ask beside them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


ATTACKS = _rows("hostile/attacks.jsonl")
"""Instructions to a model: `id`, `category`, `text`, and `canary`, what a model that obeys says (or null)."""

QUERIES: list[str] = [row["q"] for row in _rows("hostile/queries.jsonl")]
"""Questions that break things."""

QUESTIONS = _rows("questions.jsonl")
"""Questions on the documents of the demo: `question`, `answers` (each is one in the text), `doc_ids`."""


@cache
def pages() -> dict[str, dict[str, Any]]:
    """Return the documents of the demo by their ids."""
    packed = resources.files("datafari_rag.resources") / "demo" / "docs.jsonl.gz"
    documents = map(json.loads, gzip.decompress(packed.read_bytes()).splitlines())
    return {document["id"]: document for document in documents}
