from __future__ import annotations

import pytest

from datafari_rag.core.events import ModelFacts
from datafari_rag.web.ops.metrics import FinishedRequest, Metrics, coarse_s, model_label
from tests.settings import settings_with

SETTINGS = settings_with(rag_model="gpt-4o", llm_fallback_models=("gpt-4o-mini",), openai_models=("local",))


@pytest.mark.parametrize(
    ("name", "label"),
    [
        pytest.param("gpt-4o", "gpt-4o", id="a configured name"),
        pytest.param("gpt-4o-2024-08-06", "gpt-4o", id="a version of it"),
        pytest.param("gpt-4o-mini-2024-07-18", "gpt-4o-mini", id="a version of the longest that fits"),
        pytest.param("local", "local", id="one that clients may ask for"),
        pytest.param("builtin:extractive", "builtin:extractive", id="the built-in model"),
        pytest.param("gpt-4omega", "other", id="another name that begins alike"),
        pytest.param("canary\nanything", "other", id="whatever a server calls itself"),
        pytest.param("", "other", id="no name"),
    ],
)
def test_a_models_label_is_from_the_settings(name: str, label: str) -> None:
    assert model_label(name, SETTINGS) == label


@pytest.mark.parametrize(
    ("ended", "rows"),
    [
        pytest.param(
            FinishedRequest("chat", "ok", ModelFacts("gpt-4o", tries=2), (("search", 5.0),), 9.0),
            ['model_answers_total{model="gpt-4o",outcome="ok"} 1.0', 'model_tries_total{model="gpt-4o"} 2.0'],
            id="a good answer",
        ),
        pytest.param(
            FinishedRequest("chat", "modelTimeout"),
            ['model_answers_total{model="gpt-4o",outcome="modelTimeout"} 1.0'],
            id="a model that never said its name",
        ),
        pytest.param(FinishedRequest("chat", "searchTimeout"), [], id="no model was reached"),
        pytest.param(
            FinishedRequest("chat", "ok", ModelFacts("gpt-4o", extras={"usage": {"prompt_tokens": "many"}})),
            ['model_answers_total{model="gpt-4o",outcome="ok"} 1.0', 'model_tries_total{model="gpt-4o"} 1.0'],
            id="a usage that is no number",
        ),
    ],
)
def test_an_answer_is_counted_by_its_model(ended: FinishedRequest, rows: list[str]) -> None:
    metrics = Metrics()
    metrics.count(ended, SETTINGS)
    told = [row for row in metrics.exposition().decode().splitlines() if row.startswith("datafari_rag_model")]

    assert set(rows) <= {row.removeprefix("datafari_rag_") for row in told}
    assert bool(rows) == any("_total" in row for row in told)


@pytest.mark.parametrize(
    ("share", "rows"),
    [
        (None, []),
        (0.99, ['bucket{dialect="chat",le="0.9"} 0.0', 'bucket{dialect="chat",le="0.99"} 1.0']),
        (1.0, ['bucket{dialect="chat",le="0.99"} 0.0', 'bucket{dialect="chat",le="1.0"} 1.0']),
    ],
)
def test_the_share_that_is_proved_is_counted_where_there_is_one(share: float | None, rows: list[str]) -> None:
    metrics = Metrics()
    metrics.count(FinishedRequest("chat", "ok", support=share), SETTINGS)
    counted = [
        row for row in metrics.exposition().decode().splitlines() if row.startswith("datafari_rag_answer_support_")
    ]

    assert {f"datafari_rag_answer_support_{row}" for row in rows} <= set(counted)
    assert bool(rows) == bool(counted)


@pytest.mark.parametrize(
    ("took_ms", "seconds"),
    [(0.0, 0.01), (0.093, 0.01), (3.0, 0.01), (3.093, 0.01), (10.0, 0.01), (10.1, 0.02), (1234.5, 1.24)],
)
def test_times_are_counted_in_whole_steps(took_ms: float, seconds: float) -> None:
    assert coarse_s(took_ms) == pytest.approx(seconds)


def test_a_rejected_file_shows() -> None:
    assert b"datafari_rag_settings_rejected 1.0" in Metrics().exposition(is_rejected=True)
    assert b"datafari_rag_settings_rejected 0.0" in Metrics().exposition()
