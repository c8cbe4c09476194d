from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.access import ANONYMOUS, Filter, User, filter_for
from datafari_rag.core.ask import Restriction
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.solr.parameters import ids_params
from datafari_rag.core.solr.passage_parameters import (
    PassageSchema,
    near_params,
    parts_params,
)
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.vectors import unit_vector

SEARCH = NearSearch(unit_vector([3.0, 4.0]), "key", 5, words=("ferry", "${tokens}", "{!x}"), spread=0.05)
OURS = PassageSchema("vector_2", "mark", Schema(), is_ours=True)
ANN: Filter = filter_for(User("ann", frozenset({"s1", "s2"})), mode="tokens", anonymous="public")
PLUGIN: Filter = filter_for(User("ann"), mode="plugin", anonymous="public")
OPEN: Filter = filter_for(ANONYMOUS, mode="none", anonymous="public")


def test_the_filter_stands_in_fq_and_in_pre_filter_alike() -> None:
    params = near_params(SEARCH, ANN, OURS, most=50)
    queries = [query for query in params["fq"] if "collapse" not in query]

    assert len(queries) == 4 and [params[f"near_{n}"] for n in range(4)] == queries
    assert params["q"] == (
        "{!knn f=vector_2 topK=50 preFilter=$near_0 preFilter=$near_1 preFilter=$near_2 preFilter=$near_3 v=$vector}"
    )
    assert params["vector"] == "[0.6,0.8]" and params["tokens"] == "s1\x1fs2"


def test_restrictions_narrow_before_the_nearest_are_taken() -> None:
    params = near_params(replace(SEARCH, restrictions=(Restriction("source", "x"),)), OPEN, OURS, most=50)

    assert "preFilter=$near_1" in str(params["q"]) and params["restriction_0_0_value"] == "x"


def test_where_solrs_own_component_filters_no_pre_filter_stands_above_it() -> None:
    params = near_params(SEARCH, PLUGIN, OURS, most=50)

    assert "preFilter" not in str(params["q"]) and params["AuthenticatedUserName"] == "ann"


def test_passages_of_datafari_have_no_mark_of_a_model() -> None:
    params = near_params(SEARCH, OPEN, replace(OURS, is_ours=False), most=50)

    assert params["fq"] == ["{!collapse field=parent_doc}"] and "vectors_of" not in params


def test_documents_are_looked_up_by_ids_that_are_values() -> None:
    params = ids_params(["a b", "c\x1fd", "{!x}"], ANN, Schema(), ["exactContent"])

    # What holds the separator of the others is a value of its own.
    assert {"a b\x1f{!x}", "c\x1fd"} <= set(map(str, params.values())) and params["rows"] == "3"
    assert len(params["fq"]) == 3 and "exactContent" in str(params["fl"])


@pytest.mark.parametrize("spread", [0.05, None])
def test_the_best_parts_are_found_by_words_and_meaning_and_nothing_is_read_as_syntax(spread: float | None) -> None:
    params = parts_params({"a": "1", "b": "2"}, replace(SEARCH, spread=spread), OURS, favour={})

    assert params["versions"] == "1,2" and params["fq"] == ["{!terms f=parent_version v=$versions}"]
    assert params["words"] == r"ferry \$\{tokens\} \{\!x\}"
    assert " qf='embedded_content content_en' " in params["sought"]
    assert params["near"] == f"{{!func v='product({28 if spread else 1.4:g},$close)'}}"


def test_a_question_without_words_is_searched_for_by_meaning_alone() -> None:
    schema = Schema(kinds={"embedded_content": "text", "content_fr": "text"})
    params = parts_params({"a": "1"}, replace(SEARCH, words=()), replace(OURS, schema=schema), favour={})

    assert params["words"] == "-*:*" and " qf='embedded_content content_fr' " in params["sought"]


def test_words_alone_compare_no_vectors_and_documents_that_come_first_are_named_by_values() -> None:
    plain = replace(SEARCH, vector=unit_vector([1.0])[:0])
    params = parts_params({"a": "1", "{!x}": "2"}, plain, OURS, favour={"a": 4.0, "{!x}": 2.5})

    assert not {"near", "close", "model"} & {*params} and "$near" not in str(params["q"])
    assert (params["favoured_0"], params["favoured_1"]) == ("a", "{!x}")
    assert "if(exists(query($with_favoured_1)),2.5,0)" in str(params["favoured"])
