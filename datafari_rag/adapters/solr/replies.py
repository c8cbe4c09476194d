"""
From Solr's JSON to what callers read: documents, snippets, a plain search without the ACL fields.

Believes nothing: an answer of another shape is a failure of the search, never "nothing found".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datafari_rag.core.documents import PLACES_FIELD, Document, first_value
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.passages.extracts import JOINT
from datafari_rag.core.search_request import Browse
from datafari_rag.core.solr.parameters import CUT_END, CUT_START
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.text.folding import unescaped

_META = ("extension", "source")
_NO_COUNTS: Mapping[str, object] = {
    f"facet_{kind}": {} for kind in ("queries", "fields", "ranges", "intervals", "heatmaps")
}


def hits_of(reply: Mapping[str, Any]) -> tuple[int, Sequence[Mapping[str, Any]]]:
    """
    Return the number of all hits, and the documents of this page.

    Raises:
        SearchUnavailable: the answer is not one of Solr's.
    """
    response = reply.get("response")
    if not isinstance(response, Mapping):
        raise SearchUnavailable(log="Solr's answer has no response")
    total, rows = response.get("numFound"), response.get("docs")
    if not isinstance(total, int) or not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise SearchUnavailable(log="Solr's answer has no documents")
    return total, rows


def buckets_of(reply: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the buckets of the JSON facet *name*. Raises: SearchUnavailable: the answer has no facets."""
    facets = reply.get("facets")
    if not isinstance(facets, Mapping):
        raise SearchUnavailable(log="Solr's answer has no facets")
    facet = facets.get(name)
    return list(facet.get("buckets") or ()) if isinstance(facet, Mapping) else []


def is_partial(reply: Mapping[str, Any]) -> bool:
    """Say whether a shard was missing or ran out of time."""
    header = reply.get("responseHeader")
    return isinstance(header, Mapping) and header.get("partialResults") not in (None, False, "false")


def took_ms(reply: Mapping[str, Any]) -> float | None:
    """Return Solr's own time, None when it does not say."""
    header = reply.get("responseHeader")
    time_ms = header.get("QTime") if isinstance(header, Mapping) else None
    return float(time_ms) if isinstance(time_ms, int) else None


def document_of(row: Mapping[str, Any], *, field: str, text: str, schema: Schema) -> Document:
    """
    Return one hit, *text* being what its reader may use of it.

    Raises:
        SearchUnavailable: the hit has no id.
    """
    fields = schema.fields
    identifier = first_value(row, fields.id)
    if identifier is None:
        raise SearchUnavailable(log="a hit has no id: solr.fields names the wrong field")
    score = row.get("score")
    return Document(
        id=identifier,
        text=text,
        field=field,
        title=first_value(row, fields.title),
        url=first_value(row, fields.url),
        score=float(score) if isinstance(score, (int, float)) else 0.0,
        language=first_value(row, fields.language),
        last_modified=first_value(row, fields.last_modified),
        version=first_value(row, "_version_"),
        meta={name: value for name in _META if (value := first_value(row, name)) is not None},
        places=first_value(row, PLACES_FIELD) if field != "highlighting" else None,
    )


def snippets_of(reply: Mapping[str, Any], identifier: str, fields: Sequence[str]) -> str:
    """
    Return the first snippet of each of *fields*, joined, plain text; "" when no word was found in any.

    The same words cut from two fields come once. Tags of the highlighter are removed and its HTML entities resolved.
    """
    found = reply.get("highlighting")
    row = found.get(identifier) if isinstance(found, Mapping) else None
    texts: list[str] = []
    for name in fields if isinstance(row, Mapping) else ():
        marked = (first_value(row, name) if row is not None else None) or ""
        text = unescaped(marked.replace(CUT_START, "").replace(CUT_END, "")).strip()
        # The body is stored in two fields: of cuts from the same place only one is wanted.
        if text and not any(text in other or other in text for other in texts):
            texts.append(text)
    return JOINT.join(texts)


def page_of(reply: Mapping[str, Any], browse: Browse, schema: Schema, *, is_incomplete: bool) -> dict[str, object]:
    """
    Return Solr's own JSON of a plain search: no ACL field anywhere, and nothing that *browse* does not want.

    Raises:
        SearchUnavailable: the answer is not one of Solr's.
    """
    total, rows = hits_of(reply)
    response = {key: value for key, value in reply["response"].items() if key in ("numFoundExact", "maxScore")}
    header: dict[str, object] = {"status": 0, "QTime": int(took_ms(reply) or 0)}
    page: dict[str, object] = {
        "responseHeader": header | ({"partialResults": True} if is_incomplete else {}),
        "response": {"numFound": total, "start": reply["response"].get("start", 0), **response}
        | {"docs": [_shown(row, schema) for row in rows]},
    }
    if browse.wants_highlighting and isinstance(reply.get("highlighting"), Mapping):
        page["highlighting"] = {hit: _shown(row, schema) for hit, row in section(reply, "highlighting").items()}
    if browse.facet_fields and isinstance(reply.get("facet_counts"), Mapping):
        # A handler may count more, rights among it.
        counts = section(reply["facet_counts"], "facet_fields")
        wanted = {name: row for name, row in counts.items() if name in browse.facet_fields}
        page["facet_counts"] = {**_NO_COUNTS, "facet_fields": _shown(wanted, schema)}
    return page


def section(reply: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object at *key*, an empty one where there is none."""
    found = reply.get(key)
    return found if isinstance(found, Mapping) else {}


def _shown(row: object, schema: Schema) -> dict[str, object]:
    named = row.items() if isinstance(row, Mapping) else ()
    return {name: value for name, value in named if not (schema.is_acl(name) or name == PLACES_FIELD)}
