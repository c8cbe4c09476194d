"""
From words, rights and restrictions to tantivy queries: what is searched, in which fields, with which weights.

Queries are built from analysed words, never parsed, so that no character of a user's text is syntax.

A user's filter and a caller's restrictions become queries that narrow and never score. Tokens and values are raw terms:
no analyser and no parser sees them. What cannot be a term matches nothing.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tantivy import FieldType, Occur, Order, Query, Schema, Searcher

from datafari_rag.adapters.embedded.schema import BLOCK_FIELD, LANGUAGES, RAW_FIELDS, TermsOfWords, analyzer_of
from datafari_rag.core.access import ACL_FIELDS, LEVELS, NO_SECURITY, Filter
from datafari_rag.core.ask import NamedDocuments, Narrowing, Restriction
from datafari_rag.core.errors import BadSetting, UnfitValue
from datafari_rag.core.query.dates import date_math_at
from datafari_rag.core.search_request import OTHER_LANGUAGE, PAIR_SLOP, Step
from datafari_rag.core.solr.parameters import usable_words
from datafari_rag.core.text.folding import is_unicode

PRESENCE = 1.2
"""
What a word's being there at all counts, in its idf: a part that knows neither length nor frequency.

tantivy's BM25 cannot be set to penalise long documents less (its b is .75). Measured over 3,845 questions, right
document first / among 3 / among 10: 78.2 / 87.3 / 92.5 without, 82.0 / 89.9 / 94.1 with this and `PAIR`.
"""

PAIR = 0.8
"""The weight of two words of the question that are neighbours in the text."""

COMMON_DOCUMENTS, COMMON_SHARE = 5000, 0.05
"""
A word in more documents than both of these is common: neither its presence nor its pair with another common word
counts. That halves the time of ten words over 100,000 documents. Taking the share alone as the limit (1,500 of the
questions, 4,063 documents) gave 80.9 / 89.5 / 93.8 against 80.9 / 89.5 / 93.7.
"""

WEIGHTS = {"content": 1.0, "title": 0.3, "exactContent": 0.4, "exactTitle": 0.2, "url_search": 0.1}
"""Weights of the fields, or of the families of fields with one for each language."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What turns words into terms: the index as it is now, and the terms of words by analyser."""

    searcher: Searcher
    schema: Schema
    of_words: TermsOfWords

    def terms(self, field: str, word: str) -> Sequence[str]:
        """Return the terms of *word* in *field*, in order; empty when it has no letter or digit."""
        return self.of_words[word, analyzer_of(field)]

    def knows(self, field: str, terms: Sequence[str]) -> bool:
        """Return whether each of *terms* occurs somewhere in *field*; deleted documents count until they are merged."""
        return all(self.searcher.doc_freq(field, term) for term in terms)

    def documents_with(self, field: str, word: str) -> int:
        """Return how many documents have the rarest term of *word* in *field*."""
        return min((self.searcher.doc_freq(field, term) for term in self.terms(field, word)), default=0)

    def is_common(self, number: int) -> bool:
        """Return whether a word that *number* documents contain is too common for its cost."""
        return number > COMMON_DOCUMENTS and number > COMMON_SHARE * self.searcher.num_docs


