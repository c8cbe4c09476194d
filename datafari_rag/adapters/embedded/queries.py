"""
From words to a tantivy query: what is searched, in which fields, with which weights. The place for tuning.

Queries are built from analysed words, never parsed, so that no character of a user's text is syntax. Rights are not
added here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tantivy import Occur, Query, Schema, Searcher

from datafari_rag.adapters.embedded.schema import LANGUAGES, TermsOfWords, analyzer_of
from datafari_rag.core.search_request import OTHER_LANGUAGE, PAIR_SLOP, Step
from datafari_rag.core.solr.parameters import usable_words

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
    if step.match != "word":
        return _fuzzy_query(step, vocabulary)
    words = [word for word in usable_words(step.words, language) if vocabulary.terms("exactContent", word)]
    if not words:
        return None
    parts = [_word_query(word, language, vocabulary) for word in words]
    pairs = [(Occur.Should, query) for query in _pair_queries(words, language, vocabulary)]
    if step.operator == "AND" and step.min_match is None:
        return Query.boolean_query([*((Occur.Must, part) for part in parts), *pairs])
    needed = max(1, len(parts) * (step.min_match or 0) // 100)
    wanted = Query.boolean_query([(Occur.Should, part) for part in parts], minimum_number_should_match=needed)
    return Query.boolean_query([(Occur.Must, wanted), *pairs]) if pairs else wanted


def _fuzzy_query(step: Step, vocabulary: Vocabulary) -> Query | None:
    """Return the query for words spelled similarly to those of *step*, or for titles with words that begin so."""
    is_prefix = step.match == "prefix"
    fields = ("exactTitle",) if is_prefix else ("exactContent", "exactTitle")
    terms = [term for word in usable_words(step.words, "") for term in vocabulary.terms("exactTitle", word)]
    # One change alone: tantivy does not rank by distance, and two would bring far more documents in no order.
    distance = 0 if is_prefix else 1
    parts = [
        Query.boolean_query(
            [
                (Occur.Should, Query.fuzzy_term_query(vocabulary.schema, field, term, distance, True, is_prefix))
                for field in fields
            ]
        )
        for term in terms
    ]
    return Query.boolean_query([(Occur.Must, part) for part in parts]) if parts else None


def _word_query(word: str, language: str, vocabulary: Vocabulary) -> Query:
    known = [
        (field, weight, query)
        for field, weight in _fields(language)
        if (query := _field_query(field, vocabulary.terms(field, word), vocabulary)) is not None
    ]
    if not known:
        return Query.empty_query()
    found = [(Occur.Should, Query.boost_query(query, weight)) for _, weight, query in known]
    texts = [(field, query) for field, _, query in known if field.startswith(("content_", "exactContent"))]
    number = max((vocabulary.documents_with(field, word) for field, _ in texts), default=0)
    if texts and not vocabulary.is_common(number):
        there = Query.boolean_query([(Occur.Should, query) for _, query in texts])
        # BM25's idf of a word that *number* documents have. Above 0.
        idf = math.log(1 + (max(number, vocabulary.searcher.num_docs) - number + 0.5) / (number + 0.5))
        found.append((Occur.Should, Query.const_score_query(there, PRESENCE * idf)))
    return Query.boolean_query(found)


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
