"""
Filters as pages and programs write them for Solr (`fq`), read into restrictions; nothing of the text is handed on.

    filter  = [ "{!tag=NAME}" ] [ "-" | "+" | "NOT " ] ( any | "(" any ")" )
    any     = FIELD ":" either { " OR " FIELD ":" either }          always the same field
    either  = one | "(" one { " OR " one } ")"
    one     = value | "*" | "[" end " TO " end "]"
    end     = value | "*"

A value is quoted, or a word to Solr's parser too, with colons; a backslash takes the next character as it is. What
means more to Solr than a value (a wildcard, a boost, a minus inside) is not read as one: it would find nothing, and
exclude nothing. The forms are those of Datafari's pages.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.ask import Restriction
from datafari_rag.core.settings.table import SolrSettings, fields_of

MAX_FILTER_CHARS = 10_000
"""Longest filter; no term that an engine keeps is as long."""

MAX_ALTERNATIVES = 100
"""Most values of one filter of which one is enough."""

_QUOTED = r'"(?:[^"\\]|\\.)+"'
_WORD = r'(?:[^\s"()\[\]{}\\*?~^!:/+-]|\\.)(?:[^\s"()\[\]{}\\*?~^!]|\\.)*'
_END = rf'({_QUOTED}|(?:[^\s"()\[\]{{}}\\]|\\.)+)'
_TAG = re.compile(r"\{!tag=['\"]?[A-Za-z0-9_.,-]{1,100}['\"]?\}\s*")
_SIGN = re.compile(r"([-!]|NOT\s+|\+)?")
_FIELD = re.compile(r"([^\s:\"()\[\]{}\\+!-][^\s:\"()\[\]{}\\]*):")
_OPEN, _CLOSE, _OR = re.compile(r"\(\s*"), re.compile(r"\s*\)"), re.compile(r"\s+OR\s+")
_VALUE = re.compile(rf"({_QUOTED}|{_WORD}|\*)|\[\s*{_END}\s+TO\s+{_END}\s*\]")
# A value that a person chose contains no controls, and lone surrogates cannot be sent to any engine.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_WORDS = re.compile(r"[A-Za-z0-9_.-]+")


def facets_of(solr: SolrSettings) -> frozenset[str]:
    """Return the fields that a search may be narrowed by: never those of rights, whatever they are called here."""
    return frozenset(solr.facets) - {*fields_of(solr.fields).acl.values(), *ACL_FIELDS}


def restriction_of(text: str, facets: Collection[str]) -> Restriction | None:
    """Return the narrowing that *text* spells, None when it is none, or on a field that is none of *facets*."""
    restriction = _read(text)
    return restriction if restriction is not None and restriction.field in facets else None


def misread_field(text: str, facets: Collection[str]) -> str | None:
    """Return one of *facets* that occurs in *text*, when *text* is no filter that can be read; else None."""
    if _read(text) is not None:
        return None
    words = {word.strip("-.") for word in _WORDS.findall(text[:MAX_FILTER_CHARS])}
    return min(words & set(facets), default=None)


def _read(text: str) -> Restriction | None:
    """Return what *text* spells, on whatever field; None when it is no filter."""
    trimmed = _trimmed(text[:MAX_FILTER_CHARS])
    if len(text) > MAX_FILTER_CHARS or _CONTROLS.search(trimmed):
        return None
    scan = _Scan(trimmed)
    scan.take(_TAG)
    sign = scan.take(_SIGN)
    is_excluded = sign is not None and sign.group(1) not in (None, "+")
    is_wrapped = scan.take(_OPEN) is not None
    restrictions = list(_any(scan))
    is_closed = not is_wrapped or scan.take(_CLOSE) is not None
    is_one = None not in restrictions and len({part.field for part in restrictions if part is not None}) == 1
    if not is_closed or not scan.is_done or not is_one or len(restrictions) > MAX_ALTERNATIVES:
        return None
    first, *others = [restriction for restriction in restrictions if restriction is not None]
    return replace(first, is_excluded=is_excluded, alternatives=tuple(others))


def _any(scan: _Scan) -> Iterator[Restriction | None]:
    """Yield what is between ORs, None where a field or a value is missing."""
    while True:
        field = scan.take(_FIELD)
        is_wrapped = field is not None and scan.take(_OPEN) is not None
        yield _restriction(scan, field)
        while is_wrapped and scan.take(_OR) is not None:
            yield _restriction(scan, field)
        if is_wrapped and scan.take(_CLOSE) is None:
            yield None
        if scan.take(_OR) is None:
            return


def _restriction(scan: _Scan, field: re.Match[str] | None) -> Restriction | None:
    match = scan.take(_VALUE)
    if match is None or field is None:
        return None
    value, low, high = (None if text in (None, "*") else _bare(text) for text in match.groups())
    return Restriction(field.group(1), value=value, low=low, high=high)


class _Scan:
    """A text that is read from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return what is next when it is *pattern*, and go behind it."""
        match = pattern.match(self._text, self._at)
        self._at = self._at if match is None else match.end()
        return match

    @property
    def is_done(self) -> bool:
        return self._at == len(self._text)


def _trimmed(text: str) -> str:
    """Return *text* without the white space around it, but for one that a backslash takes as it is."""
    bare = text.strip()
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return text.lstrip()[: len(bare) + backslashes % 2]


def _bare(text: str) -> str:
    inner = text[1:-1] if text.startswith('"') else text
    return re.sub(r"\\(.)", r"\1", inner)
