"""The reader of lines that the demo's page uses, against the streams of the RAG chat protocols."""

from __future__ import annotations

import json

import pytest

from tests.clients.conftest import Saw, Script
from tests.end_to_end.processes import Running

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ASKED = {"messages": [{"role": "user", "content": "How do I copy a file in Python?"}]}


def test_it_reads_the_newer_stream(good: Running, node: Script, saw: Saw) -> None:
    told = node("ndjson_client.mjs", f"{good.url}/chat/stream", json.dumps(ASKED))
    first, *words, last = told["items"]
    saw(told["type"], len(told["items"]), "items:", "".join(line["delta"]["content"] for line in words))
    assert (told["status"], told["type"]) == (200, "application/json-lines")
    assert first["delta"] == {"role": "assistant"}
    assert first["context"]["data_points"]["text"]
    assert "".join(line["delta"]["content"] for line in words)
    assert last["context"]["citations"]
    assert not any("error" in line for line in told["items"])


def test_it_reads_the_older_stream(good: Running, node: Script) -> None:
    told = node("ndjson_client.mjs", f"{good.url}/chat", json.dumps({**ASKED, "stream": True}))
    choices = [line["choices"][0] for line in told["items"]]
    assert (told["status"], told["type"]) == (200, "application/x-ndjson")
    assert choices[0]["context"]["thoughts"][0]["title"] == "Original user query"
    assert choices[-1]["finish_reason"] == "stop"


def test_it_sees_the_failure_as_the_last_item(broken: Running, node: Script) -> None:
    told = node("ndjson_client.mjs", f"{broken.url}/chat/stream", json.dumps(ASKED))
    assert told["items"][-1] == {"error": "The language model is not available at the moment."}
    assert len(told["items"]) > 2
