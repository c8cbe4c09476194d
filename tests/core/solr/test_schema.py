from __future__ import annotations

from collections.abc import Mapping

import pytest

from datafari_rag.core.search_request import Fields
from datafari_rag.core.solr.schema import Kind, Schema, kinds_of

SAID: Mapping[str, object] = {
    "fieldTypes": [
        {"name": "string", "class": "solr.StrField"},
        {"name": "pdate", "class": "solr.DatePointField"},
        {"name": "tdate", "class": "org.apache.solr.schema.TrieDateField"},
        {"name": "plong", "class": "solr.LongPointField"},
        {"name": "odd"},
    ],
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "last_modified", "type": "pdate"},
        {"name": "old_date", "type": "tdate"},
        {"name": "size", "type": "plong"},
        {"name": "strange", "type": "odd"},
        {"name": "stranger", "type": "nowhere"},
        {"type": "nameless"},
        "not a row",
    ],
    "dynamicFields": [
        {"name": "*_l", "type": "plong"},
        {"name": "content_*", "type": "string"},
        {"name": "*_xl", "type": "string"},
    ],
}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("id", "text"),
        ("last_modified", "date"),
        ("old_date", "date"),
        ("size", "number"),
        ("strange", "text"),
        ("stranger", "text"),
        ("some_l", "number"),
        ("some_xl", "text"),
        ("content_de", "text"),
        ("absent", None),
        ("", None),
        ("id id", None),
        ("*", None),
        ("{!x}", None),
    ],
)
def test_a_collection_has_what_it_declares_and_each_field_its_kind(name: str, wanted: Kind | None) -> None:
    schema = Schema(kinds=kinds_of(SAID))

    assert schema.has(name) is (wanted is not None)
    assert schema.kind(name) == (wanted or "text")


def test_a_collection_that_says_nothing_is_taken_to_have_everything() -> None:
    assert kinds_of({}) is None
    assert kinds_of({"fields": "x", "dynamicFields": None, "fieldTypes": {}}) is None
    assert Schema().has("anything")
    assert not Schema().has("two words")
    assert [Schema().kind(name) for name in ("last_modified", "creation_date", "title")] == ["date", "date", "text"]
    assert Schema(Fields(last_modified="changed")).kind("changed") == "date"


def test_the_languages_own_fields_come_first() -> None:
    schema = Schema(languages=("en", "fr"))

    assert schema.contents("fr") == ("content_fr", "content_en")
    assert schema.titles("fr") == ("title_fr", "title_en", "exactTitle")
    assert schema.contents("it") == ("content_en", "content_fr")


def test_only_what_is_there_is_searched() -> None:
    schema = Schema(kinds={"content_fr": "text", "title_en": "text"})

    assert schema.contents("en") == ("content_fr",)
    assert schema.titles("en") == ("title_en",)


@pytest.mark.parametrize(("kinds", "wanted"), [(None, ("dc_title",)), ({"dc_title": "text"}, ("dc_title",)), ({}, ())])
def test_a_title_field_of_ones_own_stands_for_our_copies(
    kinds: Mapping[str, Kind] | None, wanted: tuple[str, ...]
) -> None:
    assert Schema(Fields(title="dc_title"), kinds=kinds).titles("en") == wanted


def test_rights_fields_are_known_under_both_names() -> None:
    schema = Schema(Fields(acl={"allow_token_document": "readers"}))

    assert schema.acl("allow_token_document") == "readers"
    assert schema.acl("deny_token_document") == "deny_token_document"
    assert all(schema.is_acl(name) for name in ("readers", "allow_token_document", "deny_token_share"))
    assert not schema.is_acl("title")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("exactContent", True),
        ("preview_content", True),
        ("content_en", True),
        ("content_xx", False),
        ("title", False),
        ("allow_token_document", False),
        ("*", False),
    ],
)
def test_only_body_and_preview_can_be_opened(name: str, wanted: bool) -> None:
    assert Schema().is_text(name) is wanted
