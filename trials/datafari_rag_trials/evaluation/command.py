"""
`datafari-rag eval`: questions with known answers in, tables and JSON out. Tables to stdout, else stderr.

A run is compared with the first of its variants, and with a report of before (`--baseline`, `--gate`).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from datafari_rag.adapters.settings.file import StartRefused, snapshot_of
from datafari_rag.adapters.vectors.factory import embedder_for
from datafari_rag.commands.terminal import CONF, Command
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.checks import text_of_value
from datafari_rag.core.settings.table import ROWS
from datafari_rag_trials.evaluation.comparison import Comparison, Outcomes, changes, compared, outcomes
from datafari_rag_trials.evaluation.grounding import measure_grounding
from datafari_rag_trials.evaluation.measures import Trial, gate_curve, summary
from datafari_rag_trials.evaluation.model_answers import measure_answers
from datafari_rag_trials.evaluation.questions import (
    COLLECTIONS,
    IN_STEPS,
    PATIENT,
    REWORDED,
    Indexing,
    NoSets,
    Question,
    UnreadableQuestions,
    places,
    questions_in,
    questions_of,
    readers_of,
    rights_of,
)
from datafari_rag_trials.evaluation.reports import (
    TABLES,
    NoPlaceholder,
    changes_table,
    check_marks,
    comparison_table,
    gate,
    tables,
    written_into,
)
from datafari_rag_trials.evaluation.trial import CannotMeasure, EvaluationPlan, Variant, former, keeping, plan_of, run

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(
    cls=Command,
    name="eval",
    epilog="""\b
Examples:
  datafari-rag eval questions.jsonl --conf conf/rag.properties
  datafari-rag eval questions.jsonl --vary rag.solrField=exactContent,preview_content
  datafari-rag eval --sets ../shared/data --engine both
\b
  datafari-rag eval questions.jsonl --vary rag.solrField=preview_content
  datafari-rag eval --grounding ../shared/data/grounding
  datafari-rag eval questions.jsonl --answers --conf rag.properties
  datafari-rag eval questions.jsonl --baseline accepted.json --gate
