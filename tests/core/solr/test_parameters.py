from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.access import Filter, User, filter_for
from datafari_rag.core.ask import Restriction
from datafari_rag.core.errors import UnfitValue
from datafari_rag.core.search_request import MARK_START, Browse, Fields, Search, Step
from datafari_rag.core.solr.parameters import (
    CUT_START,
    MAX_WORD_CHARS,
    MAX_WORDS,
    WEIGHTS,
    browse_params,
    escaped,
    filter_params,
    ids_params,
    restriction_params,
    search_params,
    searched_fields,
    usable_words,
    words_params,
    words_within,
)
from datafari_rag.core.solr.schema import Schema

SCHEMA = Schema()
LEVELS = ("share", "parent", "document")


def who(*tokens: str, mode: Any = "tokens", name: str | None = "ann") -> Filter:
    return filter_for(User(name, frozenset(tokens)), mode=mode, anonymous="public")


def asked(*words: str, **more: Any) -> Search:
    return Search(
        "the question", Step("asked", words, more.pop("operator", "AND"), more.pop("least", None)), 10, **more
    )


def test_documents_are_found_by_their_ids_under_the_filter_and_never_by_solrs_own_parameter() -> None:
    """`ids` is the second pass of a distributed search, which returns documents whatever the filter says."""
    params = browse_params(Browse(None, rows=2, ids=("a", "{!x}b\ud800", "c")), who(), SCHEMA)
    assert params["fq"] == [*filter_params(who(), SCHEMA)["fq"], "{!bool should=$restriction_0_ids}"]
    assert params["restriction_0_ids"] == '{!terms f=id separator="\x1f" v=$restriction_0_ids_value}'
    assert (params["q"], params["restriction_0_ids_value"]) == ("*:*", "a\x1fc")
    assert "ids" not in params
    assert browse_params(Browse(None, ids=("\ud800",)), who(), SCHEMA)["restriction_0_none"] == "-*:*"


# --- the filter -------------------------------------------------------------------------------------------------------


def test_without_tokens_each_level_must_be_unset() -> None:
    params = filter_params(who(), SCHEMA)

    assert params["fq"] == [f"{{!bool should=$open_{level}}}" for level in LEVELS]
    assert params["open_share"] == "+allow_token_share:__nosecurity__ +deny_token_share:__nosecurity__"
    assert "tokens" not in params
    assert not any(name.startswith(("allow_", "deny_")) for name in params)


def test_with_tokens_each_level_is_open_or_allowed_and_not_denied() -> None:
    params = filter_params(who("b c", "a,"), SCHEMA)

    assert params["fq"] == [
        f"{{!bool should=$open_{level} should=$allow_{level} must_not=$deny_{level}}}" for level in LEVELS
    ]
    assert params["allow_parent"] == '{!terms f=allow_token_parent separator="\x1f" v=$tokens}'
    assert params["deny_document"] == '{!terms f=deny_token_document separator="\x1f" v=$tokens}'
    assert params["tokens"] == "a,\x1fb c"


def test_the_filter_is_the_same_for_the_same_tokens_so_that_solr_caches_it() -> None:
    assert filter_params(who("x", "y"), SCHEMA) == filter_params(who("y", "x", name="bob"), SCHEMA)


def test_a_token_with_the_separator_in_it_stands_alone() -> None:
    params = filter_params(who("plain", "a\x1fb"), SCHEMA)

    assert params["tokens"] == "plain"
    assert params["token_0"] == "a\x1fb"
    assert params["allow_share_0"] == "{!term f=allow_token_share v=$token_0}"
    assert params["fq"][0] == (
        "{!bool should=$open_share should=$allow_share should=$allow_share_0 "
        "must_not=$deny_share must_not=$deny_share_0}"
    )


def test_nothing_but_odd_tokens_leaves_the_plain_ones_out() -> None:
    params = filter_params(who("\x1f"), SCHEMA)

    assert params["fq"][0] == "{!bool should=$open_share should=$allow_share_0 must_not=$deny_share_0}"


