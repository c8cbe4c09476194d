"""`python -m datafari_rag_trials.evaluation.calibrate` measures what `core/evidence/gate.py` has."""

from __future__ import annotations

import gzip
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import astuple, dataclass
from importlib import resources
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import click
import numpy

from datafari_rag.commands.demo.index import CORPUS
from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import NoAnswer, NoDocuments
from datafari_rag.core.evidence.gate import Signals, evidence_of, signals_in
from datafari_rag.core.evidence.scoring import weigh
from datafari_rag.core.query.plan import question_language_for
from datafari_rag.pipeline import answer, collect, found_for
from datafari_rag_trials.evaluation.measures import holds, quantile, share
from datafari_rag_trials.evaluation.questions import Question, into_index, questions_in, rights_of
from datafari_rag_trials.evaluation.reports import placed
from datafari_rag_trials.evaluation.trial import EvaluationPlan, TrialSetup, Variant, bench_for

DEMO, ASKED_OF_DEMO = "demo", "tech-docs"
"""The documents that are shipped, and the set whose questions they answer."""

OTHERS: Mapping[str, tuple[str, ...]] = {
    "squad": ("demo", "covidqa", "tts-handbook", "northwind-hr", "servicepublic-fr", "piaf-fr", "nq-longdoc", "cuad"),
    "demo": ("squad", "covidqa", "tts-handbook", "northwind-hr", "piaf-fr", "nq-longdoc", "cuad"),
    "piaf-fr": ("servicepublic-fr", "squad", "demo", "covidqa", "tts-handbook"),
    "covidqa": ("squad", "demo", "tts-handbook", "northwind-hr", "nq-longdoc"),
    "cuad": ("squad", "demo", "covidqa"),
    "tts-handbook": ("squad", "demo", "covidqa", "nq-longdoc", "piaf-fr"),
    "nq-longdoc": ("demo", "covidqa", "tts-handbook", "servicepublic-fr"),
    "northwind-hr": ("squad", "demo", "covidqa", "nq-longdoc"),
    "xquad": ("demo", "northwind-hr"),
}
"""Each set, and the sets of other subjects whose questions are asked over its documents."""

CHOSEN_ON: Mapping[str, str] = {"squad": "en", "demo": "en", "piaf-fr": "fr"}
"""The sets that weights and threshold are fitted to, with words alone and with vectors, and their languages."""

OWN_QUESTIONS, OTHER_QUESTIONS = 160, 40
"""At most so many questions of the set itself, and of each of the others, evenly out of all."""

PART = "evidence"
"""Name in the marks of the page."""


OWN, FOREIGN, SIMILAR = "own", "foreign", "similar"
"""What asks: a question that the set answers, one of another subject, one of the same subject without an answer."""

RIGHT_SHARE = 0.95
"""Share of the right answers that the threshold keeps on each of the sets it is chosen on, or more."""

ALMOST_ALL = 0.9
"""Share of all right answers that have no warning of few words."""

STEPS = 50
RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Sample:
    """
    One question over one set (*place*): *kind* is `OWN`, `FOREIGN` or `SIMILAR`, *signals* what the documents hold.

    *is_right* says that the reply without a threshold holds the answer: only then is anything lost by saying nothing.
    """

    place: str
    kind: str
    signals: Signals | None
    is_right: bool = False


@dataclass(frozen=True, slots=True)
class IndexedSet:
    """A set in an index of its own: its *name* in the table, the *settings* to ask it with, and what is asked."""

    name: str
    settings: Mapping[str, str]
    tokens: frozenset[str]
    questions: tuple[tuple[str, Question], ...]


