from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.solr.collection_report import CollectionFacts, Finding, HandlerFacts, findings
from datafari_rag.core.solr.schema import Kind, Schema

WHOLE: Mapping[str, Kind] = {
    **dict.fromkeys(("id", "title", "url", "exactContent", "preview_content", "language", "title_sort"), "text"),
    **dict.fromkeys(("content_en", "title_en", "exactTitle", "extension", *ACL_FIELDS), "text"),
    "last_modified": "date",
}
BOTH = frozenset({"indexed", "stored"})
GOOD = CollectionFacts(
    flags=dict.fromkeys(WHOLE, BOTH),
    documents=10,
    public=4,
    without=dict.fromkeys(ACL_FIELDS, 0),
    has_component=False,
    handler=HandlerFacts(),
)


def found(
    facts: CollectionFacts = GOOD, kinds: Mapping[str, Kind] = WHOLE, *, mode: str = "tokens"
) -> dict[str, Finding]:
    said = findings(facts, Schema(kinds=kinds), mode=mode, facets=("extension",))
    return {finding.subject: finding for finding in said}


def without(*names: str) -> Mapping[str, Kind]:
    return {name: kind for name, kind in WHOLE.items() if name not in names}


def test_a_whole_collection_has_no_problem_and_no_hint() -> None:
    assert {finding.verdict for finding in found().values()} == {"ok"}
    assert found()["rights"].text == "4 of 10 documents are public"


@pytest.mark.parametrize(
    ("facts", "kinds", "mode", "subject", "verdict"),
    [
        (replace(GOOD, documents=0), WHOLE, "tokens", "documents", "hint"),
        (GOOD, without("exactContent"), "tokens", "field exactContent", "problem"),
        (
            replace(GOOD, flags={**GOOD.flags, "exactContent": frozenset({"indexed"})}),
            WHOLE,
            "tokens",
            "field exactContent",
            "problem",
        ),
        (replace(GOOD, flags={}), WHOLE, "tokens", "field exactContent", "ok"),
        (GOOD, without("preview_content"), "tokens", "field preview_content", "hint"),
        (GOOD, without("content_en"), "tokens", "stemmed text", "hint"),
        (GOOD, without("title_en", "exactTitle"), "tokens", "searched titles", "hint"),
        (GOOD, without("title_sort"), "tokens", "field title_sort", "hint"),
        (GOOD, without("extension"), "tokens", "solr.facets", "hint"),
        (GOOD, without("deny_token_share"), "tokens", "field deny_token_share", "problem"),
        (
            replace(GOOD, flags={**GOOD.flags, "deny_token_share": frozenset({"stored"})}),
            WHOLE,
            "tokens",
            "field deny_token_share",
            "problem",
        ),
        (replace(GOOD, without={"deny_token_share": 3}), WHOLE, "tokens", "field deny_token_share", "problem"),
        (replace(GOOD, has_component=None), WHOLE, "tokens", "rights component", "hint"),
        (replace(GOOD, has_component=True), WHOLE, "tokens", "rights component", "problem"),
        (replace(GOOD, has_component=True), WHOLE, "plugin", "rights component", "ok"),
        (GOOD, WHOLE, "plugin", "rights component", "problem"),
        (GOOD, WHOLE, "none", "rights", "hint"),
    ],
    ids=[
        "an empty collection",
        "no body",
        "a body that is not stored",
        "a collection that does not report its flags",
        "no preview",
        "no stemmed text",
        "no searchable title",
        "no title to sort on",
        "a facet that is not there",
        "a rights field that is not there",
        "a rights field that is not indexed",
        "documents without a rights field",
        "a configuration that cannot be read",
        "two who filter",
        "the component filters",
        "documents are not filtered",
        "everybody sees everything",
    ],
)
def test_what_is_lacking_is_said_with_what_to_do(
    facts: CollectionFacts, kinds: Any, mode: str, subject: str, verdict: str
) -> None:
    finding = found(facts, kinds, mode=mode)[subject]

    assert finding.verdict == verdict
    assert finding.advice or verdict == "ok"


def test_the_text_names_the_flags_that_lack() -> None:
    facts = replace(GOOD, flags={**GOOD.flags, "exactContent": frozenset()})

    assert found(facts)["field exactContent"].text == "is not indexed and not stored"


def test_the_components_rights_fields_are_its_own_business() -> None:
    said = found(replace(GOOD, has_component=True), without(*ACL_FIELDS), mode="plugin")

    assert not any(subject.startswith(("field allow", "field deny")) for subject in said)


def test_stored_summaries_have_no_effect_and_why() -> None:
    said = found(kinds={**WHOLE, "llm_summary": "text"})["field llm_summary"]
    assert (said.verdict, said.text[:11]) == ("hint", "is not used")


def test_how_many_are_open_is_not_said_when_it_is_not_known() -> None:
    assert "rights" not in found(replace(GOOD, public=None))


EXPANDING = replace(GOOD, handler=HandlerFacts(expands=True))


def test_a_handler_that_expands_macros_is_a_problem() -> None:
    assert "macros" not in found()
    assert found(EXPANDING)["macros"].verdict == "problem"
    assert found(EXPANDING, mode="plugin")["macros"].verdict == "problem"


def test_a_handler_that_says_nothing_of_itself_is_a_hint() -> None:
    assert found()["handler"].verdict == "ok"
    assert found(replace(GOOD, handler=None))["handler"].verdict == "hint"
