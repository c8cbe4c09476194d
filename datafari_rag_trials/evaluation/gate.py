"""What a run is compared with: the first of its variants, and a report of before (`--baseline`, `--gate`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from datafari_rag_trials.evaluation.comparison import Comparison, Outcomes, changes, compared
from datafari_rag_trials.evaluation.reports import changes_table, comparison_table
from datafari_rag_trials.evaluation.runs import CannotMeasure


def baseline_in(path: Path) -> Mapping[str, Outcomes]:
    """Return the outcomes of each variant in the report *path*. Raises: CannotMeasure, OSError."""
    try:
        variants = json.loads(path.read_text(encoding="utf-8"))["variants"]
        found = {str(name): of["questions"] for name, of in variants.items()}
        if not all(isinstance(value, bool) for of in found.values() for one in of.values() for value in one.values()):
            raise ValueError("an outcome is neither true nor false")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CannotMeasure(f"{path}: no eval.json with the outcome of each question") from error
    return found


def compare(report: dict[str, Any], baseline: Mapping[str, Outcomes] | None, console: Console) -> bool:
    """
    Print each comparison and add it to *report*; say whether the baseline lost something significantly.

    Raises:
        CannotMeasure: no variant of the baseline fits, or questions of it were not asked.
    """
    variants: Mapping[str, Any] = report["variants"]
    first = next(iter(variants))
    for name in list(variants)[1:]:
        _printed(f"{name}, against {first}", variants[first]["questions"], variants[name], console)
    if baseline is None:
        return False
    losses = [one for name, of in variants.items() for one in _against(name, of, baseline, console)]
    return bool(losses)


def _against(name: str, of: dict[str, Any], baseline: Mapping[str, Outcomes], console: Console) -> Iterator[Comparison]:
    """Yield what was lost significantly."""
    before = baseline.get(name) if name in baseline or len(baseline) != 1 else next(iter(baseline.values()))
    if before is None:
        raise CannotMeasure(f"{name}: the baseline has several variants, and none of this name")
    missing = [question for question in before if question not in of["questions"]]
    if missing or not before:
        # Questions that vanish would make any loss pass.
        raise CannotMeasure(f"{name}: {len(missing)} of {len(before)} questions of the baseline were not asked")
    made = _printed(f"{name}, against the baseline", before, of, console)
    yield from (one for one in made if one.is_significant)


def _printed(title: str, before: Outcomes, of: dict[str, Any], console: Console) -> tuple[Comparison, ...]:
    made, found = compared(before, of["questions"]), changes(before, of["questions"])
    console.print(comparison_table(title, made))
    if found:
        console.print(changes_table(title, found))
    compared_with = {"comparison": [asdict(one) for one in made], "changes": [asdict(one) for one in found]}
    of.setdefault("against", {})[title.rpartition(", against ")[2]] = compared_with
    return made
