"""How the cost of one answer grows with what it is made of: documents, their size, the user's rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.corpus import questions
from benchmarks.measuring import Result, measured, whole
from benchmarks.services import asking, service, stubs

if TYPE_CHECKING:
    from benchmarks.run import Bench

DOCUMENTS = (1, 3, 10, 30)
CHARS = (2_000, 20_000, 200_000, 2_000_000)
TOKENS = (1, 50, 500, 2_000)


def growth(bench: Bench) -> Result:
    """Return CPU milliseconds per answer against each of the three, the others as in all rows."""
    return {
        "documents": {str(number): _cost(bench, documents=number, rag__maxFiles=str(number)) for number in DOCUMENTS},
        "characters of a document": {str(chars): _cost(bench, chars=chars) for chars in CHARS},
        "rights of the user": {str(number): _cost(bench, tokens=number) for number in TOKENS},
    }


def _cost(bench: Bench, *, documents: int = 3, chars: int = 20_000, tokens: int = 50, **settings: str) -> float:
    with (
        stubs(bench.folder / "growth", documents=documents, chars=chars) as behind,
        service(behind, workers=1, tokens=tokens, **settings) as ours,
    ):
        behind.pace(first_ms=0)
        plan = whole(1, bench.seconds(3), **asking(ours, is_streamed=False), questions=questions())
        return round(float(measured(ours, plan)["cpu_ms_per_answer"]), 2)
