"""
What a handler of Solr can set, and what each search sends so that none of it changes an answer.

Solr takes a parameter that a request lacks from the handler, in `defaults` or in a set of `useParams`. So each
parameter that shapes a result is sent, with the value that has no effect where we want none. What the parser of the
words reads travels in the query itself, as local parameters, which not even `invariants` of a handler override. A test
compares these tables with Solr's own lists: a parameter is sent, is in `LEFT` with what it does, or is in the test with
the reason why it changes no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

MAX_ANALYZED_CHARS = 10_000_000
"""How far into a document snippets are looked for; Solr's own 51,200 would miss the rest of a manual."""

_MOST = str(2**31 - 1)

SENT_PARAMETERS: Mapping[str, str] = {
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
    "hl.bs.language": "",
    "hl.bs.country": "",
    "hl.bs.variant": "",
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

REASONS: Mapping[str, str] = {
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
    "_route_": "the collection is that of one shard",
    "distrib.statsCache": "each shard weighs words by its own documents alone",
    "requireZkConnected": "searches fail while ZooKeeper is out of reach",
    "collection": "other collections are searched",
    "hl.offsetSource": "snippets fail where the fields have no such offsets",
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


def local(params: Mapping[str, str]) -> str:
    """Return *params* as local parameters of a query; no value may hold an apostrophe or a backslash."""
    return " ".join(f"{name}='{value}'" for name, value in params.items())


def of_fields(fields: Iterable[str], params: Mapping[str, str]) -> dict[str, str]:
    """Return *params* for each of *fields*: what a handler sets for all fields or for one of them counts no more."""
    return {f"f.{field}.{name}": value for field in fields for name, value in params.items()}


def reason_left(name: str) -> str | None:
    """Return what the parameter *name* of a handler does to a result although we send others, None for nothing."""
    beginning = next((prefix for prefix in REASONS if prefix.endswith(".") and name.startswith(prefix)), name)
    return REASONS.get(name, REASONS.get(beginning))
