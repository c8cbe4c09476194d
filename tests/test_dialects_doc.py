"""The examples of docs/dialects.md are requests that the service takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from datafari_rag.protocols.chat import SENTENCES
from datafari_rag.web.routes import ROUTES
from tests.fakes import app_of, fake_snapshot

PAGE = (Path(__file__).parents[1] / "docs" / "dialects.md").read_text("utf-8")
REQUESTS = [found for found in re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL) if '"messages"' in found]


@pytest.mark.parametrize(
    ("path", "example"), list(zip(("/chat", "/v1/chat/completions"), REQUESTS, strict=True)), ids=["chat", "openai"]
)
def test_an_example_is_answered(path: str, example: str) -> None:
    reply = app_of(fake_snapshot()).test_client().post(path, json=json.loads(example))
    assert reply.status_code == 200


def test_every_path_of_a_dialect_is_named() -> None:
    for route in ROUTES:
        paths = [path.replace("<path:name>", "ID") for path in route.paths]
        assert any(f"{path}`" in PAGE or f"{path}?" in PAGE for path in paths), paths


def test_overrides_that_are_named_exist() -> None:
    table = PAGE[PAGE.index("| override |") : PAGE.index("Text files sent along")]
    rows = [line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row)}
    assert named <= set(SENTENCES)
