"""
Questions to try on any collection: its own FAQ questions, sections and titles.

Only plain words become part of a question: no line with markup, and none that is long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from datafari_rag.core.text.structure import headings_in

MAX_EXAMPLES = 3
MAX_TEXT_CHARS = 20_000
"""How far into each document headings and questions are looked for."""

_PLAIN = re.compile(r"[\w][\w \t.,'’\"“”&()/+-]{2,70}")
_QUESTION = re.compile(r"[\w][\w \t.,'’\"“”&()/+-]{8,110}\?")
_MARKS = " \t#*-•>"
_LEAD = re.compile(r"(?:Q|Question|F)\s?[:.]\s?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExampleTopic:
    """Something to ask about: a complete *question*, or a *section* of the document *title*; "" for none."""

    title: str
    section: str = ""
    question: str = ""


def topics_of(documents: Iterable[tuple[str, str]]) -> tuple[ExampleTopic, ...]:
    """
    Return what could be asked of *documents*, (title, text) each: at most `MAX_EXAMPLES`, of as many as there are.

    The first of each document come first; questions before sections, and the title where there is neither.
    """
    columns = [list(_topics(title, text[:MAX_TEXT_CHARS])) for title, text in documents]
    deepest = max(map(len, columns), default=0)
    rows = (column[depth] for depth in range(deepest) for column in columns if depth < len(column))
    return tuple(dict.fromkeys(rows))[:MAX_EXAMPLES]


def _topics(title: str, text: str) -> Iterator[ExampleTopic]:
    lines = (_LEAD.sub("", line.strip(_MARKS), count=1) for line in text.splitlines())
    questions = [ExampleTopic(title, question=line) for line in lines if _QUESTION.fullmatch(line)]
    name = title if _PLAIN.fullmatch(title) else ""
    words = (text[heading.start : heading.end].strip() for heading in headings_in(text))
    sections = [
        ExampleTopic(name, section=one)
        for one in words
        if name and _PLAIN.fullmatch(one) and one.lower() != name.lower()
    ]
    yield from questions[:MAX_EXAMPLES]
    yield from sections[:MAX_EXAMPLES]
    if name and not questions and not sections:
        yield ExampleTopic(name)
