"""
What a handler of Solr can set, and what each search sends so that none of it changes an answer.

Solr takes a parameter that a request lacks from the handler, in `defaults` or in a set of `useParams`. So each
parameter that shapes a result is sent, with the value that has no effect where we want none. What the parser of the
words reads travels in the query itself, as local parameters, which not even `invariants` of a handler override. A test
compares these tables with Solr's own lists: a parameter is sent, has no effect here, or is in `LEFT` with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MAX_ANALYZED_CHARS = 10_000_000
"""How far into a document snippets are looked for; Solr's own 51,200 would miss the rest of a manual."""

_MOST = str(2**31 - 1)

SENT: Mapping[str, str] = {
    # Each shard returns the fields of its best documents with them, as one state of the index. Solr otherwise fetches
    # them in a second request, by id alone: a document that was replaced in between, by a version that is hidden from
    # this user, came back with the text of that version.
    "distrib.singlePass": "true",
    "defType": "lucene",
    # No word is without a field; an empty name would be an error all the same.
    "df": "id",
    "start": "0",
    "wt": "json",
    "json.nl": "flat",
    "indent": "false",
    "omitHeader": "false",
    "echoParams": "none",
    "echoHandler": "false",
    "debugQuery": "false",
    "debug": "",
    "TZ": "UTC",
    # Limits that would return some of the hits as if they were all.
    "timeAllowed": "-1",
    "cpuAllowed": "-1",
    "memAllowed": "-1",
    "maxHitsAllowed": _MOST,
    "minExactCount": _MOST,
    "segmentTerminateEarly": "false",
    # Components that replace the hits, add others, or cost time.
    "query": "true",
    "group": "false",
    "expand": "false",
    "facet": "false",
    "hl": "false",
    "mlt": "false",
    "spellcheck": "false",
    "stats": "false",
    "terms": "false",
    "tv": "false",
}
"""Sent with every search, besides `q`, `fl`, `rows`, `sort`, and `fq` where there is a filter."""

UNPROMOTED: Mapping[str, str] = {
    "enableElevation": "false",
    # There is no empty rank query; this one adds nothing to the score of the first hit.
    "rq": "{!rerank reRankQuery=$unranked reRankDocs=1 reRankWeight=0}",
    "unranked": "-*:*",
}
"""
Sent with the search of an answer: documents that somebody put first, or a model ranks first, need not say anything of
the question. A plain search shows them where the handler has them.
"""

BOOSTS = ("bq", "bf", "boost")
"""What a handler adds to the score of words: left out of answers, in proportion in a plain search."""

PARSER: Mapping[str, str] = {
    "pf": "",
    "pf3": "",
    "ps": "0",
    "ps2": "0",
    "ps3": "0",
    "qs": "0",
    # No field and no parser can be named in the words.
    "uf": "-*",
    # Word by word: else fields that cut a word differently make "all words" mean "all in one field".
    "sow": "true",
    # A handler's default may make operators of "and" and "or" in small letters.
    "lowercaseOperators": "false",
    "stopwords": "true",
    "mm.autoRelax": "false",
    "q.op": "OR",
    # What is left of a question whose every character the analysis drops must not become "everything".
    "q.alt": "-*:*",
    # All fields that hold a word add up, as in the embedded index.
    "tie": "1.0",
}
"""Local parameters of the words, besides `qf`, `pf2`, `mm` and in an answer `BOOSTS`."""

HIGHLIGHTER: Mapping[str, str] = {
    "hl": "true",
    "hl.method": "unified",
    "hl.maxAnalyzedChars": str(MAX_ANALYZED_CHARS),
    "hl.qparser": "lucene",
}
"""Sent where snippets are wanted, besides `hl.fl`, `hl.q`, and for each field `SNIPPETS` and its own three."""

SNIPPETS: Mapping[str, str] = {
    "hl.snippets": "1",
    "hl.fragsizeIsMinimum": "true",
    "hl.fragAlignRatio": "0.5",
    "hl.bs.type": "SENTENCE",
    "hl.encoder": "html",
    "hl.tag.ellipsis": "",
    "hl.multiValuedSeparatorChar": " ",
    "hl.requireFieldMatch": "true",
    "hl.usePhraseHighlighter": "true",
    "hl.highlightMultiTerm": "true",
    # Marks are thrown away or for the eye: a phrase need not be one mark, which costs a third more time.
    "hl.weightMatches": "false",
    "hl.defaultSummary": "false",
    "hl.score.k1": "1.2",
    "hl.score.b": "0.75",
    "hl.score.pivot": "87",
}
"""Sent for each highlighted field, as `f.FIELD.NAME`: a handler can set each of them for one field."""

VALUES: Mapping[str, str] = {"facet.prefix": "", "facet.excludeTerms": ""}
"""Sent for each counted field that is no number and no date, as `f.FIELD.NAME`: for those Solr refuses them."""

COUNTS: Mapping[str, str] = {
    "facet.mincount": "1",
    "facet.offset": "0",
    "facet.missing": "false",
    "facet.exists": "false",
    "facet.sort": "count",
    "facet.overrequest.count": "10",
    "facet.overrequest.ratio": "1.5",
}
"""Sent for each counted field, as `f.FIELD.NAME`, besides `facet.limit`."""

