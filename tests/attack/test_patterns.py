"""Every pattern that a caller's, a document's or a model's text reaches takes linear time."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import datafari_rag
from tests.attack.patterns import faults, patterns
from tests.attack.report import Record, judge
from tests.attack.test_hostile_text import hostile_text, texts
from tests.growth import cpu_s, too_fast

CHARS, LONG_UNITS = 2_000, 30_000

PARTS = 80
"""One in so many short texts is tried on a pattern; `make attack` tries all of them."""

SLOWEST = 8
"""So many texts that take longest at the first length are tried at the second one, and at those around it."""

BOUNDED = {
    "core.settings.checks._HANDLER[0]": "a slash begins each part, and nothing else takes one",
    "core.text.sentences._MARK[0]": "each number stands in brackets of its own; a run that nothing ends is one match",
    "web.pages.results._BEHIND_ROW[0]": "each mark has a sign of its own at both ends, which nothing else takes",
}
"""Patterns that may repeat in a repetition, or next to another: why no text makes them slow."""

AT_ONE_PLACE = {
    "adapters.settings.file._HEAD": "matched at the beginning of a line of the settings",
    "adapters.solr.zookeeper._NODE": "matched with the whole name of a node",
    "core.query.filter_queries._CLOSE": "matched at one place of a filter of at most 10,000 characters",
    "core.query.filter_queries._FIELD": "matched at one place of a filter of at most 10,000 characters",
    "core.query.filter_queries._OR": "matched at one place of a filter of at most 10,000 characters",
    "core.answer.proved_output._NUMBER": "matched with the whole of a line",
    "core.proof.links._SCHEME": "matched at the beginning of an address, which it goes through once",
    "core.identity._ADDRESS": "matched with the whole of a host",
    "core.identity._TARGET": "matched at the beginning of a request's target, which it goes through once",
    "core.query.filter_queries._VALUE": "matched at one place of a filter of at most 10,000 characters",
    "core.text.sentences._ITEM": "matched at the beginning of a line, which it goes through once",
    "core.solr.schema._CLASS": "matched with the whole name of a class in Solr's schema",
}
"""Patterns that are never looked for in a long text: they are tried at its beginning, and not at each place of it."""


@cache
def sources() -> str:
    """Return the code of the package."""
    return "".join(path.read_text() for path in Path(datafari_rag.__file__).parent.rglob("*.py"))


def finding(name: str, pattern: re.Pattern[Any]) -> Callable[[str], None]:
    """Return a call that does with *pattern* what its users do: find it at each place of a text, or match it there."""
    place = name.partition("[")[0]
    is_whole = re.search(rf"\b{place.rpartition('.')[2]}\.fullmatch\(", sources()) is not None

    def find(text: str) -> None:
        subject: Any = text.encode("utf-8", "surrogatepass") if isinstance(pattern.pattern, bytes) else text
        pattern.match(subject) if place in AT_ONE_PLACE else deque(pattern.finditer(subject), maxlen=0)
        if is_whole:
            pattern.fullmatch(subject)

    return find


def holes_of(name: str, pattern: re.Pattern[Any], labels: Iterable[str], *, chars: int) -> list[str]:
    """Return the texts of about so many characters for which a pattern needs longer than they are longer."""
    find = finding(name, pattern)
    return [
        f"{name}: {label}, {found}"
        for label in labels
        if (found := too_fast(find, partial(hostile_text, label), chars))
    ]


def test_no_pattern_is_slow_on_short_hostile_texts(record_property: Record) -> None:
    labels = list(texts(CHARS))
    found = patterns()
    holes = [
        hole
        for place, (name, one) in enumerate(found.items())
        for hole in holes_of(name, one, labels[place % PARTS :: PARTS], chars=CHARS)
    ]
    tried = len(labels) * len(found) // PARTS
    judge(record_property, f"patterns on texts of {CHARS:,}", against="pure functions", tried=tried, holes=holes)


@pytest.mark.trials
def test_no_pattern_is_slow_on_long_hostile_texts(record_property: Record) -> None:
    """What takes more than linear time stands out at the first length already."""
    short = texts(CHARS)
    holes, tried = [], 0
    for name, one in patterns().items():
        find = finding(name, one)
        took = {label: cpu_s(find, text) for label, text in short.items()}
        slowest = sorted(took, key=lambda label: -took[label])[:SLOWEST]
        holes += holes_of(name, one, slowest, chars=LONG_UNITS)
        tried += len(took) + len(slowest)
    judge(record_property, "patterns on all texts", against="pure functions", tried=tried, holes=holes)


def test_no_pattern_repeats_in_a_repetition_or_next_to_another() -> None:
    found = {name: told for name, one in patterns().items() if (told := faults(one))}
    assert {name: told for name, told in found.items() if name not in BOUNDED} == {}


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|b+)*c", r"\s*\s*x", r"\s*[#:]?\s*", "a*a?a*b", r"(?:[^\s]+\w*)*;", ".*x.*y?.*"]
)
def test_what_is_slow_has_a_fault(pattern: str) -> None:
    assert faults(re.compile(pattern))


@pytest.mark.parametrize("pattern", ["(?>a+)+b", r"\s++\S+", "a+b+", "(?:[.,]x)*", r"\d+[.,]\d+", "a{1,9}a{1,9}"])
def test_what_is_linear_has_none(pattern: str) -> None:
    assert faults(re.compile(pattern)) == []
