"""What OpenAI, Azure, Ollama, vLLM and llama.cpp reply, in the forms that people reported, each with its source."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.ports import Ending, TextChunk
from tests.support.stub import raw_server

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "model_replies.json").read_text("utf-8"))


@pytest.mark.parametrize("row", RECORDED, ids=[row["case"] for row in RECORDED])
def test_what_servers_reply_is_an_answer_or_has_a_name(row: dict[str, Any]) -> None:
    is_streamed = "chunks" in row
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in row.get("chunks", ())]
    data = "".join([*events, "data: [DONE]\n\n"]) if is_streamed else json.dumps(row["reply"])
    kind = "text/event-stream" if is_streamed else "application/json"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"

    def talk(connection: socket.socket) -> None:
        connection.sendall((head + data).encode())

    with raw_server(talk) as url:
        prompt = Prompt("What is nice?", (), "Be brief.", "k3j9x2m5q8w1", model="m")
        *pieces, ending = HttpModel(Endpoint(url)).generate(prompt, is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    label = None if ending.failure is None else ending.failure.label
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextChunk))
    assert (text, label, ending.facts.thought_chars) == (row["text"], row["label"], row["thought_chars"])
