"""What the page of a document offers of its summary."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape

import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.settings.table import Settings
from tests.fakes import FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

HOSTILE = Document("'\"><script>x()</script>&lt;", "Some words of it.", title="T")


def page(settings: Settings, document: Document = HOSTILE, language: str = "en") -> str:
    client = app_of(fake_snapshot(FakeRetriever(document), settings=settings)).test_client()
    reply = client.get("/documents", query_string={"id": document.id, "hl": language}, headers={"Accept": "text/html"})
    assert reply.status_code == 200
    return reply.get_data(as_text=True)


@pytest.mark.parametrize(("language", "word"), [("en", "Summarise"), ("fr", "Résumer")])
def test_a_summary_is_offered_with_the_words_of_the_script(language: str, word: str) -> None:
    client = app_of(fake_snapshot(FakeRetriever(HOSTILE))).test_client()
    headers = {"Accept": "text/html", "Accept-Language": language}
    body = client.get("/documents", query_string={"id": HOSTILE.id}, headers=headers).get_data(as_text=True)
    assert f">{word}</button>" in body
    words = json.loads(unescape(body.split('data-words="')[1].split('"')[0]))
    assert words["id"] == HOSTILE.id
    assert set(words) == {"id", "statuses", "failures", "open_passage", "summarising", "failed"}
    assert "<script>x()" not in body


def test_nothing_is_offered_where_it_is_switched_off_or_there_is_no_text() -> None:
    assert "data-words" not in page(settings_with(ai_enable_summarization=False))
    assert "data-words" not in page(Settings(), replace(HOSTILE, text=" "))