def test_a_token_that_cannot_be_sent_is_dropped() -> None:
    params = filter_params(who("\ud800", "good"), SCHEMA)

    assert params["tokens"] == "good"


def test_no_token_stands_in_a_query_text() -> None:
    params = filter_params(who("{!func}1", "$open_share"), SCHEMA)

    texts = [*params["fq"], *(value for name, value in params.items() if name not in ("fq", "tokens"))]
    assert not any("func" in text or "$open_share}" in text.replace("should=$open_share", "") for text in texts)


def test_the_collections_own_rights_fields_are_used() -> None:
    schema = Schema(Fields(acl={"allow_token_document": "readers"}))
    params = filter_params(who("t"), schema)

    assert params["open_document"] == "+readers:__nosecurity__ +deny_token_document:__nosecurity__"
    assert params["allow_document"].startswith("{!terms f=readers ")


@pytest.mark.parametrize(
    ("access", "wanted"),
    [
        (who("t", mode="plugin"), {"AuthenticatedUserName": "ann"}),
        (who("t", mode="plugin", name=None), {}),
        (who("t", mode="none"), {}),
    ],
    ids=["the plugin receives the name", "the plugin receives no name of an anonymous user", "no filter at all"],
)
def test_other_modes(access: Filter, wanted: dict[str, str]) -> None:
    assert filter_params(access, SCHEMA) == wanted


@pytest.mark.parametrize(
    "params",
    [
        search_params(asked("pump", restrictions=(Restriction("extension", value="pdf"),)), who("t"), SCHEMA),
        browse_params(Browse(None, restrictions=(Restriction("extension", value="pdf"),)), who("t"), SCHEMA),
        browse_params(Browse("pump"), who("t"), SCHEMA),
        ids_params(["an id"], who("t"), SCHEMA, ["exactContent"]),
    ],
    ids=["search", "browse all", "browse", "fetch"],
)
def test_every_search_carries_the_filter(params: dict[str, Any]) -> None:
    assert set(filter_params(who("t"), SCHEMA)["fq"]) <= set(params["fq"])
    assert params["tokens"] == "t"


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("plain", "plain"),
        ("été", "été"),
        ("\\u", "\\\\u"),
        ("a:b", "a\\:b"),
        ("{!term", "\\{\\!term"),
        ('"quoted"', '\\"quoted\\"'),
        ("snake_case", "snake_case"),
        ("AND", "and"),
        ("NOT", "not"),
        ("Not", "Not"),
        ("東京都", '"東京都"'),
        ("京", "京"),
    ],
)
def test_a_word_is_escaped_mark_by_mark(word: str, wanted: str) -> None:
    assert escaped(word) == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("x y", "z"), ("x", "y", "z")),
        (("same", "Same", "other"), ("same", "other")),
        (("***", "...", ""), ()),
        (("nul\x00byte", "\ud800", "x\udfffy"), ("nul", "byte", "x", "y")),
        (("the", "pump"), ("pump",)),
        (("the", "of"), ("the", "of")),
        (("x" * 1000,), ("x" * MAX_WORD_CHARS,)),
        (tuple(f"w{n}" for n in range(500)), tuple(f"w{n}" for n in range(MAX_WORDS))),
    ],
    ids=[
        "split at spaces",
        "each once",
        "none left",
        "controls and surrogates part words",
        "words without content go",
        "unless nothing else is there",
        "shortened",
        "not too many",
    ],
)
def test_words_that_can_be_looked_for(words: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    assert usable_words(words, "en") == wanted


@pytest.mark.parametrize(
    ("words", "pieces", "wanted"),
    [
        (("a-b-c-d", "pump"), 5, ("a-b-c-d", "pump")),
        (("a-b-c-d", "pump"), 4, ("a-b-c-", "pump")),
        (("a-b-c-d", "pump"), 1, ("pump",)),
        (("leavePolicy7for", "x"), 3, ("leavePolicy", "x")),
        (("été", "congés", "naïf"), 3, ("été", "congés", "naïf")),
        (("a1" * 50,), 3, ("a1a",)),
        (("pump",), 0, ("pump",)),
        ((), 9, ()),
    ],
    ids=str,
)
def test_words_of_few_pieces_come_before_those_of_many(
    words: tuple[str, ...], pieces: int, wanted: tuple[str, ...]
) -> None:
    assert words_within(words, pieces) == wanted


def test_there_are_no_more_pieces_than_clauses_in_all_fields() -> None:
    names = tuple(f"leave-policy-{number}" for number in range(60))
    whole, half = (words_params(Step("s", ("pump", *names)), "en", SCHEMA, clauses=most) for most in (1000, 500))

    counts = [len(str(params["words"]).split()) for params in (whole, half)]
    assert counts[0] > counts[1] > 10
    assert str(half["words"]).startswith("pump ")


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (Step("s", ("x", "y"), "AND"), "100%"),
        (Step("s", ("x", "y"), "OR"), "1"),
        (Step("s", ("x", "y"), "OR", 50), "50%"),
        (Step("s", ("x", "y"), "AND", 75), "75%"),
    ],
)
def test_how_many_words_must_be_there(step: Step, wanted: str) -> None:
    assert f" mm='{wanted}'" in words_params(step, "en", SCHEMA)["q"]


