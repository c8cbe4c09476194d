"""The rule of contract §5 against the oracle: a user's tokens, a document's six fields, a verdict."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datafari_rag.core.access import NO_SECURITY, Filter, User, filter_for, is_visible, usable_tokens
from datafari_rag.core.errors import NotAuthenticated
from tests.security.corpora import NS, TOKENS, acls, may_see

CASES = int(os.environ.get("PROPERTY_CASES", "600"))
"""Random documents and users; `.ci/measure rights` tries 67,000."""


@settings(max_examples=CASES, deadline=None)
@given(acls, st.lists(st.sampled_from([*TOKENS, NS, ""]), max_size=5))
def test_the_rule_agrees_with_the_oracle(acl: Mapping[str, Sequence[str]], tokens: list[str]) -> None:
    kept, dropped = usable_tokens(tokens)
    assert kept == frozenset(tokens) - {"", NS}
    assert dropped == sum(token in ("", NS) for token in tokens)
    assert is_visible(acl, kept) is may_see(acl, kept)


@settings(max_examples=CASES // 3, deadline=None)
@given(acls, st.sets(st.sampled_from(TOKENS), max_size=5), st.sampled_from(TOKENS))
def test_a_document_that_denies_a_token_is_never_seen_with_it(
    acl: dict[str, tuple[str, ...]], tokens: set[str], denied: str
) -> None:
    for level in ("share", "parent", "document"):
        name = f"deny_token_{level}"
        assert not is_visible({**acl, name: (*acl[name], denied)}, frozenset(tokens | {denied}))


@given(st.sets(st.sampled_from([*TOKENS, NS, ""])))
def test_a_filter_holds_the_usable_tokens_and_shows_none(tokens: set[str]) -> None:
    made = filter_for(User("ann", frozenset(tokens)), mode="tokens", anonymous="refuse")
    assert set(made.tokens) == tokens - {"", NS}
    assert repr(made) == f"Filter(mode='tokens', tokens={len(made.tokens)})"


def test_the_modes_other_than_tokens_carry_none() -> None:
    ann = User("ann", frozenset({"s1"}))
    plugin = filter_for(ann, mode="plugin", anonymous="public")
    assert (plugin.tokens, plugin.user_name) == ((), "ann")
    assert "ann" not in repr(plugin)
    assert filter_for(ann, mode="none", anonymous="public").tokens == ()


def test_nobody_is_refused_where_the_setting_says_so() -> None:
    with pytest.raises(NotAuthenticated):
        filter_for(User(), mode="tokens", anonymous="refuse")
    assert filter_for(User(), mode="tokens", anonymous="public").tokens == ()


@pytest.mark.parametrize("arguments", [{}, {"seal": None}, {"seal": object()}], ids=["no seal", "none", "another"])
def test_no_filter_is_made_but_by_the_one_function(arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        Filter("none", (), None, **arguments)  # type: ignore[arg-type, call-arg]


def test_a_filter_never_changes() -> None:
    made = filter_for(User("jean", frozenset({"group:one"})), mode="tokens", anonymous="refuse")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.tokens = ("group:another",)  # type: ignore[misc]


def test_who_is_not_said_to_be_an_administrator_is_none() -> None:
    assert User("ann").is_admin is False


def test_a_missing_field_counts_as_the_schemas_default() -> None:
    assert is_visible({}, frozenset())
    assert not is_visible({"allow_token_share": ["s1"]}, frozenset())
    assert is_visible({"allow_token_share": ["s1"]}, frozenset({"s1"}))
    assert NO_SECURITY == NS
