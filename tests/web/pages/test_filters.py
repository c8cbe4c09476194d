"""The filters that a page of results names: in words, with an address without each, and never without end."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from datafari_rag.web.pages.results import MAX_ACTIVE, active_filters, dated, days_of

LONG = [f"-title:{'a' * 600}{number}" for number in range(100)]


def test_a_request_of_long_filters_makes_no_page_a_hundred_times_as_long() -> None:
    active = active_filters({"q": ["copy"], "fq": LONG}, {})
    assert len(active) == MAX_ACTIVE
    assert sum(len(address) for _, address in active) < 25 * sum(map(len, LONG))


def test_a_filter_is_named_in_words_and_taken_off_alone() -> None:
    (kind, days) = active_filters(
        {"fq": ['extension:"pdf"', "last_modified:[2024-01-01T00:00:00Z TO *]"]}, {"extension": "Type"}
    )
    assert kind == ("Type: pdf", "/?fq=last_modified%3A%5B2024-01-01T00%3A00%3A00Z+TO+%2A%5D")
    assert days == ("last_modified: 2024-01-01 – …", "/?fq=extension%3A%22pdf%22")


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        ("2024-01-01", "2024-12-31", ("2024-01-01", "2024-12-31")),
        ("2024-13-01", "x", ("", "")),
        ("9" * 60_000, "2024-12-31", ("", "2024-12-31")),
        ("2024-01-01T00:00:00Z] OR *:*", "", ("", "")),
    ],
)
def test_only_days_become_a_filter(since: str, until: str, days: tuple[str, str]) -> None:
    address = dated({"q": ["copy"], "since": [since], "until": [until]})
    assert address is not None
    assert "OR" not in address and len(address) < 200
    assert days_of({"fq": parse_qs(urlsplit(address).query).get("fq", [])}) == days
