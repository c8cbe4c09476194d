"""Names and windows of models, as servers say them."""

from __future__ import annotations

import pytest

from datafari_rag.core.model.servers import named_in, names_in, window_in

LISTED = {
    "vllm": ({"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": 32768}, 32768),
    "llama.cpp": ({"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 131072}}, 8192),
    "mistral": ({"id": "m", "max_context_length": 131072}, 131072),
    "openrouter": ({"id": "m", "context_length": 200000}, 200000),
    "groq": ({"id": "m", "context_window": 131072}, 131072),
    "openai, which says nothing": ({"id": "m", "object": "model", "owned_by": "system"}, None),
    "lm studio, loaded": ({"id": "m", "max_context_length": 131072, "loaded_context_length": 4096}, 4096),
    "another model": ({"id": "n", "max_model_len": 1}, None),
    "a window that is none": ({"id": "m", "max_model_len": "9", "meta": [], "n_ctx": True}, None),
}


@pytest.mark.parametrize(("item", "window"), LISTED.values(), ids=LISTED.keys())
def test_the_window_of_a_listed_model(item: dict[str, object], window: int | None) -> None:
    assert window_in({"object": "list", "data": [{"id": "other"}, item]}, "m") == window


@pytest.mark.parametrize("reply", [None, [], "x", {}, {"data": {}}, {"data": [1, {}, {"id": 7}, {"id": ""}]}])
def test_what_is_no_listing_lists_nothing(reply: object) -> None:
    assert (names_in(reply), window_in(reply, "m")) == ((), None)


def test_names_come_in_their_order() -> None:
    assert names_in({"data": [{"id": "b"}, {"id": "a"}]}) == ("b", "a")


def test_props_of_llama_cpp() -> None:
    assert window_in({"default_generation_settings": {"n_ctx": 4096}}, "m") == 4096
    assert [window_in(reply, "m") for reply in (None, {}, {"default_generation_settings": 1})] == [None] * 3


def test_what_ollama_has_loaded() -> None:
    """As docs.ollama.com/api/ps has the reply."""
    loaded = {"models": [{"name": "llama3.2:latest", "model": "llama3.2:latest", "context_length": 4096}]}
    assert [window_in(loaded, name) for name in ("llama3.2", "llama3.2:latest", "llama3.2:1b")] == [4096, 4096, None]


def test_a_model_is_found_by_its_name_and_ollamas_without_its_tag() -> None:
    names = ("b:latest", "a", "a:latest")
    assert [named_in(names, wanted) for wanted in ("a", "b", "c")] == ["a", "b:latest", None]


def test_what_ollama_shows() -> None:
    """As github.com/ollama/ollama's docs/api.md has the reply."""
    shown = {
        "parameters": 'num_keep 24\nnum_ctx                        8192\nstop "x"',
        "model_info": {"llama.context_length": 131072},
    }
    assert window_in(shown, "m") == 8192
    assert [window_in(reply, "m") for reply in (None, {}, {"parameters": 1}, {"parameters": "stop x"})] == [None] * 4