def query_for(step: Step, language: str, vocabulary: Vocabulary) -> Query | None:
    """
    Return the query for the words of *step*, None when none of them has a letter or digit.

    Words without content in *language* are left out when others remain. Each word is looked for in all fields and
    counts once, however many hold it.
    """
    words = [word for word in usable_words(step.words, language) if vocabulary.terms("exactContent", word)]
    if not words:
        return None
    parts = [_word_query(word, language, vocabulary) for word in words]
    pairs = [(Occur.Should, query) for query in _pair_queries(words, language, vocabulary)]
    if step.operator == "AND" and step.min_match is None:
        return Query.boolean_query([*((Occur.Must, part) for part in parts), *pairs])
    needed = max(1, len(parts) * (step.min_match or 0) // 100)
    query = Query.boolean_query([(Occur.Should, part) for part in parts], minimum_number_should_match=needed)
    return Query.boolean_query([(Occur.Must, query), *pairs]) if pairs else query


def _word_query(word: str, language: str, vocabulary: Vocabulary) -> Query:
    queries = [
        (field, weight, query)
        for field, weight in _fields(language)
        if (query := _field_query(field, vocabulary.terms(field, word), vocabulary)) is not None
    ]
    if not queries:
        return Query.empty_query()
    clauses = [(Occur.Should, Query.boost_query(query, weight)) for _, weight, query in queries]
    texts = [(field, query) for field, _, query in queries if field.startswith(("content_", "exactContent"))]
    number = max((vocabulary.documents_with(field, word) for field, _ in texts), default=0)
    if texts and not vocabulary.is_common(number):
        there = Query.boolean_query([(Occur.Should, query) for _, query in texts])
        # BM25's idf of a word that *number* documents have. Above 0.
        idf = math.log(1 + (max(number, vocabulary.searcher.num_docs) - number + 0.5) / (number + 0.5))
        clauses.append((Occur.Should, Query.const_score_query(there, PRESENCE * idf)))
    return Query.boolean_query(clauses)


def _pair_queries(words: Sequence[str], language: str, vocabulary: Vocabulary) -> Iterator[Query]:
    """Yield a query for each two neighbours of the question, in the stemmed field of its language."""
    field = f"content_{language}" if language in LANGUAGES else "exactContent"
    for first, second in pairwise(words):
        terms = [*vocabulary.terms(field, first), *vocabulary.terms(field, second)]
        numbers = [vocabulary.documents_with(field, word) for word in (first, second)]
        if len(terms) > 1 and all(numbers) and not vocabulary.is_common(min(numbers)):
            yield Query.boost_query(Query.phrase_query(vocabulary.schema, field, list(terms), PAIR_SLOP), PAIR)


def _fields(language: str) -> Iterator[tuple[str, float]]:
    for family, weight in WEIGHTS.items():
        if family not in ("content", "title"):
            yield family, weight
            continue
        for code in LANGUAGES:
            yield f"{family}_{code}", weight if code == language else weight * OTHER_LANGUAGE


def _field_query(field: str, terms: Sequence[str], vocabulary: Vocabulary) -> Query | None:
    """Return None for what the field does not know: a cheap look that spares four languages' empty postings."""
    if not terms or not vocabulary.knows(field, terms):
        return None
    if len(terms) == 1:
        return Query.term_query(vocabulary.schema, field, terms[0])
    # What an analyser splits (2024-report, l'entretien) belongs together: Datafari's autoGeneratePhraseQueries.
    return Query.phrase_query(vocabulary.schema, field, list(terms))


DATE_FIELD = "last_modified"

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


def restriction_query(restriction: Narrowing, schema: Schema, values_of: Callable[[str], Sequence[str]]) -> Query:
    """
    Return what one restriction narrows to: nothing, for a field that cannot be filtered.

    *values_of* returns the values of a field, sorted, that documents of this user have: `values_in`, remembered. A
    range is made of them and of no others, so that what it costs reveals nothing about other documents.

    Raises:
        UnfitValue: a value is none that its field can have.
    """
    if isinstance(restriction, NamedDocuments):
        either = [Query.term_set_query(schema, "id", [doc_id for doc_id in restriction.ids if is_unicode(doc_id)])]
    else:
        either = [_restricted(part, schema, values_of) for part in (restriction, *restriction.alternatives)]
    query = either[0] if len(either) == 1 else Query.boolean_query([(Occur.Should, query) for query in either])
    if not restriction.is_excluded:
        return query
    return Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, query)])


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
    if not filters:
        return query
    silent = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in filters]
    return Query.boolean_query([(Occur.Must, query), *silent])


def blocks_of(searcher: Searcher, query: Query) -> list[int]:
    """Return the blocks of vectors of the documents that *query* finds, in order."""
    # The column of a field is read far faster than stored documents: 0.1 s for 100,000.
    limit = max(1, searcher.num_docs)
    hits = searcher.search(query, limit=limit, count=False, order_by_field=BLOCK_FIELD, order=Order.Asc).hits
    return [int(block) for block, _ in hits if block is not None]


def _level_query(level: str, tokens: list[str], schema: Schema, searcher: Searcher) -> Query:
    """
    Spell ((NS in allow and NS in deny) or allow & T) and not deny & T (contract §5).

    Looking for unused tokens costs as much as for others: without them the filter takes half the time.
    """
    allow, deny = f"allow_token_{level}", f"deny_token_{level}"
    allowed = _all(Query.term_query(schema, field, NO_SECURITY) for field in (allow, deny))
    if known_tokens := [token for token in tokens if searcher.doc_freq(allow, token)]:
        either = (allowed, Query.term_set_query(schema, allow, known_tokens))
        allowed = Query.boolean_query([(Occur.Should, query) for query in either])
    parts = [(Occur.Must, allowed)]
    if unwanted := [token for token in tokens if searcher.doc_freq(deny, token)]:
        parts.append((Occur.MustNot, Query.term_set_query(schema, deny, unwanted)))
    return Query.boolean_query(parts)


def _all(queries: Iterable[Query]) -> Query:
    return Query.boolean_query([(Occur.Must, query) for query in queries])


def _restricted(restriction: Restriction, schema: Schema, values_of: Callable[[str], Sequence[str]]) -> Query:
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
