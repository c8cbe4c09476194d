"""
A model's answers to questions with known answers: what each came to, and the rates of them. No model judges another.

What counts is arithmetic on texts: an answer is right where it contains a known answer, near where it has its words.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.progress import Progress

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Citation
from datafari_rag.core.errors import ModelError, NoAnswer, NoDocuments
from datafari_rag.core.events import Answer
from datafari_rag.core.proof.words import word_lists
from datafari_rag.core.text.sentences import spans
from datafari_rag.pipeline import answer, collect
from datafari_rag_trials.evaluation.measures import folded, holds, quantile, share
from datafari_rag_trials.evaluation.questions import Question
from datafari_rag_trials.evaluation.reports import placed
from datafari_rag_trials.evaluation.trial import EvaluationPlan, TrialSetup, Variant, bench_for

_WORD = re.compile(r"\w+(?:'t\b)?")

Outcome = Literal["right", "near", "wrong", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """
    What the model made of one question.

    *label* names a failure. *checked* and *proved* count sentences that state something; a refusal has none. *tokens*
    and *prompt_tokens* are None where the server does not say.
    """

    id: str
    group: str
    is_answerable: bool
    outcome: Outcome
    label: str = ""
    is_cited: bool = False
    checked: int = 0
    proved: int = 0
    tokens: int | None = None
    prompt_tokens: int | None = None
    took_s: float = 0.0


def answered(question: Question, setup: TrialSetup, clock: Callable[[], float]) -> ModelAnswer:
    """
    Return what the model of *setup* makes of *question*; *clock* gives seconds that never go back.

    A failure of the model is a result. Raises: RagError, where search or rights fail.
    """
    began = clock()
    try:
        events = answer(Ask(question.text), setup.asks, settings=setup.settings, dependencies=setup.dependencies)
        whole = collect(events)
    except (NoDocuments, NoAnswer):
        return ModelAnswer(question.id, question.group, question.is_answerable, "refused", took_s=clock() - began)
    except ModelError as error:
        return ModelAnswer(
            question.id, question.group, question.is_answerable, "failed", error.label, took_s=clock() - began
        )
    took_s, finished = clock() - began, whole.finished
    usage = finished.facts.extras.get("usage")
    support = finished.support
    outcome = _outcome(question, whole)
    states = support if outcome != "refused" else None
    return ModelAnswer(
        question.id,
        question.group,
        question.is_answerable,
        outcome,
        is_cited=any(_is_of_a_document(citation) for citation in finished.citations),
        checked=0 if states is None else states.checked,
        proved=0 if states is None else states.verified + states.quoted,
        tokens=_count(usage, "completion_tokens"),
        prompt_tokens=_count(usage, "prompt_tokens"),
        took_s=took_s,
    )


def rates_of(answers: Sequence[ModelAnswer]) -> Mapping[str, object]:
    """Return what is reported of *answers*: percentages, numbers, and medians; None of nothing."""
    checked = sum(row.checked for row in answers)
    seconds = [row.took_s for row in answers]
    return {
        "questions": len(answers),
        **{name: share([is_it(row) for row in answers if counts(row)]) for name, (counts, is_it) in SHARES.items()},
        "proved": 100.0 * sum(row.proved for row in answers) / checked if checked else None,
        "failed": Counter(sorted(row.label for row in answers if row.label)),
        "prompt_tokens": quantile(_numbers(row.prompt_tokens for row in answers), 0.5),
        "tokens": quantile(_numbers(row.tokens for row in answers), 0.5),
        "seconds": quantile(seconds, 0.5),
        "seconds_p95": quantile(seconds, 0.95),
    }


def report_of(model: str, answers: Sequence[ModelAnswer]) -> Mapping[str, object]:
    """Return all that is written of a run, as plain JSON values: rates by set, and what became of each question."""
    groups = list(dict.fromkeys(row.group for row in answers))
    sets = {group: rates_of([row for row in answers if row.group == group]) for group in groups}
    if len(groups) > 1:
        sets["all"] = rates_of(answers)
    return {"model": model, "sets": sets, "questions": [asdict(row) for row in answers]}


def answers_table(model: str, sets: Mapping[str, Mapping[str, object]]) -> str:
    """Return the rates of each set as a Markdown table; a dash where there is nothing to count."""
    heads = ("set", *(head for head, _, _ in COLUMNS))
    lines = [f"Answers of `{model}`; shares in percent, tokens and seconds are medians.", ""]
    lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, rates in sets.items():
        cells = (_cell(rates[key], digits) for _, key, digits in COLUMNS)
        lines.append(f"| {' | '.join((name, *cells))} |")
    return "\n".join(lines) + "\n"


def _outcome(question: Question, whole: Answer) -> Outcome:
    text = whole.finished.text
    if question.is_answerable and holds([text], question.answers):
        return "right"
    if _is_refusal(whole):
        return "refused"
    words = set(_words(text))
    is_near = any(answer_words and words.issuperset(answer_words) for answer_words in map(_words, question.answers))
    return "near" if question.is_answerable and is_near else "wrong"


def _is_refusal(whole: Answer) -> bool:
    """Say whether the reply says that there is no answer: it cites nothing, and its first sentence denies something."""
    finished = whole.finished
    if any(_is_of_a_document(citation) for citation in finished.citations):
        return False
    first = next((finished.text[start:end] for start, end in spans(finished.text, most=1)), "")
    return not word_lists().deny.isdisjoint(_words(first))


def _words(text: str) -> list[str]:
    return _WORD.findall(folded(text).replace("’", "'"))


def _is_of_a_document(citation: Citation) -> bool:
    return citation.status != "unknown"


def _count(usage: object, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _numbers(numbers: Iterable[int | None]) -> list[float]:
    return [number for number in numbers if number is not None]


def _cell(value: object, digits: int) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{label} {count}" for label, count in value.items()) or "–"
    return "–" if value is None else f"{value:.{digits}f}"


Says = Callable[[ModelAnswer], bool]

SHARES: Mapping[str, tuple[Says, Says]] = {
    "right": (lambda row: row.is_answerable, lambda row: row.outcome == "right"),
    "near": (lambda row: row.is_answerable, lambda row: row.outcome == "near"),
    "refused_wrongly": (lambda row: row.is_answerable, lambda row: row.outcome == "refused"),
    "refused_rightly": (lambda row: not row.is_answerable, lambda row: row.outcome == "refused"),
    "cited": (lambda row: row.outcome in ("right", "near", "wrong"), lambda row: row.is_cited),
}
"""Percentages: of which answers, and which of them."""

COLUMNS = (
    ("questions", "questions", 0),
    ("right", "right", 1),
    ("near", "near", 1),
    ("cited", "cited", 1),
    ("proved", "proved", 1),
    ("refused rightly", "refused_rightly", 1),
    ("refused wrongly", "refused_wrongly", 1),
    ("failed", "failed", 0),
    ("prompt tokens", "prompt_tokens", 0),
    ("tokens", "tokens", 0),
    ("seconds", "seconds", 1),
    ("seconds, 95 %", "seconds_p95", 1),
)
"""Heads of the table, names of the rates, and digits behind the point."""


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
        questions = progress.track(plan.questions, description=settings.rag.model)
        answers = [answered(question, setup, time.monotonic) for question in questions]
    report = report_of(settings.rag.model, answers)
    table = answers_table(settings.rag.model, report["sets"])  # type: ignore[arg-type] # as `report_of` made it
    click.echo(table, nl=False)
    out.mkdir(parents=True, exist_ok=True)
    (out / "answers.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    if page is not None:
        page.write_text(placed(page.read_text(encoding="utf-8"), part, table), encoding="utf-8")
