"""The whole service with a reranker behind HTTP: what it is sent of whom, and what a reader sees when it fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from datafari_rag.bootstrap import create_app
from datafari_rag.commands.main import main
from tests.support.server import Asked, Reply, serving

QUESTION = "When does the ferry leave?"
DOCUMENTS = [
    {"id": "old", "title": "Old", "content": "The ferry does not leave: when the ferry leaves is unknown."},
    {"id": "new", "title": "New", "content": "In summer the ferry departs at nine in the morning."},
    {
        "id": "secret",
        "title": "Secret",
        "content": "The secret ferry leaves at midnight.",
        "allow_token_document": ["captain"],
        "deny_token_document": ["nobody"],
    },
]


def preferring(word: str) -> Callable[[Asked], Reply]:
    """Return a server that likes texts with *word*, and others by their length."""

    def answer(asked: Asked) -> Reply:
        texts = json.loads(asked.body)["texts"]
        rows = [{"index": at, "score": 50.0 * (word in text) + len(text) / 100} for at, text in enumerate(texts)]
        return Reply(json.dumps(rows).encode())

    return answer


def asked_as(
    name: str,
    url: str,
    folder: Path,
    documents: Sequence[Mapping[str, object]] = DOCUMENTS,
    question: str = QUESTION,
) -> tuple[Any, str]:
    """Return the reply to *question*, and the counts of the service after it."""
    (folder / "docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    (folder / "users.json").write_text(json.dumps({"bob": [], "ann": ["captain"]}))
    rows = {
        "solr.url": f"embedded:{folder / 'index'}",
        "rag.api.endpoint": "builtin:extractive",
        "rag.model": "",
        "security.identity": "header",
        "security.tokens": "file",
        "security.tokens.file": folder / "users.json",
        "rerank.endpoint": url,
    }
    conf = folder / "rag.properties"
    conf.write_text("".join(f"{key}={value}\n" for key, value in rows.items()))
    conf.chmod(0o600)
    done = CliRunner().invoke(main, ["index", str(folder / "docs.jsonl"), "--conf", str(conf)])
    assert done.exit_code == 0, done.output
    client = create_app(str(conf)).test_client()
    reply = client.post("/chat", json={"messages": [{"role": "user", "content": question}]}, headers=as_user(name))
    return reply, client.get("/metrics").get_data(as_text=True)


def as_user(name: str) -> dict[str, str]:
    return {"X-Remote-User": name}


def first_of(reply: Any) -> str:
    points = reply.get_json()["context"]["data_points"]["text"]
    return str(points[0]).partition(":")[0]


def test_what_the_reranker_likes_comes_first_and_it_is_sent_what_its_user_may_see(tmp_path: Path) -> None:
    with serving(preferring("nine in the morning")) as server:
        reply, counts = asked_as("bob", f"{server.url}/rerank", tmp_path)
    assert reply.status_code == 200, reply.text
    assert first_of(reply) == "New"
    assert not any(b"midnight" in one.body for one in server.asked)
    assert any(b"nine in the morning" in one.body for one in server.asked)
    assert 'datafari_rag_rerankings_total{outcome="ok"} 1.0' in counts


def test_who_may_see_more_has_more_reranked(tmp_path: Path) -> None:
    with serving(preferring("midnight")) as server:
        reply, _ = asked_as("ann", f"{server.url}/rerank", tmp_path)
    assert first_of(reply) == "Secret"


def test_a_reranker_that_likes_what_does_not_answer_does_not_make_it_say_that_nothing_is_there(tmp_path: Path) -> None:
    question = "When does the yellow ferry to the lighthouse leave the fishing harbour?"
    answering = {
        "id": "answer",
        "title": "Ferry",
        "content": "The yellow ferry to the lighthouse leaves the fishing harbour at nine.",
    }
    others = [{"id": f"o{n}", "title": f"Other {n}", "content": f"The rust leaves wall {n}."} for n in range(4)]
    with serving(preferring("rust")) as server:
        reply, _ = asked_as("bob", f"{server.url}/rerank", tmp_path, [answering, *others], question)
    assert reply.status_code == 200, reply.text
    assert first_of(reply).startswith("Other")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        pytest.param(lambda asked: Reply(b"{}", status=500), "rerankerUnavailable", id="status 500"),
        pytest.param(lambda asked: Reply(b"[]"), "rerankerGarbled", id="no scores"),
    ],
)
def test_a_reranker_that_fails_leaves_the_order_and_is_counted(
    answer: Callable[[Asked], Reply], label: str, tmp_path: Path
) -> None:
    with serving(answer) as server:
        reply, counts = asked_as("bob", f"{server.url}/rerank", tmp_path)
    assert reply.status_code == 200, reply.text
    assert first_of(reply) == "Old"
    steps = reply.get_json()["context"]["thoughts"]
    assert {"passages": 2, "failure": label} in [one.get("props", {}).get("reranker") for one in steps]
    assert f'datafari_rag_rerankings_total{{outcome="{label}"}} 1.0' in counts
