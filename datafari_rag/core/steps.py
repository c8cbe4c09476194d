"""
What to search for next: names that the best passages bring, by rule, or what a model plans.

A plan is data: at most four strings, which are searched for as any user's words are. Whatever else the model says is
not used, and it sees no documents. The documents of all searches become one list, so that the passages of every step
compete for the same room. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Document
from datafari_rag.core.evidence.choice import Limit, select
from datafari_rag.core.evidence.matching import hits_in, terms_of
from datafari_rag.core.evidence.scoring import Ranked, Weighed, rare_among, weigh
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.query.plan import content_words
from datafari_rag.core.text.cleaning import visible
from datafari_rag.core.text.language import is_empty_word

PASSAGE_CHARS = 1500
"""How much of the best passages of one document is read for names."""

MAX_NAMES = 20
"""Most words of names in one search, in the order of the text."""

LEAST_CHARS = 2

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Lead:
    """What one document leads to: the *names* in its best passages, and the question's words that it *lacks*."""

    document: Document
    names: tuple[str, ...]
    lacks: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Return what to search for; empty where another search promises nothing."""
        return (*self.names, *self.lacks) if self.names and self.lacks else ()


def lead_from(question: str, document: Document, *, language: str) -> Lead:
    """Return what *document* leads to."""
    text = " ".join(
        document.text[passage.start : passage.end]
        for _, passages in select(question, (document,), limit=Limit(PASSAGE_CHARS, 1), language=language).chosen
        for passage in passages
    )
    of_question = {word.casefold() for word in _WORD.findall(question)}
    whole = f"{document.title or ''}\n{text}"
    words = content_words(question, language)
    lacks = tuple(word for word in words if not any(hits_in(whole, terms_of(word, language), language)))
    return Lead(document, tuple(_names(text, of_question, language))[:MAX_NAMES], lacks)


def _names(text: str, words: Collection[str], language: str) -> Iterator[str]:
    others = set(words)
    for word in _WORD.findall(text):
        small = word.casefold()
        if small in others or len(word) < LEAST_CHARS or not word[0].isupper() or is_empty_word(word.lower(), language):
            continue
        others.add(small)
        yield word


MAX_QUERIES = 4
MAX_QUERY_CHARS = 200

MAX_TOKENS = 160
"""What four queries take; a plan that is longer is cut there."""

LEAST_TOKENS = 16
"""With less room than this no query would come back."""

MAX_PLAN_CHARS = 8000
"""How much of a plan is read."""

_PLAN = (
    "You plan searches in a document collection. Write the searches that together find every document needed to answer "
    "the last question: one search a line, at most four lines, a few words each, in the language of the question. "
    "Search for each person, thing or fact that the question connects. No numbering, no explanation, no answer."
)
_DRESS = re.compile(r"(?:[-*•]|[0-9]{1,2}[.)])\s")
_DONE = re.compile(r"[\W_]{0,9}done[\W_]{0,9}", re.IGNORECASE)
_QUOTES = " \t\"'«»“”`"


def plan_prompt(ask: Ask, language: str, *, model: str, nonce: str) -> Prompt:
    """Return the prompt of a plan for *ask*: the conversation and the question, no documents."""
    return Prompt(
        question=ask.question,
        extracts=(),
        instructions=_PLAN,
        nonce=nonce,
        history=ask.history,
        language=language,
        model=model,
        temperature=0.0,
        max_tokens=MAX_TOKENS,
    )


def queries_in(reply: str, former: Sequence[str]) -> tuple[str, ...]:
    """
    Return the searches in the model's *reply*, at most `MAX_QUERIES`; none of *former*, too long or without a word.

    A line is a search; so is each string of a JSON list. A line that only says that the planner is done is none.
    """
    keys = {_key(earlier) for earlier in former}
    queries: list[str] = []
    for line in _lines(reply[:MAX_PLAN_CHARS]):
        bare = visible(line).strip()
        if dress := _DRESS.match(bare):
            bare = bare[dress.end() :]
        query = " ".join(bare.strip(_QUOTES).split())
        is_query = 0 < len(query) <= MAX_QUERY_CHARS and any(map(str.isalnum, query))
        if not is_query or _DONE.fullmatch(query) or _key(query) in keys:
            continue
        keys.add(_key(query))
        queries.append(query)
        if len(queries) == MAX_QUERIES:
            break
    return tuple(queries)


def _lines(reply: str) -> list[str]:
    text = reply.strip()
    if text.startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            return text.splitlines()
        return [line for line in listed if isinstance(line, str)]
    return text.splitlines()


def _key(query: str) -> str:
    return " ".join(query.casefold().split())


SCORE, ADDS, NAMED = 10.0, 8.0, 6.0
"""Weights of: the score in a further search, words of the question that no better document has, a named title."""

TITLE, REPEATED = 8.0, 2.0
"""Weights of: a title that stands whole in the question; and, against it, the title of a document before it."""

LATER = 0.5
"""What a title counts that is named by another document than the first."""

CHOSEN = 10
"""How many documents are chosen for what they add; those after them are not shown to any model."""

STEP = 0.8
"""By how much each document's score is below the one before it: about what neighbours of one search differ by."""

