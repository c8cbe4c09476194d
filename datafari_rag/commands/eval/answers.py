"""`datafari-rag eval --answers`: questions to the configured model, a table and what became of each question out."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from datafari_rag.commands.eval.runs import EvaluationPlan, Variant, bench_for
from datafari_rag.evaluation.markdown_report import placed
from datafari_rag.evaluation.model_answers import answered, answers_table, report_of


def measure_answers(plan: EvaluationPlan, variant: Variant, out: Path, page: Path | None, part: str) -> None:
    """
    Ask the model of *variant* each question of *plan*, one after the other; print the rates, and write them.

    Raises:
        StartRefused: the settings cannot be used.
        NoPlaceholder: the page has no marks of *part*.
        RagError, OSError: search or rights fail, a file cannot be written.
    """
    setup = bench_for(variant, plan, baselines=False)
    settings = setup.settings
    with Progress(console=Console(stderr=True), transient=True) as progress:
        questions = progress.track(plan.questions, description=settings.rag_model)
        answers = [answered(question, setup, time.monotonic) for question in questions]
    report = report_of(settings.rag_model, answers)
    table = answers_table(settings.rag_model, report["sets"])  # type: ignore[arg-type] # as `report_of` made it
    click.echo(table, nl=False)
    out.mkdir(parents=True, exist_ok=True)
    (out / "answers.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    if page is not None:
        page.write_text(placed(page.read_text(encoding="utf-8"), part, table), encoding="utf-8")