def test_words_go_to_a_parser_that_knows_no_fields() -> None:
    params = words_params(Step("s", ("id:x", "pump")), "en", SCHEMA)

    assert params["words"] == "id\\:x pump"
    assert str(params["q"]).startswith("{!edismax ") and str(params["q"]).endswith(" v=$words}")
    assert " uf='-*' " in params["q"]


@pytest.mark.parametrize(("language", "wanted"), [("fr", "content_fr~3^0.5"), ("it", "exactContent~3^0.5")])
def test_neighbours_of_the_question_count_where_they_stand_together(language: str, wanted: str) -> None:
    assert f" pf2='{wanted}' " in words_params(Step("s", ("x", "y")), language, SCHEMA)["q"]


def test_boosts_of_the_handler_are_left_out_of_answers_and_stay_in_proportion_in_a_plain_search() -> None:
    answer = search_params(asked("x"), who(), SCHEMA)["q"]
    plain = browse_params(Browse("x"), who(), SCHEMA)["q"]

    assert all(f" {name}=''" in answer and f" {name}=" not in plain for name in ("bq", "bf", "boost"))
    assert " qf='content_en^1 " in answer and " qf='content_en^500 " in plain
    assert "^0.5'" in answer and "^250'" in plain


def test_no_word_finds_nothing_rather_than_everything() -> None:
    params = words_params(Step("s", ("***",)), "en", SCHEMA)

    assert params["q"] == "-*:*"
    assert " q.alt='-*:*' " in words_params(Step("s", ("x",)), "en", SCHEMA)["q"]


def test_the_questions_own_language_weighs_most() -> None:
    weights = dict(searched_fields("fr", SCHEMA))

    assert weights["content_fr"] > weights["content_en"] > 0
    assert weights["title_fr"] > weights["exactTitle"] > 0
    assert "title_de" not in weights
    assert {"exactContent", "exactTitle", "url_search"} <= set(weights)


def test_a_schema_of_ones_own_is_searched_in_its_own_fields() -> None:
    fields = Fields(title="dc_title", exact_content="body")
    schema = Schema(fields, kinds={"dc_title": "text", "body": "text", "id": "text"})

    assert dict(searched_fields("en", schema)) == {"dc_title": WEIGHTS["exact_title"], "body": WEIGHTS["exact_content"]}


# --- narrowing --------------------------------------------------------------------------------------------------------


def query_of(restriction: Restriction, schema: Schema = SCHEMA) -> str:
    """Return the query of the one value or range, which is all of the filter."""
    params = restriction_params((restriction,), schema)
    assert params["fq"] == ["{!bool should=$restriction_0_0}"]
    return str(params["restriction_0_0"])