LEFT: Mapping[str, str] = {
    "fq": "a filter among the defaults is replaced by that of the user's rights: it belongs into appends",
    "json": "a request in JSON replaces the words of a question",
    "json.": "a request in JSON replaces the words of a question",
    "json.wrf": "a reply in a function is no JSON: every search fails",
    "cursorMark": "a page by its mark has no beginning, and cannot be had with a rank query: every search fails",
    "ids": "documents are returned by their ids, whatever the words and the rights",
    "isShard": "a reply to another shard has no scores",
    "NOW": "dates relative to now are relative to that moment",
    "shards": "the collection is what these shards hold",
    "shards.qt": "another handler answers for the shards",
    "shards.rows": "each shard returns so many documents: the best may be among the others",
    "shards.start": "each shard leaves out its best documents",
    "distrib": "the collection is that of one shard",
    "hl.offsetSource": "snippets fail where the fields have no such offsets",
    "hl.bs.language": "sentences end as in that language",
    "hl.bs.country": "sentences end as in that country",
    "hl.bs.variant": "sentences end as in that variant of a language",
    "facet.prefix": "numbers and dates cannot be counted: Solr refuses it for them, even if it is empty",
    "facet.excludeTerms": "numbers and dates cannot be counted: Solr refuses it for them, even if it is empty",
    "facet.contains": "values without it are not counted: every value would have to be compared with an empty one",
    "facet.contains.ignoreCase": "as facet.contains",
    "facet.matches": "values that do not match are not counted: every value would have to be compared with a pattern",
}
"""
What a handler can set that changes a result and is not sent: name, or the beginning of names → what it does then.
`doctor` reports it.
"""

INERT: Mapping[str, str] = {
    "hl.q": "the words are sent as what is highlighted",
    "hl.queryFieldPattern": "a match counts in its own field",
    "hl.cacheFieldValCharsThreshold": "speed",
    "hl.simple.": "marks are sent under their other name",
    "hl.": "read by highlighters other than the unified one",
    "regex": "a value of hl.fragmenter",
    "simple": "a value of hl.formatter",
    "group.": "hits are not grouped",
    "facet.threads": "speed",
    "facet.method": "speed",
    "facet.enum.cache.minDf": "speed",
    "facet.zeros": "replaced by facet.mincount",
    "facet.overrequest": "not a parameter itself",
    "facet.": "counts that nobody wanted are not returned",
    "expand.": "nothing is expanded",
    "mlt.": "no similar documents are wanted",
    "spellcheck.": "spelling is not looked up",
    "stats.": "no statistics are wanted",
    "terms.": "no terms are wanted",
    "tv.": "no vectors are wanted",
    "exclusive": "the elevator is off",
    "forceElevation": "the elevator is off",
    "elevate.": "the elevator is off",
    "elevateIds": "the elevator is off",
    "excludeIds": "the elevator is off",
    "elevateOnlyDocsMatchingQuery": "the elevator is off",
    "excludeMarkerFieldName": "the elevator is off",
    "editorialMarkerFieldName": "the elevator is off",
    "markExcludes": "the elevator is off",
    "useConfiguredElevatedOrder": "the elevator is off",
    "gen": "read by no parser",
    "partialResults": "no limit is set, and shards.tolerant is sent",
    "multiThreaded": "speed",
    "canCancel": "who may end the search",
    "queryUUID": "who may end the search",
    "debug.": "not returned",
    "explainOther": "not returned",
    "timing": "a value of debug",
    "results": "a value of debug",
    "track": "a value of debug",
    "logParamsList": "what Solr logs",
    "version": "the format of XML",
    "xsl": "the format of XML",
    "stream.": "read by updates",
    "disableRequestId": "what Solr logs",
    "distrib.statsCache": "statistics of words between shards",
}
"""What a handler can set that changes no result: name, or the beginning of names → why."""


def local(params: Mapping[str, str]) -> str:
    """Return *params* as local parameters of a query; no value may hold an apostrophe or a backslash."""
    return " ".join(f"{name}='{value}'" for name, value in params.items())


def of_fields(fields: Iterable[str], params: Mapping[str, str]) -> dict[str, str]:
    """Return *params* for each of *fields*: what a handler sets for all fields or for one of them counts no more."""
    return {f"f.{field}.{name}": value for field in fields for name, value in params.items()}


def reason_left(name: str) -> str | None:
    """Return what the parameter *name* of a handler does to a result although we send others, None for nothing."""
    return _reason(LEFT, name)


def is_overridden(name: str) -> bool:
    """Say whether the parameter *name*, sent with a search, would lose against an invariant of the handler."""
    tables = (SENT, UNPROMOTED, HIGHLIGHTER, SNIPPETS, COUNTS, VALUES)
    return name in ("q", "fq", "fl", "rows", "sort", "facet.field", "words") or any(name in table for table in tables)


def is_known(name: str) -> bool:
    """Say whether these tables know the parameter *name*."""
    tables = (SENT, UNPROMOTED, PARSER, HIGHLIGHTER, SNIPPETS, COUNTS, VALUES)
    own = ("q", "fl", "rows", "sort", "qf", "pf2", "mm", "facet.field", "facet.limit", "shards.tolerant", *_OF_SNIPPETS)
    is_sent = name in (*own, *BOOSTS) or any(name in table for table in tables)
    return is_sent or reason_left(name) is not None or _reason(INERT, name) is not None


_OF_SNIPPETS = ("hl.fl", "hl.fragsize", "hl.tag.pre", "hl.tag.post")


def _reason(table: Mapping[str, str], name: str) -> str | None:
    beginnings = (known for known in table if known.endswith(".") and name.startswith(known))
    return table[name] if name in table else next((table[known] for known in beginnings), None)
