"""
From words, rights and restrictions to tantivy queries: what is searched, in which fields, with which weights.

Queries are built from terms, never parsed, so that no character of a user's text is syntax. A user's filter and a
caller's restrictions become queries that narrow and never score. Tokens and values are raw terms: nothing reads them.
What cannot be a term matches nothing.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from tantivy import FieldType, Occur, Query, Schema, Searcher

from datafari_rag.adapters.embedded.schema import (
    DATE_FIELD,
    DOCUMENT,
    KIND,
    NAME,
    PASSAGE_WORDS,
    RAW_FIELDS,
    TITLE,
    WORDS,
    stemmed_languages,
    terms_of,
)
from datafari_rag.core.access import ACL_FIELDS, LEVELS, NO_SECURITY, Filter
from datafari_rag.core.ask import NamedDocuments, Narrowing, Restriction
from datafari_rag.core.errors import BadSetting, UnfitValue
from datafari_rag.core.query.dates import date_math_at
from datafari_rag.core.search_request import OTHER_LANGUAGE, PAIR_SLOP, Step
from datafari_rag.core.solr.parameters import usable_words
from datafari_rag.core.text.cleaning import is_unicode

PRESENCE, PAIR = 3.0, 0.7
"""
What a word's being there at all counts, in its idf, and what it counts that two words of the question are neighbours in
the text, in theirs. Both know neither length nor frequency: the average length that BM25 compares with is one of all
entries, most of which are passages.
"""

COMMON_DOCUMENTS, COMMON_SHARE = 5000, 0.05
"""A word in more documents than both of these is common: neither its presence nor its pairs count. Half the time."""

WEIGHTS: Mapping[str, float] = {WORDS: 1.4, TITLE: 0.8, NAME: 0.1}

MAX_SOUGHT_CHARS, MAX_TERMS = 4000, 240
"""Most characters and terms of a question that are looked for: a pasted page is not searched word by word."""


@dataclass(frozen=True, slots=True)
class Sought:
    """
    One word of a question: the terms that it is read as, several where it has parts, in each language.

    *terms* has the weight of each reading; a word without any language's endings has one reading.
    """

    terms: Mapping[tuple[str, ...], float]


def sought_in(words: Iterable[str], language: str) -> list[Sought]:
    """
    Return what *words* look for, in order and each once; words without content are left out when others remain.

    Documents of every language are looked for, those of *language* with more weight; "" has no preference.
    """
    usable = usable_words(words, language)
    text = " ".join(usable)[:MAX_SOUGHT_CHARS]
    starts = [0, *accumulate(len(word) + 1 for word in usable)][: len(usable)]
    readings: list[dict[tuple[str, ...], float]] = [{} for _ in usable]
    for code in dict.fromkeys((language, "", *stemmed_languages())):
        weight = 1.0 if code == language or not language else OTHER_LANGUAGE
        by_word: list[list[str]] = [[] for _ in usable]
        for token, term in islice(zip(*terms_of(text, code), strict=True), MAX_TERMS):
            if term:
                by_word[bisect_right(starts, token.start) - 1].append(term)
        for reading, own in zip(readings, by_word, strict=True):
            if own:
                reading.setdefault(tuple(own), weight)
    distinct: dict[frozenset[tuple[str, ...]], Sought] = {}
    for reading in readings:
        if reading:
            distinct.setdefault(frozenset(reading), Sought(reading))
    return list(distinct.values())


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the index knows of terms now."""

    searcher: Searcher
    schema: Schema
    documents: int
    """How many documents it has."""

    def query(self, field: str, terms: Sequence[str]) -> Query | None:
        """Return what finds *terms*, one behind the other, in *field*; None where the index does not know them."""
        if not all(self.searcher.doc_freq(field, term) for term in terms):
            return None
        if len(terms) == 1:
            return Query.term_query(self.schema, field, terms[0])
        return Query.phrase_query(self.schema, field, list(terms))

    def together(self, terms: Sequence[str]) -> Query | None:
        """Return what finds the passages that have all *terms*; None where the index does not know them."""
        if not all(self.searcher.doc_freq(PASSAGE_WORDS, term) for term in terms):
            return None
        return _all(Query.term_query(self.schema, PASSAGE_WORDS, term) for term in terms)

    def documents_with(self, word: Sought) -> int:
        """Return how many documents have the rarest term of *word*, in the language that has it most."""
        counts = (min(self.searcher.doc_freq(WORDS, term) for term in terms) for terms in word.terms)
        return max(counts, default=0)

    def idf(self, number: int) -> float:
        """Return BM25's idf of a word that *number* documents have: above 0."""
        return math.log(1 + (max(number, self.documents) - number + 0.5) / (number + 0.5))

    def is_common(self, number: int) -> bool:
        """Return whether a word that *number* documents contain is too common for its cost."""
        return number > COMMON_DOCUMENTS and number > COMMON_SHARE * self.documents


