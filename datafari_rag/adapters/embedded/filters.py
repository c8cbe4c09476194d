"""
From a user's filter and a caller's restrictions to tantivy queries that narrow and never score.

Tokens and values are raw terms: no analyser and no parser sees them. What cannot be a term matches nothing.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from tantivy import FieldType, Occur, Order, Query, Schema, Searcher

from datafari_rag.adapters.embedded.schema import BLOCK_FIELD, RAW_FIELDS
from datafari_rag.core.access import ACL_FIELDS, LEVELS, NO_SECURITY, Filter
from datafari_rag.core.ask import NamedDocuments, Narrowing, Restriction
from datafari_rag.core.errors import BadSetting, UnfitValue
from datafari_rag.core.query.dates import date_math_at
from datafari_rag.core.text.folding import is_unicode

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
        either = [Query.term_set_query(schema, "id", [one for one in restriction.ids if is_unicode(one)])]
    else:
        either = [_restricted(one, schema, values_of) for one in (restriction, *restriction.alternatives)]
    found = either[0] if len(either) == 1 else Query.boolean_query([(Occur.Should, query) for query in either])
    if not restriction.is_excluded:
        return found
    return Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, found)])


def values_in(field: str, within: Query, searcher: Searcher) -> list[str]:
    """
    Return every value of *field* that a document of *within* has, once each, sorted.

    tantivy has no range over texts. It counts at most 65,000 values at a time, so the rest is looked for in turn.
    """
    found: list[str] = []
    while True:
        wanted: dict[str, object] = {"field": field, "size": LISTED_VALUES, "segment_size": LISTED_VALUES}
        if found:
            wanted["exclude"] = found
        reply = searcher.aggregate(within, {"values": {"terms": wanted}})["values"]
        found += [str(bucket["key"]) for bucket in reply["buckets"]]
        if not reply["buckets"] or not reply["sum_other_doc_count"]:
            return sorted(found)


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
    if wanted := [token for token in tokens if searcher.doc_freq(allow, token)]:
        either = (allowed, Query.term_set_query(schema, allow, wanted))
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
