"""Text made to be slow, through every function that it reaches: time grows with the text, and no faster."""

from __future__ import annotations

import inspect
import pkgutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

import pytest

import datafari_rag.core
import datafari_rag.protocols
from datafari_rag.core.errors import RagError
from tests.attack.hostile import grown, text_of, units
from tests.attack.readers_of_text import READERS
from tests.attack.report import Record, judge

QUICK_CHARS, CHARS = 2_000, 50_000
QUICK_S, LIMIT_S = 0.5, 1.0
"""
CPU seconds, ten and more times what it takes on a machine of its own. What the attack found took 0.5 s for 2,000
characters at the least, and minutes for 50,000.
"""

SLOWEST = 12
"""So many texts that take longest at the first size are tried at the second one."""

ELSEWHERE = {
    "settings": "an administrator's settings",
    "settings_addresses": "an administrator's settings",
    "settings_checks": "an administrator's settings",
    "settings_docs": "our own words",
    "settings_guard": "an administrator's settings",
    "settings_row": "our own words",
    "settings_values": "an administrator's settings",
    "lint": "an administrator's settings",
    "checkup": "Solr's answer to an administrator",
    "solr_schema": "Solr's answer to an administrator",
    "access": "names and tokens, which are compared and no more",
    "audit": "fields of records, which are hashed and no more",
    "abbreviations": "the last 30 characters of a sentence, called by sentences",
    "bodies": "bytes of a reply, of which a line has a bound",
    "errors": "our own words",
    "laps": "our own words",
    "model_reply": "the fields of a reply, each of which has a bound",
    "no_answer": "our own words",
    "completion": "through openai.parse",
    "published": "through reading.ask_of",
    "choices": "through reading.ask_of",
    "incoming": "looks a name up",
    "parts": "puts values into JSON",
    "source_nodes": "puts values into JSON",
    "thoughts": "puts values into JSON",
    "token_budget": "numbers",
}
"""Modules whose functions take no caller's, document's or model's text, or hand it on to one that is tried."""


