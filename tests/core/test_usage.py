"""Days of UTC, and what a server reports of its tokens."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from datafari_rag.core.usage import day_of, next_day_s, tokens_of


def test_a_day_ends_at_midnight_of_utc() -> None:
    at_s = datetime(2026, 2, 28, 23, 59, 59, 500_000, tzinfo=UTC).timestamp()
    assert day_of(at_s) == "2026-02-28"
    assert next_day_s(at_s) == datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    assert day_of(next_day_s(at_s)) == "2026-03-01"


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (None, None),
        ([], None),
        ({"prompt_tokens": 5}, None),
        ({"prompt_tokens": "5", "completion_tokens": 1}, None),
        ({"prompt_tokens": -5, "completion_tokens": 1}, None),
        ({"prompt_tokens": True, "completion_tokens": 1}, None),
        ({"prompt_tokens": 10**13, "completion_tokens": 1}, None),
        ({"prompt_tokens": 5, "completion_tokens": 1}, 6),
    ],
)
def test_what_a_server_reports_is_read_or_not_believed(usage: object, wanted: int | None) -> None:
    assert tokens_of(usage) == wanted