def query_for(step: Step, language: str, vocabulary: Vocabulary) -> Query | None:
    """
    Return the query for the words of *step*, None when none of them can be looked for.

    Each word is looked for in text, title and address, and counts once, however many hold it.
    """
    words = sought_in(step.words, language)
    if not words:
        return None
    parts = [_word_query(word, vocabulary) for word in words]
    pairs = [(Occur.Should, query) for query in _pair_queries(words, vocabulary)]
    if step.operator == "AND" and step.min_match is None:
        return Query.boolean_query([*((Occur.Must, part) for part in parts), *pairs])
    needed = max(1, len(parts) * (step.min_match or 0) // 100)
    query = Query.boolean_query([(Occur.Should, part) for part in parts], minimum_number_should_match=needed)
    return Query.boolean_query([(Occur.Must, query), *pairs]) if pairs else query


def passage_query_for(word: Sought, vocabulary: Vocabulary) -> Query | None:
    """Return what finds the passages with *word*, each once; None where there is none."""
    readings = [query for terms in word.terms if (query := vocabulary.together(terms)) is not None]
    return Query.const_score_query(_any(readings), 1.0) if readings else None


def _word_query(word: Sought, vocabulary: Vocabulary) -> Query:
    clauses: list[Query] = []
    in_text: list[Query] = []
    for field, weight in WEIGHTS.items():
        for terms, share in word.terms.items():
            query = vocabulary.query(field, terms)
            if query is not None:
                clauses.append(Query.boost_query(query, weight * share))
                in_text += [query] if field == WORDS else []
    if not clauses:
        return Query.empty_query()
    number = vocabulary.documents_with(word)
    if in_text and not vocabulary.is_common(number):
        clauses.append(Query.const_score_query(_any(in_text), PRESENCE * vocabulary.idf(number)))
    return _any(clauses)


def _pair_queries(words: Sequence[Sought], vocabulary: Vocabulary) -> Iterator[Query]:
    """Yield a query for each two neighbours of the question, as its own language reads them."""
    numbers = [vocabulary.documents_with(word) for word in words]
    for (first, second), counts in zip(pairwise(words), pairwise(numbers), strict=True):
        terms: list[str | tuple[int, str]] = [*next(iter(first.terms)), *next(iter(second.terms))]
        if min(counts) and not vocabulary.is_common(min(counts)):
            pair = Query.phrase_query(vocabulary.schema, WORDS, terms, PAIR_SLOP)
            yield Query.const_score_query(pair, PAIR * sum(map(vocabulary.idf, counts)))


EARLIEST = datetime.datetime(1678, 1, 1, tzinfo=datetime.UTC)
LATEST = datetime.datetime(2262, 1, 1, tzinfo=datetime.UTC)
"""The years that tantivy's dates can hold: nanoseconds from 1970 on, in 64 bits."""

LISTED_VALUES = 30_000
"""Values of one field that are listed at a time."""


def rights_query(access: Filter, schema: Schema, searcher: Searcher) -> Query | None:
    """
    Return what every search of one state of the index is narrowed to, None in mode none.

    It holds for the state that *searcher* sees and no other, since tokens that no document has are left out of it.

    Raises:
        BadSetting: mode plugin, which is a component of Solr.
    """
    if access.mode == "plugin":
        raise BadSetting(
            'Invalid value for security.mode property. Valid values are "tokens" and "none" with an embedded index.'
        )
    if access.mode == "none":
        return None
    tokens = [token for token in access.tokens if is_unicode(token)]
    if not tokens:
        return _all(Query.term_query(schema, field, NO_SECURITY) for field in ACL_FIELDS)
    return _all(_level_query(level, tokens, schema, searcher) for level in LEVELS)


def of_kind(kind: str, schema: Schema) -> Query:
    """Return what finds all documents, or all passages."""
    return Query.term_query(schema, KIND, kind)


def restriction_query(restriction: Narrowing, schema: Schema, values_of: Callable[[str], Sequence[str]]) -> Query:
    """
    Return what one restriction narrows documents to: nothing, for a field that cannot be filtered.

    *values_of* returns the values of a field, sorted, that documents of this user have: `values_in`, remembered. A
    range is made of them and of no others, so that what it costs reveals nothing about other documents.

    Raises:
        UnfitValue: a value is none that its field can have.
    """
    if isinstance(restriction, NamedDocuments):
        either = [Query.term_set_query(schema, "id", [doc_id for doc_id in restriction.ids if is_unicode(doc_id)])]
    else:
        either = [_restriction_query(part, schema, values_of) for part in (restriction, *restriction.alternatives)]
    query = _any(either)
    if not restriction.is_excluded:
        return query
    return Query.boolean_query([(Occur.Must, of_kind(DOCUMENT, schema)), (Occur.MustNot, query)])


def values_in(field: str, within: Query, searcher: Searcher) -> list[str]:
    """
    Return every value of *field* that a document of *within* has, once each, sorted.

    tantivy has no range over texts. It counts at most 65,000 values at a time, so the rest is looked for in turn.
    """
    values: list[str] = []
    while True:
        terms: dict[str, object] = {"field": field, "size": LISTED_VALUES, "segment_size": LISTED_VALUES}
        if values:
            terms["exclude"] = values
        reply = searcher.aggregate(within, {"values": {"terms": terms}})["values"]
        values += [str(bucket["key"]) for bucket in reply["buckets"]]
        if not reply["buckets"] or not reply["sum_other_doc_count"]:
            return sorted(values)


def narrowed(query: Query, filters: Sequence[Query]) -> Query:
    """Return *query* within all of *filters*, its scores unchanged."""
    silent = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in filters]
    return Query.boolean_query([(Occur.Must, query), *silent])


