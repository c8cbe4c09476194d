"""A reranker over a real socket: what is sent in each form, what replies say, and how it fails, which is a value."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.adapters.http.exchange import MAX_REPLY_BYTES
from datafari_rag.adapters.reranker import (
    EndpointReranker,
    RerankerOptions,
    reranker_for,
    scores_in,
)
from datafari_rag.core.errors import Overloaded
from datafari_rag.core.meaning.reranker import RERANK_FAILURES, RerankFailure
from datafari_rag.core.settings.addresses import Tls
from datafari_rag.core.settings.records import RerankOptions
from datafari_rag.core.settings.table import Settings
from tests.loopback import Asked, Reply, serving
from tests.required import library
from tests.settings import settings_with
from tests.tiny_model import tiny_model

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


def asked_of(answer: Callable[[Asked], Reply], **options: Any) -> tuple[Any, list[Asked]]:
    with serving(answer) as server:
        reranker = EndpointReranker(f"{server.url}/rerank", RerankerOptions(**{"timeout_s": 20.0, **options}))
        assert reranker.knows("fr")
        return reranker.scores(QUESTION, TEXTS), server.asked


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
        reranker = EndpointReranker(f"{server.url}/rerank", RerankerOptions(timeout_s=20.0))
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
    assert found.reason == RERANK_FAILURES[found.label]
    (line,) = caplog.messages
    assert line.startswith(f"{label} passages=3")
    assert not any(word in line for word in ("pump", "cat", "Which"))


def test_the_time_is_for_all_requests_of_a_question_together() -> None:
    now = iter([0.0, 0.0, 0.1, 0.2, 9.0, 9.0])
    with serving(tei) as server:
        found = EndpointReranker(server.url, RerankerOptions(), clock=lambda: next(now)).scores(QUESTION, TEXTS)
    assert isinstance(found, RerankFailure)
    assert found.label == "rerankerTimeout"


def test_no_server_and_a_missing_file_of_authorities_are_named() -> None:
    with serving(tei) as server:
        pass
    for reranker in (
        EndpointReranker(server.url, RerankerOptions()),
        EndpointReranker("https://127.0.0.1:1/rerank", RerankerOptions(tls=Tls("/nowhere.pem"))),
    ):
        found = reranker.scores(QUESTION, TEXTS)
        assert isinstance(found, RerankFailure)
        assert found.label == "rerankerUnavailable"


def test_half_a_character_is_sent_as_something_that_can_be_read() -> None:
    with serving(tei) as server:
        assert EndpointReranker(server.url, RerankerOptions(timeout_s=20.0)).scores("\ud800", ["\udfff", "a b"])
        assert json.loads(server.asked[-1].body)["query"] != "\ud800"


def test_scores_are_read_from_both_forms() -> None:
    assert scores_in([{"index": 1, "score": 2}, {"index": 0, "score": -1.5}], 2) == [-1.5, 2.0]
    assert scores_in({"results": [{"index": 0, "relevance_score": 0.25, "document": {"text": "x"}}]}, 1) == [0.25]


def test_there_is_none_without_an_endpoint() -> None:
    assert reranker_for(Settings()) is None
    options = RerankOptions(model="m", timeout_s=7.0)
    made = reranker_for(
        settings_with(rerank_endpoint="http://127.0.0.1:1/rerank", rerank_token="secret", rerank_options=options)
    )
    assert isinstance(made, EndpointReranker)
    assert "secret" not in repr(vars(made))


def local(folder: Path, **how: Any) -> Any:
    library("onnxruntime", "make .venv/.dev")
    library("tokenizers", "make .venv/.dev")
    return reranker_for(settings_with(rerank_endpoint=f"onnx:{folder}"), **how)


def test_a_local_model_compares_token_by_token(tmp_path: Path) -> None:
    reranker = local(tiny_model(tmp_path, languages=["en"], query_prefix="leave "))
    assert (reranker.knows("en"), reranker.knows("fr")) == (True, False)
    pump, both, leave = reranker.scores("pump cat", ["pump", "cat pump leave leave leave leave", "leave"])
    # What else a text says takes nothing from it, and the prefix looks for nothing.
    assert both > pump > leave


def test_a_local_model_that_cannot_be_used_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert local(tmp_path / "nowhere") is None
    assert "Reranking is off." in caplog.text


def test_a_local_model_fails_as_a_value(tmp_path: Path) -> None:
    def busy(work: Callable[[], object], units: int) -> object:
        raise Overloaded

    (tmp_path / "broken").mkdir()
    assert local(tiny_model(tmp_path), offload=busy).scores("pump", ["cat"]).label == "rerankerUnavailable"
    assert local(tiny_model(tmp_path / "empty")).scores("pump", [""]).label == "rerankerUnavailable"
