"""
The first page of `datafari-rag demo FOLDER`: how far its watcher is, and questions made from the folder's own files.

Only where `demo.progress` names the watcher's file. The questions come from a plain search as the user who asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from flask import Response, request

from datafari_rag.core.errors import NotFound
from datafari_rag.core.query.example_questions import ExampleTopic, topics_of
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.answers import WorkerContext, json_response
from datafari_rag.web.api.search import searched
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.pages.messages import Translate
from datafari_rag.web.request_values import headers_of

MAX_PROGRESS_BYTES = 10_000
DOCUMENTS = 10
"""Documents that questions are made from, the latest ones."""

UNKNOWN: Mapping[str, Any] = {"folder": "", "isReading": True, "reading": "", "percent": 0, "runs": 0}
"""What is known before the watcher has said anything."""


def progress(worker: WorkerContext) -> Response:
    """Return how far the watcher is. Raises: NotFound: there is none."""
    path = worker.snapshot().settings.demo_progress
    if not path:
        raise NotFound
    return json_response(plain(_progress(path)))


def folder_values(worker: WorkerContext, translate: Translate) -> dict[str, object]:
    """Return what the first page shows of the folder; nothing where no folder is served."""
    path = worker.snapshot().settings.demo_progress
    if not path:
        return {}
    wanted = {"rows": (str(DOCUMENTS),), "fl": ("id,title,preview_content",), "sort": ("last_modified desc",)}
    reply = searched(worker, Incoming("/", wanted, headers=headers_of(request)), request.remote_addr or "")
    rows = orjson.loads(reply.get_data()).get("response", {}).get("docs", [])
    topics = topics_of((_first(row, "title"), _first(row, "preview_content")) for row in rows)
    examples = [_question(one, translate) for one in topics]
    return {"examples": examples, "progress": _progress(path), "is_empty": not rows}


def _progress(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            known = orjson.loads(file.read(MAX_PROGRESS_BYTES))
    except (OSError, ValueError):
        known = {}
    return {
        name: known[name] if isinstance(known, dict) and name in known else value for name, value in UNKNOWN.items()
    }


def _question(topic: ExampleTopic, _: Translate) -> str:
    if topic.question:
        return topic.question
    if topic.section:
        return _("What does “{title}” say about “{section}”?").format(title=topic.title, section=topic.section)
    return _("What does “{title}” say?").format(title=topic.title)


def _first(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name) or ""
    return str(value[0] if isinstance(value, list) else value)
