"""An OpenAI-compatible endpoint, replaced by a real HTTP server: good replies, and every way to fail."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from datafari_rag.adapters.vectors.endpoint import BATCH, EndpointEmbedder, EndpointOptions
from datafari_rag.adapters.vectors.factory import embedder_for
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsTimeout, EmbeddingsUnavailable
from datafari_rag.core.settings.table import Settings
from tests.settings import settings_with
from tests.support.server import Asked, Loopback, Reply, serving


def told(asked: Asked) -> Any:
    return json.loads(asked.body)


def good(asked: Asked) -> Reply:
    """Answer with the length of each text, the last text first."""
    rows = [{"index": n, "embedding": [len(text), 1]} for n, text in enumerate(told(asked)["input"])]
    return reply(rows[::-1])


def reply(rows: object) -> Reply:
    return Reply(json.dumps({"object": "list", "data": rows}).encode())


@pytest.fixture
def endpoint() -> Iterator[Loopback]:
    with serving(good) as running:
        yield running


def embedder(running: Loopback, **options: Any) -> EndpointEmbedder:
    options.setdefault("limits_s", {"query": 2.0, "passage": 2.0})
    return EndpointEmbedder(f"{running.url}/v1/embeddings", EndpointOptions(**options), sleep=lambda wait_s: None)


def test_vectors_come_in_the_order_of_the_texts_whatever_the_order_of_the_reply(endpoint: Loopback) -> None:
    found = embedder(endpoint).embed(["a", "bbbb"], "query")
    assert [vector[0] / vector[1] for vector in found] == pytest.approx([1.0, 4.0])


def test_the_request_has_openais_shape_and_only_what_is_set(endpoint: Loopback) -> None:
    embedder(endpoint).embed(["a"], "query")
    assert told(endpoint.asked[0]) == {"input": ["a"], "encoding_format": "float"}
    assert "Authorization" not in endpoint.asked[0].headers
    embedder(endpoint, model="m", token="k").embed(["a"], "query")
    assert told(endpoint.asked[1]) == {"input": ["a"], "encoding_format": "float", "model": "m"}
    assert endpoint.asked[1].headers["Authorization"] == "Bearer k"


def test_questions_and_passages_have_their_own_prefixes(endpoint: Loopback) -> None:
    own = embedder(endpoint, prefixes={"query": "query: ", "passage": "passage: "})
    own.embed(["a"], "query")
    own.embed(["a"], "passage")
    assert [told(asked)["input"] for asked in endpoint.asked] == [["query: a"], ["passage: a"]]


def test_many_texts_go_in_batches(endpoint: Loopback) -> None:
    found = embedder(endpoint).embed(["a" * number for number in range(1, 2 * BATCH + 2)], "passage")
    assert [len(told(asked)["input"]) for asked in endpoint.asked] == [BATCH, BATCH, 1]
    assert [vector[0] / vector[1] for vector in found] == pytest.approx(range(1, 2 * BATCH + 2))


def test_the_dimensions_are_learnt_from_the_first_vector_and_kept(endpoint: Loopback) -> None:
    own = embedder(endpoint)
    assert own.model.dimensions is None
    own.embed(["a"], "query")
    assert own.model.dimensions == 2
    endpoint.answer = lambda asked: reply([{"index": 0, "embedding": [1, 2, 3]}])
    with pytest.raises(EmbeddingsGarbled):
        own.embed(["a"], "query")


def test_a_text_of_megabytes_and_halves_of_characters_are_sent_cut_and_readable(endpoint: Loopback) -> None:
    embedder(endpoint).embed(["x" * 10_000_000, "a\ud800b"], "query")
    sent = told(endpoint.asked[0])["input"]
    assert (len(sent[0]), sent[1]) == (32_000, "a\ufffdb")


GARBAGE: dict[str, bytes] = {
    "no JSON": b"<html>",
    "nothing": b"",
    "another object": b'{"error": "x"}',
    "a list": b"[]",
    "null": b"null",
    "brackets without end": b"[" * 100_000,
    "no vectors": b'{"data": []}',
    "a vector too many": b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]}',
    "a number twice": b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}',
    "a number that is text": b'{"data": [{"index": "0", "embedding": [1]}]}',
    "a true number": b'{"data": [{"index": false, "embedding": [1]}]}',
    "NaN": b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}',
    "Infinity": b'{"data": [{"index": 0, "embedding": [Infinity, 1]}]}',
    "zeros": b'{"data": [{"index": 0, "embedding": [0, 0]}]}',
    "base64": b'{"data": [{"index": 0, "embedding": "AACAPw=="}]}',
    "not UTF-8": b'{"data": "\xff"}',
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
def test_an_answer_that_cannot_be_read_is_named_and_not_repeated(endpoint: Loopback, body: bytes) -> None:
    endpoint.answer = lambda asked: Reply(body)
    with pytest.raises(EmbeddingsGarbled) as caught:
        embedder(endpoint).embed(["a"], "query")
    assert len(endpoint.asked) == 1
    assert caught.value.reason == "The embedding model's vectors cannot be used."


@pytest.mark.parametrize("status", [302, 401, 422])
def test_a_refusal_is_named_and_not_repeated(endpoint: Loopback, status: int) -> None:
    endpoint.answer = lambda asked: Reply(b"", status, [("Location", "/elsewhere")])
    with pytest.raises(EmbeddingsUnavailable) as caught:
        embedder(endpoint).embed(["a"], "query")
    assert (caught.value.log, [asked.path for asked in endpoint.asked]) == (f"it answered {status}", ["/v1/embeddings"])


@pytest.mark.parametrize("status", [408, 503])
def test_what_may_pass_is_repeated_until_it_does(endpoint: Loopback, status: int) -> None:
    endpoint.answer = lambda asked: good(asked) if len(endpoint.asked) > 2 else Reply(b"", status)
    assert embedder(endpoint).embed(["a"], "query")
    endpoint.answer = lambda asked: Reply(b"", status)
    endpoint.asked.clear()
    with pytest.raises(EmbeddingsUnavailable):
        embedder(endpoint).embed(["a"], "query")
    assert len(endpoint.asked) == 3


def slow_head(asked: Asked) -> Reply:
    asked.over.wait()
    return good(asked)


def drip(write: Any) -> None:
    for _ in range(40):
        write.write(b" ")
        write.flush()
        time.sleep(0.05)


SLOW: dict[str, Callable[[Asked], Reply]] = {
    "no head": slow_head,
    "a body that drips": lambda asked: Reply(write=drip, length=1000),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW.keys())
def test_a_question_waits_no_longer_than_its_own_limit(endpoint: Loopback, answer: Callable[[Asked], Reply]) -> None:
    endpoint.answer = answer
    with pytest.raises(EmbeddingsTimeout):
        embedder(endpoint, limits_s={"query": 0.2, "passage": 30.0}).embed(["a"], "query")


def test_no_try_is_begun_after_the_limit(endpoint: Loopback) -> None:
    now = iter([0.0, 0.1, 5.0, 5.0])
    endpoint.answer = lambda asked: Reply(b"", 503)
    own = EndpointEmbedder(
        f"{endpoint.url}/v1/embeddings", EndpointOptions(), clock=lambda: next(now), sleep=lambda wait_s: None
    )
    with pytest.raises(EmbeddingsUnavailable):
        own.embed(["a"], "query")
    assert len(endpoint.asked) == 1


def test_the_settings_make_the_endpoint_they_name(endpoint: Loopback) -> None:
    settings = settings_with(
        embeddings_endpoint=f"{endpoint.url}/v1/embeddings",
        embeddings_token="secret-key",
        embeddings_options_model="multilingual-e5-small",
    )
    own = embedder_for(settings)
    assert own is not None and own.model.languages == frozenset()
    own.embed(["pump"], "query")
    own.embed(["pump"], "passage")
    assert [told(asked)["input"] for asked in endpoint.asked] == [["query: pump"], ["passage: pump"]]
    assert endpoint.asked[0].headers["Authorization"] == "Bearer secret-key"
    assert "secret-key" not in repr(vars(own))


def test_without_an_endpoint_there_is_no_embedder() -> None:
    assert embedder_for(Settings()) is None
