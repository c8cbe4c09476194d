"""Restrictions of a search (contract §5) as parameters of Solr: a filter each, and no text of a caller in a query."""

from __future__ import annotations

import re
from collections.abc import Sequence

from datafari_rag.core.ask import Restriction
from datafari_rag.core.errors import UnfitValue
from datafari_rag.core.query.dates import date_math_of
from datafari_rag.core.solr.schema import Kind, Schema

NOTHING = "-*:*"
"""A query that finds nothing."""

LONE = re.compile(r"[\ud800-\udfff]")
"""Half a character, which cannot be written in UTF-8."""

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


def restriction_params(restrictions: Sequence[Restriction], schema: Schema) -> dict[str, str | list[str]]:
    """
    Return each restriction as a separate filter.

    Raises:
        UnfitValue: a value is none that its field can have.
    """
    params: dict[str, str | list[str]] = {}
    queries: list[str] = []
    for number, restriction in enumerate(restrictions):
        names = []
        for place, one in enumerate((restriction, *restriction.alternatives)):
            name = f"restriction_{number}_{place}"
            names.append(name)
            params[name] = _restricted(one, f"{name}_value", schema)
            if one.value is not None:
                params[f"{name}_value"] = _fitted(one.value, schema.kind(one.field))
        clause = "must_not" if restriction.is_excluded else "should"
        everything = " filter=$everything" if restriction.is_excluded else ""
        queries.append(f"{{!bool{everything}{''.join(f' {clause}=${name}' for name in names)}}}")
    return params | ({"fq": queries, "everything": "*:*"} if queries else {})


def _restricted(restriction: Restriction, name: str, schema: Schema) -> str:
    field, kind = restriction.field, schema.kind(restriction.field)
    if not schema.has(field) or schema.is_acl(field):
        return NOTHING
    if restriction.value is not None:
        # The field's type reads the value: of a text that it makes nothing of, a bool of one filter finds nothing.
        return f"{{!bool filter='{{!field f={field} v=${name}}}'}}"
    return f"{field}:[{_bound(restriction.low, kind)} TO {_bound(restriction.high, kind)}]"


def _bound(given: str | None, kind: Kind) -> str:
    r"""
    Return one end of a range as Solr's parser takes it.

    No parser takes bounds from separate parameters for a field with several values (`{!frange}` wants one). So
    each character is written as its number, and the parser sees only quotation marks added here, `\u` and digits.
    """
    return "*" if given is None else f'"{numbered(_fitted(given, kind))}"'


def numbered(text: str) -> str:
    r"""Return *text* with each character spelled by its number, for use between quotation marks."""
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _fitted(value: str, kind: Kind) -> str:
    """Return *value* as a field of *kind* takes it. Raises: UnfitValue: it takes no such value."""
    is_fit = _NUMBER.fullmatch(value) is not None if kind == "number" else LONE.search(value) is None
    found = date_math_of(value) if kind == "date" else value
    if found is None or not is_fit:
        raise UnfitValue
    return found