_NO_WORDS = "  "


@dataclass(frozen=True, slots=True)
class Worth:
    """What one document is worth by itself, and which of the question's terms it has."""

    document: Document
    value: float
    terms: frozenset[int]

    @property
    def title(self) -> str:
        """The title as it is compared; a document without one has its id."""
        return (self.document.title or self.document.id).casefold()


def pooled(
    question: str, results: Sequence[Sequence[Document]], *, leads: Sequence[Lead], language: str
) -> tuple[Document, ...]:
    """
    Return the documents of all *results*, the question's own search first, each once, best first.

    Each is `rated` where there are several results, so that the order stays. *leads* are what further searches
    followed, the best document's first.
    """
    own, *further = [hits for hits in results if hits] or [()]
    weighed = weigh(question, own, language=language)
    if not further:
        return tuple(result.document for result in weighed.order)
    first = weighed.order[0]
    docs = {document.id: document for hits in reversed((own, *further)) for document in hits}
    plain = [replace(doc, score=0.0) for doc in docs.values()]
    order = weigh(question, plain, language=language, keeps_repetitions=True).order
    rarity = rare_among(weighed.terms, [result.hits for result in order])
    worths = {result.document.id: _worth(result, weighed, language) for result in order}
    for document_id, value in _values(question, docs, further, leads=leads, language=language).items():
        former = worths[document_id]
        worths[document_id] = replace(former, document=docs[document_id], value=former.value + value)
    best = worths.pop(first.document.id)
    chosen = _chosen(best, list(worths.values()), rarity)
    return tuple(replace(worth.document, rated=first.score - STEP * rank) for rank, worth in enumerate(chosen))


def _values(
    question: str,
    documents: Mapping[str, Document],
    further: Sequence[Sequence[Document]],
    *,
    leads: Sequence[Lead],
    language: str,
) -> Mapping[str, float]:
    """Return what each of *documents* is worth for the question's names, further searches and what they followed."""
    # The score of each document as a share of the best one's, the highest of all searches.
    shares: dict[str, float] = {}
    for hits in further:
        best = max((hit.score for hit in hits), default=0.0)
        for hit in hits if best > 0 else ():
            shares[hit.id] = max(shares.get(hit.id, 0.0), hit.score / best)
    named = [frozenset(name.casefold() for name in lead.names) for lead in leads]
    words = _spaced(question)
    return {
        key: SCORE * shares.get(key, 0.0)
        + NAMED * _named(document, named, language)
        + TITLE * ((title := _spaced(_bare_title(document))) != _NO_WORDS and title in words)
        for key, document in documents.items()
    }


def _named(document: Document, names: Sequence[frozenset[str]], language: str) -> float:
    """Return which share of the words of the title the names of a lead hold; "Lilu (mythology)" is named by "Lilu"."""
    words = _WORD.findall(_bare_title(document).casefold())
    own = {word for word in words if not is_empty_word(word, language)}
    if not own:
        return 0.0
    return max((len(own & of) / len(own) * (LATER if place else 1.0) for place, of in enumerate(names)), default=0.0)


def _bare_title(document: Document) -> str:
    """Return the title without what only tells it from others of its name, as in "Brand (play)"."""
    return (document.title or "").partition(" (")[0]


def _spaced(text: str) -> str:
    """Return the words of *text* with a space before and behind each."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _worth(result: Ranked, weighed: Weighed, language: str) -> Worth:
    """Return what *result* is worth by what it says of the question."""
    title = hits_in(result.document.title or "", weighed.terms, language)
    places = enumerate(zip(result.hits, title, strict=True))
    return Worth(result.document, result.score, frozenset(place for place, (text, head) in places if text or head))


def _chosen(first: Worth, others: Sequence[Worth], rarity: Sequence[float]) -> list[Worth]:
    """Return *first*, then each time the document that adds most to those before it; the rest by their own worth."""
    total = sum(rarity) or 1.0
    chosen, had, rest, titles = [first], set(first.terms), list(others), {first.title}
    while rest and len(chosen) < CHOSEN:
        worth = [
            other.value
            + ADDS * sum(rarity[term] for term in other.terms - had) / total
            - REPEATED * (other.title in titles)
            for other in rest
        ]
        best = rest.pop(worth.index(max(worth)))
        chosen.append(best)
        had |= best.terms
        titles.add(best.title)
    return [*chosen, *sorted(rest, key=lambda other: -other.value)]