def date_from(text: str) -> str:
    """Return the range from *text* on, as Solr's parser is given it."""
    return f'last_modified:["{"".join(f"{chr(92)}u{ord(char):04x}" for char in text)}" TO *]'


def value_of(field: str) -> str:
    """Return the query for a value of *field*, read as its type reads it; nothing where that makes nothing of it."""
    return f"{{!bool filter='{{!field f={field} v=$restriction_0_0_value}}'}}"


@pytest.mark.parametrize(
    ("restriction", "wanted"),
    [
        (Restriction("extension", value="a b"), value_of("extension")),
        (Restriction("extension", low="a", high="b c"), r'extension:["\u0061" TO "\u0062\u0020\u0063"]'),
        (Restriction("extension", low="a"), r'extension:["\u0061" TO *]'),
        (Restriction("extension", high="b"), r'extension:[* TO "\u0062"]'),
        (Restriction("extension"), "extension:[* TO *]"),
        (Restriction("extension", low='a"'), r'extension:["\u0061\u0022" TO *]'),
        (Restriction("extension", high="a\\"), r'extension:[* TO "\u0061\u005c"]'),
        (Restriction("extension", low="${x}"), r'extension:["\u0024\u007b\u0078\u007d" TO *]'),
        (Restriction("extension", low="\U0001f600"), r'extension:["\ud83d\ude00" TO *]'),
        (Restriction("last_modified", value="2024-05-06T07:08:09Z"), value_of("last_modified")),
        (Restriction("last_modified", low="2024-05-06"), date_from("2024-05-06T00:00:00.000Z")),
        (Restriction("last_modified", low="NOW/DAY-1MONTHS"), date_from("NOW/DAY-1MONTH")),
        (Restriction("two words", value="x"), "-*:*"),
        (Restriction("allow_token_share", value="x"), "-*:*"),
    ],
    ids=str,
)
def test_a_restriction_is_a_value_or_a_range_of_numbered_characters(restriction: Restriction, wanted: str) -> None:
    assert query_of(restriction) == wanted


@pytest.mark.parametrize(
    "restriction",
    [
        *(Restriction("size", value=value) for value in ("x", "1e9", "", "\u0661")),
        *(Restriction("made", low=value) for value in ("NOW-1WEEK", "x", "")),
        *(Restriction("extension", value="\ud800"), Restriction("extension", high="\ud800")),
    ],
    ids=str,
)
def test_a_value_that_its_field_cannot_have_is_refused(restriction: Restriction) -> None:
    schema = Schema(kinds={"size": "number", "made": "date", "extension": "text"})

    for value in ("12", "-1.5"):
        assert query_of(Restriction("size", value=value), schema) == value_of("size")
    with pytest.raises(UnfitValue):
        restriction_params((replace(restriction, is_excluded=True),), schema)


def test_an_exclusion_takes_away_from_everything() -> None:
    params = restriction_params((Restriction("source", value="b", is_excluded=True),), SCHEMA)

    assert params["fq"] == ["{!bool filter=$everything must_not=$restriction_0_0}"]
    assert params["restriction_0_0"] == value_of("source")
    assert params["everything"] == "*:*"


def test_of_alternatives_one_is_enough_or_none_may_be() -> None:
    either = Restriction("source", value="a", alternatives=(Restriction("source", low="b"),))
    queries = "=$restriction_0_0 {clause}=$restriction_0_1}}"

    assert restriction_params((either,), SCHEMA)["fq"] == ["{!bool should" + queries.format(clause="should")]
    neither = restriction_params((replace(either, is_excluded=True),), SCHEMA)
    assert neither["fq"] == ["{!bool filter=$everything must_not" + queries.format(clause="must_not")]


# --- what is asked for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "field"), [("exactContent", "exactContent"), ("preview_content", "preview_content")]
)
def test_only_the_text_that_is_read_is_fetched(content: Any, field: str) -> None:
    params = search_params(asked("pump", content=content), who(), SCHEMA)

    names = str(params["fl"]).split(",")
    assert field in names
    assert len([name for name in names if "ontent" in name]) == 1


