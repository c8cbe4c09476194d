"""What the stub Solr answers: documents made of the demo pages, so that passages are chosen from real text."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

DEMO = resources.files("datafari_rag.resources") / "demo"
FIELDS = ("id", "url", "title", "content_en", "exactContent", "preview_content", "language", "last_modified", "source")
ACL = ("allow_token_document", "deny_token_document", "allow_token_parent", "deny_token_parent")
SHARES = ("allow_token_share", "deny_token_share")

VARIED_CHARS = 12_000_000
"""Text of all different answers together: more would only take time to write and to read."""


def texts() -> list[str]:
    """Return the demo pages."""
    lines = gzip.decompress((DEMO / "docs.jsonl.gz").read_bytes()).decode().splitlines()
    return [json.loads(line)["content"] for line in lines]


def questions() -> list[str]:
    """Return the demo's questions."""
    lines = (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines if line.strip()]


def answer(pages: Sequence[str], *, documents: int, chars: int, seed: int) -> Mapping[str, object]:
    """Return Solr's answer with *documents* of *chars* characters each; the same for the same *seed*."""
    chosen = random.Random(seed)
    rows = []
    for number in range(documents):
        text = ""
        while len(text) < chars:
            text += chosen.choice(pages) + "\n\n"
        rows.append(
            {
                "id": f"bench-{seed}-{number}",
                "url": f"https://documents.example/{seed}/{number}",
                "title": f"Manual {seed}, part {number}",
                "language": ["en"],
                "exactContent": [text[:chars]],
                "score": 9.0 - number / (documents + 1),
                "_version_": seed,
            }
        )
    return {
        "responseHeader": {"status": 0, "QTime": 1},
        "response": {"numFound": documents, "start": 0, "maxScore": 9.0, "docs": rows},
        "highlighting": {},
    }


def write_answers(file: Path, *, documents: int = 3, chars: int = 20_000) -> None:
    """Write what `stub_solr.js` reads: up to 40 different answers."""
    pages = texts()
    schema = {
        "fieldTypes": [{"name": "text", "class": "solr.TextField"}, {"name": "string", "class": "solr.StrField"}],
        "fields": [
            {"name": name, "type": "text" if "ontent" in name else "string"} for name in (*FIELDS, *ACL, *SHARES)
        ],
    }
    variety = max(3, min(40, VARIED_CHARS // (documents * chars)))
    small = [answer(pages, documents=documents, chars=chars, seed=seed) for seed in range(variety)]
    file.write_text(json.dumps({"small": small, "schema": schema}), encoding="utf-8")
