"""
The recipes of docs/models.md: each gives settings without a problem, and its recorded server takes the first request.

The servers' rules are from their makers' pages and from refusals that people reported (tests/data/model_refusals.json;
what Mistral says of parameters that it does not know: editor-code-assistant/eca, issue 231; Azure's header: its REST
reference). llama.cpp and LiteLLM run themselves in tests/clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from datafari_rag.adapters.model.chain import endpoints_for
from datafari_rag.adapters.model.endpoint import HttpModel
from datafari_rag.adapters.settings.file import snapshot_of
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.servers import AUTO, server_at
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending, TextChunk
from tests.support.server import Rule, model_server

PAGE = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^\*\*([^*]+)\*\*[^\n]*\n```properties\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))
NINE = {
    "Azure OpenAI": ("/openai/v1/chat/completions", "api-key"),
    "Ollama": ("/v1/chat/completions", ""),
    "vLLM": ("/v1/chat/completions", "authorization"),
    "llama.cpp": ("/v1/chat/completions", ""),
    "LM Studio": ("/v1/chat/completions", ""),
    "Mistral": ("/v1/chat/completions", "authorization"),
    "Gemini": ("/v1beta/openai/chat/completions", "authorization"),
    "Amazon Bedrock": ("/v1/chat/completions", "authorization"),
    "A LiteLLM proxy": ("/v1/chat/completions", "authorization"),
    "OpenAI": ("/v1/chat/completions", "authorization"),
}
"""The path of the request, and the header of the key."""


def only(*known: str) -> Rule:
    """Refuse any parameter besides *known*, as Mistral does."""

    def rule(body: Mapping[str, Any]) -> tuple[int, object] | None:
        other = next((key for key in body if key not in known), None)
        if other is None:
            return None
        item = {"type": "extra_forbidden", "loc": ["body", other], "msg": "Extra inputs are not permitted"}
        return 422, {"object": "error", "message": {"detail": [item]}, "type": "invalid_request_error"}

    return rule


def without(*names: str) -> Rule:
    """Refuse the parameters *names*, as OpenAI does."""

    def rule(body: Mapping[str, Any]) -> tuple[int, object] | None:
        name = next((name for name in names if name in body), None)
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        error = {"message": message, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}
        return None if name is None else (400, {"error": error})

    return rule


RULES: Mapping[str, tuple[Rule, ...]] = {
    "Mistral": (only("model", "messages", "temperature", "max_tokens", "stream"),),
    "OpenAI": (without("max_tokens"),),
    "Azure OpenAI": (without("max_tokens"),),
}


def settings_of(recipe: str, folder: Path) -> Settings:
    path = folder / "rag.properties"
    path.write_text(recipe, encoding="utf-8")
    keys = dict.fromkeys(re.findall(r"\$\{(\w+)\}", recipe), "k-0123456789")
    snapshot = snapshot_of(path, environ=keys)
    assert [problem.message for problem in snapshot.problems if problem.severity == "error"] == []
    assert [problem.message for problem in snapshot.problems if "base address" not in problem.message] == []
    return snapshot.settings


def test_there_is_a_recipe_for_each_server() -> None:
    assert {name.split(" (")[0] for name in RECIPES} == set(NINE)
    assert all(len(recipe.strip().splitlines()) <= 5 for recipe in RECIPES.values())


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", NINE)
def test_the_server_takes_the_first_request(name: str, is_streamed: bool, tmp_path: Path) -> None:
    settings = settings_of(RECIPES[name], tmp_path)
    (endpoint,) = endpoints_for(settings.rag, settings.llm, settings.tls.llm)
    path, header = NINE[name]
    assert urlsplit(endpoint.url).path == path
    with model_server(*RULES.get(name, ())) as server:
        # Its host is what `auto` knows it by.
        named = server_at(endpoint.url) if endpoint.server == AUTO else endpoint.server
        here = replace(endpoint, url=server.url.replace("/v1/chat/completions", path), server=named)
        asked = Prompt(
            "What is nice?",
            (Extract(1, "City", Document(id="1", text="Paris."), (), "Paris."),),
            "Be brief.",
            "k3j9x2m5q8w1",
            model=settings.rag.model,
            temperature=settings.rag.temperature,
            max_tokens=settings.rag.max_tokens,
        )
        *pieces, ending = HttpModel(here).generate(asked, is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    assert (ending.failure, ending.facts.tries) == (None, 1)
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextChunk)) == "Paris [1]."
    (headers,) = server.headers
    assert [key for key in ("authorization", "api-key") if key in headers] == ([header] if header else [])
