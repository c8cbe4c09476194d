"""Words, meaning and both side by side as Markdown: a table for each engine, a row for each set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datafari_rag.evaluation.measures import BUDGETS, RANKS

METHODS = {"bm25": "words", "vector": "meaning", "hybrid": "both"}
"""Value of `retrieval.method` → its column."""

_MARK = ", retrieval.method="
_RANK_HEADS = {1: "first", 3: "among 3", 10: "among 10"}

Summaries = Mapping[str, Mapping[str, Any]]


def is_by_method(report: Mapping[str, Any]) -> bool:
    """Say whether all variants of *report* differ by `retrieval.method`."""
    return bool(report["variants"]) and all(_MARK in name for name in report["variants"])


def methods(report: Mapping[str, Any]) -> str:
    """Return a table for each engine and collection of *report*; a cell is words / meaning / both in percent."""
    places: dict[str, dict[str, Summaries]] = {}
    for name, of in report["variants"].items():
        place, _, method = name.partition(_MARK)
        places.setdefault(place, {})[method] = of["sets"]
    return "\n".join(_place(place, found) for place, found in places.items())


def _place(name: str, found: Mapping[str, Summaries]) -> str:
    ways = [METHODS.get(method, method) for method in found]
    heads = [*(_RANK_HEADS[rank] for rank in RANKS), *(f"answer in {budget:,}" for budget in BUDGETS)]
    rows = ["set", "questions", *heads], ["---"] * (2 + len(heads))
    groups = next(iter(found.values()))
    body = [_cells(group, [of.get(group, {}) for of in found.values()]) for group in groups]
    lines = [f"| {' | '.join(row)} |" for row in (*rows, *body)]
    return "\n".join((f"### {name[:1].upper()}{name[1:]}: {' / '.join(ways)}", "", *lines, ""))


def _cells(group: str, found: list[Mapping[str, Any]]) -> list[str]:
    title = f"**{group}**" if group == "all" else group
    ranks = [[of.get("recall", {}).get(str(rank)) for of in found] for rank in RANKS]
    contexts = [[_at(of.get("in_context", {}).get("passages"), place) for of in found] for place in range(len(BUDGETS))]
    return [title, str(found[0]["questions"]), *(_cell(values) for values in (*ranks, *contexts))]


def _at(shares: list[float | None] | None, place: int) -> float | None:
    return shares[place] if shares else None


def _cell(values: list[float | None]) -> str:
    cells = ["–" if value is None else f"{value:.1f}" for value in values]
    return "–" if set(cells) == {"–"} else " / ".join(cells)