class TooSlow(BaseException):
    """Raised by the timer, which also interrupts a pattern."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what is done here after so many seconds of CPU."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def cpu_s(name: str, text: str, limit_s: float) -> float:
    """Return the CPU seconds of one call; a refusal with an error of its own is as good as an answer."""
    begun = time.thread_time()
    try:
        with limited(limit_s):
            READERS[name](text)
    except RagError:
        pass
    except TooSlow:
        return limit_s
    return time.thread_time() - begun


def texts(chars: int) -> dict[str, str]:
    return {name: text_of(unit, chars) for name, unit in units().items()} | dict(grown(chars))


def slow_ones(name: str, *, chars: int, limit_s: float, tried: dict[str, str]) -> list[str]:
    took = {label: cpu_s(name, text, limit_s) for label, text in tried.items()}
    return [f"{name}: {label}, {chars} characters, {s:.2f} s" for label, s in took.items() if s >= limit_s]


def test_no_function_is_slow_on_a_short_hostile_text(record_property: Record) -> None:
    """A few units for each function; all of them, and long ones, in the slow test."""
    every = texts(QUICK_CHARS)
    holes, number = [], 0
    for place, name in enumerate(READERS):
        # Each function gets another tenth, so that all units are tried, and those that were slow once always.
        some = dict(list(every.items())[place % 10 :: 10]) | {label: every[label] for label in KNOWN}
        holes += slow_ones(name, chars=QUICK_CHARS, limit_s=QUICK_S, tried=some)
        number += len(some)
    judge(record_property, "short hostile texts", against="pure functions", tried=number, holes=holes)


KNOWN = [
    *map(ascii, (".", "!?", "…", "_", "`", "**a ", "“", "[", "l'", "<http://a", ":", "\u0301", "(", "1", "中", "a")),
    "nested '\\u201c'",
    "words",
]
"""Units that some function was slow on once."""


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_no_function_is_slow_on_a_long_hostile_text(name: str, record_property: Record) -> None:
    first, last = texts(QUICK_CHARS), texts(CHARS)
    took = sorted(first, key=lambda label: -cpu_s(name, first[label], QUICK_S))
    tried = {label: last[label] for label in dict.fromkeys([*took[:SLOWEST], *KNOWN])}
    holes = slow_ones(name, chars=CHARS, limit_s=LIMIT_S, tried=tried)
    judge(
        record_property, f"hostile texts: {name}", against="pure functions", tried=len(first) + len(tried), holes=holes
    )


def public_functions() -> Iterator[tuple[str, str]]:
    """Yield module and name of each public function and class that takes text, in `core` and `protocols`."""
    for package in (datafari_rag.core, datafari_rag.protocols):
        for found in pkgutil.iter_modules(package.__path__):
            module = import_module(f"{package.__name__}.{found.name}")
            for name, member in vars(module).items():
                is_own = getattr(member, "__module__", None) == module.__name__ and not name.startswith("_")
                if is_own and inspect.isfunction(member) and _takes_text(member):
                    yield found.name, name


def _takes_text(function: object) -> bool:
    signature = inspect.signature(function)  # type: ignore[arg-type]  # it is a function
    taken = [str(one.annotation) for name, one in signature.parameters.items() if name not in ("language", "field")]
    return any("str" in one or "Document" in one or "Extract" in one or "Incoming" in one for one in taken)


THROUGH = {
    "claims.claims_of": "claims.marks_in",
    "cleaning.is_invisible": "folding.fold",
    "cleaning.spaced": "cleaning.clean",
    "cleaning.unusual": "cleaning.clean",
    "code_spans.code_spans": "claims.marks_in",
    "documents.without_text": "kept.kept_of",
    "evidence.is_heading": "evidence.sentence_scores",
    "evidence.weights_in": "regions.bounds_in",
    "extractive.best": "extractive.answer, the document",
    "extractive.pieces": "extractive.answer, the document",
    "facts.is_content": "facts.facts_of",
    "facts.is_negation": "facts.facts_of",
    "facts.is_same_word": "facts.carries",
    "gate.is_passed": "gate.evidence_in",
    "identity.is_trusted": "identity.client_address",
    "identity.mapped_name": "identity.believed_name",
    "identity.networks": "identity.client_address",
    "kept.given_back": "kept.kept_of",
    "memory.recalled": "memory.issued",
    "overrides.instructed": "overrides.instructed",
    "parameters.browse_of": "select.parse",
    "parameters.identity_attempts": "parameters.forged_names",
    "parameters.merged": "select.parse",
    "parameters.read": "select.parse",
    "passages.choose": "passages.select",
    "passages.head": "fit.evidence_for, its beginning",
    "passages.weigh": "passages.select",
    "phrases.is_said": "ranking.ranked",
    "phrases.said_in": "ranking.ranked",
    "planning.prompt_for": "prompt.instructions_for",
    "reading.body_of": "reading.ask_of",
    "reading.object_at": "reading.ask_of",
    "reading.state_of": "reading.ask_of",
    "rewriting.prompt_for": "rewriting.with_query",
    "solr_params.fetch_params": "solr_params.escaped",
    "openai.relayed": "openai.parse",
    "openai.relayed_chunk": "openai.parse",
    "solr_params.restriction_params": "select.parse",
    "solr_params.searched_fields": "solr_params.escaped",
    "solr_params.text_field": "solr_params.escaped",
    "solr_params.words_params": "solr_params.escaped",
    "stopwords.is_asking_word": "stopwords.is_empty_word",
    "stopwords.is_function_word": "stopwords.is_empty_word",
    "support.is_statement": "facts.facts_of",
    "words.is_unspaced": "facts.facts_of",
    "words.pieces_of": "words.sought_in",
    "chat.parse": "reading.ask_of",
    "ragapi.accepts": "ragapi.parse",
    "openai.fallback": "openai.parse",
    "fit.evidence_for": "fit.evidence_for, a document",
    "extractive.answer": "extractive.answer, the document",
    "citations.resolve": "citations.resolve, the answer",
}
"""Functions that are tried through another one: function → the row of the table that runs it."""


def test_every_function_that_takes_text_is_tried() -> None:
    """A new function needs a row in the table, or the reason why its text is tried elsewhere."""
    rows = {row.partition(",")[0] for row in READERS}
    untried = [
        f"{module}.{name}"
        for module, name in public_functions()
        if module not in ELSEWHERE and f"{module}.{name}" not in rows | set(THROUGH)
    ]
    assert untried == []
    assert set(THROUGH.values()) <= set(READERS)
