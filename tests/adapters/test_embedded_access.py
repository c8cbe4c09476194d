"""No user sees a document without the right to it: the golden table of ManifoldCF's component, and related cases."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from tantivy import Query, Searcher

from datafari_rag.adapters.embedded import queries
from datafari_rag.adapters.embedded.queries import restriction_query, rights_query, values_in
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.schema import opened
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.core.access import ACL_FIELDS, Filter, User, filter_for, is_visible
from datafari_rag.core.ask import Restriction
from datafari_rag.core.errors import BadSetting, SearchUnavailable
from datafari_rag.core.search_request import Browse, Search, Step

GOLDEN: Mapping[str, Mapping[str, list[str]]] = {
    "open": {},
    "allow doc s1": {"allow_token_document": ["s1"]},
    "allow doc s3": {"allow_token_document": ["s3"]},
    "allow doc s1, deny doc s2": {"allow_token_document": ["s1"], "deny_token_document": ["s2"]},
    "deny doc s3 only": {"deny_token_document": ["s3"]},
    "allow share s1, allow doc s3": {"allow_token_share": ["s1"], "allow_token_document": ["s3"]},
    "allow share s1, allow doc s1": {"allow_token_share": ["s1"], "allow_token_document": ["s1"]},
    "allow doc s1, parent s9 not s1": {
        "allow_token_document": ["s1"],
        "allow_token_parent": ["s9"],
        "deny_token_parent": ["s1"],
    },
    "allow doc s1, deny doc DEAD_AUTHORITY": {
        "allow_token_document": ["s1"],
        "deny_token_document": ["DEAD_AUTHORITY"],
    },
}

SEEN = {
    "anonymous": ((), {"open"}),
    "ann": (
        ("s1", "s2"),
        {"open", "allow doc s1", "allow share s1, allow doc s1", "allow doc s1, deny doc DEAD_AUTHORITY"},
    ),
    "bob": (("s3",), {"open", "allow doc s3"}),
    "eve": ((), {"open"}),
    "tokens s1 and s3": (
        ("s1", "s3"),
        {*GOLDEN} - {"deny doc s3 only", "allow doc s1, parent s9 not s1"},
    ),
    "a user unknown to the authority": (("DEAD_AUTHORITY",), {"open"}),
}

ODD_TOKENS = [
    "a b",
    "a,b",
    "*",
    "[* TO *]",
    "allow:x",
    "x' OR 1",
    'x"y',
    "é",
    "e\u0301",
    "\\",
    "a\x1fb",
    "A B",
    "🔑",
    "x" * 4000,
]


def access(*tokens: str) -> Filter:
    return filter_for(User("somebody", frozenset(tokens)), mode="tokens", anonymous="public")


def indexed(directory: Path, documents: list[dict[str, object]]) -> EmbeddedRetriever:
    with closing(EmbeddedWriter(directory)) as writer:
        writer.add(documents)
        writer.commit()
    return EmbeddedRetriever(directory)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedRetriever:
    documents: list[dict[str, object]] = [
        {"id": name, "title": name, "exactContent": "pump valve", "language": "en", "extension": "x", **acl}
        for name, acl in GOLDEN.items()
    ]
    return indexed(tmp_path_factory.mktemp("golden"), documents)


@pytest.mark.parametrize("user", SEEN)
def test_each_user_sees_the_documents_of_the_golden_table_and_no_other(golden: EmbeddedRetriever, user: str) -> None:
    tokens, wanted = SEEN[user]
    found = golden.search(Search("pump", Step("asked", ("pump",)), 100), access(*tokens))
    assert {document.id for document in found.documents} == wanted
    assert found.total == len(wanted)


@pytest.mark.parametrize("user", SEEN)
def test_browse_counts_and_facets_only_what_the_user_sees(golden: EmbeddedRetriever, user: str) -> None:
    tokens, wanted = SEEN[user]
    page = golden.browse(Browse(None, rows=100, facet_fields=("extension", *ACL_FIELDS)), access(*tokens))
    response, counts = page["response"], page["facet_counts"]
    assert isinstance(response, dict) and isinstance(counts, dict)
    assert {row["id"] for row in response["docs"]} == wanted
    assert response["numFound"] == len(wanted)
    assert counts["facet_fields"] == {"extension": ["x", len(wanted)]}


@pytest.mark.parametrize("user", SEEN)
def test_fetch_finds_a_hidden_document_no_more_than_an_absent_one(golden: EmbeddedRetriever, user: str) -> None:
    tokens, wanted = SEEN[user]
    fetched = {name for name in GOLDEN if golden.fetch(name, "exactContent", access(*tokens)) is not None}
    assert fetched == wanted
    assert golden.fetch("no such document", "exactContent", access(*tokens)) is None


@pytest.mark.parametrize("name", ACL_FIELDS)
def test_rights_are_never_returned_searched_sorted_or_filtered_on(golden: EmbeddedRetriever, name: str) -> None:
    everything = access("s1", "s2", "s3")
    page = golden.browse(Browse(None, fields=(name, "id")), everything)
    narrowed = golden.browse(Browse(None, restrictions=(Restriction(name, value="s1"),)), everything)
    sought = golden.browse(Browse(f"{name}:s1 s1 __nosecurity__"), everything)
    assert all(row.keys() == {"id"} for row in page["response"]["docs"])  # type: ignore[index]
    assert narrowed["response"]["numFound"] == 0  # type: ignore[index]
    assert sought["response"]["numFound"] == 0  # type: ignore[index]
    assert golden.fetch("open", name, everything) is None


def test_an_excluded_restriction_takes_away_and_never_adds(golden: EmbeddedRetriever) -> None:
    without = Browse(None, rows=100, restrictions=(Restriction("extension", value="y", is_excluded=True),))
    page = golden.browse(without, access("s3"))
    assert {row["id"] for row in page["response"]["docs"]} == {"open", "allow doc s3"}  # type: ignore[index]


def test_the_filter_leaves_the_scores_as_they_are(golden: EmbeddedRetriever) -> None:
    search = Search("pump", Step("asked", ("pump",)), 100)
    unfiltered = golden.search(search, filter_for(User(), mode="none", anonymous="public"))
    scores = {document.id: document.score for document in unfiltered.documents}
    for document in golden.search(search, access("s1", "s3")).documents:
        assert document.score == scores[document.id]


def test_mode_plugin_is_refused(golden: EmbeddedRetriever) -> None:
    plugin = filter_for(User("ann", frozenset({"s1"})), mode="plugin", anonymous="public")
    with pytest.raises(BadSetting, match=r"security\.mode"):
        golden.search(Search("pump", Step("asked", ("pump",)), 1), plugin)
    with pytest.raises(BadSetting):
        golden.browse(Browse(None), plugin)
    with pytest.raises(BadSetting):
        golden.fetch("open", "exactContent", plugin)


def test_a_token_is_a_raw_term_whatever_characters_it_has(tmp_path: Path) -> None:
    documents: list[dict[str, object]] = [
        {"id": str(number), "exactContent": "pump", "allow_token_document": [token]}
        for number, token in enumerate(ODD_TOKENS)
    ]
    retriever = indexed(tmp_path, documents)
    for number, token in enumerate(ODD_TOKENS):
        page = retriever.browse(Browse(None), access(token))
        assert [row["id"] for row in page["response"]["docs"]] == [str(number)], token  # type: ignore[index]


def test_a_token_that_cannot_be_written_opens_nothing(golden: EmbeddedRetriever) -> None:
    assert golden.browse(Browse(None), access("\ud800"))["response"]["numFound"] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    "rights",
    [[7], {"a": "b"}, 5, ["x" * 5000], ["\ud800"]],
    ids=["a number inside", "an object", "a number", "too long a token", "a token that cannot be written"],
)
def test_a_document_whose_rights_are_not_understood_is_refused_and_never_open(tmp_path: Path, rights: object) -> None:
    with closing(EmbeddedWriter(tmp_path)) as writer, pytest.raises(SearchUnavailable):
        writer.add([{"id": "x", "exactContent": "pump", "deny_token_document": rights}])


def acls(seed: int, number: int) -> Iterator[dict[str, list[str]]]:
    rng = random.Random(seed)
    values = ["__nosecurity__", "s1", "s2", "s3", "x y"]
    for _ in range(number):
        yield {
            field: rng.sample(values, rng.choice((0, 1, 1, 2))) for field in rng.sample(ACL_FIELDS, rng.randrange(4))
        }


def test_random_rights_are_read_as_the_rule_reads_them(tmp_path: Path) -> None:
    rights = dict(enumerate(acls(1, 400)))
    documents: list[dict[str, object]] = [
        {"id": str(number), "exactContent": "pump", **acl} for number, acl in rights.items()
    ]
    retriever = indexed(tmp_path, documents)
    for size in range(4):
        for tokens in itertools.combinations(("s1", "s2", "s3", "x y"), size):
            found = retriever.search(Search("pump", Step("asked", ("pump",)), 1000), access(*tokens))
            wanted = {str(number) for number, acl in rights.items() if is_visible(acl, frozenset(tokens))}
            assert {document.id for document in found.documents} == wanted, tokens


class Listing:
    """A searcher that counts the values it lists, and lists no terms of the whole index."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self.values = 0

    def aggregate(self, query: Query, wanted: dict[str, Any]) -> Any:
        found = self._searcher.aggregate(query, wanted)
        self.values += len(found["values"]["buckets"]) + found["values"]["sum_other_doc_count"]
        return found


