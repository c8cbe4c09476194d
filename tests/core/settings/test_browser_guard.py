"""What a browser may not change, so that neither a secret nor a file of the server gets out."""

from __future__ import annotations

import pytest

from datafari_rag.core.settings.browser_guard import refusals

WRITTEN = {
    "rag.api.endpoint": "https://model.example.org/v1/chat/completions",
    "rag.api.token": "${TOKEN}",
    "llm.fallback.tokens": "",
}

REFUSED = [
    pytest.param({"no.such.key": "1"}, "Unknown key", id="a key that is none"),
    pytest.param(
        {"rag.instructions.file": "/etc/passwd"}, "names a file", id="a file that would be shown to the model"
    ),
    pytest.param({"log.file": None}, "names a file", id="a file, even back to its default"),
    pytest.param({"rag.model": "${HOME}"}, "A reference", id="a variable that would be shown as the model's name"),
    pytest.param({"rag.api.token": "file:/etc/shadow"}, "A reference", id="a file as a secret"),
    pytest.param({"solr.url": "https://***@solr.example.org/solr/x"}, "hidden", id="an address with a hidden password"),
    pytest.param({"rag.api.endpoint": "https://evil.example.org/"}, "another place", id="a token sent elsewhere"),
    pytest.param({"rag.api.endpoint": None}, "another place", id="a token sent to the default"),
]
ALLOWED = [
    pytest.param({}, id="nothing"),
    pytest.param({"rag.temperature": "0.2", "rag.model": None}, id="plain values"),
    pytest.param(
        {"rag.api.endpoint": "https://b.example.org/", "rag.api.token": "new"}, id="an address with its token"
    ),
    pytest.param({"rag.api.endpoint": "https://b.example.org/", "rag.api.token": None}, id="an address without token"),
    pytest.param({"llm.fallback": "https://b.example.org/"}, id="an address whose token is empty"),
    pytest.param({"rag.api.token": "sk-new"}, id="a new token"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_it_refuses(changes: dict[str, str | None], words: str) -> None:
    (problem,) = refusals(WRITTEN, changes)
    assert words in problem.message
    assert problem.key in changes


@pytest.mark.parametrize("changes", ALLOWED)
def test_it_allows(changes: dict[str, str | None]) -> None:
    assert refusals(WRITTEN, changes) == ()
