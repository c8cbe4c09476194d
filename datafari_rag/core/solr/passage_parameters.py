"""
Searches of a collection of passages as parameters for Solr, by the same rules as `core/solr/parameters.py`.

The user's filter is in `fq`, and in `preFilter` of the search for neighbours, which would otherwise spend its
places on passages that they may not see. Whatever that finds is looked up in the collection of documents under the same
filter, and a passage is read only when it was cut from the version that is found there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.access import Filter
from datafari_rag.core.evidence.parts import PARTS, SPREAD_WORTH
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.solr.handler_parameters import BOOSTS, PARSER, UNPROMOTED, local
from datafari_rag.core.solr.parameters import (
    MAX_CLAUSES,
    Params,
    escaped,
    filter_params,
    merged,
    one_of,
    restriction_params,
    usable_words,
    words_within,
)
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.vectors import Vector

CARRIED = ("title", "url", "language", "last_modified", "extension", "source")
"""What a passage carries of its document for those who read it."""


@dataclass(frozen=True, slots=True)
class PassageSchema:
    """
    What is known of a collection of passages.

    *vectors* is the field and *model* the mark of those that are searched, "" for words alone; *schema* the fields.
    *is_ours* says that `passages sync` keeps it, so that a passage knows its place in the document. *most* of its
    passages are read for one search.
    """

    vectors: str
    model: str
    schema: Schema
    is_ours: bool
    most: int = PARTS


def near_params(search: NearSearch, access: Filter, passages: PassageSchema, *, most: int) -> Params:
    """Return the parameters that find, among the *most* nearest passages that *access* lets through, the documents."""
    narrowed = restriction_params(search.restrictions, passages.schema, id_field="parent_doc")
    params = merged(filter_params(access, passages.schema), narrowed)
    queries = [*params.pop("fq", ())]
    if passages.is_ours:
        params["vectors_of"] = passages.model
        queries.append("{!term f=vector_model v=$vectors_of}")
    named = {f"near_{number}": query for number, query in enumerate(queries)}
    # Where Solr's own component filters, its filter is an fq that we do not know; a preFilter would override it.
    before = "" if access.mode == "plugin" else "".join(f" preFilter=${name}" for name in named)
    return {
        **UNPROMOTED,
        **params,
        **named,
        "q": f"{{!knn f={passages.vectors} topK={most}{before} v=$vector}}",
        "vector": spelled(search.vector),
        # The best passage of each document, after the nearest were taken.
        "fq": [*queries, "{!collapse field=parent_doc}"],
        "sort": "score desc,parent_doc asc",
        "rows": str(search.documents),
        "fl": ",".join(["parent_doc", "score", *(name for name in CARRIED if passages.schema.has(name))]),
    }


def parts_params(
    versions: Mapping[str, str], search: NearSearch, passages: PassageSchema, *, favour: Mapping[str, float]
) -> Params:
    """
    Return the parameters that find, by words and meaning, the best passages cut from exactly these *versions* by id.

    *favour* is what the passages of a document are worth by that alone. With them comes how many passages of each
    document are of its version, and how many there should be.
    """
    schema = passages.schema
    stemmed = schema.fields.content_prefix + search.language
    contents = schema.contents(search.language)
    own = ["embedded_content", *((stemmed,) if stemmed in contents else contents)]
    words = words_within(usable_words(search.words, search.language), MAX_CLAUSES // (len(own) + 1))
    of_these, named = one_of([*versions], "own", "parent_doc")
    parser = {**PARSER, **dict.fromkeys(BOOSTS, ""), "qf": " ".join(own), "pf2": "", "mm": "0", "tie": "0.0"}
    # A document that is named by a parameter of its own is a value, whatever characters are in its id.
    favoured = {
        f"favoured_{number}": doc_id for number, doc_id in enumerate(name for name in versions if favour.get(name))
    }
    worth = [f"if(exists(query($with_{name})),{favour[document_id]:.4g},0)" for name, document_id in favoured.items()]
    params: dict[str, str | Sequence[str]] = {
        **favoured,
        **{f"with_{name}": f"{{!term f=parent_doc v=${name}}}" for name in favoured},
        **UNPROMOTED,
        "versions": ",".join(versions.values()),
        "fq": ["{!terms f=parent_version v=$versions}"],
        "q": f"{{!bool filter=$own should=$sought should=$favoured should=$lead{' should=$near' * search.has_vector}}}",
        # The beginning of each document is always read: one of which nothing is known could not be ranked.
        "lead": "{!func v='if(exists(query($beginnings)),1000,0)'}",
        "beginnings": "chunk_index:[0 TO 0]",
        "favoured": f"{{!func v='sum({','.join(['0', *worth])})'}}",
        **named,
        "own": of_these,
        "sought": f"{{!edismax {local(parser)} v=$words}}",
        "words": " ".join(escaped(word) for word in words) or "-*:*",
        "sort": "score desc,id asc",
        "rows": str(passages.most),
        "fl": "d:parent_doc,v:parent_version,t:embedded_content,s:chunk_start" + ",c:$close" * search.has_vector,
        "json.facet": '{parents:{type:terms,field:parent_doc,limit:-1,facet:{wanted:"max(chunk_count)"}}}',
    }
    if search.has_vector:
        # Solr's closeness is (1 + cosine) / 2.
        params |= {
            "near": f"{{!func v='product({2 * SPREAD_WORTH / (search.spread or 1.0):.6g},$close)'}}",
            "close": f"if(exists(query($mine)),vectorSimilarity({passages.vectors},{spelled(search.vector)}),0)",
            "mine": "{!term f=vector_model v=$model}",
            "model": passages.model,
        }
    return params


def spelled(vector: Vector) -> str:
    """Return *vector* as Solr reads it."""
    return f"[{','.join(f'{value:.7g}' for value in vector)}]"
