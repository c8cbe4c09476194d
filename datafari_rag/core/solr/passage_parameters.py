"""
Searches of a collection of passages as parameters for Solr, beside `core/solr/parameters.py` and by the same rules.

The user's filter stands in `fq`, and in `preFilter` of the search for neighbours, which would otherwise take its places
with passages that he may not see. Whatever that finds is looked up again in the collection of documents under the same
filter. What a passage says is read only below its document, which was just found under that filter, and only when it
was cut from the very version that was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datafari_rag.core.access import Filter
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.meaning.vectors import Vector
from datafari_rag.core.query.search_request import Search
from datafari_rag.core.solr.parameters import (
    SEPARATOR,
    Params,
    document_fields,
    escaped,
    filter_params,
    merged,
    restriction_params,
    usable_words,
)
from datafari_rag.core.solr.schema import Schema

QUIET: Params = {"echoParams": "none", "indent": "false", "defType": "lucene", "spellcheck": "false"}

PARTS = 6
"""How many passages of each document are read."""

SPREAD_WORTH = 0.7
"""What nearness by one spread of the model counts beside one word of the question, in the choice of these."""

_LONE = ("\ud800", "\udfff")


@dataclass(frozen=True, slots=True)
class PassageSchema:
    """
    What is known of a collection of passages.

    *name* is the collection's, *vectors* its field, *schema* its fields. *is_ours* says that `passages sync` keeps it,
    so that a passage knows its place in the document; *is_cloud* that Solr is a SolrCloud.
    """

    name: str
    vectors: str
    schema: Schema
    is_ours: bool
    is_cloud: bool = False


def near_params(search: NearSearch, access: Filter, passages: PassageSchema, *, most: int) -> Params:
    """Return the parameters that find the *most* nearest passages that *access* lets through."""
    rights, narrowed = filter_params(access, passages.schema), restriction_params(search.restrictions, passages.schema)
    params = merged(rights, narrowed)
    queries = [*params.pop("fq", ())]
    if passages.is_ours:
        params["vectors_of"] = search.model_key
        queries.append("{!term f=vector_model v=$vectors_of}")
    named = {f"near_{number}": query for number, query in enumerate(queries)}
    # Where Solr's own component filters, its filter is an fq that we do not know; a preFilter would stand above it.
    before = "" if access.mode == "plugin" else "".join(f" preFilter=${name}" for name in named)
    return {
        **QUIET,
        **params,
        **named,
        "q": f"{{!knn f={passages.vectors} topK={most}{before} v=$vector}}",
        "vector": spelled(search.vector),
        **({"fq": queries} if queries else {}),
        "rows": str(most),
        "fl": "parent_doc,score",
    }


def parents_params(ids: Sequence[str], access: Filter, schema: Schema, *, text: str) -> dict[str, str | list[str]]:
    """Return the parameters that find the documents *ids* that *access* lets through, with the field *text*."""
    known = [one for one in ids if SEPARATOR not in one and not any(_LONE[0] <= char <= _LONE[1] for char in one)]
    params = merged(filter_params(access, schema), QUIET)
    return params | {
        "q": f'{{!terms f={schema.fields.id} separator="{SEPARATOR}" v=$documents}}',
        "documents": SEPARATOR.join(known),
        "rows": str(len(known)),
        "fl": ",".join(document_fields(schema, text)),
    }


def parts_params(
    ids: Sequence[str], near: NearSearch, access: Filter, *, search: Search, collections: tuple[Schema, PassageSchema]
) -> Params:
    """
    Return the parameters that find the documents *ids*, each with its passages that are best by words and meaning.

    *near.spread* is that of the model. Each document's passages come with it, found by a search below it.
    """
    schema, passages = collections
    params = parents_params(ids, access, schema, text="")
    where = "" if passages.is_cloud else f" fromIndex={passages.name}"
    params["fl"] = f"{params['fl']},passages:[subquery{where}]"
    words = usable_words(search.step.words, search.language)
    closeness = f"vectorSimilarity({passages.vectors},{spelled(near.vector)})"
    below: dict[str, str] = {
        **{name: str(value) for name, value in QUIET.items()},
        "expandMacros": "false",
        "q": "{!bool filter=$own filter=$same should=$sought should=$near}",
        "own": f"{{!term f=parent_doc v=$row.{schema.fields.id}}}",
        "same": "{!term f=parent_version v=$row._version_}",
        "sought": "{!edismax qf=$fields v=$words mm=0 uf=-* sow=true q.op=OR tie=0.0 lowercaseOperators=false}",
        "fields": " ".join(_fields(passages.schema, search.language)),
        # Solr's closeness is (1 + cosine) / 2.
        "near": f"{{!func v='product({2 * SPREAD_WORTH / (near.spread or 1.0):.6g},$close)'}}",
        "close": f"if(exists(query($mine)),{closeness},0)",
        "mine": "{!term f=vector_model v=$model}",
        "model": near.model_key,
        "words": " ".join(escaped(word) for word in words) or "-*:*",
        "rows": str(PARTS),
        "fl": "embedded_content,chunk_start,chunk_count,close:$close",
    }
    if passages.is_cloud:
        below["collection"] = passages.name
        below["shards.qt"] = "/select"
    return params | {f"passages.{name}": value for name, value in below.items()}


def spelled(vector: Vector) -> str:
    """Return *vector* as Solr reads it."""
    return f"[{','.join(f'{value:.7g}' for value in vector)}]"


def _fields(schema: Schema, language: str) -> list[str]:
    own = [name for name in schema.contents(language) if name == schema.fields.content_prefix + language]
    return ["embedded_content", *(own or schema.contents(language))]