def test_snippets_are_cut_by_solr_only_when_they_are_used() -> None:
    params = search_params(asked("pump", content="highlighting", fragment_chars=0, language="fr"), who(), SCHEMA)

    assert params["hl.fl"] == "content_fr,content_en,content_de,content_es,exactContent"
    assert (params["hl"], params["hl.q"]) == ("true", params["q"])
    for field in str(params["hl.fl"]).split(","):
        own = {name.removeprefix(f"f.{field}."): value for name, value in params.items() if f"f.{field}." in name}
        assert (own["hl.fragsize"], own["hl.encoder"], own["hl.bs.type"]) == ("0", "html", "SENTENCE")
        assert own["hl.tag.pre"] == CUT_START
    assert "ontent" not in str(params["fl"])


def test_a_plain_search_names_each_thing_itself() -> None:
    browse = Browse(
        "water pump",
        start=20,
        rows=5,
        sort=("last_modified", True),
        facet_fields=("extension", "allow_token_share", "two words"),
        wants_highlighting=True,
        fields=("id", "title", "deny_token_parent", "[child]", "a,b"),
    )
    params = browse_params(browse, who(), SCHEMA)

    assert (params["start"], params["rows"], params["fl"]) == ("20", "5", "id,title")
    assert params["sort"] == "last_modified desc,id asc"
    assert params["facet.field"] == ["extension"]
    assert params["f.exactContent.hl.tag.pre"] == MARK_START
    assert params["f.extension.facet.limit"] == "100"
    assert params["words"] == "water pump"


def test_a_plain_search_without_words_is_everything_he_may_see() -> None:
    params = browse_params(Browse(None, fields=("allow_token_share",)), who(), SCHEMA)

    assert (params["q"], params["fl"]) == ("*:*", "*")
    assert params["sort"] == "score desc,id asc"
    assert "facet.field" not in params


@pytest.mark.parametrize(
    ("sort", "schema", "wanted"),
    [
        (("score", False), SCHEMA, "score asc,id asc"),
        (("title", False), SCHEMA, "title_sort asc,id asc"),
        (("title", False), Schema(kinds={"id": "text"}), "score desc,id asc"),
        (("size", False), SCHEMA, "score desc,id asc"),
    ],
    ids=["by score", "by title", "a collection without sort titles", "an unknown order"],
)
def test_hits_are_sorted_by_what_the_collection_can_sort_on(
    sort: tuple[str, bool], schema: Schema, wanted: str
) -> None:
    assert browse_params(Browse("x", sort=sort), who(), schema)["sort"] == wanted


def test_named_documents_are_a_filter_beside_the_rights_and_never_part_of_the_query() -> None:
    named = browse_params(Browse("pump", ids=("a", 'b" OR *:*', "c\x1fd", "\ud800")), who("t"), SCHEMA)
    plain = browse_params(Browse("pump"), who("t"), SCHEMA)
    assert named["restriction_0_ids_value"] == 'a\x1fb" OR *:*'
    assert named["restriction_0_0"] == "{!term f=id v=$restriction_0_0_value}"
    assert named["restriction_0_0_value"] == "c\x1fd"
    assert named["fq"] == [*plain["fq"], "{!bool should=$restriction_0_ids should=$restriction_0_0}"]
    assert {**named, **plain} == {**named, "fq": plain["fq"]}, "all else is the same"
    without = browse_params(Browse("pump", without=("a", "b")), who("t"), SCHEMA)
    assert without["fq"] == [*plain["fq"], "{!bool filter=$everything must_not=$restriction_0_ids}"]
    assert without["restriction_0_ids_value"] == "a\x1fb"
    nothing = browse_params(Browse("pump", ids=()), who("t"), SCHEMA)
    assert nothing["fq"] == [*plain["fq"], "{!bool should=$restriction_0_none}"]
    assert nothing["restriction_0_none"] == "-*:*"
