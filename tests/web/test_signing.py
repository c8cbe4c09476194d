"""Signed texts: believed for their purpose, their user and their time, and for nothing else."""

from __future__ import annotations

import pytest

from datafari_rag.web.user import Signer

SIGNER = Signer("a secret of the server")


def test_a_signed_text_is_opened_for_its_purpose_alone() -> None:
    signed = SIGNER.signed("demo user", "alice")
    assert SIGNER.opened("demo user", signed, max_age_s=60) == "alice"
    assert SIGNER.opened("form", signed, max_age_s=60) is None


@pytest.mark.parametrize("text", [None, "", "alice", "a.b.c", "\ud800", "é"])
def test_what_was_not_signed_is_nothing(text: str | None) -> None:
    assert SIGNER.opened("form", text, max_age_s=60) is None


def test_a_changed_text_is_nothing() -> None:
    signed = SIGNER.signed("form", "alice")
    assert SIGNER.opened("form", ("A" if signed[0] != "A" else "B") + signed[1:], max_age_s=60) is None


def test_an_old_text_is_nothing() -> None:
    assert SIGNER.opened("form", SIGNER.signed("form", "alice"), max_age_s=-1) is None


def test_another_secret_opens_nothing_and_no_secret_is_a_random_one() -> None:
    for other in (Signer("another secret"), Signer(), Signer("")):
        assert other.opened("form", SIGNER.signed("form", "alice"), max_age_s=60) is None
    assert Signer().opened("form", Signer().signed("form", "alice"), max_age_s=60) is None


FORMS = {
    "his own form": ("alice", {}, True),
    "his own form by a browser that says so": ("alice", {"sec-fetch-site": "same-origin"}, True),
    "typed into the address line": ("alice", {"sec-fetch-site": "none"}, True),
    "another user's form": ("bob", {}, False),
    "sent by another site": ("alice", {"sec-fetch-site": "cross-site"}, False),
    "sent by a sister site": ("alice", {"sec-fetch-site": "same-site"}, False),
}


@pytest.mark.parametrize(("user", "headers", "wanted"), FORMS.values(), ids=FORMS.keys())
def test_a_form_is_accepted_from_our_page_and_its_user(user: str, headers: dict[str, str], wanted: bool) -> None:
    assert SIGNER.is_own_form(user, SIGNER.form_token("alice"), headers) is wanted


def test_a_form_without_token_is_refused() -> None:
    assert not SIGNER.is_own_form("alice", None, {})


@pytest.mark.parametrize("user", ["bob", "", None, "\ud800"])
def test_a_text_signed_for_a_user_opens_for_nobody_else(user: str | None) -> None:
    signed = SIGNER.for_user("memory", "alice").signed("a text")
    assert signed.isascii() and "alice" not in signed
    assert SIGNER.for_user("memory", "alice").opened(signed) == "a text"
    assert SIGNER.for_user("memory", user).opened(signed) is None
    assert SIGNER.for_user("memory", "alice").opened(SIGNER.for_user("memory", user).signed("b")) is None
    assert Signer("another secret").for_user("memory", "alice").opened(signed) is None


@pytest.mark.parametrize("signed", ["", "v1.e30.AAAA", "é", "..", "a.b.c", "\ud800"])
def test_what_was_not_signed_here_opens_as_nothing(signed: str) -> None:
    assert SIGNER.for_user("memory", None).opened(signed) is None
