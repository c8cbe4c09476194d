"""Fifty simultaneous questions in all dialects, whole and streamed, against real processes: each answer is its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from datafari_rag_trials.conformance.doors import DOORS
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


def test_fifty_questions_at_once_each_get_their_own_answer(echoing: Running) -> None:
    def asked(number: int) -> tuple[str, str]:
        door = DOORS[number % len(DOORS)]
        question = f"How do I copy a file with shutil, ticket {number:03d}?"
        with requests.Session() as session:
            session.trust_env = False
            reply = door.ask_over(session, echoing.url, question)
            assert reply.status_code == 200, reply.text
            return question, door.seen(reply.content).text

    with ThreadPoolExecutor(QUESTIONS) as pool:
        answers = list(pool.map(asked, range(QUESTIONS)))
    assert all(question in answer for question, answer in answers)
    assert len({answer for _, answer in answers}) == QUESTIONS
