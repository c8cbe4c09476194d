"""Measurements as tables of Markdown, in the terminal and in a page (docs/quality.md names the command)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from datafari_rag_trials.evaluation.comparison import Change, Comparison
from datafari_rag_trials.evaluation.measures import BUDGETS, RANKS

BEGIN, END = "<!-- measured: {} -->", "<!-- end of {} -->"
"""Marks around the parts that are replaced: `tables` and `gate`, or the one that is named."""

TABLES = "tables"

GATE = (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
"""Thresholds that are shown."""

WITHOUT_BUDGET = ("highlighting",)
"""Ways whose share is the same at every budget: one number says it."""

_RANKS = " / ".join(map(str, RANKS))
_BUDGETS = " / ".join(f"{budget:,}" for budget in BUDGETS)
_HEADS = ("set", "questions", f"engine {_RANKS}", f"re-ranked {_RANKS}", f"answer in {_BUDGETS} characters")


class NoPlaceholder(ValueError):
    """The page has no marks for what is to be written; the message says which."""


def written_into(page: str, report: Mapping[str, Any], part: str = TABLES) -> str:
    """
    Return *page* with the tables of *report* (as in eval.json) between the marks of *part*, replacing the old ones.

    The gate's curve goes with the part `tables` alone.

    Raises:
        NoPlaceholder: a mark is missing.
    """
    page = placed(page, part, tables(report))
    if part != TABLES:
        return page
    return placed(page, "gate", gate(next(iter(report["variants"].values()))["gate"]))


def check_marks(page: str, part: str = TABLES) -> None:
    """Raise `NoPlaceholder` when *page* lacks a mark, before minutes are spent on what has no place to go."""
    for name in (TABLES, "gate") if part == TABLES else (part,):
        placed(page, name, "")


def tables(report: Mapping[str, Any]) -> str:
    """Return one section for each variant, with the parameters of the run."""
    which = "All questions" if report["every"] == 1 else f"One question in {report['every']}"
    model = f"; embedding model {report['model']}" if report.get("model") else ""
    took_s, jobs = report["took_s"], report["jobs"]
    took = "" if took_s is None else f"; the whole run took {took_s / 60:.1f} minutes with {jobs} processes"
    intro = f"{which}{model}{took}.\n"
    return "\n".join([intro, *(_section(name, of["sets"]) for name, of in report["variants"].items())])


def gate(curve: Sequence[Mapping[str, float]]) -> str:
    """Return the gate's curve at the thresholds of `GATE`."""
    points = [point for point in curve if round(point["threshold"], 2) in GATE]
    return "\n".join(
        (
            _row("threshold", *(f"{point['threshold']:.2f}" for point in points)),
            _row(*["---"] * (len(points) + 1)),
            _row("unanswerable stopped, %", *(_decimal(point["saved"]) for point in points)),
            _row("answers lost, %", *(_decimal(point["lost"]) for point in points)),
            "",
        )
    )


def _section(name: str, summaries: Mapping[str, Mapping[str, Any]]) -> str:
    ways = dict.fromkeys(way for of in summaries.values() for way in of["in_context"] if way != "passages")
    has_units = any(of["whole"] is not None for of in summaries.values())
    has_several = any(of["all_among_five"] is not None for of in summaries.values())
    heads = (*_HEADS, *ways, "in the reply", *(("quoted whole",) if has_units else ()))
    heads = (*heads, *(("all documents among 5",) if has_several else ()))
    rows = [_row(*heads), _row(*["---"] * len(heads))]
    rows += [
        _row(
            *_set_cells(group, of, list(ways)),
            *((_decimal(of["whole"]),) if has_units else ()),
            *((_decimal(of["all_among_five"]),) if has_several else ()),
        )
        for group, of in summaries.items()
    ]
    last = list(summaries.values())[-1]
    times = ", ".join(f"{stage} {spread['median']:.1f}" for stage, spread in last["ms"].items())
    below = (
        f"Citations of the built-in model: {last['citations']:,}, proved {_decimal(last['citations_proved'])} %, of a "
        f"right document {_decimal(last['citations_right'])} %. Documents that a user of `users.jsonl` was given "
        f"against their rights: {last['leaks']}. Silent where nothing answers: "
        f"{_decimal(last['abstained_unanswerable'])} %, elsewhere: {_decimal(last['abstained_answerable'])} %. "
        f"Median milliseconds: {times}."
    )
    return "\n".join((f"## {_title(name)}", "", *rows, "", below, ""))


def _set_cells(group: str, of: Mapping[str, Any], ways: Sequence[str]) -> tuple[str, ...]:
    recalls = (_series(of[way].values()) for way in ("engine_recall", "recall"))
    contexts = (_context(way, of["in_context"].get(way)) for way in ("passages", *ways))
    return _bold(group), str(of["questions"]), *recalls, *contexts, _decimal(of["in_reply"])


def _context(way: str, shares: Sequence[float | None] | None) -> str:
    if not shares:
        return "–"
    return _decimal(shares[0]) if way in WITHOUT_BUDGET else _series(shares)


def _series(values: Any) -> str:
    cells = [_decimal(value) for value in values]
    return "–" if set(cells) == {"–"} else " / ".join(cells)


def _decimal(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def placed(page: str, part: str, text: str) -> str:
    """Return *page* with *text* between the marks of *part*, in place of what was there. Raises: NoPlaceholder."""
    begin, end = BEGIN.format(part), END.format(part)
    pattern = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise NoPlaceholder(f"The page has no marks {begin} and {end}.")
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n{end}", page, count=1)


def comparison_table(name: str, compared: Sequence[Comparison]) -> str:
    """Return what was lost and won against another run, by measure; a loss that is hardly chance is marked."""
    rows = [
        _row(one.measure, str(one.questions), str(one.lost), str(one.won), f"{one.chance:.4f}", _verdict(one))
        for one in compared
    ]
    return _table(f"{name}: lost and won", ("measure", "questions", "lost", "won", "by chance", "verdict"), rows)


def _verdict(one: Comparison) -> str:
    return "LOSS" if one.is_significant else ""


def changes_table(name: str, changes: Sequence[Change], most: int = 40) -> str:
    """Return the questions that went otherwise, at most *most* of them; the report has all."""
    rows = [_row(one.question, one.measure, *(("good", "bad") if one.is_loss else ("bad", "good"))) for one in changes]
    return _table(f"{name}: {len(changes)} differences", ("question", "measure", "was", "is"), rows[:most])


def _table(title: str, heads: Sequence[str], rows: Sequence[str]) -> str:
    return "\n".join((f"### {title}", "", _row(*heads), _row(*["---"] * len(heads)), *rows, ""))


def _title(name: str) -> str:
    return f"{name[:1].upper()}{name[1:]}"


def _bold(group: str) -> str:
    return f"**{group}**" if group == "all" else group
