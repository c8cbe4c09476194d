"""How the cost grows with what an answer is made of: documents, their size, the user's rights, the open streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.bench import Bench, tried
from benchmarks.corpus import questions
from benchmarks.measuring import Result, crowd, measured
from benchmarks.services import asking, service, stubs
from benchmarks.streaming import open_streams

DOCUMENTS = (1, 3, 10, 30)
CHARS = (2_000, 20_000, 200_000, 2_000_000)
TOKENS = (1, 50, 500, 2_000)
OPEN = (25, 100, 400)


def growth(bench: Bench) -> Result:
    """Return for each of the four, at each point, the CPU that it takes and what the caller waits for."""
    causes: dict[str, tuple[Sequence[int], Callable[[int], Result]]] = {
        "documents": (DOCUMENTS, lambda at: _answer(bench, documents=at, rag__maxFiles=str(at))),
        "characters of a document": (CHARS, lambda at: _answer(bench, chars=at)),
        "rights of the user": (TOKENS, lambda at: _answer(bench, tokens=at)),
        "open streams": (OPEN, lambda at: _streams(bench, at)),
    }
    for name, (points, measure) in causes.items():
        bench.done[name] = {str(at): tried(lambda at=at, take=measure: take(at)) for at in points}  # type: ignore[misc]
    return bench.done


def _answer(bench: Bench, *, documents: int = 3, chars: int = 20_000, tokens: int = 50, **settings: str) -> Result:
    with (
        stubs(bench.folder / "growth", documents=documents, chars=chars) as behind,
        service(behind, workers=1, tokens=tokens, **settings) as ours,
    ):
        behind.pace(first_ms=0)
        asked = {**asking(ours, is_streamed=False), "questions": questions()}
        seen = measured(ours, crowd(1, bench.seconds(3), **asked))
    return {"cpu_ms": seen["cpu_ms_per_answer"], "wait_ms": seen["latency_ms"]["p50"], "lost": seen["lost"]}


def _streams(bench: Bench, at_once: int) -> Result:
    with stubs(bench.folder / "growth") as behind, service(behind) as ours:
        seen = open_streams(bench, behind, ours, (at_once, 10, 50, 0.2))
    wait_ms = None if seen["ttft_ms"]["p50"] is None else seen["ttft_ms"]["p50"] - 200
    return {"cpu_ms": seen["cpu_ms_per_1000_tokens"], "wait_ms": wait_ms, "lost": seen["lost"]}
