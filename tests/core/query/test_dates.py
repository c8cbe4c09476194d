from __future__ import annotations

import pytest

from datafari_rag.core.query.dates import iso_of, moment_of

SPELLED = {
    "a moment": ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09.000Z"),
    "milliseconds": ("2024-05-06T07:08:09.125Z", "2024-05-06T07:08:09.125Z"),
    "nanoseconds": ("2024-05-06T07:08:09.123456789Z", "2024-05-06T07:08:09.123Z"),
    "a date is its start": ("2024-05-06", "2024-05-06T00:00:00.000Z"),
    "another zone": ("2024-05-06T07:08:09+02:00", "2024-05-06T05:08:09.000Z"),
    "an early year": ("0001-01-01", "0001-01-01T00:00:00.000Z"),
    "before the first moment": ("0001-01-01T00:00:00+14:00", None),
    "no date": ("yesterday", None),
    "no such day": ("2024-02-31", None),
    "arithmetic": ("NOW-1DAY", None),
    "arithmetic on a date": ("2024-05-06T07:08:09Z+1DAY", None),
    "other digits": ("\u0662\u0660\u0662\u0664-\u0660\u0661-\u0660\u0661", None),
    "syntax": ("2024-05-06T07:08:09Z TO *] OR [*", None),
    "much too long": ("2024-05-06T07:08:09." + "1" * 10_000, None),
    "nothing": ("", None),
}


@pytest.mark.parametrize(("text", "wanted"), SPELLED.values(), ids=SPELLED.keys())
def test_a_date_is_spelled_as_solr_takes_it(text: str, wanted: str | None) -> None:
    assert iso_of(text) == wanted
    assert (moment_of(text) is None) is (wanted is None)
