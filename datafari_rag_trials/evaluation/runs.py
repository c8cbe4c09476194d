"""Runs a course of questions over one variant of the settings, in several processes."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar

from datafari_rag.adapters.machine import new_nonce
from datafari_rag.adapters.model.factory import ExtractiveModel
from datafari_rag.adapters.reranker import reranker_for
from datafari_rag.adapters.settings.file import snapshot_of
from datafari_rag.adapters.vectors.factory import meaning_for
from datafari_rag.bootstrap import counter_for, model_for, retriever_for
from datafari_rag.core.access import ANONYMOUS, User
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.pipeline import Dependencies
from datafari_rag_trials.evaluation.measures import Trial
from datafari_rag_trials.evaluation.questions import LeakReader, Question
from datafari_rag_trials.evaluation.trial import Rights, TrialSetup, tried

NEEDED = ("solr.", "security.", "rag.", "llm.", "token.", "embeddings.", "retrieval.")

_CHUNK = 16


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings to measure: the file *conf* with *changes* on top; *with_model* asks its model, else the built-in."""

    name: str
    conf: Path
    changes: Mapping[str, str]
    with_model: bool = False


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What is asked, with which access *tokens*, and for whom leaks are counted."""

    questions: tuple[Question, ...]
    tokens: frozenset[str] = frozenset()
    readers: tuple[LeakReader, ...] = ()
    rights: Rights | None = None


def plan_of(plan: EvaluationPlan, variant: Variant, *, baselines: bool) -> str:
    """Return what tells a run from one with other questions or settings; where the engine listens is no part of it."""
    conf = variant.conf.read_text(encoding="utf-8") if variant.conf.exists() else ""
    changes = {key: value for key, value in variant.changes.items() if key != "solr.url"}
    asked = [(one.group, one.id, one.text) for one in plan.questions]
    facts = [variant.name, conf, sorted(changes.items()), variant.with_model, baselines, sorted(plan.tokens), asked]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def run(plan: EvaluationPlan, variant: Variant, *, jobs: int, baselines: bool) -> Iterator[Trial]:
    """
    Yield the trial of every question, in order.

    Raises:
        StartRefused: the settings cannot be used.
        RagError, CannotMeasure: search, rights or model fail.
    """
    setup = bench_for(variant, plan, baselines=baselines)
    if jobs == 1:
        yield from (tried(question, setup) for question in plan.questions)
        return
    # Spawned, not forked: clients and indexes of this process are not for sharing.
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), _begin, (variant, replace(plan, questions=()), baselines)
    ) as pool:
        try:
            yield from pool.map(_try, plan.questions, chunksize=_CHUNK)
        except BrokenProcessPool as error:
            raise CannotMeasure(f"{variant.name}: a process that asked the questions ended early") from error


def bench_for(variant: Variant, plan: EvaluationPlan, *, baselines: bool) -> TrialSetup:
    """Return what the questions are tried on. Raises: StartRefused, RagError."""
    conf = variant.conf if variant.conf.exists() else None
    snapshot = snapshot_of(conf, environ=os.environ, overrides=variant.changes)
    snapshot.require(*NEEDED)
    settings = snapshot.settings
    asks = User("eval", plan.tokens) if plan.tokens else ANONYMOUS
    if not variant.with_model:
        settings = replace(settings, rag_api_endpoint=BUILTIN_MODEL)
    retriever = retriever_for(settings)
    dependencies = Dependencies(
        retriever=retriever,
        meaning=meaning_for(settings, retriever),
        reranker=reranker_for(settings),
        model=model_for(settings) if variant.with_model else ExtractiveModel(),
        counter=counter_for(settings),
        instructions=snapshot.instructions,
        new_nonce=new_nonce,
        clock=time.monotonic,
    )
    return TrialSetup(settings, dependencies, asks, plan.readers, plan.rights, baselines)


class CannotMeasure(Exception):
    """Search, rights or model failed in another process; the message says at which question."""


class _ProcessState:
    """The bench of one process."""

    benches: ClassVar[list[TrialSetup]] = []


def _begin(variant: Variant, plan: EvaluationPlan, baselines: bool) -> None:
    _ProcessState.benches.append(bench_for(variant, plan, baselines=baselines))


def _try(question: Question) -> Trial:
    try:
        return tried(question, _ProcessState.benches[-1])
    except RagError as error:
        # An error with keyword arguments does not survive the way between processes.
        raise CannotMeasure(f"{question.id}: {error.label} {error.log or error.reason}") from error