\b
Exit codes: 0 no leak; 1 a leak, a significant loss with --gate, or the measurement failed; 2 wrong usage.
""",
)
@click.argument("questions", nargs=-1, type=FILE)
@CONF
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=A,B",
    help="Measure once for each value of a setting; repeatable. "
    "Where each has one value: as configured, and with them. The differences are listed.",
)
@click.option("--baseline", type=FILE, help="An earlier eval.json: list what was lost and won since, by question.")
@click.option("--gate", is_flag=True, help="Exit 1 when more was lost since --baseline than chance explains.")
@click.option("--token", multiple=True, help="Ask with this access token; repeatable. [default: anonymous]")
@click.option("--out", type=FOLDER, default=Path("var/eval"), show_default=True, help="Output folder for eval.json.")
@click.option("--page", type=FILE, help="Markdown page in which the tables between its marks are replaced.")
@click.option("--part", default=TABLES, show_default=True, help="Name in the marks of --page.")
@click.option("--every", type=click.IntRange(1), default=1, help="Ask only every Nth question.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Processes. [default: cores]")
@click.option("--with-model", is_flag=True, help="Use the configured model. [default: the built-in extractive model]")
@click.option("--baselines/--no-baselines", default=True, help="Also measure head and highlighting.")
@click.option(
    "--sets", type=FOLDER, help="Folder of sets (docs.jsonl, questions.jsonl): index them first, in one index."
)
@click.option("--engine", type=click.Choice(["embedded", "solr", "both"]), default="both", help="For --sets.")
@click.option(
    "--collection",
    "collections",
    type=click.Choice(COLLECTIONS),
    multiple=True,
    help="For --sets: measure this alone; repeatable. [default: all]",
)
@click.option(
    "--grounding",
    type=FOLDER,
    multiple=True,
    help="Folder with claims.jsonl of labelled claims: measure the check of citations alone; repeatable.",
)
@click.option(
    "--answers",
    is_flag=True,
    help="Ask the configured model the questions of the files, and measure its answers alone.",
)
@click.option(
    "--only", multiple=True, metavar="SET", help="For --sets: ask only the questions of this set; repeatable."
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep indexes and outcomes in --out, and continue an earlier run with the same options.",
)
@click.pass_context
def evaluate(context: click.Context, /, questions: tuple[Path, ...], **options: Any) -> None:
    """Measure search, passages, answers, citations and leaks on questions with known answers.

    QUESTIONS are JSON Lines: {"id", "question", "answers": [any is right], "doc_ids": [any is right]}, and
    "unanswerable": true for questions that the documents do not answer. A document may be named by its file, relative
    to the file of QUESTIONS.
    """
    _check_usage(questions, options, context)
    began = time.monotonic()
    try:
        if options["page"] is not None:
            check_marks(options["page"].read_text(encoding="utf-8"), options["part"])
        baseline = baseline_in(options["baseline"]) if options["baseline"] is not None else None
        if options["grounding"]:
            page, part = options["page"], options["part"]
            measure_grounding(options["grounding"], options["out"], page, part, jobs=options["jobs"])
            return
        if options["answers"]:
            plan = _plan_of_files(questions, options)
            variant = Variant("as configured", options["conf"], {}, with_model=True)
            measure_answers(plan, variant, options["out"], options["page"], options["part"])
            return
        results = dict(_results(questions, options))
        is_lost = _finished(results, baseline, options, took_s=time.monotonic() - began)
    except StartRefused as error:
        raise click.ClickException("\n".join(error.lines)) from error
    except RagError as error:
        raise click.ClickException(f"{error.reason} ({error.log})" if error.log else error.reason) from error
    except (UnreadableQuestions, NoSets, NoPlaceholder, CannotMeasure, OSError) as error:
        raise click.ClickException(str(error)) from error
    is_leaking = any(trial.leaks for trial in itertools.chain.from_iterable(results.values()))
    context.exit(1 if is_leaking or (is_lost and options["gate"]) else 0)


def _check_usage(questions: Sequence[Path], options: Mapping[str, Any], context: click.Context) -> None:
    """Refuse options that cannot be meant. Raises: UsageError."""
    has_questions = bool(questions) or options["sets"] is not None
    if has_questions == bool(options["grounding"]):
        problem = "Name at least one file of questions, or --sets FOLDER; or --grounding FOLDER alone."
        raise click.UsageError(problem, context)
    if options["answers"] and not questions:
        raise click.UsageError(
            "--answers needs files of questions, about the documents of the configured index.", context
        )
    if options["gate"] and options["baseline"] is None:
        raise click.UsageError("--gate needs --baseline FILE.", context)
    _variants(options, {}, "")


def _results(files: Sequence[Path], options: Mapping[str, Any]) -> Iterator[tuple[str, list[Trial]]]:
    """Yield the name and the trials of every variant, in turn."""
    console = Console(stderr=True)
    if options["sets"] is not None:
        yield from _results_of_sets(options, console)
        return
    plan = _plan_of_files(files, options)
    for variant in _variants(options, {}, "as configured"):
        yield variant.name, _measured(plan, variant, options, console)


def _plan_of_files(files: Sequence[Path], options: Mapping[str, Any]) -> EvaluationPlan:
    """Return what is asked of the configured index. Raises: UnreadableQuestions, OSError."""
    all_questions = tuple(itertools.chain.from_iterable(questions_in(path) for path in files))
    return EvaluationPlan(all_questions[:: options["every"]], frozenset(options["token"]))


def _results_of_sets(options: Mapping[str, Any], console: Console) -> Iterator[tuple[str, list[Trial]]]:
    folder = options["sets"]
    selection = options["collections"] or COLLECTIONS
    indexes = options["out"] / "indexes" if options["resume"] else None
    indexing = Indexing(folder, options["engine"], selection, _vectors(options["conf"]), indexes)
    with places(indexing, console.print) as indexed:
        rights, readers = rights_of(folder), readers_of(folder)
        tokens = frozenset(token for acl in rights.values() for values in acl.values() for token in values)
        for place in indexed:
            questions = [row for row in questions_of(folder, place.sets) if _is_asked(row, options["only"])]
            plan = EvaluationPlan(tuple(questions[:: options["every"]]), tokens, readers, rights)
            base = {"solr.url": place.url, **PATIENT}
            efforts = () if options["vary"] else IN_STEPS.get(place.sets, ())
            steps = {f"{place.name}, rag.effort={effort}": {"rag.effort": effort} for effort in efforts}
            named: dict[str, dict[str, str]] = {place.name: {}, **steps}
            for name, more in named.items():
                for variant in _variants(options, {**base, **more}, name):
                    yield variant.name, _measured(plan, variant, options, console)


def _is_asked(question: Question, only: Sequence[str]) -> bool:
    """Say whether *question* is of one of the sets *only*, where some are named."""
    return not only or question.group in only


def _vectors(conf: Path) -> Mapping[str, str]:
    """Return the `embeddings.*` settings of *conf* as they are written. Raises: StartRefused."""
    if not conf.exists():
        return {}
    settings = snapshot_of(conf, environ=os.environ).settings
    rows = [row for row in ROWS if row.group == "embeddings"]
    return {row.key: text for row in rows if (text := text_of_value(row.value_in(settings))) != row.default_text}


def _variants(options: Mapping[str, Any], base: Mapping[str, str], name: str) -> list[Variant]:
    """Return one variant for each combination of the values of --vary."""
    axes: list[list[tuple[str, str]]] = []
    for text in options["vary"]:
        key, mark, values = text.partition("=")
        if not mark or not key:
            raise click.UsageError(f"--vary {text}: KEY=A,B is expected.")
        axes.append([(key.strip(), value.strip()) for value in values.split(",")])
    is_single = bool(axes) and all(len(axis) == 1 for axis in axes)
    variants = [Variant(name, options["conf"], dict(base), options["with_model"])] if is_single else []
    for combination in itertools.product(*axes):
        title = ", ".join([name, *(f"{key}={value}" for key, value in combination)])
        variants.append(Variant(title, options["conf"], {**base, **dict(combination)}, options["with_model"]))
    return variants


def _measured(plan: EvaluationPlan, variant: Variant, options: Mapping[str, Any], console: Console) -> list[Trial]:
    """Return the trials of all questions; with --resume, only those are asked that an earlier run did not ask."""
    name = plan_of(plan, variant, baselines=options["baselines"])
    path = options["out"] / "trials" / f"{re.sub(r'[^A-Za-z0-9.=]+', '-', variant.name)}-{name[:8]}.jsonl"
    trials = former(path, name) if options["resume"] else []
    rest = replace(plan, questions=plan.questions[len(trials) :])
    further = run(rest, variant, jobs=options["jobs"], baselines=options["baselines"]) if rest.questions else iter(())
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(variant.name, total=len(plan.questions), completed=len(trials))
        for trial in keeping(path, name, further, len(trials)) if options["resume"] else further:
            trials.append(trial)
            progress.advance(task)
    return trials


def _finished(
    results: Mapping[str, list[Trial]],
    baseline: Mapping[str, Outcomes] | None,
    options: Mapping[str, Any],
    *,
    took_s: float,
) -> bool:
    """Print and write everything; say whether the *baseline* lost something. Raises: CannotMeasure, OSError."""
    conf = options["conf"]
    embedder = embedder_for(snapshot_of(conf, environ=os.environ).settings) if conf.exists() else None
    report = {
        "every": options["every"],
        "jobs": options["jobs"],
        # What was measured by earlier runs took time as well.
        "took_s": None if options["resume"] else took_s,
        "model": embedder.model.name if embedder is not None else "",
        "variants": _reported(results),
    }
    click.echo(tables(report))
    if any(not trial.is_answerable for trials in results.values() for trial in trials):
        click.echo(gate(next(iter(report["variants"].values()))["gate"]))
    is_lost = compare(report, baseline)
    paths = _report_files(report, options)
    click.echo(f"Measured in {took_s:.0f} s. Written: {', '.join(map(str, paths))}", err=True)
    return is_lost


def _reported(results: Mapping[str, list[Trial]]) -> dict[str, Any]:
    variants: dict[str, Any] = {}
    for name, trials in results.items():
        groups = list(dict.fromkeys(trial.group for trial in trials))
        summaries = {group: summary([t for t in trials if t.group == group]) for group in groups}
        own = [t for t in trials if t.group not in REWORDED]
        if len(groups) > 1 and own:
            summaries["all"] = summary(own)
        variants[name] = {
            "sets": summaries,
            "gate": gate_curve(trials),
            "questions": outcomes(trials),
        }
    return variants


def _report_files(report: Mapping[str, Any], options: Mapping[str, Any]) -> list[Path]:
    folder, page = options["out"], options["page"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "eval.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    if page is None:
        return [folder / "eval.json"]
    page.write_text(written_into(page.read_text(encoding="utf-8"), report, options["part"]), encoding="utf-8")
    return [folder / "eval.json", page]


def baseline_in(path: Path) -> Mapping[str, Outcomes]:
    """Return the outcomes of each variant in the report *path*. Raises: CannotMeasure, OSError."""
    try:
        variants = json.loads(path.read_text(encoding="utf-8"))["variants"]
        by_variant = {str(name): of["questions"] for name, of in variants.items()}
        if not all(
            isinstance(value, bool)
            for of in by_variant.values()
            for measures in of.values()
            for value in measures.values()
        ):
            raise ValueError("an outcome is neither true nor false")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CannotMeasure(f"{path}: no eval.json with the outcome of each question") from error
    return by_variant


def compare(report: dict[str, Any], baseline: Mapping[str, Outcomes] | None) -> bool:
    """
    Print each comparison and add it to *report*; say whether the baseline lost something significantly.

    Raises:
        CannotMeasure: no variant of the baseline fits, or questions of it were not asked.
    """
    variants: Mapping[str, Any] = report["variants"]
    first = next(iter(variants))
    for name in list(variants)[1:]:
        _printed(f"{name}, against {first}", variants[first]["questions"], variants[name])
    if baseline is None:
        return False
    losses = [loss for name, of in variants.items() for loss in _against(name, of, baseline)]
    return bool(losses)


def _against(name: str, of: dict[str, Any], baseline: Mapping[str, Outcomes]) -> Iterator[Comparison]:
    """Yield what was lost significantly."""
    before = baseline.get(name) if name in baseline or len(baseline) != 1 else next(iter(baseline.values()))
    if before is None:
        raise CannotMeasure(f"{name}: the baseline has several variants, and none of this name")
    missing = [question for question in before if question not in of["questions"]]
    if missing or not before:
        # Questions that vanish would make any loss pass.
        raise CannotMeasure(f"{name}: {len(missing)} of {len(before)} questions of the baseline were not asked")
    comparisons = _printed(f"{name}, against the baseline", before, of)
    yield from (comparison for comparison in comparisons if comparison.is_significant)


def _printed(title: str, before: Outcomes, of: dict[str, Any]) -> tuple[Comparison, ...]:
    rows, all_changes = compared(before, of["questions"]), changes(before, of["questions"])
    click.echo(comparison_table(title, rows))
    if all_changes:
        click.echo(changes_table(title, all_changes))
    compared_with = {"comparison": [asdict(row) for row in rows], "changes": [asdict(change) for change in all_changes]}
    of.setdefault("against", {})[title.rpartition(", against ")[2]] = compared_with
    return rows
