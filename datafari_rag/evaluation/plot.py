"""The plots: answers in the context against the budget, and the gate's curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

from datafari_rag.evaluation.measures import BUDGETS


def draw(variants: Mapping[str, Mapping[str, Any]], curve: Sequence[Mapping[str, float]], path: Path) -> None:
    """
    Write a PNG to *path*: for each variant (its "all" summary) one line a way; next to it the gate's curve.

    Raises:
        OSError: the file cannot be written.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for name, summary in variants.items():
        for way, shares in summary["in_context"].items():
            style = "-" if way == "passages" else "--"
            left.plot(BUDGETS, shares, style, marker="o", label=f"{name}: {way}")
    left.set(xscale="log", xlabel="characters of all extracts", ylabel="answer in the context, percent", ylim=(0, 100))
    left.set_xticks(BUDGETS, [str(budget) for budget in BUDGETS])
    left.minorticks_off()
    left.grid(alpha=0.3)
    left.legend(fontsize="small")
    right.plot([point["lost"] for point in curve], [point["saved"] for point in curve], marker=".")
    right.set(
        xlabel="answers lost, percent", ylabel="unanswerable questions stopped, percent", title="rag.evidence.min"
    )
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
