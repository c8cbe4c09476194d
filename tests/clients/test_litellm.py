"""The LiteLLM proxy, an OpenAI-compatible server written by others, as the model behind our client."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import RefusedByModel
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import ModelLimits
from datafari_rag.ports import Ending, TextChunk
from tests.adapters.model.test_endpoint_forms import MISTRAL, OPENAI
from tests.end_to_end.processes import Running, free_port
from tests.required import present
from tests.support.server import ModelServer, model_server
from tests.support.stub import Stub, running_stub
from tests.support.waiting import until

PROXY = Path(__file__).parents[2] / ".venvs" / "litellm" / "bin" / "litellm"
KEY = "sk-0123456789abcdef0123456789abcdef"

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
]

MOCKS: dict[str, dict[str, Any]] = {
    "good": {"mock_response": "The plane to Nice takes off at 15:50."},
    "limited": {"mock_response": "litellm.RateLimitError"},
    "window": {"mock_response": "litellm.ContextWindowExceededError"},
    "broken": {"mock_response": "litellm.InternalServerError"},
    "late": {"mock_response": "x", "mock_timeout": True, "timeout": 1},
    "dead": {"api_base": "http://127.0.0.1:9/v1"},
}


@pytest.fixture(scope="module")
def behind() -> Iterator[Stub]:
    with running_stub() as running:
        yield running


@pytest.fixture(scope="module")
def strict() -> Iterator[ModelServer]:
    """A server that refuses as vLLM with Mistral's template, and as OpenAI."""
    with model_server(*MISTRAL, *OPENAI) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(behind: Stub, strict: ModelServer, good: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("litellm")
    passed_on = {
        name: {"model": f"openai/{name}", "api_base": f"{behind.base}/v1"} for name in ("echo", "words-9-cut-after-4")
    }
    in_front = {
        "datafari": {"model": "openai/datafari", "api_base": f"{good.url}/v1"},
        "strict": {"model": "openai/strict", "api_base": strict.url.removesuffix("/chat/completions")},
    }
    models = {**{name: {"model": "openai/x", **mock} for name, mock in MOCKS.items()}, **passed_on, **in_front}
    config = {
        "model_list": [
            {"model_name": name, "litellm_params": {"api_key": "x", **params}} for name, params in models.items()
        ],
        "litellm_settings": {"num_retries": 0},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    port = free_port()
    environ = {**os.environ, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [
        present(PROXY, ".ci/setup long"),
        "--config",
        folder / "config.yaml",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, env=environ) as process:
        try:
            _wait(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "log")
            yield f"http://127.0.0.1:{port}/v1/chat/completions"
        finally:
            process.terminate()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:

    def answers() -> bool:
        assert process.poll() is None, log.read_text(encoding="utf-8")[-3000:]
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=5):
            return True
        return False

    until(answers, lambda: log.read_text(encoding="utf-8")[-3000:])


def told(proxy: str, model: str, *, is_streamed: bool) -> tuple[str, Ending]:
    asked = Prompt("one two three", (), None, "n", model=model)
    limits = ModelLimits(first_token_s=30, total_s=60)
    *pieces, ending = HttpModel(Endpoint(proxy, KEY), limits=limits).generate(asked, is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    return "".join(piece.text for piece in pieces if isinstance(piece, TextChunk)), ending


CASES: dict[str, tuple[str, str, str | None]] = {
    "a mocked answer": ("good", "The plane to Nice takes off at 15:50.", None),
    "our stub behind it": ("echo", "one two three", None),
    "a rate limit": ("limited", "", "modelBusy"),
    "a window that is too small": ("window", "", "modelInputTooLong"),
    "a fault inside": ("broken", "", "modelUnavailable"),
    "a time-out of its own, which it calls 408": ("late", "", "modelUnavailable"),
    "a dead model behind it": ("dead", "", "modelUnavailable"),
    "an unknown model": ("nobody-knows", "", "modelNotFound"),
}


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("model", "text", "label"), CASES.values(), ids=CASES.keys())
def test_what_it_answers_is_told(proxy: str, model: str, text: str, label: str | None, is_streamed: bool) -> None:
    said, ending = told(proxy, model, is_streamed=is_streamed)
    assert (said, ending.failure.label if ending.failure else None) == (text, label)
    if label is None:
        assert ending.finish_reason == "stop"
        assert ending.facts.id


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_what_a_server_behind_it_refuses_is_left_out_through_it(proxy: str, is_streamed: bool) -> None:
    document = Document(id="1", text="Paris is nice.")
    extract = Extract(1, "City", document, (), document.text)
    asked = Prompt("What is nice?", (extract,), "Be brief.", "k3j9x2m5q8w1", model="strict")
    model = HttpModel(Endpoint(proxy, KEY), limits=ModelLimits(first_token_s=30, total_s=60))
    for tries in (4, 3):
        *pieces, ending = model.generate(asked, is_streamed=is_streamed)
        assert isinstance(ending, Ending)
        text = "".join(piece.text for piece in pieces if isinstance(piece, TextChunk))
        assert (text, ending.failure, ending.facts.tries) == ("Paris [1].", None, tries)


def test_a_cut_in_mid_stream_which_it_reports_inside_a_200_is_a_failure(proxy: str) -> None:
    said, ending = told(proxy, "words-9-cut-after-4", is_streamed=True)
    assert said.startswith("word1 ")
    assert ending.failure is not None
    assert ending.failure.label == "modelUnavailable"


def test_a_relay_through_it_brings_the_usage_chunk_and_the_models_own_message(proxy: str) -> None:
    model = HttpModel(Endpoint(proxy, KEY))
    messages = [{"role": "user", "content": "x"}]
    body = {"model": "good", "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, ending = model.relay(body, is_streamed=True)
    assert isinstance(ending, Ending)
    assert ending.failure is None
    assert any(isinstance(chunk, dict) and chunk.get("usage") for chunk in chunks)
    (refused,) = model.relay({"model": "nobody-knows", "messages": messages}, is_streamed=False)
    assert isinstance(refused, Ending)
    assert isinstance(refused.failure, RefusedByModel)
    assert "nobody-knows" in refused.failure.reason


def test_in_front_of_us_it_hands_citations_on(proxy: str) -> None:
    """The other way round: a client speaks to the proxy, and the proxy to our own model."""
    with OpenAI(base_url=proxy.removesuffix("/chat/completions"), api_key=KEY, max_retries=0, timeout=60) as client:
        asked: Any = [{"role": "user", "content": "How do I copy a file in Python?"}]
        whole: Any = client.chat.completions.create(model="datafari", messages=asked)
        chunks = list(client.chat.completions.create(model="datafari", messages=asked, stream=True))
    message = whole.choices[0].message
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    (cited,) = message.annotations
    assert text == message.content
    assert message.content[cited.url_citation.start_index : cited.url_citation.end_index] == "[1]"
