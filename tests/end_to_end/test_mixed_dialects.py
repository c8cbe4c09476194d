"""Fifty simultaneous questions in all dialects, whole and streamed, against real processes: each answer is its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.end_to_end.processes import Running, service, stub_llm

QUESTIONS = 50


@pytest.fixture(scope="module")
def echoing(tmp_path_factory: pytest.TempPathFactory, demo_index: Path) -> Iterator[Running]:
    """A service of two workers whose model says every question again, a few letters at a time."""
    with stub_llm(tmp_path_factory.mktemp("stub")) as stub:
        settings = {
            "solr.url": f"embedded:{demo_index}",
            "rag.api.endpoint": f"{stub.url}/v1/chat/completions",
            "rag.model": "echo-chars-7-gap-5ms",
            "llm.limits.retries": "0",
        }
        with service(tmp_path_factory.mktemp("serve"), settings, workers=2) as found:
            yield found


def _lines(reply: requests.Response) -> list[Any]:
    return [
        json.loads(line.removeprefix(b"data: "))
        for line in reply.content.splitlines()
        if line[-6:] != b"[DONE]" and line
    ]


def _ragapi(reply: requests.Response) -> str:
    return str(reply.json()["content"]["message"])


def _ragapi_stream(reply: requests.Response) -> str:
    return "".join(event["data"]["text"] for event in _lines(reply) if event["type"] == "message.delta")


def _chat(reply: requests.Response) -> str:
    return str(reply.json()["message"]["content"])


def _chat_stream(reply: requests.Response) -> str:
    return "".join(line["delta"].get("content", "") for line in _lines(reply))


def _choices(reply: requests.Response) -> str:
    return str(reply.json()["choices"][0]["message"]["content"])


def _chunks(reply: requests.Response) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in _lines(reply))


WAYS: list[tuple[str, Mapping[str, object] | None, Any]] = [
    ("/search/select?action=rag&q=", None, _ragapi),
    ("/search/select?action=rag&stream=true&q=", None, _ragapi_stream),
    ("/chat", {}, _chat),
    ("/chat/stream", {}, _chat_stream),
    ("/ask", {"stream": False}, _choices),
    ("/chat", {"stream": True}, _chunks),
    ("/api/chat", {}, _chat),
    ("/api/chat/stream", {}, _chat_stream),
    ("/v1/chat/completions", {"index_name": "default", "model": "echo-chars-3"}, _choices),
    ("/v1/chat/completions", {"index_name": "default", "stream": True}, _chunks),
]


def test_fifty_questions_at_once_each_get_their_own_answer(echoing: Running) -> None:
    def asked(number: int) -> tuple[str, str]:
        path, body, read = WAYS[number % len(WAYS)]
        question = f"How do I copy a file with shutil, ticket {number:03d}?"
        with requests.Session() as session:
            session.trust_env = False
            if body is None:
                reply = session.get(f"{echoing.url}{path}{requests.utils.quote(question)}", timeout=120)
            else:
                messages = [{"role": "user", "content": question}]
                reply = session.post(f"{echoing.url}{path}", json={**body, "messages": messages}, timeout=120)
            assert reply.status_code == 200, reply.text
            return question, read(reply)

    with ThreadPoolExecutor(QUESTIONS) as pool:
        answers = list(pool.map(asked, range(QUESTIONS)))
    assert all(question in answer for question, answer in answers)
    assert len({answer for _, answer in answers}) == QUESTIONS