@click.command()
@click.option("--sets", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="ENDPOINT=LANGUAGES of embedding models; repeatable, each for the sets that the ones before do not know.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("var/calibrate"))
@click.option("--page", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1)
def calibrate(folder: Path, models: Sequence[str], out: Path, page: Path | None, jobs: int) -> None:
    """Fit the evidence of `rag.evidence.min` to the sets, print the numbers, and write the table into a page."""
    out.mkdir(parents=True, exist_ok=True)
    places = _places(folder, out, models)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        samples = list(chain.from_iterable(pool.map(_samples, places)))
    chosen_on = [place.name for place in places if place.name.partition(",")[0] in CHOSEN_ON]
    weights = fitted([sample for sample in samples if sample.place in chosen_on])
    least, few = thresholds(samples, weights, chosen_on)
    click.echo(f"WEIGHTS = {weights}\nAUTO, FEW = {least}, {few}")
    text = table(samples, weights, least)
    click.echo(text)
    if page is not None:
        page.write_text(placed(page.read_text("utf-8"), PART, text), "utf-8")


def _places(folder: Path, out: Path, models: Sequence[str]) -> list[IndexedSet]:
    """Return every set with words alone, then those that each of *models* knows."""
    places = [_place(folder, name, out, {}) for name in OTHERS if name == DEMO or (folder / name).is_dir()]
    rest = dict(CHOSEN_ON)
    for model in models:
        endpoint, _, languages = model.rpartition("=")
        vectors = {"embeddings.endpoint": endpoint}
        names = [name for name, language in rest.items() if language in languages.split(",")]
        places += [_place(folder, name, out, vectors) for name in names]
        rest = {name: language for name, language in rest.items() if name not in names}
    return places


def _place(folder: Path, name: str, out: Path, vectors: Mapping[str, str]) -> IndexedSet:
    """Return the set *name*, indexed into a folder below *out* unless it is there already."""
    model = Path(vectors.get("embeddings.endpoint", "words")).name
    documents = folder / name / "docs.jsonl"
    if name == DEMO:
        documents = out / f"{DEMO}.jsonl"
        documents.write_bytes(gzip.decompress((resources.files("datafari_rag.resources") / DEMO / CORPUS).read_bytes()))
    home = (out / f"{name}-{model}").absolute()
    url = into_index(documents, f"embedded:{home}", home, say=click.echo, vectors=vectors)
    tokens = frozenset(token for acl in rights_of(folder).values() for values in acl.values() for token in values)
    others = [(FOREIGN, row) for other in OTHERS[name] for row in _some(_questions(folder, other), OTHER_QUESTIONS)]
    own = [(OWN, question) for question in _some(_questions(folder, name), OWN_QUESTIONS)]
    path = folder / name / "unanswerable.jsonl"
    similar = [(SIMILAR, question) for question in (questions_in(path) if path.exists() else ())]
    return IndexedSet(f"{name}, {model}", {"solr.url": url, **vectors}, tokens, (*own, *others, *similar))


def _questions(folder: Path, name: str) -> tuple[Question, ...]:
    return questions_in(folder / (ASKED_OF_DEMO if name == DEMO else name) / "questions.jsonl")


def _some(questions: Sequence[Question], most: int) -> Sequence[Question]:
    return questions[:: -(-len(questions) // most)]


def _samples(place: IndexedSet) -> list[Sample]:
    """Return what each question of *place* gives, in a process of its own."""
    variant = Variant(place.name, Path(os.devnull), {**place.settings, "rag.evidence.min": "0"})
    setup = bench_for(variant, EvaluationPlan((), place.tokens), baselines=False)
    return [
        Sample(place.name, kind, _signals(question, setup), kind == OWN and _is_right(question, setup))
        for kind, question in place.questions
    ]


def _signals(question: Question, setup: TrialSetup) -> Signals | None:
    ask = Ask(question.text)
    documents = found_for(ask, setup.asks, settings=setup.settings, dependencies=setup.dependencies).documents
    language = question_language_for(ask)
    weighed = weigh(question.text, documents, language=language)
    return signals_in(weighed, language=language, most=setup.settings.rag.max_files)


def _is_right(question: Question, setup: TrialSetup) -> bool:
    try:
        with closing(
            answer(Ask(question.text), setup.asks, settings=setup.settings, dependencies=setup.dependencies)
        ) as events:
            return holds([collect(events).finished.text], question.answers)
    except (NoDocuments, NoAnswer):
        return False


def fitted(samples: Sequence[Sample]) -> Signals:
    """Return the weights under which right answers and questions of other subjects differ most; each place as much."""
    rows = [sample for sample in samples if sample.signals is not None and (sample.is_right or sample.kind == FOREIGN)]
    parts = numpy.array([astuple(sample.signals) for sample in rows if sample.signals is not None])
    targets = numpy.array([float(sample.is_right) for sample in rows])
    sizes = Counter((sample.place, sample.is_right) for sample in rows)
    counts = numpy.array([1 / sizes[sample.place, sample.is_right] for sample in rows])
    counts *= len(rows) / counts.sum()
    ridge = numpy.eye(parts.shape[1]) * RIDGE * len(rows)
    solution = numpy.zeros(parts.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + numpy.exp(-parts @ solution))
        slope = parts.T @ (counts * (chance - targets)) + ridge @ solution
        solution = solution - numpy.linalg.solve((parts.T * (counts * chance * (1 - chance))) @ parts + ridge, slope)
    return Signals(*(round(float(weight), 2) for weight in solution))


def thresholds(samples: Sequence[Sample], weights: Signals, chosen_on: Sequence[str]) -> tuple[float, float]:
    """Return the threshold that keeps `KEPT` on each of the places *chosen_on*, and the one of the warning."""
    least = math.floor(_least([sample for sample in samples if sample.place in chosen_on], weights) * 100) / 100
    few = quantile([evidence_of(row.signals, weights) for row in samples if row.is_right], 1 - ALMOST_ALL) or 0.0
    return least, round(max(least, few), 2)


def _least(samples: Sequence[Sample], weights: Signals) -> float:
    """Return the highest evidence that `KEPT` of the right answers of each place have; 0 without any."""
    of_places: dict[str, list[float]] = {}
    for sample in samples:
        if sample.is_right:
            of_places.setdefault(sample.place, []).append(evidence_of(sample.signals, weights))
    return min((quantile(evidence, 1 - RIGHT_SHARE) or 0.0 for evidence in of_places.values()), default=0.0)


def table(samples: Sequence[Sample], weights: Signals, least: float) -> str:
    """Return as Markdown what *least* keeps and answers of each place, in percent."""
    return "\n".join(_rows(samples, weights, least))


def _rows(samples: Sequence[Sample], weights: Signals, least: float) -> Iterator[str]:
    yield "| documents | right answers | kept, % | foreign | answered, % | same subject, unanswered | answered, % |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for place in dict.fromkeys(sample.place for sample in samples):
        here = [sample for sample in samples if sample.place == place]
        right = [sample for sample in here if sample.is_right]
        of_kind = [[sample for sample in here if sample.kind == kind] for kind in (FOREIGN, SIMILAR)]
        cells = [f"{len(some)} | {_passed(some, weights, least)}" for some in (right, *of_kind)]
        yield f"| {place} | {' | '.join(cells)} |"


def _passed(samples: Sequence[Sample], weights: Signals, least: float) -> str:
    passed = share([evidence_of(sample.signals, weights) >= least for sample in samples])
    return "–" if passed is None else f"{passed:.1f}"


if __name__ == "__main__":
    calibrate()
