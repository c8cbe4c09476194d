"""
What a plain search says if no document has all the words, and what could be asked of some documents.

Everything is made of the question's own words and of documents that the user may see: it is read from pages of
searches under their filter, and from nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from datafari_rag.core.query.plan import content_words
from datafari_rag.core.search_request import Browse, Step
from datafari_rag.core.text.structure import headings_in

MAX_CHECKED = 6
"""Words of a question that are looked for one by one; each of them is a search."""

LATEST_ROWS = 3


@dataclass(frozen=True, slots=True)
class Relaxation:
    """
    How a search was relaxed: the *step* that found something, and whether that is less than all the words.

    *missing* are words that no document has that this user may see; *latest* are documents to open, as (id, title),
    where nothing was found.
    """

    step: str
    is_relaxed: bool = False
    missing: tuple[str, ...] = ()
    latest: tuple[tuple[str, str], ...] = ()

    def wire(self) -> dict[str, object]:
        """Return the values in the form of a plain search's JSON."""
        latest = [{"id": identity, "title": title} for identity, title in self.latest]
        return {
            "step": self.step,
            "isRelaxed": self.is_relaxed,
            "missing": list(self.missing),
            "latest": latest,
        }


def total_of(page: Mapping[str, Any]) -> int:
    """Return how many documents a plain search has found."""
    response = page.get("response")
    return int(response.get("numFound", 0)) if isinstance(response, Mapping) else 0


def count_of_all(browse: Browse) -> Browse:
    """Return the search that counts the documents with all content words of *browse*."""
    return _bare(browse, Step("all words", content_words(browse.text or "", browse.language)))


def counts_of_each(browse: Browse) -> dict[str, Browse]:
    """Return for each of the first content words of *browse* the search that counts the documents with it."""
    words = content_words(browse.text or "", browse.language)[:MAX_CHECKED]
    return {word: _bare(browse, Step("one word", (word,))) for word in words}


def latest_search() -> Browse:
    """Return the search for the documents that changed last."""
    return Browse(None, rows=LATEST_ROWS, sort=("last_modified", True), fields=("id", "title"))


def documents_on(page: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return (id, title) of the documents on *page*."""
    rows = page["response"]["docs"]
    return tuple((str(row["id"]), next(_titles(row), "") or str(row["id"])) for row in rows if row.get("id"))


def _bare(browse: Browse, step: Step) -> Browse:
    narrowed = Browse(browse.text, rows=0, restrictions=browse.restrictions, fields=("id",))
    return replace(narrowed, language=browse.language, step=step)


def _titles(row: Mapping[str, Any]) -> Iterator[str]:
    value = row.get("title")
    yield from (str(title) for title in (value if isinstance(value, list) else [value]) if title)


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
        ExampleTopic(name, section=word)
        for word in words
        if name and _PLAIN.fullmatch(word) and word.lower() != name.lower()
    ]
    yield from questions[:MAX_EXAMPLES]
    yield from sections[:MAX_EXAMPLES]
    if name and not questions and not sections:
        yield ExampleTopic(name)
