"""Texts that mean something to one of Solr's parsers; everywhere in this service each of them is a text and no more."""

from __future__ import annotations

import random

MACROS = (
    "we${x}b", "${x:web}", "${nothing:web}", "${q}", "${rows}", "${restriction_0}", "${restriction_1}", "${tokens}",
    "${document}", "${AuthenticatedUserName}", "${wt:json}", "${x", "$${x}", "${}", "${${x}}", "${x:${q:web}}",
    "$\\{x}", "web${x:}", "${solr.solr.home}",
)  # fmt: skip
"""What Solr would expand in any parameter."""

REFERENCES = ("$x", "$q", "$tokens", "$open_document", "v=$tokens", "$restriction_0", "$document")
"""What stands for another parameter, in local parameters."""

QUERIES = (
    "{!term f=id}a", "{!join from=language to=language}exactContent:*", "{!terms f=allow_token_document}g:bob",
    "{!lucene}*:*", "{!func}1", '_query_:"{!v=*:*}"', "_val_:1", "{!xmlparser}<MatchAllDocsQuery/>", "{!", "*", "*:*",
    "a OR b", "AND", "NOT a", "(a)", "[a TO b]", "] TO [", 'a"] OR *:* OR source:["a', "a~1", "a^2", "te?t", "/a.*/",
    "+a -b", "id:a", "!a", "&&", "||", "a AND *:*", "[* TO *]", "filter(*:*)", "/* a */", "[[explain]]",
)  # fmt: skip
"""What the query parsers read."""

QUOTES = (
    '"', 'TV 55"', '"Unknown"', "'", "\\", "\\\\", '\\"', 'a\\', "\\u0041", "\\u", "\\u00", '"\\', "a\\ b", "C:\\temp",
)  # fmt: skip
"""Quotation marks and backslashes, open, closed and escaped."""

SEPARATORS = (
    "a,b",
    "a b",
    " a",
    "a ",
    "a;b",
    "a&b=c",
    "a%20b",
    "a+b",
    "a#b",
    "a!b",
    "a/b",
    "shard1!a",
    "a|b",
    "..",
    "%",
)
"""What separates lists, parameters, parts of an address or the shards of a collection."""

UNICODE = (
    "é", "e\u0301", "Straße", "STRASSE", "\u212a", "K", "k", "ı", "İ", "ﬁ", "fi", "a\u200bb", "a\u00adb", "\ufeffa",
    "\u202ea", "a\u2028b", "a\u2029b", "a\u0085b", "a\u00a0b", "a\u3000b", "\U0001f600", "\ufffd", "\uffff", "日本",
    "Ａ", "\u0661", "\U0010ffff",
)  # fmt: skip
"""Equal after folding or normalisation, invisible, or at the edges of Unicode."""

ALL = (*MACROS, *REFERENCES, *QUERIES, *QUOTES, *SEPARATORS, *UNICODE)

ROUTES = (
    "a/2!b", "a/999!b", "!", "a!", "!b", "a/x!b", "a!b!c", "a!b!c!d", "/1!x", "a/!b", "shard2!x", "id,with,commas",
    "file:///share/a b%20c/d,e;f.txt", "../../x", "http://h/p?q=1&r=2#s", "x\u2028y", "\U0001f600!\U0001f600",
)  # fmt: skip
"""Ids as crawlers make them, and such as choose a shard."""

LOUD_MACROS = tuple(
    f"${{restriction_{number}}}] OR {{!join from=language to=language}}exactContent:{words} OR source:[a TO a"
    for number in range(3)
    for words in ("valve", "bolt", "/va.*/", "*")
)
"""Bounds that once closed their range by another parameter's quotation mark."""


def woven(rng: random.Random) -> str:
    """Return a text that weaves pieces of syntax together, none of them a control character."""
    pieces = [*ALL, *'${}[]():"\\!*?^~+-&|/ ', "restriction_0", " TO ", "source:", " OR ", "v=", "f=id", "\\u0022", "'"]
    return "".join(rng.choice(pieces) for _ in range(rng.randint(1, 6)))
