"""Fifty simultaneous answers that never mix, and fifty readers who disconnect and leave nothing open."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from datafari_rag.adapters.model.chain import Breaker, ChainMember, ModelChain
from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.bootstrap import writer_for
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import ModelLimits
from datafari_rag.ports import Ending, TextChunk
from tests.end_to_end.processes import Running, service
from tests.settings import settings_with
from tests.support.stub import Stub, running_stub

MANY = 50
LIMITS = ModelLimits(total_s=30)


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with running_stub() as running:
        yield running


def model_of(stub: Stub) -> ModelChain:
    endpoint = HttpModel(Endpoint(stub.url), limits=LIMITS)
    return ModelChain([ChainMember("stub", endpoint, Breaker(5, 30, lambda: 0.0))], limits=LIMITS)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def prompt(number: int, name: str) -> Prompt:
    """Return a prompt with the name of its caller in every part."""
    return Prompt(
        question=f"question {number} of user{number}",
        extracts=(),
        instructions=f"instructions for user{number}",
        nonce=f"nonce{number}",
        model=f"echo-gap-5ms-{name}-{number}",
        temperature=number / 100,
        max_tokens=number + 1,
        sampling={"user": f"user{number}", "seed": number},
    )


@pytest.fixture(scope="module")
def front(stub: Stub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The real server over fifty documents, each of which one user alone may read."""
    folder = tmp_path_factory.mktemp("front")
    writer = writer_for(settings_with(solr_url=f"embedded:{folder / 'index'}"))
    texts = {number: f"The secret number is {1000 + number}." for number in range(MANY)}
    writer.add(
        [
            {
                "id": f"doc{number}",
                "title": f"Note {number}",
                "exactContent": text,
                "content_en": text,
                "language": "en",
                "allow_token_document": [f"token{number}"],
                "deny_token_document": ["nobody"],
            }
            for number, text in texts.items()
        ]
    )
    writer.commit()
    writer.close()
    tokens = {f"user{number}": [f"token{number}"] for number in range(MANY)}
    (folder / "tokens.json").write_text(json.dumps(tokens), encoding="utf-8")
    settings = {
        "solr.url": f"embedded:{folder / 'index'}",
        "rag.api.endpoint": stub.url,
        "security.identity": "header",
        "security.tokens.file": str(folder / "tokens.json"),
        "llm.limits.retries": "0",
        "server.limits.grace_s": "1",
    }
    with service(folder, settings, workers=2) as found:
        yield found


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_fifty_users_at_once_with_models_and_temperatures_of_their_own_never_mix(
    front: Running, stub: Stub, is_streamed: bool
) -> None:
    name, start = f"cite-gap-5ms-http{is_streamed}", threading.Barrier(MANY)

    def ask(number: int) -> tuple[str, str]:
        body = {
            "model": f"{name}-{number}",
            "index_name": "default",
            "temperature": number / 100,
            "stream": is_streamed,
            "messages": [{"role": "user", "content": f"What is the secret number, asks user{number}?"}],
        }
        start.wait(20)
        reply = requests.post(
            f"{front.url}/v1/chat/completions", json=body, headers={"X-Remote-User": f"user{number}"}, timeout=60
        )
        return reply.text, reply.headers["X-RAG-Model"]

    with ThreadPoolExecutor(MANY) as pool:
        answers = list(pool.map(ask, range(MANY)))
    for number, (text, model) in enumerate(answers):
        mine = {str(1000 + other) for other in range(MANY) if f"is {1000 + other}." in text}
        assert (mine, model) == ({str(1000 + number)}, f"{name}-{number}; tries=1; fallback=0")
    bodies = [one["body"] for one in stub.requests() if one["body"]["model"].startswith(f"{name}-")]
    assert len(bodies) == MANY
    for body in bodies:
        number = int(body["model"].rpartition("-")[2])
        told = " ".join(message["content"] for message in body["messages"])
        assert body["temperature"] == number / 100
        assert f"is {1000 + number}." in told
        assert told.count("The secret number is ") == 1
        assert body["messages"][-1]["content"] == f"What is the secret number, asks user{number}?"


def test_fifty_readers_who_leave_leave_no_thread_and_no_socket(stub: Stub) -> None:
    model = model_of(stub)
    warm = list(model.generate(prompt(0, "warm"), is_streamed=True))
    assert isinstance(warm[-1], Ending)
    model.close()
    threads, files = threading.active_count(), open_files()
    asked = Prompt("q", (), None, "n", model="words-999-gap-20ms-leaving")
    answers = [model.generate(asked, is_streamed=True) for _ in range(MANY)]
    for answer in answers:
        assert isinstance(next(answer), TextChunk)
    assert open_files() == files + MANY
    for answer in answers:
        answer.close()
    assert stub.states(asked.model, wanted="left") == ["left"] * MANY
    assert (threading.active_count(), open_files()) == (threads, files)


def test_under_gevent_killed_readers_leave_no_greenlet_and_no_socket(stub: Stub) -> None:
    """A reader may leave while the model is silent: then his greenlet is killed in the middle of a read."""
    done = subprocess.run(
        [sys.executable, "-c", UNDER_GEVENT, stub.url], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout) == {"begun": MANY, "greenlets": 0, "files": 0, "threads": 0}
    for name in ("words-999-gap-20ms-green", "stall-after-1-words-9-green"):
        assert stub.states(name, wanted="left") == ["left"] * (MANY // 2)


UNDER_GEVENT = f"""
from gevent import monkey; monkey.patch_all()
import gc, json, os, sys, threading
import gevent
from datafari_rag.adapters.model.endpoint import Endpoint
from datafari_rag.adapters.model.endpoint import HttpModel
from datafari_rag.core.model.prompt import Prompt

begun = []

def talk(name):
    answer = model.generate(Prompt("q", (), None, "n", model=name), is_streamed=True)
    next(answer)
    begun.append(name)
    for piece in answer:
        pass

def count():
    gc.collect()
    greenlets = sum(isinstance(thing, gevent.Greenlet) and not thing.dead for thing in gc.get_objects())
    return greenlets, len(os.listdir("/proc/self/fd")), threading.active_count()

model = HttpModel(Endpoint(sys.argv[1]))
list(model.generate(Prompt("q", (), None, "n", model="words-1"), is_streamed=True))
model.close()
before = count()
readers = [gevent.spawn(talk, name) for name in ("words-999-gap-20ms-green", "stall-after-1-words-9-green")
           for _ in range({MANY // 2})]
while len(begun) < {MANY}:
    gevent.sleep(0.02)
gevent.killall(readers)
after = count()
print(json.dumps(dict(begun=len(begun), greenlets=after[0] - before[0], files=after[1] - before[1],
                      threads=after[2] - before[2])))
"""
