"""Measurements as tables in the terminal, as Markdown in a page (docs/quality.md names the command), and as a plot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from datafari_rag_trials.evaluation.comparison import COUNTED, Change, Comparison, changes
from datafari_rag_trials.evaluation.measures import BUDGETS, RANKS
from datafari_rag_trials.evaluation.questions import REWORDED

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
    """Return one section for each variant, or the methods of search side by side, with the parameters of the run."""
    which = "All questions" if report["every"] == 1 else f"One question in {report['every']}"
    model = f"; embedding model {report['model']}" if report.get("model") else ""
    took_s, jobs = report["took_s"], report["jobs"]
    took = "" if took_s is None else f"; the whole run took {took_s / 60:.1f} minutes with {jobs} processes"
    intro = f"{which}{model}{took}.\n"
    if report["variants"] and all(_MARK in name for name in report["variants"]):
        return f"{intro}\n{methods(report)}"
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
        f"against their rights: {last['leaks']}. Median milliseconds: {times}."
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
            table.add_row(name, str(summary["questions"]), *map(_decimal, cells))
    return table


def context_table(summaries: Summaries) -> Table:
    """Return how often the model's input contains the answer, by set, way and budget."""
    ways = list(dict.fromkeys(way for summary in summaries.values() for way in summary["in_context"]))
    table = _table("Answer in the context, percent (" + " / ".join(map(str, BUDGETS)) + " characters)", "set")
    for way in ways:
        table.add_column(way, justify="right")
    for name, summary in summaries.items():
        if summary["in_context"]:
            table.add_row(name, *(" / ".join(map(_decimal, summary["in_context"].get(way, []))) for way in ways))
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
            _decimal(summary["in_reply"]),
            _decimal(summary["whole"]),
            str(summary["citations"]),
            _decimal(summary["citations_proved"]),
            _decimal(summary["citations_right"]),
            _decimal(summary["abstained_unanswerable"]),
            _decimal(summary["abstained_answerable"]),
            str(summary["leaks"]),
            _decimal(times.get("search")),
            _decimal(times.get("passages")),
            _decimal(sum(times.values())) if times else "–",
        )
    return table


def gate_table(curve: list[dict[str, float]]) -> Table:
    """Return the gate's curve: calls saved against answers lost."""
    table = _table("rag.evidence.min: unanswerable questions stopped, answers lost, percent", "threshold")
    table.add_column("saved", justify="right")
    table.add_column("lost", justify="right")
    for point in curve:
        table.add_row(f"{point['threshold']:.2f}", _decimal(point["saved"]), _decimal(point["lost"]))
    return table


def comparison_table(name: str, compared: Sequence[Comparison]) -> Table:
    """Return what was lost and won against another run, by measure; a loss that is hardly chance is marked."""
    table = _table(f"{name}: lost and won", "measure", "questions", "lost", "won", "by chance", "verdict")
    for row in compared:
        verdict = "LOSS" if row.is_significant else ""
        table.add_row(row.measure, str(row.questions), str(row.lost), str(row.won), f"{row.chance:.4f}", verdict)
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


METHODS = {"bm25": "words", "vector": "meaning", "hybrid": "both"}
"""Value of `retrieval.method` → its column."""

_MARK = ", retrieval.method="
_RANK_HEADS = {1: "first", 3: "among 3", 5: "among 5", 10: "among 10"}


def methods(report: Mapping[str, Any]) -> str:
    """
    Return for each engine and collection of *report* a table whose cells are words / meaning / both in percent.

    A second one counts the questions that both methods together won and lost against words alone.
    """
    places: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, of in report["variants"].items():
        place, _, method = name.partition(_MARK)
        places.setdefault(place, {})[method] = of
    return "\n".join(
        text for place, of_methods in places.items() for text in (_place(place, of_methods), _won(place, of_methods))
    )


def _place(name: str, of_methods: Mapping[str, Mapping[str, Any]]) -> str:
    ways = [METHODS.get(method, method) for method in of_methods]
    heads = [*(_RANK_HEADS[rank] for rank in RANKS), *(f"answer in {budget:,}" for budget in BUDGETS), "in the reply"]
    summaries: list[Summaries] = [of["sets"] for of in of_methods.values()]
    body = [_cells(group, [of.get(group, {}) for of in summaries]) for group in summaries[0]]
    rows = [_row("set", "questions", *heads), _row(*["---"] * (2 + len(heads))), *(_row(*cells) for cells in body)]
    return "\n".join((f"### {_title(name)}: {' / '.join(ways)}", "", *rows, ""))


def _won(name: str, of_methods: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of what `hybrid` won and lost against `bm25`; nothing where one of them is not there."""
    if not {"bm25", "hybrid"} <= set(of_methods):
        return ""
    words, both = (of_methods[method]["counted"] for method in ("bm25", "hybrid"))
    rows = [_row("set", *COUNTED), _row(*["---"] * (1 + len(COUNTED)))]
    for group in of_methods["bm25"]["sets"]:
        in_group = {key: of for key, of in words.items() if _is_in(key.partition("/")[0], group)}
        changed = changes(in_group, both)
        sides = {measure: [change.is_loss for change in changed if change.measure == measure] for measure in COUNTED}
        can = {measure for of in in_group.values() for measure in of}
        counts = [f"+{of.count(False)} -{of.count(True)}" if measure in can else "–" for measure, of in sides.items()]
        rows.append(_row(_bold(group), *counts))
    return "\n".join((f"{_title(name)}, both against words: questions won and lost.", "", *rows, ""))


def _is_in(group: str, row: str) -> bool:
    return group == row or (row == "all" and group not in REWORDED)


def _title(name: str) -> str:
    return f"{name[:1].upper()}{name[1:]}"


def _bold(group: str) -> str:
    return f"**{group}**" if group == "all" else group


def _cells(group: str, rows: list[Mapping[str, Any]]) -> list[str]:
    ranks = [[of.get("recall", {}).get(str(rank)) for of in rows] for rank in RANKS]
    contexts = [[_at(of.get("in_context", {}).get("passages"), place) for of in rows] for place in range(len(BUDGETS))]
    replies = [of.get("in_reply") for of in rows]
    return [_bold(group), str(rows[0]["questions"]), *(_cell(values) for values in (*ranks, *contexts, replies))]


def _at(shares: list[float | None] | None, place: int) -> float | None:
    return shares[place] if shares else None


def _cell(values: list[float | None]) -> str:
    cells = ["–" if value is None else f"{value:.1f}" for value in values]
    return "–" if set(cells) == {"–"} else " / ".join(cells)


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
