"""The whitelist of search/select: what counts, what is ignored, and that nothing else gets through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.ask import Restriction
from datafari_rag.core.errors import BadRequest, TooManyValues
from datafari_rag.core.query.select_parameters import (
    MAX_START,
    MAX_VALUES,
    READERS,
    SelectParameters,
    browse_of,
    forged_names,
    identity_attempts,
    merged,
    read,
)
from datafari_rag.core.search_request import Browse

FACETS = ("source", "extension", "last_modified")
NOTHING = SelectParameters()


def decided(**values: object) -> SelectParameters:
    """Read parameters given as text or list; a dot in a name is written with two underscores."""
    lists = {name.replace("__", "."): value if isinstance(value, list) else [value] for name, value in values.items()}
    return read(lists, facets=FACETS)


TAKEN = {
    "q is the text": ({"q": "vacation days"}, replace(NOTHING, text="vacation days")),
    "q keeps its white space": ({"q": " a  b "}, replace(NOTHING, text=" a  b ")),
    "prompt replaces q": ({"prompt": "why"}, replace(NOTHING, text="why")),
    "q goes before prompt": (
        {"prompt": "why", "q": "how"},
        replace(NOTHING, text="how"),
    ),
    "a blank q leaves the word to prompt": (
        {"q": " ", "prompt": "why"},
        replace(NOTHING, text="why"),
    ),
    "the first q counts": ({"q": ["a", "b"]}, replace(NOTHING, text="a")),
    "action as sent": ({"action": " rag "}, replace(NOTHING, action="rag")),
    "format in any case": (
        {"format": "BulletPoint"},
        replace(NOTHING, answer_format="bulletpoint"),
    ),
    "line breaks in any case": (
        {"linebreaks": "HTML"},
        replace(NOTHING, linebreaks="html"),
    ),
    "empty line breaks": ({"linebreaks": ""}, NOTHING),
    "an empty format": ({"format": ""}, NOTHING),
    "lang": ({"lang": "fr-CH"}, replace(NOTHING, language="fr")),
    "an empty lang": ({"lang": ""}, NOTHING),
    "stream": ({"stream": "True"}, replace(NOTHING, is_streamed=True)),
    "trace off": ({"trace": "false"}, NOTHING),
    "id is a session": ({"id": "s-1"}, NOTHING),
    "start": ({"start": "20"}, replace(NOTHING, start=20, for_search=("start",))),
    "rows": ({"rows": "0"}, replace(NOTHING, rows=0, for_search=("rows",))),
    "rows over the limit": ({"rows": "101"}, replace(NOTHING, rows=100, for_search=("rows",))),
    "sort": ({"sort": "title asc"}, replace(NOTHING, sort=("title", False), for_search=("sort",))),
    "sort by score, best first, is the usual": ({"sort": "score desc"}, replace(NOTHING, for_search=("sort",))),
    "sort by score alone": ({"sort": "score"}, replace(NOTHING, for_search=("sort",))),
    "sort by score, worst first": (
        {"sort": "score asc"},
        replace(NOTHING, sort=("score", False), for_search=("sort",)),
    ),
    "sort by date": (
        {"sort": "last_modified DESC"},
        replace(NOTHING, sort=("last_modified", True), for_search=("sort",)),
    ),
    "of two known orders the first": (
        {"sort": "title desc, score desc"},
        replace(NOTHING, sort=("title", True), ignored=("sort",), for_search=("sort",)),
    ),
    "fq": ({"fq": "source:hr"}, replace(NOTHING, restrictions=(Restriction("source", value="hr"),))),
    "two fq": (
        {"fq": ["source:hr", "extension:pdf"]},
        replace(NOTHING, restrictions=(Restriction("source", value="hr"), Restriction("extension", value="pdf"))),
    ),
    "a blank fq is none": ({"fq": ["", " "]}, NOTHING),
    "facets": (
        {"facet": "true", "facet__field": ["source", "extension", "source"]},
        replace(NOTHING, facet_fields=("source", "extension"), for_search=("facet", "facet.field")),
    ),
    "facet fields without facet=true count nothing": (
        {"facet__field": "source"},
        replace(NOTHING, for_search=("facet.field",)),
    ),
    "hl": ({"hl": "on"}, replace(NOTHING, wants_highlighting=True, for_search=("hl",))),
    "fl by comma and by space": (
        {"fl": "id,title url"},
        replace(NOTHING, fields=("id", "title", "url"), for_search=("fl",)),
    ),
    "fl of everything": ({"fl": "*"}, replace(NOTHING, for_search=("fl",))),
}


@pytest.mark.parametrize(("values", "wanted"), TAKEN.values(), ids=TAKEN.keys())
def test_what_fits_is_taken(values: dict[str, object], wanted: SelectParameters) -> None:
    assert decided(**values) == wanted


IGNORED = {
    "a name that is not in the list": ("debugQuery", "true"),
    "another handler": ("qt", "/admin"),
    "the component's switch": ("mcf", "false"),
    "another user's name": ("AuthenticatedUserName", "root"),
    "another user's tokens": ("UserTokens", "s1"),
    "other shards": ("shards", "evil:8983/solr"),
    "a query-parser": ("defType", "lucene"),
    "local parameters in fq": ("fq", "{!terms f=allow_token_document}s1"),
    "an fq outside the facets": ("fq", "title:x"),
    "an fq on an ACL field": ("fq", "allow_token_document:s1"),
    "an fq of everything": ("fq", "*:*"),
    "a facet outside the facets": ("facet.field", "title"),
    "a facet on an ACL field": ("facet.field", "deny_token_share"),
    "an unknown sort": ("sort", "url asc"),
    "a sort on an ACL field": ("sort", "allow_token_document asc"),
    "a known sort before an unknown one": ("sort", "score desc, allow_token_document asc"),
    "a sort by function": ("sort", "query({!v=x}) desc"),
    "an unknown direction": ("sort", "title up"),
    "no sort": ("sort", ""),
    "negative rows": ("rows", "-1"),
    "rows that are no number": ("rows", "ten"),
    "rows in other digits": ("rows", "\u0661"),
    "a start too deep": ("start", str(MAX_START + 1)),
    "a start that is no number": ("start", "1_000"),
    "a flag that is neither": ("stream", "maybe"),
    "a format that is none": ("format", "haiku"),
    "line breaks that are none": ("linebreaks", "<br>"),
    "a language that is none": ("lang", "../../etc"),
    "an ACL field in fl": ("fl", "allow_token_document"),
    "an ACL field under another name in fl": ("fl", "x:allow_token_document"),
    "a pattern in fl": ("fl", "allow*"),
    "a transformer in fl": ("fl", "[explain]"),
    "a function in fl": ("fl", "field(allow_token_document)"),
}


@pytest.mark.parametrize(("name", "value"), IGNORED.values(), ids=IGNORED.keys())
def test_what_does_not_fit_changes_nothing_and_is_named(name: str, value: str) -> None:
    with_it = read({"q": ["x"], name: [value]}, facets=FACETS)
    assert name in with_it.ignored
    assert replace(with_it, ignored=(), for_search=()) == replace(NOTHING, text="x")


def test_a_part_that_does_not_fit_leaves_the_other_part() -> None:
    some = decided(fq=["source:hr", "nope:1"], fl="id,allow_token_share", facet="true", facet__field=["source", "id"])
    assert some.restrictions == (Restriction("source", value="hr"),)
    assert some.fields == ("id",)
    assert some.facet_fields == ("source",)
    assert some.ignored == ("fq", "facet.field", "fl")


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_name_without_any_value_decides_nothing(name: str) -> None:
    empty = read({name: []}, facets=FACETS)
    assert replace(empty, ignored=(), for_search=()) == NOTHING


def test_acl_fields_are_refused_even_as_facets_and_under_the_schemas_own_names() -> None:
    values = {
        "fq": ["acl_s:x", "allow_token_document:y"],
        "facet": ["true"],
        "facet.field": ["acl_s"],
        "fl": ["acl_s,id"],
    }
    found = read(values, facets=("acl_s", "allow_token_document"), acl_fields=("acl_s",))
    assert (found.restrictions, found.facet_fields, found.fields) == ((), (), ("id",))


MANY = {
    "fl in one value": ("fl", lambda n: [",".join(f"f{i}" for i in range(n))]),
    "fl in many values": ("fl", lambda n: [f"f{i}" for i in range(n)]),
    "fl in some values of several names": ("fl", lambda n: [f"a{i},b{i}" for i in range(n // 2)] + ["c"] * (n % 2)),
    "the same name in fl": ("fl", lambda n: [" id,\t" * n]),
    "fq": ("fq", lambda n: [f"source:{i}" for i in range(n)]),
    "fq that does not fit": ("fq", lambda n: ["nope:1"] * n),
    "facet.field": ("facet.field", lambda n: ["source"] * n),
    "sort": ("sort", lambda n: [",".join(["title"] * n)]),
}


@pytest.mark.parametrize(("name", "values_of"), MANY.values(), ids=MANY.keys())
def test_so_many_values_are_taken_and_no_more(name: str, values_of: Callable[[int], list[str]]) -> None:
    read({name: values_of(MAX_VALUES)}, facets=FACETS)
    with pytest.raises(TooManyValues) as caught:
        read({name: values_of(MAX_VALUES + 1)}, facets=FACETS)
    assert caught.value.reason == f"Too many values of {name}: at most {MAX_VALUES}."
    assert caught.value.field == name


@pytest.mark.parametrize("name", ["fq", "fl"])
def test_what_is_blank_is_no_value(name: str) -> None:
    assert read({name: ["", " "] * 10}, facets=FACETS).ignored == ()


def test_names_of_strangers_are_short_few_and_once_each() -> None:
    found = read({"x" * 1000: ["1"], "x" * 999: ["2"], **{f"n{i}": ["1"] for i in range(500)}}, facets=())
    assert len(found.ignored) <= 40
    assert found.ignored.count("x" * 60) == 1


def test_the_query_goes_before_the_form() -> None:
    both = merged({"q": ["a"], "fq": ["source:x"]}, {"q": ["b"], "fq": ["source:y"], "lang": ["fr"]})
    found = read(both, facets=FACETS)
    assert (found.text, found.language, len(found.restrictions)) == ("a", "fr", 2)


@pytest.mark.parametrize(
    "text",
    ["source:(a b)", 'source:"a', "source:", "source:" + "a" * 10_000, "source:a\nb", "source:\ud800",
     "last_modified:{a TO b}", "source:hr AND source:it", "source:hr OR extension:pdf", "{!terms f=source}hr",
     "nope:1 AND source:hr", "source:équipe édition", "(source:a", "source:a)", "+-source:a"],
)  # fmt: skip
def test_a_filter_on_a_known_field_that_cannot_be_read_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read({"fq": ["extension:pdf", text]}, facets=FACETS)
    assert caught.value.field == "fq"
    assert any(f"on {name} cannot" in caught.value.reason for name in FACETS)


def test_the_tags_of_datafaris_pages_are_read_over_in_facets() -> None:
    assert decided(facet="true", facet__field=["{!ex=source}source"]).facet_fields == ("source",)


def test_attempts_to_be_somebody_else_are_counted() -> None:
    names = ["mcf", "AuthenticatedUserName_7", "AuthenticatedUserDomain", "UserTokens", "debugQuery", "fq"]
    assert identity_attempts(names) == 4


FORGED = {
    "nothing": ((), None, ()),
    "in the query": (("q", "mcf", "AuthenticatedUserName_3"), None, ("mcf", "AuthenticatedUserName_3")),
    "in the body": ((), {"messages": [], "UserTokens": ["s1"]}, ("UserTokens",)),
    "in the context": ((), {"context": {"auth_claims": {"oid": "root"}}}, ("auth_claims",)),
    "in the overrides": ((), {"context": {"overrides": {"shards": "x", "top": 3}}}, ("shards",)),
    "once each": (("mcf",), {"mcf": 1, "context": {"mcf": 2}}, ("mcf",)),
    "session state is the client's own": ((), {"session_state": {"user": "root"}}, ()),
    "in the arguments of a tool": ((), {"params": {"arguments": {"mcf": 1}, "_meta": {"qt": "x"}}}, ("mcf", "qt")),
    "session state of a context": ((), {"context": {"session_state": {"mcf": 1}}}, ()),
    "deeper than any name": ((), {"a": {"b": {"c": {"mcf": 1}}}}, ()),
    "a body of another form": ((), [1, {"mcf": 1}], ()),
    "a context of another form": ((), {"context": "mcf"}, ()),
}


@pytest.mark.parametrize(("query", "body", "wanted"), FORGED.values(), ids=FORGED.keys())
def test_forged_names_are_found_wherever_a_chat_has_names(
    query: tuple[str, ...], body: object, wanted: tuple[str, ...]
) -> None:
    assert forged_names(query, body) == wanted


BROWSES = {
    "no words": ({}, Browse(text=None)),
    "the star query": ({"q": "*:*"}, Browse(text=None)),
    "words and all the rest": (
        {
            "q": "a",
            "start": "5",
            "rows": "3",
            "sort": "title desc",
            "fq": "source:b",
            "facet": "true",
            "facet__field": "source",
            "hl": "true",
            "fl": "id",
        },
        Browse(
            text="a",
            start=5,
            rows=3,
            sort=("title", True),
            restrictions=(Restriction("source", value="b"),),
            facet_fields=("source",),
            wants_highlighting=True,
            fields=("id",),
        ),
    ),
}


@pytest.mark.parametrize(("values", "wanted"), BROWSES.values(), ids=BROWSES.keys())
def test_a_plain_search_is_made_of_the_parameters(values: dict[str, object], wanted: Browse) -> None:
    assert browse_of(decided(**values)) == wanted


NAMES = st.one_of(st.sampled_from([*READERS, "mcf", "UserTokens", "shards"]), st.text(max_size=30))
VALUES = st.one_of(
    st.text(max_size=40),
    st.builds("{}:{}".format, st.sampled_from([*FACETS, *ACL_FIELDS]), st.text(max_size=20)),
    st.lists(st.sampled_from([*ACL_FIELDS, "id", "*", "score"]), max_size=4).map(",".join),
)


@given(st.dictionaries(NAMES, st.lists(VALUES, max_size=3), max_size=6))
def test_whatever_is_sent_no_acl_field_and_no_unlisted_field_gets_through(values: dict[str, list[str]]) -> None:
    try:
        found = read(values, facets=(*FACETS, *ACL_FIELDS))
    except BadRequest as refused:
        assert refused.field == "fq" and not any(name in refused.reason for name in ACL_FIELDS)
        return
    assert all(one.field in FACETS for one in found.restrictions)
    assert set(found.facet_fields) <= set(FACETS)
    assert not set(found.fields or ()) & set(ACL_FIELDS)
    assert found.sort is None or found.sort[0] in ("score", "title", "last_modified")
    assert 0 <= found.rows <= 100
    assert 0 <= found.start <= MAX_START