def listed_for(tmp_path: Path, hidden: int) -> tuple[int, list[str]]:
    """Return how many values a range lists with *hidden* documents beside three visible ones, and what it finds."""
    visible = [{"id": name, "exactContent": "pump", "source": name} for name in "abc"]
    others = [
        {"id": f"h{number}", "exactContent": "pump", "source": f"b{number}", "allow_token_document": ["s9"]}
        for number in range(hidden)
    ]
    retriever = indexed(tmp_path, [*visible, *others])
    index = opened(tmp_path)
    listing = Listing(index.searcher())
    within = rights_query(access(), index.schema, index.searcher())
    assert within is not None
    values_in("source", within, cast("Searcher", listing))
    found: Any = retriever.browse(Browse(None, restrictions=(Restriction("source", low="b", high="d"),)), access())
    return listing.values, [row["id"] for row in found["response"]["docs"]]


def test_a_range_costs_the_same_whatever_is_hidden(tmp_path: Path) -> None:
    costs = [listed_for(tmp_path / str(hidden), hidden) for hidden in (0, 1, 50, 2000)]

    assert costs == [(3, ["b", "c"])] * 4


def test_a_range_over_more_values_than_are_listed_at_a_time_finds_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "LISTED_VALUES", 7)
    retriever = indexed(tmp_path, [{"id": f"d{n:03}", "exactContent": "pump", "source": f"{n:03}"} for n in range(50)])

    found: Any = retriever.browse(Browse(None, restrictions=(Restriction("source", low="010", high="029"),)), access())

    assert found["response"]["numFound"] == 20


def test_a_hundred_ranges_list_the_values_of_a_field_once(tmp_path: Path) -> None:
    index_of = indexed(tmp_path, [{"id": name, "exactContent": "pump", "source": name} for name in "abc"])
    looked: list[str] = []

    def listed(field: str) -> list[str]:
        looked.append(field)
        return ["a", "b", "c"]

    schema = opened(tmp_path).schema
    ranges = [Restriction("source", low="a", high=f"b{number}") for number in range(100)]
    values_of = cache(listed)
    assert len([restriction_query(one, schema, values_of) for one in ranges]) == 100
    assert looked == ["source"]
    found: Any = index_of.browse(Browse(None, restrictions=tuple(ranges)), access())
    assert found["response"]["numFound"] == 2
