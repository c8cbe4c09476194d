"""`python -m datafari_rag.commands.eval.calibrate`: the numbers of `core/passages/evidence_threshold.py`, measured."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import click

from datafari_rag.answer_streams import collect
from datafari_rag.commands.demo.index import CORPUS
from datafari_rag.commands.eval.collections import into_index, rights_of
from datafari_rag.commands.eval.runs import EvaluationPlan, Variant, bench_for
from datafari_rag.commands.eval.threshold_fit import FOREIGN, OWN, SIMILAR, Asked, fitted, table, thresholds
from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import NoAnswer, NoDocuments
from datafari_rag.core.passages.evidence_threshold import Signals, signals_in
from datafari_rag.core.passages.selection import weigh
from datafari_rag.core.query.plan import question_language_for
from datafari_rag.evaluation.markdown_report import placed
from datafari_rag.evaluation.measures import holds
from datafari_rag.evaluation.questions import Question, questions_in
from datafari_rag.evaluation.trial import TrialSetup
from datafari_rag.pipeline import answer, found_for

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
    help="embeddings.endpoint=embeddings.languages; repeatable, each for the sets that the ones before do not know.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("var/calibrate"))
@click.option("--page", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1)
def calibrate(folder: Path, models: Sequence[str], out: Path, page: Path | None, jobs: int) -> None:
    """Fit the evidence of `rag.evidence.min` to the sets, print the numbers, and write the table into a page."""
    out.mkdir(parents=True, exist_ok=True)
    places = _places(folder, out, models)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        asked = list(chain.from_iterable(pool.map(_asked, places)))
    chosen_on = [place.name for place in places if place.name.partition(",")[0] in CHOSEN_ON]
    weights = fitted([one for one in asked if one.place in chosen_on])
    least, few = thresholds(asked, weights, chosen_on)
    click.echo(f"WEIGHTS = {weights}\nAUTO, FEW = {least}, {few}")
    found = table(asked, weights, least)
    click.echo(found)
    if page is not None:
        page.write_text(placed(page.read_text("utf-8"), PART, found), "utf-8")


def _places(folder: Path, out: Path, models: Sequence[str]) -> list[IndexedSet]:
    """Return every set with words alone, then those that each of *models* knows."""
    places = [_place(folder, name, out, {}) for name in OTHERS if name == DEMO or (folder / name).is_dir()]
    left = dict(CHOSEN_ON)
    for model in models:
        endpoint, _, languages = model.rpartition("=")
        vectors = {"embeddings.endpoint": endpoint, "embeddings.languages": languages}
        known = [name for name, language in left.items() if language in languages.split(",")]
        places += [_place(folder, name, out, vectors) for name in known]
        left = {name: language for name, language in left.items() if name not in known}
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
    others = [(FOREIGN, one) for other in OTHERS[name] for one in _some(_questions(folder, other), OTHER_QUESTIONS)]
    own = [(OWN, one) for one in _some(_questions(folder, name), OWN_QUESTIONS)]
    path = folder / name / "unanswerable.jsonl"
    similar = [(SIMILAR, one) for one in (questions_in(path) if path.exists() else ())]
    title = f"{name}, {model}"
    return IndexedSet(title, {"solr.url": url, **vectors}, tokens, (*own, *others, *similar))


def _questions(folder: Path, name: str) -> tuple[Question, ...]:
    return questions_in(folder / (ASKED_OF_DEMO if name == DEMO else name) / "questions.jsonl")


def _some(questions: Sequence[Question], most: int) -> Sequence[Question]:
    return questions[:: -(-len(questions) // most)]


def _asked(place: IndexedSet) -> list[Asked]:
    """Return what each question of *place* gives, in a process of its own."""
    variant = Variant(place.name, Path(os.devnull), {**place.settings, "rag.evidence.min": "0"})
    setup = bench_for(variant, EvaluationPlan((), place.tokens), baselines=False)
    return [
        Asked(place.name, kind, _signals(question, setup), kind == OWN and _is_right(question, setup))
        for kind, question in place.questions
    ]


def _signals(question: Question, setup: TrialSetup) -> Signals | None:
    ask = Ask(question.text)
    found = found_for(ask, setup.asks, settings=setup.settings, dependencies=setup.dependencies).documents
    language = question_language_for(ask)
    weighed = weigh(question.text, found, language=language)
    return signals_in(weighed, language=language, most=setup.settings.rag_max_files)


def _is_right(question: Question, setup: TrialSetup) -> bool:
    try:
        with closing(
            answer(Ask(question.text), setup.asks, settings=setup.settings, dependencies=setup.dependencies)
        ) as events:
            return holds([collect(events).finished.text], question.answers)
    except (NoDocuments, NoAnswer):
        return False


if __name__ == "__main__":
    calibrate()
