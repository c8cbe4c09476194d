from __future__ import annotations

import datetime

import pytest

from datafari_rag.core.query.dates import date_math_at, date_math_of, iso_of, moment_of

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


NOW = datetime.datetime(2024, 3, 31, 7, 8, 9, 123456, datetime.UTC)
MATH = {
    "now": ("NOW", "NOW", "2024-03-31T07:08:09.123456"),
    "the beginning of a day": ("NOW/DAY", "NOW/DAY", "2024-03-31T00:00:00"),
    "other names of units": ("NOW/DATE+2DAYS-1MILLI", "NOW/DAY+2DAY-1MILLISECOND", "2024-04-01T23:59:59.999000"),
    "a month back has fewer days": ("NOW-1MONTH", "NOW-1MONTH", "2024-02-29T07:08:09.123456"),
    "months over a year": ("NOW/MONTH+11MONTHS", "NOW/MONTH+11MONTH", "2025-02-01T00:00:00"),
    "years": ("NOW/YEAR-1YEAR", "NOW/YEAR-1YEAR", "2023-01-01T00:00:00"),
    "hours, minutes and seconds": ("NOW/HOUR+1MINUTE-1SECOND", "NOW/HOUR+1MINUTE-1SECOND", "2024-03-31T07:00:59"),
    "the beginning of a millisecond": ("NOW/MILLISECOND", "NOW/MILLISECOND", "2024-03-31T07:08:09.123000"),
    "on a date": ("2024-05-06T07:08:09Z/DAY", "2024-05-06T07:08:09.000Z/DAY", "2024-05-06T00:00:00"),
    "a date alone": ("2024-05-06", "2024-05-06T00:00:00.000Z", "2024-05-06T00:00:00"),
    "another zone": ("2024-05-06T07:08:09+02:00", "2024-05-06T05:08:09.000Z", "2024-05-06T05:08:09"),
    "no unit": ("NOW-1WEEK", None, None),
    "no date": ("yesterday+1DAY", None, None),
    "in small letters": ("now", None, None),
    "syntax": ("NOW TO *] OR [*", None, None),
    "too many steps": ("NOW" + "+1DAY" * 11, None, None),
    "much too long": ("NOW" + "+1DAY" * 10_000, None, None),
    "a day that is none": ("2024-02-31T00:00:00Z+1DAY", None, None),
}


@pytest.mark.parametrize(("text", "spelled", "at"), MATH.values(), ids=MATH.keys())
def test_date_math_is_spelled_for_solr_from_what_was_read_and_reckoned_alike(
    text: str, spelled: str | None, at: str | None
) -> None:
    assert date_math_of(text) == spelled
    moment = date_math_at(text, NOW)
    assert (None if moment is None else moment.replace(tzinfo=None).isoformat()) == at


def test_a_moment_outside_of_the_calendar_is_none() -> None:
    assert date_math_at("NOW+9999YEARS", NOW) is None
    assert date_math_at("NOW-999999DAYS-999999DAYS", NOW) is None
