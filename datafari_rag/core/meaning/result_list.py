"""
The list of a plain search in the order of words and meaning together.

Pure. The first hits by words change places, and no hit comes or goes: numbers of hits, facets and pages stay those of
the search by words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from datafari_rag.core.query.search_request import Browse, Search
from datafari_rag.core.query.steps import plain_step

WINDOW = 30
"""So many hits by words change places; the pages behind them stay as they are."""

NEAREST = 50
"""So many documents are looked for by meaning; a hit that is not among them counts as the farthest of them."""

WEIGHT = 3.0
"""How many places of the list a document moves up for each spread of the model that it is nearer."""


def is_arranged(plain: Browse) -> bool:
    """Say whether meaning has a part in the order of the page that *plain* asks for."""
    return plain.text is not None and plain.sort is None and plain.start < WINDOW and plain.rows > 0


def asked_by_meaning(plain: Browse) -> Search:
    """Return the search whose nearest documents arrange the list of *plain*."""
    step = plain.step or plain_step(plain.text or "", language=plain.language, operator=plain.operator)
    # One document is looked for by meaning for each two rows.
    return Search(
        plain.text or "", step, 2 * NEAREST, language=plain.language, restrictions=plain.restrictions, is_bare=True
    )


def widened(plain: Browse, id_field: str) -> Browse:
    """Return the search for all hits that may change places with those of *plain*, and for their ids."""
    fields = plain.fields if plain.fields is None or id_field in plain.fields else (*plain.fields, id_field)
    return replace(plain, start=0, rows=max(WINDOW, plain.start + plain.rows), fields=fields)


def arranged(
    page: Mapping[str, Any], plain: Browse, cosines: Mapping[str, float], id_field: str
) -> Mapping[str, object]:
    """
    Return the page of *plain* out of *page*, which is that of `widened`.

    *cosines* are those of the nearest documents by id, in spreads of the model; empty: the order stays.
    """
    response = page["response"]
    rows: list[Mapping[str, object]] = list(response["docs"])
    shown = [*_ordered(rows[:WINDOW], cosines, id_field), *rows[WINDOW:]][plain.start : plain.start + plain.rows]
    ids = {str(row.get(id_field)) for row in shown}
    found = {**page, "response": {**response, "start": plain.start, "docs": _as_asked(shown, plain, id_field)}}
    if isinstance(marked := page.get("highlighting"), Mapping):
        found["highlighting"] = {name: value for name, value in marked.items() if name in ids}
    return found


def _ordered(
    rows: Sequence[Mapping[str, object]], cosines: Mapping[str, float], id_field: str
) -> list[Mapping[str, object]]:
    least = min(cosines.values(), default=0.0)

    def worth(place: int) -> float:
        return WEIGHT * cosines.get(str(rows[place].get(id_field)), least) - place

    return [rows[place] for place in sorted(range(len(rows)), key=worth, reverse=True)]


def _as_asked(rows: Sequence[Mapping[str, object]], plain: Browse, id_field: str) -> list[Mapping[str, object]]:
    if plain.fields is None or id_field in plain.fields:
        return list(rows)
    return [{name: value for name, value in row.items() if name != id_field} for row in rows]
