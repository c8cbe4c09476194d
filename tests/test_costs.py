"""
What one answer costs, in counts that do not depend on the machine: requests, pieces written, bytes kept and copied,
and how the calls grow with the text.
"""

from __future__ import annotations

import gc
import gzip
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import pytest
from flask import Flask

from datafari_rag.adapters.solr.factory import retriever_for
from datafari_rag.core.documents import Document
from tests.fakes import FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with
from tests.support.server import Asked, Reply, serving

QUESTION = "What is the default of the server setting for files?"
STREAMS = {
    "chat": ("/chat/stream", {"messages": [{"role": "user", "content": QUESTION}]}),
    "published": ("/api/chat/stream", {"messages": [{"role": "user", "content": QUESTION}]}),
    "openai": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": QUESTION}], "stream": True, "index_name": "default"},
    ),
}


"""Of some 7,200: the envelope, the schema's shape, links, and the counting of tokens."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count calls: Python's under "calls", those of C functions under their module and name, methods by name alone."""
    counts: Counter[str] = Counter()

    def note(frame: object, event: str, argument: Any) -> None:
        if event == "call":
            counts["calls"] += 1
        elif event == "c_call":
            module = getattr(argument, "__module__", None)
            counts[f"{module}.{argument.__name__}" if module else argument.__name__] += 1

    # What other tests left would be closed, and counted, here.
    gc.collect()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield counts
    finally:
        sys.setprofile(before)
        gc.enable()


def documents(number: int = 3, chars: int = 20_000) -> list[Document]:
    demo = resources.files("datafari_rag.resources") / "demo" / "docs.jsonl.gz"
    lines = gzip.decompress(demo.read_bytes()).decode().splitlines()
    text = "\n\n".join(json.loads(line)["content"] for line in lines)
    return [
        Document(str(at), text[at * chars : (at + 1) * chars], title=f"Part {at}", score=9.0 - at)
        for at in range(number)
    ]


def app_saying(*words: str, found: list[Document] | None = None) -> tuple[Flask, FakeRetriever]:
    retriever = FakeRetriever(*(found if found is not None else documents()))
    return app_of(fake_snapshot(retriever, FakeModel(*words))), retriever


def streamed(dialect: str, tokens: int) -> tuple[list[bytes], Counter[str]]:
    """Return the pieces written and what they cost; the answer cites nothing, so that its end costs always the same."""
    path, body = STREAMS[dialect]
    app, _ = app_saying(*[" word"] * tokens, found=documents(1, 2000))
    client = app.test_client()
    client.post(path, json=body).get_data()
    with counted() as counts:
        pieces = list(client.post(path, json=body, buffered=False).response)
    return pieces, counts


ASKED = {
    "page": ("/search/select?action=rag&q=" + QUESTION.replace(" ", "+"), None),
    "choices": ("/ask", {"messages": [{"role": "user", "content": QUESTION}], "stream": False}),
    **{name: (path, {**body, "stream": False} if name == "openai" else body) for name, (path, body) in STREAMS.items()},
    "openai, streamed": STREAMS["openai"],
}


@pytest.mark.parametrize("dialect", ASKED)
def test_an_answer_takes_one_search_when_the_first_finds_something(dialect: str) -> None:
    app, retriever = app_saying("The default is 5 [1].")
    path, body = ASKED[dialect]
    client = app.test_client()

    reply = client.get(path) if body is None else client.post(path, json=body)

    assert (reply.status_code, b"default is 5" in reply.get_data()) == (200, True)
    assert len(retriever.searches) == 1


def test_a_search_is_one_request_to_solr_and_no_schema_is_asked_for_again() -> None:
    """What fields there are is asked once of each collection, that of the passages included."""
    rows = [{"id": one.id, "title": one.title, "exactContent": [one.text], "score": one.score} for one in documents()]
    found = {"responseHeader": {"QTime": 1}, "response": {"numFound": 3, "start": 0, "docs": rows}}
    fields = {"schema": {"fields": [{"name": name, "type": "s"} for name in ("id", "title", "exactContent")]}}

    def answer(asked: Asked) -> Reply:
        return Reply(json.dumps(fields if asked.path.endswith("/schema") else found).encode())

    with serving(answer) as solr:
        retriever = retriever_for(settings_with(solr_url=f"{solr.url}/solr/docs"))
        client = app_of(fake_snapshot(retriever, FakeModel("The default is 5 [1]."))).test_client()
        for _ in range(5):
            assert client.get(ASKED["page"][0]).get_json()["status"] == "OK"

    paths = Counter(asked.path.partition("?")[0].removeprefix("/solr/") for asked in solr.asked)
    assert paths == {"docs/select": 5, "docs/schema": 1, "VectorMain/schema": 1}


@pytest.mark.parametrize("dialect", STREAMS)
def test_a_streamed_token_is_one_piece_written(dialect: str) -> None:
    few, many = streamed(dialect, 50)[0], streamed(dialect, 250)[0]

    assert len(many) - len(few) == 200


@pytest.mark.parametrize("dialect", STREAMS)
def test_a_streamed_token_costs_no_more_calls_at_the_end_of_a_long_answer(dialect: str) -> None:
    calls = [streamed(dialect, tokens)[1]["calls"] for tokens in (100, 300, 500)]

    assert calls[2] - calls[1] <= (calls[1] - calls[0]) * 1.1


@pytest.mark.parametrize(
    ("grown", "factor"),
    [
        pytest.param(lambda: documents(12), 4, id="four times the documents"),
        pytest.param(lambda: documents(3, 80_000), 4, id="four times their length"),
    ],
)
def test_the_cost_of_an_answer_grows_no_faster_than_its_documents(
    grown: Callable[[], list[Document]], factor: int
) -> None:
    assert _calls(grown()) <= _calls(documents()) * factor * 1.1


def _calls(found: list[Document]) -> int:
    client = app_saying("The default is 5 [1]. ", "It can be set in the file [2].", found=found)[0].test_client()
    asked = {"action": "rag", "q": QUESTION}
    client.get("/search/select", query_string=asked)
    with counted() as counts:
        assert client.get("/search/select", query_string=asked).status_code == 200
    return counts["calls"]
