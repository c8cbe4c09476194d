"""
The sentence of a plain search if no document has all the words, and the searches that it proposes.

Everything proposed is made of the question's own words and of words in documents that the user may see: it is read
from pages of searches under their filter, and from nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.query.plan import content_words
from datafari_rag.core.search_request import MARK_END, MARK_START, Browse, Step
from datafari_rag.core.text.structure import headings_in
from datafari_rag.core.text.words import words_of

MAX_CHECKED = 6
"""Words of a question that are looked for one by one; each of them is a search."""

MAX_SPELT = 3
"""Missing words for which similarly spelled words are searched; each of them is a search."""

SHORTEST_SPELT = 4
"""A shorter word is near to too many others."""

SIMILAR = 0.72
"""How much of two words must be the same, in difflib's measure: hotl and hotel are 0.89, cat and dog 0."""

NEAR_ROWS, LATEST_ROWS = 5, 3

_MARKED = re.compile(f"{re.escape(MARK_START)}([^<>]{{1,60}}){re.escape(MARK_END)}")


@dataclass(frozen=True, slots=True)
class Relaxation:
    """
    How a search was relaxed: the *step* that found something, and whether that is less than all the words.

    *missing* are words that no document has that this user may see; *proposals* are questions to ask instead;
    *latest* are documents to open, as (id, title), where there is no other way on.
    """

    step: str
    is_relaxed: bool = False
    missing: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()
    latest: tuple[tuple[str, str], ...] = ()

    def wire(self) -> dict[str, object]:
        """Return the values in the form of a plain search's JSON."""
        latest = [{"id": identity, "title": title} for identity, title in self.latest]
        return {
            "step": self.step,
            "isRelaxed": self.is_relaxed,
            "missing": list(self.missing),
            "proposals": list(self.proposals),
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


def near_search(browse: Browse, word: str) -> Browse | None:
    """Return the search for words spelled similarly to *word*, None when it is too short or not all letters."""
    if len(word) < SHORTEST_SPELT or not word.isalpha():
        return None
    search = _bare(browse, Step("near", (word,), match="near"))
    return replace(search, rows=NEAR_ROWS, fields=("id", "title"), wants_highlighting=True)


def latest_search() -> Browse:
    """Return the search for the documents that changed last."""
    return Browse(None, rows=LATEST_ROWS, sort=("last_modified", True), fields=("id", "title"))


def near_word(word: str, page: Mapping[str, Any]) -> str | None:
    """Return the word on *page* with the spelling most similar to *word*, None when there is none."""
    texts = {text.lower(): text for text in _words_on(page)}
    texts.pop(word.lower(), None)
    return next((texts[match] for match in get_close_matches(word.lower(), sorted(texts), n=1, cutoff=SIMILAR)), None)


def respelled(question: str, corrected: Mapping[str, str], language: str) -> str:
    """Return *question* with each word of *corrected* in the spelling of the documents."""
    parts, at, text = [], 0, question[:MAX_QUESTION_CHARS]
    corrections = {old.casefold(): new for old, new in corrected.items()}
    for word in words_of(text, language):
        if word.text.casefold() in corrections:
            parts += [text[at : word.start], corrections[word.text.casefold()]]
            at = word.start + len(word.text)
    return " ".join("".join([*parts, text[at:]]).split())


def without_rarest(counts: Mapping[str, int]) -> str | None:
    """
    Return the words of *counts* but those that no document has, or but the rarest; None when nothing is left.

    Only words: without one of its words, a sentence is no longer a sentence.
    """
    least = min(counts.values(), default=0)
    rarest = [word for word, count in counts.items() if count == least]
    left_out = rarest if not least else rarest[:1]
    return " ".join(word for word in counts if word not in left_out) or None


def documents_on(page: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return (id, title) of the documents on *page*."""
    rows = page["response"]["docs"]
    return tuple((str(row["id"]), next(_titles(row), "") or str(row["id"])) for row in rows if row.get("id"))


def _bare(browse: Browse, step: Step) -> Browse:
    narrowed = Browse(browse.text, rows=0, restrictions=browse.restrictions, fields=("id",))
    return replace(narrowed, language=browse.language, step=step)


def _words_on(page: Mapping[str, Any]) -> Iterator[str]:
    marked = page.get("highlighting") or {}
    for fields in marked.values():
        for cuts in fields.values():
            yield from (word for cut in cuts for word in _MARKED.findall(cut) if word.isalpha())
    for row in page["response"]["docs"]:
        yield from (word.text for title in _titles(row) for word in words_of(title[:200], "") if word.text.isalpha())


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
