"""Text made to be slow, through every function that it reaches: time grows with the text, and no faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import pytest

from datafari_rag.core.errors import RagError
from tests.attack.hostile import grown, text_of, units
from tests.attack.readers_of_text import READERS
from tests.attack.report import Record, judge
from tests.attack.worst_units import WORST
from tests.growth import cpu_s, too_fast

QUICK_CHARS, WORST_CHARS, CHARS = 2_000, 12_500, 50_000
"""What the attack found grew too fast at the first size already, with a few texts at the last one alone."""

PARTS = 80
"""One in so many short texts is tried on a function; `make attack` tries all of them."""

SLOWEST = 12
"""So many texts that take longest at the first size are tried at the second one, and at those around it."""


def hostile_text(label: str, chars: int) -> str:
    unit = units().get(label)
    return dict(grown(chars))[label] if unit is None else text_of(unit, chars)


def texts(chars: int) -> dict[str, str]:
    return {name: text_of(unit, chars) for name, unit in units().items()} | dict(grown(chars))


def reading(name: str) -> Callable[[str], None]:
    """Return a call of a function of the table; a refusal with an error of its own is as good as an answer."""

    def read(text: str) -> None:
        with suppress(RagError):
            READERS[name](text)

    return read


def holes_of(name: str, labels: Iterable[str], *, chars: int) -> list[str]:
    """Return the texts of about so many characters that take a function longer than they are longer."""
    return [
        f"{name}: {label}, {found}"
        for label in labels
        if (found := too_fast(reading(name), partial(hostile_text, label), chars))
    ]


def test_no_function_is_slow_on_a_short_hostile_text(record_property: Record) -> None:
    """A few units for each function; all of them, and long ones, in `make attack`."""
    every = list(texts(QUICK_CHARS))
    holes, number = [], 0
    for place, name in enumerate(READERS):
        # Each function gets another part, so that all units are tried, and those that were slow once always.
        some = dict.fromkeys([*every[place % PARTS :: PARTS], *KNOWN])
        holes += holes_of(name, some, chars=QUICK_CHARS)
        number += len(some)
    judge(record_property, "short hostile texts", against="pure functions", tried=number, holes=holes)


def test_the_time_of_no_function_grows_faster_than_its_worst_text(record_property: Record) -> None:
    holes = [hole for name, label in WORST.items() for hole in holes_of(name, [label], chars=WORST_CHARS)]
    judge(record_property, "worst texts", against="pure functions", tried=len(WORST), holes=holes)


KNOWN = [
    *map(ascii, (".", "!?", "…", "_", "`", "**a ", "“", "[", "l'", "<http://a", ":", "\u0301", "(", "1", "中", "a")),
    "nested '\\u201c'",
    "words",
]
"""Units that some function was slow on once."""


@pytest.mark.trials
@pytest.mark.parametrize("name", READERS)
def test_no_function_is_slow_on_a_long_hostile_text(name: str, record_property: Record) -> None:
    first = texts(QUICK_CHARS)
    took = sorted(first, key=lambda label: -cpu_s(reading(name), first[label]))
    tried = dict.fromkeys([*took[:SLOWEST], *KNOWN])
    holes = holes_of(name, tried, chars=CHARS)
    judge(
        record_property, f"hostile texts: {name}", against="pure functions", tried=len(first) + len(tried), holes=holes
    )
