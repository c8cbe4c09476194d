"""Restrictions of a search (contract §5) as parameters of Solr: a filter each, and no text of a caller in a query."""

from __future__ import annotations

import re
from collections.abc import Sequence

from datafari_rag.core.ask import Restriction
from datafari_rag.core.query.dates import iso_of
from datafari_rag.core.solr.schema import Schema

NOTHING = "-*:*"
"""A query that finds nothing."""

LONE = re.compile(r"[\ud800-\udfff]")
"""Half a character, which cannot be written in UTF-8."""

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


def restriction_params(restrictions: Sequence[Restriction], schema: Schema) -> dict[str, str | list[str]]:
    """Return each restriction as a separate filter; a value that its field cannot hold finds nothing."""
    params: dict[str, str | list[str]] = {}
    queries: list[str] = []
    for number, restriction in enumerate(restrictions):
        name = f"restriction_{number}"
        query = _restricted(restriction, name, schema)
        if restriction.value is not None:
            params[name] = _fitted(restriction.value, schema.kind(restriction.field)) or ""
        if restriction.is_excluded:
            params[f"{name}_not"] = query
            query = f"{{!bool filter=$everything must_not=${name}_not}}"
            params["everything"] = "*:*"
        queries.append(query)
    return params | ({"fq": queries} if queries else {})


def _restricted(restriction: Restriction, name: str, schema: Schema) -> str:
    field, kind = restriction.field, schema.kind(restriction.field)
    if not schema.has(field) or schema.is_acl(field):
        return NOTHING
    if restriction.value is not None:
        return NOTHING if _fitted(restriction.value, kind) is None else f"{{!term f={field} v=${name}}}"
    low, high = _bound(restriction.low, kind), _bound(restriction.high, kind)
    return NOTHING if low is None or high is None else f"{field}:[{low} TO {high}]"


def _bound(given: str | None, kind: str) -> str | None:
    r"""
    Return one end of a range as Solr's parser takes it, None when it cannot be one.

    No parser takes bounds from separate parameters for a field with several values (`{!frange}` wants one). So
    each character is written as its number, and the parser sees only quotation marks added here, `\u` and digits.
    """
    if given is None:
        return "*"
    value = _fitted(given, kind)
    return None if value is None else f'"{numbered(value)}"'


def numbered(text: str) -> str:
    r"""Return *text* with each character spelled by its number, for use between quotation marks."""
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _fitted(value: str, kind: str) -> str | None:
    """Return *value* as a field of *kind* takes it, None when it cannot: Solr would answer 400."""
    if kind == "date":
        return iso_of(value)
    if kind == "number":
        return value if _NUMBER.fullmatch(value) else None
    return None if LONE.search(value) else value
