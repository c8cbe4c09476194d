"""What the page's script is told of comparing: with how many documents, and in which words."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from datafari_rag.core.settings.table import Settings
from tests.fakes import app_of, fake_snapshot


def setup(settings: Settings, language: str = "en") -> dict[str, Any]:
    client = app_of(fake_snapshot(settings=settings)).test_client()
    body = client.get("/", headers={"Accept": "text/html", "Accept-Language": language}).get_data(as_text=True)
    found: dict[str, Any] = json.loads(unescape(body.split('data-setup="')[1].split('"')[0]))
    return found


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        pytest.param(Settings(), 5, id="as shipped"),
        pytest.param(replace(Settings(), synthesis_max_files=3), 3, id="fewer"),
        pytest.param(replace(Settings(), ai_enable_synthesis=False), 0, id="switched off"),
    ],
)
def test_as_many_documents_are_compared_as_the_service_takes(settings: Settings, most: int) -> None:
    assert setup(settings)["most"] == most


def test_every_reason_to_leave_a_document_out_has_its_sentence() -> None:
    for language in ("en", "fr"):
        left_out = setup(Settings(), language)["words"]["left_out"]
        assert set(left_out) == {"notFound", "empty", "overLimit"}
        assert all("{title}" in sentence for sentence in left_out.values())
