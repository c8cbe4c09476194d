"""What was measured as tables for a terminal; rounding and words, no arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from datafari_rag.evaluation.comparison import Change, Comparison
from datafari_rag.evaluation.measures import BUDGETS, RANKS

Summaries = Mapping[str, Mapping[str, Any]]
"""Name of a set (or "all") → its summary of `measures.summary`."""


def print_report(name: str, summaries: Summaries, console: Console) -> None:
    """Print the three tables of one variant: documents, context, answers."""
    console.print(f"\n[bold]{name}[/bold]")
    console.print(documents_table(summaries))
    console.print(context_table(summaries))
    console.print(answers_table(summaries))


def documents_table(summaries: Summaries) -> Table:
    """Return the right document's place by set: the engine's order, and after the texts were read."""
    table = _table("Right document among the first, percent", "set", "questions")
    for way in ("engine", "re-ranked"):
        for rank in RANKS:
            table.add_column(f"{way} {rank}", justify="right")
    has_several = any(summary["all_among_five"] is not None for summary in summaries.values())
    if has_several:
        table.add_column("all among 5", justify="right")
    for name, summary in summaries.items():
        cells = [summary[way].get(str(rank)) for way in ("engine_recall", "recall") for rank in RANKS]
        cells += [summary["all_among_five"]] if has_several else []
        if any(cell is not None for cell in cells):
            table.add_row(name, str(summary["questions"]), *map(_percent, cells))
    return table


def context_table(summaries: Summaries) -> Table:
    """Return how often the model's input contains the answer, by set, way and budget."""
    ways = list(dict.fromkeys(way for summary in summaries.values() for way in summary["in_context"]))
    table = _table("Answer in the context, percent (" + " / ".join(map(str, BUDGETS)) + " characters)", "set")
    for way in ways:
        table.add_column(way, justify="right")
    for name, summary in summaries.items():
        if summary["in_context"]:
            table.add_row(name, *(" / ".join(map(_percent, summary["in_context"].get(way, []))) for way in ways))
    return table


def answers_table(summaries: Summaries) -> Table:
    """Return replies, citations, abstentions, leaks and time by set."""
    heads = (
        "in reply",
        "unit whole",
        "citations",
        "proved",
        "right document",
        "silent: unanswerable",
        "silent: answerable",
        "leaks",
    )
    table = _table("Answers, percent; milliseconds are medians", "set", *heads, "search ms", "passages ms", "all ms")
    for name, summary in summaries.items():
        times = {stage: of["median"] for stage, of in summary["ms"].items()}
        table.add_row(
            name,
            _percent(summary["in_reply"]),
            _percent(summary["whole"]),
            str(summary["citations"]),
            _percent(summary["citations_proved"]),
            _percent(summary["citations_right"]),
            _percent(summary["abstained_unanswerable"]),
            _percent(summary["abstained_answerable"]),
            str(summary["leaks"]),
            _ms(times.get("search")),
            _ms(times.get("passages")),
            _ms(sum(times.values())) if times else "–",
        )
    return table


def gate_table(curve: list[dict[str, float]]) -> Table:
    """Return the gate's curve: calls saved against answers lost."""
    table = _table("rag.evidence.min: unanswerable questions stopped, answers lost, percent", "threshold")
    table.add_column("saved", justify="right")
    table.add_column("lost", justify="right")
    for point in curve:
        table.add_row(f"{point['threshold']:.2f}", _percent(point["saved"]), _percent(point["lost"]))
    return table


def comparison_table(name: str, compared: Sequence[Comparison]) -> Table:
    """Return what was lost and won against another run, by measure; a loss that is hardly chance is marked."""
    table = _table(f"{name}: lost and won", "measure", "questions", "lost", "won", "by chance", "verdict")
    for one in compared:
        verdict = "LOSS" if one.is_significant else ""
        table.add_row(one.measure, str(one.questions), str(one.lost), str(one.won), f"{one.chance:.4f}", verdict)
    return table


def changes_table(name: str, changes: Sequence[Change], most: int = 40) -> Table:
    """Return the questions that went otherwise, at most *most* of them; the report has all."""
    table = _table(f"{name}: {len(changes)} differences", "question", "measure", "was", "is")
    for change in changes[:most]:
        was, now = ("good", "bad") if change.is_loss else ("bad", "good")
        table.add_row(escape(change.question), change.measure, was, now)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=number == 0)
    return table


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
