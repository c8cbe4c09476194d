"""A reranker over a real socket: what is sent in each form, what replies say, and how it fails, which is a value."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from datafari_rag.adapters.reranker import MAX_REPLY_BYTES, EndpointReranker
from datafari_rag.core.meaning.reranker import RerankFailure
from datafari_rag.core.meaning.spread import PAIRS
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls, TlsByServer
from datafari_rag.core.settings.table import RerankOptions
from tests.settings import settings_with
from tests.support.server import Asked, Reply, serving

QUESTION, TEXTS = "Which pump is it?", ["a cat", "the pump, the pump", "one pump in the hall"]


def overlap(asked: Asked) -> list[float]:
    """Return a real score: how many of the words of each text the question has, for its length."""
    body = json.loads(asked.body)
    words = set(body["query"].lower().replace("?", "").split())
    texts = [text.lower().replace(",", "").split() for text in body.get("texts", body.get("documents"))]
    return [sum(word in words for word in text) / len(text) + len(text) / 1000 for text in texts]


def tei(asked: Asked) -> Reply:
    """Answer as text-embeddings-inference does, best first."""
    rows = [{"index": index, "score": score} for index, score in enumerate(overlap(asked))]
    return Reply(json.dumps(sorted(rows, key=lambda row: -row["score"])).encode())


def cohere(asked: Asked) -> Reply:
    """Answer as Cohere, Jina and vLLM do."""
    rows = [{"index": index, "relevance_score": score} for index, score in enumerate(overlap(asked))]
    return Reply(json.dumps({"id": "x", "results": rows[::-1], "meta": {}}).encode())


def reranker_at(
    url: str, *, token: str = "", model: str = "", timeout_s: float = 20.0, tls: Tls = PLAIN_TLS, clock: Any = None
) -> EndpointReranker:
    settings = settings_with(
        rerank_endpoint=url,
        rerank_token=token,
        rerank_options=RerankOptions(model, timeout_s),
        tls=TlsByServer(rerank=tls),
    )
    return EndpointReranker(settings.rerank, settings.tls.rerank, clock or time.monotonic)


def asked_of(answer: Callable[[Asked], Reply], **options: Any) -> tuple[Any, list[Asked]]:
    with serving(answer) as server:
        return reranker_at(f"{server.url}/rerank", **options).scores(QUESTION, TEXTS), server.asked


def test_without_a_model_the_form_is_that_of_text_embeddings_inference() -> None:
    found, requests = asked_of(tei, token="key")
    assert found[1] > found[2] > found[0]
    assert json.loads(requests[-1].body) == {"query": QUESTION, "texts": TEXTS, "raw_scores": True, "truncate": True}
    assert (requests[-1].method, requests[-1].path) == ("POST", "/rerank")
    assert {one.headers["Authorization"] for one in requests} == {"Bearer key"}


def test_with_a_model_the_form_is_coheres() -> None:
    found, requests = asked_of(cohere, model="some-reranker")
    assert found[1] > found[2] > found[0]
    assert json.loads(requests[-1].body) == {
        "model": "some-reranker",
        "query": QUESTION,
        "documents": TEXTS,
        "top_n": 3,
    }
    assert "Authorization" not in requests[-1].headers


def test_the_spread_is_learned_once() -> None:
    with serving(tei) as server:
        reranker = reranker_at(f"{server.url}/rerank")
        first = reranker.scores(QUESTION, TEXTS)
        before = len(server.asked)
        assert reranker.scores(QUESTION, TEXTS) == first
        assert len(server.asked) == before + 1


def late(asked: Asked) -> Reply:
    asked.over.wait()
    return Reply(b"[]")


def changed(score: str) -> Callable[[Asked], Reply]:
    """Answer with *score* in place of the first."""

    def answer(asked: Asked) -> Reply:
        rows = [f'{{"index": {index}, "score": {one}}}' for index, one in enumerate(overlap(asked))]
        return Reply(f'[{{"index": 0, "score": {score}}}, {", ".join(rows[1:])}]'.encode())

    return answer


def twice(asked: Asked) -> Reply:
    return Reply(json.dumps([{"index": 0, "score": 1.0}] * len(overlap(asked))).encode())


def without_one(asked: Asked) -> Reply:
    return Reply(json.dumps([{"index": index, "score": 1.0} for index, _ in enumerate(overlap(asked)[1:])]).encode())


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        pytest.param(lambda asked: Reply(b"{}", status=503), "rerankerUnavailable", id="status 503"),
        pytest.param(lambda asked: Reply(b"{}", status=422), "rerankerUnavailable", id="the other form"),
        pytest.param(lambda asked: Reply(b"{}", status=302), "rerankerUnavailable", id="a redirect"),
        pytest.param(lambda asked: Reply(b"[", length=9), "rerankerUnavailable", id="breaks off"),
        pytest.param(late, "rerankerTimeout", id="too late"),
        pytest.param(lambda asked: Reply(b"no JSON"), "rerankerGarbled", id="no JSON"),
        pytest.param(lambda asked: Reply(b"[" * 90_000), "rerankerGarbled", id="brackets in brackets"),
        pytest.param(lambda asked: Reply(b'{"results": 7}'), "rerankerGarbled", id="no list"),
        pytest.param(lambda asked: Reply(b"[1, 2]"), "rerankerGarbled", id="numbers alone"),
        pytest.param(lambda asked: Reply(b'[{"index": "0", "score": 1}]'), "rerankerGarbled", id="a text as index"),
        pytest.param(without_one, "rerankerGarbled", id="one too few"),
        pytest.param(twice, "rerankerGarbled", id="one text again and again"),
        pytest.param(changed("NaN"), "rerankerGarbled", id="no number"),
        pytest.param(changed("1e999"), "rerankerGarbled", id="not finite"),
        pytest.param(changed("true"), "rerankerGarbled", id="a truth"),
        pytest.param(changed('"0.5"'), "rerankerGarbled", id="a text as score"),
        pytest.param(lambda asked: Reply(b" " * (MAX_REPLY_BYTES + 1)), "rerankerGarbled", id="too long"),
        pytest.param(
            lambda asked: Reply(b"[]", headers=[("Content-Encoding", "br")]), "rerankerGarbled", id="a content coding"
        ),
    ],
)
def test_a_failure_is_a_value_with_a_label(
    answer: Callable[[Asked], Reply], label: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "datafari_rag"):
        found, _ = asked_of(answer, timeout_s=0.05 if label == "rerankerTimeout" else 20.0)
    assert isinstance(found, RerankFailure)
    assert found.label == label
    (line,) = caplog.messages
    assert line.startswith(f"{label} passages=3")
    assert not any(word in line for word in ("pump", "cat", "Which"))


def test_the_time_is_for_all_requests_of_a_question_together() -> None:
    now = iter([0.0, 0.0, 0.1, 0.2, 9.0, 9.0])
    with serving(tei) as server:
        found = reranker_at(server.url, timeout_s=2.0, clock=lambda: next(now)).scores(QUESTION, TEXTS)
    assert isinstance(found, RerankFailure)
    assert found.label == "rerankerTimeout"


def test_no_server_and_a_missing_file_of_authorities_are_named() -> None:
    with serving(tei) as server:
        pass
    for reranker in (
        reranker_at(server.url),
        reranker_at("https://127.0.0.1:1/rerank", tls=Tls("/nowhere.pem")),
    ):
        found = reranker.scores(QUESTION, TEXTS)
        assert isinstance(found, RerankFailure)
        assert found.label == "rerankerUnavailable"


def test_half_a_character_is_sent_as_something_that_can_be_read() -> None:
    with serving(tei) as server:
        assert reranker_at(server.url).scores("\ud800", ["\udfff", "a b"])
        assert json.loads(server.asked[-1].body)["query"] != "\ud800"


def rated(of: Callable[[bool, int], float]) -> Callable[[Asked], Reply]:
    """Answer with what *of* says of each text: whether it answers its question, and which text it is."""

    def answer(asked: Asked) -> Reply:
        body = json.loads(asked.body)
        right = dict(PAIRS).get(body["query"])
        rows = [{"index": at, "score": of(text == right, at)} for at, text in enumerate(body["texts"])]
        return Reply(json.dumps(rows).encode())

    return answer


def test_the_unit_is_the_spread_over_texts_that_do_not_answer() -> None:
    """8 is said of the text that answers, -1 or 1 of each other one."""
    found, _ = asked_of(rated(lambda answers, at: 8.0 if answers else (-1.0) ** at))
    assert found == pytest.approx([1.0, -1.0, 1.0], abs=0.01)


def test_shares_of_one_are_compared_as_logits() -> None:
    found, _ = asked_of(rated(lambda answers, at: 0.999 if answers else (0.0001, 0.001)[at % 2]))
    assert found[1] - found[0] == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0, 7.0])
def test_a_server_that_gives_every_text_the_same_score_is_none(score: float) -> None:
    found, _ = asked_of(rated(lambda answers, at: score))
    assert isinstance(found, RerankFailure)
    assert found.label == "rerankerGarbled"


def test_the_token_is_in_no_representation() -> None:
    assert "secret" not in repr(vars(reranker_at("http://127.0.0.1:1/rerank", token="secret")))
