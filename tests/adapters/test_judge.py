"""The second judge over a real socket: what is sent, what its replies say, and how it fails, which is a value."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from datafari_rag.adapters.http.exchange import MAX_REPLY_BYTES
from datafari_rag.adapters.judge import MAX_PAIRS, EndpointJudge, JudgeOptions, judge_for
from datafari_rag.core.answer.text_check import JUDGE_FAILURES, Doubt, JudgeFailure, Verdict
from datafari_rag.core.settings.addresses import Tls
from datafari_rag.core.settings.table import Settings
from tests.loopback import Asked, Reply, serving
from tests.settings import settings_with

DOUBTS = [Doubt("Cats may travel free.", ("Pets pay nothing.", "Dogs bark.")), Doubt("It is late.", ("It is early.",))]


def rows(*labels: str, score: float = 0.9) -> bytes:
    said = [[{"score": 1 - score, "label": "other"}, {"score": score, "label": label}] for label in labels]
    return json.dumps(said).encode()


def asked_of(answer: Callable[[Asked], Reply], doubts: list[Doubt] = DOUBTS, **options: Any) -> tuple[Any, list[Asked]]:
    with serving(answer) as server:
        judge = EndpointJudge(f"{server.url}/predict", JudgeOptions(**{"timeout_s": 20.0, **options}))
        return judge.judge(doubts), server.asked


def test_pairs_of_premise_and_claim_are_judged_by_their_labels() -> None:
    found, (request,) = asked_of(lambda asked: Reply(rows("ENTAILMENT", "neutral", "contradiction")), token="key")
    assert found == [Verdict(proving=(0,)), Verdict(contradicting=(0,))]
    assert json.loads(request.body) == {
        "inputs": [
            ["Pets pay nothing.", "Cats may travel free."],
            ["Dogs bark.", "Cats may travel free."],
            ["It is early.", "It is late."],
        ],
        "truncate": True,
        "raw_scores": False,
    }
    assert (request.method, request.path, request.headers["Authorization"]) == ("POST", "/predict", "Bearer key")


def test_a_label_below_the_least_score_decides_nothing() -> None:
    found, (request,) = asked_of(lambda asked: Reply(rows("entailment", "entailment", "contradiction", score=0.65)))
    assert found == [Verdict(), Verdict()]
    assert "Authorization" not in request.headers


def test_no_request_has_more_pairs_than_such_a_server_takes() -> None:
    many = [Doubt(f"claim {number}", ("a", "b", "c")) for number in range(20)]
    found, requests = asked_of(lambda asked: Reply(rows(*["entailment"] * len(json.loads(asked.body)["inputs"]))), many)
    assert [len(json.loads(one.body)["inputs"]) for one in requests] == [MAX_PAIRS, 60 - MAX_PAIRS]
    assert found == [Verdict((0, 1, 2))] * 20


def test_a_claim_in_which_no_span_is_marked_is_proved_by_its_contexts() -> None:
    def answer(asked: Asked) -> Reply:
        claim = json.loads(asked.body)["answer"]
        span = {"start": 0, "end": 2, "text": "It", "hallucination_score": 0.9}
        return Reply(json.dumps({"predictions": [span] if claim == "It is late." else []}).encode())

    found, (first, _) = asked_of(answer, format="lettucedetect")
    assert found == [Verdict(proving=(0, 1)), Verdict()]
    assert json.loads(first.body) == {
        "contexts": ["Pets pay nothing.", "Dogs bark."],
        "question": "",
        "answer": "Cats may travel free.",
    }


def late(asked: Asked) -> Reply:
    asked.over.wait()
    return Reply(b"[]")


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        pytest.param(lambda asked: Reply(b"{}", status=503), "judgeUnavailable", id="status 503"),
        pytest.param(lambda asked: Reply(b"{}", status=302), "judgeUnavailable", id="a redirect"),
        pytest.param(lambda asked: Reply(b"[", length=9), "judgeUnavailable", id="breaks off"),
        pytest.param(late, "judgeTimeout", id="too late"),
        pytest.param(lambda asked: Reply(b"no JSON"), "judgeGarbled", id="no JSON"),
        pytest.param(lambda asked: Reply(b"[" * 90_000), "judgeGarbled", id="brackets in brackets"),
        pytest.param(lambda asked: Reply(b'{"error": "x"}'), "judgeGarbled", id="no list"),
        pytest.param(lambda asked: Reply(rows("entailment")), "judgeGarbled", id="too few"),
        pytest.param(lambda asked: Reply(b"[[], [], []]"), "judgeGarbled", id="no labels"),
        pytest.param(lambda asked: Reply(b'[[{"score": "1", "label": "a"}], [], []]'), "judgeGarbled", id="a text"),
        pytest.param(lambda asked: Reply(b'[[{"score": NaN, "label": "a"}], [], []]'), "judgeGarbled", id="no number"),
        pytest.param(lambda asked: Reply(b'[[{"score": 1, "label": 7}]] '.replace(b"]]", b"], [1], [1]]")),
                     "judgeGarbled", id="a number for a label"),
        pytest.param(lambda asked: Reply(b" " * (MAX_REPLY_BYTES + 1)), "judgeGarbled", id="too long"),
        pytest.param(lambda asked: Reply(b"[]", headers=[("Content-Encoding", "br")]), "judgeGarbled", id="coded"),
    ],
)  # fmt: skip
def test_a_failure_is_a_value_with_a_label(
    answer: Callable[[Asked], Reply], label: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "datafari_rag"):
        found, _ = asked_of(answer, timeout_s=0.05 if label == "judgeTimeout" else 20.0)
    assert isinstance(found, JudgeFailure)
    assert found.label == label
    assert found.reason == JUDGE_FAILURES[found.label]
    (line,) = caplog.messages
    assert line.startswith(f"{label} claims=2")
    assert not any(word in line for word in ("Cats", "Pets", "early"))


@pytest.mark.parametrize("reply", [b"[]", b"{}", b'{"predictions": [1]}', b'{"predictions": {}}'])
def test_spans_that_are_none_are_no_verdict(reply: bytes) -> None:
    found, _ = asked_of(lambda asked: Reply(reply), format="lettucedetect")
    assert isinstance(found, JudgeFailure)
    assert found.label == "judgeGarbled"


def test_the_time_is_for_all_requests_together() -> None:
    now = iter([0.0, 0.0, 0.1, 9.0, 9.0])
    with serving(lambda asked: Reply(b'{"predictions": []}')) as server:
        judge = EndpointJudge(server.url, JudgeOptions(format="lettucedetect"), clock=lambda: next(now))
        found = judge.judge(DOUBTS)
    assert isinstance(found, JudgeFailure)
    assert found.label == "judgeTimeout"


def test_no_server_and_a_missing_file_of_authorities_are_named() -> None:
    with serving(lambda asked: Reply()) as server:
        pass
    for judge in (
        EndpointJudge(server.url, JudgeOptions()),
        EndpointJudge("https://127.0.0.1:1/predict", JudgeOptions(tls=Tls("/nowhere.pem"))),
    ):
        found = judge.judge(DOUBTS)
        assert isinstance(found, JudgeFailure)
        assert found.label == "judgeUnavailable"


def test_there_is_none_without_an_endpoint() -> None:
    assert judge_for(Settings()) is None
    made = judge_for(settings_with(answer_judge_endpoint="http://127.0.0.1:1/predict", answer_judge_token="secret"))
    assert isinstance(made, EndpointJudge)
    assert "secret" not in repr(vars(made))
