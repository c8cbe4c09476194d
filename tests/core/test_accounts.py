"""Tokens, money, days and caps: sums are exact, what is configured is read or named, and nothing is free by mistake."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.accounts import (
    CostRow,
    CostTotal,
    Price,
    Spender,
    Subject,
    TokenCaps,
    TokenUse,
    accounted_for,
    capped_accounts,
    caps_in,
    end_of,
    money_text,
    period_at,
    price_of,
    prices_in,
    totals,
    use_in,
)

NOON = datetime(2026, 2, 28, 12, tzinfo=UTC).timestamp()


def row(name: str = "ann", model: str = "m", *, subject: Subject = "user", money: int | None = 5) -> CostRow:
    return CostRow("2026-02-28", subject, name, model, "ragapi", 1, 0, TokenUse(10, 2, 3), money)


def test_a_price_of_a_million_tokens_is_that_of_one_in_millionths() -> None:
    price = Price(Decimal("2.5"), Decimal("1.25"), Decimal("10"))
    assert price.of(TokenUse(1000, 400, 100)) == 600 * 2.5 + 400 * 1.25 + 100 * 10
    assert price.of(TokenUse()) == 0


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.decimals(0, 1000, places=6))
def test_no_price_is_off_by_more_than_half_a_millionth(given: int, written: int, each: Decimal) -> None:
    exact = (given + written) * each
    assert abs(Price(each, each, each).of(TokenUse(given, 0, written)) - exact) <= Decimal("0.5")


@pytest.mark.parametrize(
    ("model", "wanted"),
    [("gpt-4o", 1), ("gpt-4o-2024-08-06", 1), ("gpt-4o-mini", 2), ("gpt-4o-mini-2024-07-18", 2), ("gpt-4", None)],
)
def test_a_version_of_a_model_has_its_price_and_another_model_has_none(model: str, wanted: int | None) -> None:
    prices = {"gpt-4o": Price(Decimal(1)), "gpt-4o-mini": Price(Decimal(2))}
    found = price_of(model, prices)
    assert (None if found is None else found.input) == wanted


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ([], "^$"),
        ({"m": "2"}, "m"),
        ({"m": {"output": "2"}}, "m"),
        ({"m": {"input": 2.5}}, "m.input"),
        ({"m": {"input": "-1"}}, "m.input"),
        ({"m": {"input": "NaN"}}, "m.input"),
        ({"m": {"input": "Infinity"}}, "m.input"),
        ({"m": {"input": "two"}}, "m.input"),
        ({"m": {"input": "1", "per": "1"}}, "m"),
    ],
)
def test_a_price_that_is_no_decimal_text_is_named(value: object, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        prices_in(value)


def test_cached_tokens_without_a_price_cost_as_much_as_others() -> None:
    assert prices_in({"m": {"input": "3", "output": "4"}}) == {"m": Price(Decimal(3), Decimal(3), Decimal(4))}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("100", "^$"),
        ({"users": {}}, "users"),
        ({"user": 5}, "user"),
        ({"user": {"week": 1}}, "user"),
        ({"user": {"day": -1}}, "user.day"),
        ({"user": {"day": "9"}}, "user.day"),
        ({"user": {"day": True}}, "user.day"),
        ({"all": {"month": 10**16}}, "all.month"),
        ({"groups": {"staff": 1}}, "groups.staff"),
        ({"groups": []}, "groups"),
        ({"then": "free"}, "then"),
    ],
)
def test_a_cap_that_cannot_be_kept_to_is_named(value: object, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        caps_in(value)


def test_a_call_has_to_fit_into_the_accounts_of_its_user_the_groups_and_all() -> None:
    caps = caps_in({"user": {"day": 5}, "groups": {"staff": {"month": 7}, "audit": {}}, "all": {"day": 9, "month": 0}})
    spender = Spender("ann", frozenset({"staff", "audit", "other"}), "ragapi")
    assert [(one.name, one.period, one.tokens) for one in capped_accounts(spender, caps, NOON)] == [
        ("all", "2026-02-28", 9),
        ("all", "2026-02", 0),
        ("user ann", "2026-02-28", 5),
        ("group staff", "2026-02", 7),
    ]
    assert accounted_for(spender, caps) == (("user", "ann"), ("group", "audit"), ("group", "staff"))


def test_those_who_are_not_signed_in_have_one_account_together() -> None:
    caps = TokenCaps(user={"day": 5})
    assert capped_accounts(Spender("", frozenset(), "chat"), caps, NOON)[0].name == "user "
    assert accounted_for(Spender("", frozenset(), "chat"), caps) == (("user", ""),)


@given(st.floats(0, 4e9))
def test_a_period_ends_where_the_next_one_begins(at_s: float) -> None:
    for period in ("day", "month"):
        ends_s = end_of(at_s, period)
        assert ends_s > at_s
        assert period_at(ends_s - 0.5, period) == period_at(at_s, period) < period_at(ends_s, period)


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (None, None),
        ({"prompt_tokens": 5}, None),
        ({"prompt_tokens": "5", "completion_tokens": 1}, None),
        ({"prompt_tokens": -5, "completion_tokens": 1}, None),
        ({"prompt_tokens": True, "completion_tokens": 1}, None),
        ({"prompt_tokens": 5, "completion_tokens": 1}, TokenUse(5, 0, 1)),
        (
            {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}},
            TokenUse(5, 5, 1),
        ),
    ],
)
def test_what_a_server_reports_is_read_or_not_believed(usage: object, wanted: TokenUse | None) -> None:
    assert use_in(usage) == wanted


def test_totals_are_of_users_or_of_groups_and_never_of_both() -> None:
    rows = [row("ann", "a"), row("bob", "b", money=None), row("ann", "b"), row("staff", "a", subject="group")]
    assert totals(rows, "user") == (
        CostTotal("ann", 2, 0, TokenUse(20, 4, 6), 10),
        CostTotal("bob", 1, 0, TokenUse(10, 2, 3), None),
    )
    assert [one.name for one in totals(rows, "group")] == ["staff"]
    assert sum(one.calls for one in totals(rows, "model")) == sum(one.calls for one in totals(rows, "day")) == 3
    assert [one.name for one in totals(rows, "month")] == ["2026-02"]


@pytest.mark.parametrize(
    ("millionths", "text"), [(None, "?"), (0, "0.000000"), (1, "0.000001"), (12_345_678, "12.345678")]
)
def test_money_has_six_decimals(millionths: int | None, text: str) -> None:
    assert money_text(millionths) == text
