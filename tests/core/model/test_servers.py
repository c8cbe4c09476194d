"""What is known of servers and models by their addresses and names."""

from __future__ import annotations

import pytest

from datafari_rag.core.model.servers import PAPERS_FORM, SERVERS, completed, needs_for, with_query

OPENAI = "https://api.openai.com/v1/chat/completions"
LOCAL = "http://127.0.0.1:8000/v1/chat/completions"

BASES = {
    "no path": ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"),
    "a slash": ("http://a:1/", "http://a:1/v1/chat/completions"),
    "a version": ("https://api.openai.com/v1", OPENAI),
    "a version and a slash": ("https://api.openai.com/v1/", OPENAI),
    "a version below a path": ("https://a/api/v3", "https://a/api/v3/chat/completions"),
    "gemini's": (
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
    ),
    "a query": ("http://a/v1?x=1", "http://a/v1/chat/completions?x=1"),
    "a whole address": (OPENAI, OPENAI),
    "another path": ("http://a/rag/answer", "http://a/rag/answer"),
    "a path that only contains a version": ("http://a/v1/custom", "http://a/v1/custom"),
}


@pytest.mark.parametrize(("base", "address"), BASES.values(), ids=BASES.keys())
def test_a_base_address_is_completed_and_any_other_is_not(base: str, address: str) -> None:
    assert completed(base) == address
    assert completed(address) == address


@pytest.mark.parametrize(
    ("url", "model", "is_bare"),
    [
        (OPENAI, "gpt-5", True),
        (OPENAI, "gpt-5.4-mini", True),
        (OPENAI, "o3", True),
        (OPENAI, "o4-mini", True),
        (OPENAI, "gpt-4.1-mini", False),
        (OPENAI, "gpt-50", False),
        (OPENAI, "omni", False),
        ("https://x.openai.azure.com/openai/deployments/d/chat/completions", "o3-mini", True),
        (LOCAL, "gpt-5", False),
        ("https://api.openai.com.example.org/v1", "gpt-5", False),
    ],
)
def test_models_of_openai_that_reason_get_no_temperature(url: str, model: str, is_bare: bool) -> None:
    needs = needs_for("auto", url, model)
    assert needs.sends_temperature is not is_bare
    assert (needs.thinking == "apart") is is_bare


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("qwen3:8b", "aloud"),
        ("Qwen/Qwen3-8B", "aloud"),
        ("Qwen/Qwen3-4B-Thinking-2507", "aloud"),
        ("Qwen/Qwen3-4B-Instruct-2507", "none"),
        ("qwen3-coder:30b", "none"),
        ("deepseek-r1:14b", "aloud"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "aloud"),
        ("openai/gpt-oss-20b", "aloud"),
        ("llama3.2", "none"),
        ("", "none"),
    ],
)
def test_models_that_think_are_known_by_their_names(model: str, thinking: str) -> None:
    assert needs_for("auto", LOCAL, model).thinking == thinking


@pytest.mark.parametrize("server", sorted(set(SERVERS) - {"openai", "azure", "gemini"}))
def test_other_servers_get_the_papers_form(server: str) -> None:
    assert needs_for(server, LOCAL, "llama3.2") == PAPERS_FORM


def test_a_version_is_added_to_azures_older_paths_alone() -> None:
    query = SERVERS["azure"].query
    newer = "https://x.openai.azure.com/openai/v1/chat/completions"
    assert with_query(newer, query) == newer


def test_a_version_is_added_where_azures_older_path_has_none() -> None:
    older = "https://x.openai.azure.com/openai/deployments/d/chat/completions"
    query = SERVERS["azure"].query
    assert with_query(older, query) == f"{older}?api-version=2024-10-21"
    assert with_query(f"{older}?a=1", query) == f"{older}?a=1&api-version=2024-10-21"
    assert with_query(f"{older}?api-version=1", query) == f"{older}?api-version=1"
