"""What came of the rows, for a terminal and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from datafari_rag.conformance.asking import Outcome
from datafari_rag.conformance.rows import protocols_of


def print_report(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print one line for each row that fails, then a table with one line for each protocol."""
    for one in outcomes:
        if one.problem is not None:
            row = one.row
            console.print(f"[red]{row.severity}[/red] {row.id} {row.protocol}, {row.section}", highlight=False)
            console.print(f"    {row.says}", markup=False, highlight=False, soft_wrap=True)
            console.print(f"    {one.problem}", markup=False, highlight=False, soft_wrap=True)
    console.print(_table(outcomes))


def as_json(outcomes: Sequence[Outcome], *, version: int, service: str) -> dict[str, Any]:
    """Return everything that a program wants to know of a run."""
    rows = [
        {
            "id": one.row.id,
            "protocol": one.row.protocol,
            "section": one.row.section,
            "severity": one.row.severity,
            "says": one.row.says,
            "passed": one.problem is None,
            "problem": one.problem,
        }
        for one in outcomes
    ]
    failed = sum(one.problem is not None for one in outcomes)
    return {"version": version, "service": service, "passed": len(rows) - failed, "failed": failed, "rows": rows}


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(title="Rows by protocol", title_justify="left")
    table.add_column("protocol")
    for head in ("rows", "passed", "failed: must", "should", "may"):
        table.add_column(head, justify="right")
    for protocol in protocols_of(one.row for one in outcomes):
        table.add_row(protocol, *_cells([one for one in outcomes if one.row.protocol == protocol]))
    table.add_section()
    table.add_row("all", *_cells(outcomes))
    return table


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    failed = Counter(one.row.severity for one in outcomes if one.problem is not None)
    passed = len(outcomes) - failed.total()
    return [str(len(outcomes)), str(passed), *(str(failed[severity]) for severity in ("must", "should", "may"))]
