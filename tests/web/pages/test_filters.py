"""The filters that a page of results names are never without end."""

from __future__ import annotations

from datafari_rag.web.pages.results import MAX_ACTIVE, active_filters

LONG = [f"-title:{'a' * 600}{number}" for number in range(100)]


def test_a_request_of_long_filters_makes_no_page_a_hundred_times_as_long() -> None:
    active = active_filters({"q": ["copy"], "fq": LONG}, {})
    assert len(active) == MAX_ACTIVE
    assert sum(len(address) for _, address in active) < 25 * sum(map(len, LONG))
