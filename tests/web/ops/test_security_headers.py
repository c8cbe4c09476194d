"""Security headers: on everything, without 'unsafe-inline', and never over what a view has set."""

from __future__ import annotations

import pytest

from datafari_rag.web.ops.cors import API_POLICY, HSTS, PAGE_POLICY, missing


@pytest.mark.parametrize("is_page", [True, False], ids=["a page", "an answer"])
def test_what_every_response_carries(is_page: bool) -> None:
    headers = dict(missing((), is_page=is_page, is_encrypted=False))
    assert headers["Content-Security-Policy"] == (PAGE_POLICY if is_page else API_POLICY)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
    assert "Strict-Transport-Security" not in headers


@pytest.mark.parametrize("policy", [PAGE_POLICY, API_POLICY])
def test_a_policy_allows_nothing_inline_nothing_foreign_and_no_frame(policy: str) -> None:
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "*" not in policy
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy


def test_encryption_is_asked_for_where_there_is_some() -> None:
    headers = dict(missing((), is_page=True, is_encrypted=True))
    assert headers["Strict-Transport-Security"] == HSTS


def test_what_a_view_has_set_stays() -> None:
    found = missing(("cache-control", "X-Request-ID"), is_page=False, is_encrypted=False)
    assert "Cache-Control" not in dict(found)
    assert dict(found)["X-Frame-Options"] == "DENY"