def _level_query(level: str, tokens: list[str], schema: Schema, searcher: Searcher) -> Query:
    """
    Spell ((NS in allow and NS in deny) or allow & T) and not deny & T (contract §5).

    Looking for unused tokens costs as much as for others: without them the filter takes half the time.
    """
    allow, deny = f"allow_token_{level}", f"deny_token_{level}"
    allowed = _all(Query.term_query(schema, field, NO_SECURITY) for field in (allow, deny))
    if known_tokens := [token for token in tokens if searcher.doc_freq(allow, token)]:
        allowed = _any([allowed, Query.term_set_query(schema, allow, known_tokens)])
    parts = [(Occur.Must, allowed)]
    if unwanted := [token for token in tokens if searcher.doc_freq(deny, token)]:
        parts.append((Occur.MustNot, Query.term_set_query(schema, deny, unwanted)))
    return Query.boolean_query(parts)


def _all(queries: Iterable[Query]) -> Query:
    return Query.boolean_query([(Occur.Must, query) for query in queries])


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])


def _restriction_query(restriction: Restriction, schema: Schema, values_of: Callable[[str], Sequence[str]]) -> Query:
    if restriction.field == DATE_FIELD:
        return _date_query(restriction, schema)
    if restriction.field not in RAW_FIELDS:
        return Query.empty_query()
    if not all(is_unicode(text) for text in (restriction.value, restriction.low, restriction.high) if text is not None):
        raise UnfitValue
    if restriction.value is not None:
        return Query.term_query(schema, restriction.field, restriction.value)
    values = values_of(restriction.field)
    start = 0 if restriction.low is None else bisect_left(values, restriction.low)
    end = len(values) if restriction.high is None else bisect_right(values, restriction.high)
    terms = list(values[start:end])
    return Query.term_set_query(schema, restriction.field, terms) if terms else Query.empty_query()


def _date_query(restriction: Restriction, schema: Schema) -> Query:
    texts = (restriction.low, restriction.high) if restriction.value is None else (restriction.value,) * 2
    now = datetime.datetime.now(datetime.UTC)
    low, high = (None if text is None else date_math_at(text, now) for text in texts)
    if any(text is not None and bound is None for text, bound in zip(texts, (low, high), strict=True)):
        raise UnfitValue
    # Without any bound tantivy would find the documents without a date as well; one that it cannot hold wraps round.
    first, last = max(low or EARLIEST, EARLIEST), min(high or LATEST, LATEST)
    return Query.range_query(schema, DATE_FIELD, FieldType.Date, lower_bound=first, upper_bound=last)
