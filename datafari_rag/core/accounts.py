"""
What answers cost, and how much may be spent: tokens, money and caps as values, and the arithmetic on them.

Money is a whole number of millionths of the unit in which `llm.prices` is written, so that sums are exact. A cap is
kept to by a reservation: what a call of the model may take is counted before the call, and settled by what it took.
Time comes in as seconds; days and months are those of UTC. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

MILLION = 1_000_000

Period = Literal["day", "month"]
PERIODS: tuple[Period, ...] = ("day", "month")

Subject = Literal["user", "group"]

MAX_TOKENS = 10**15
"""Most tokens that a cap may name."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost: those that go in, those of them that the model's server had cached, those out."""

    input: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    output: Decimal = Decimal(0)

    def of(self, use: TokenUse) -> int:
        """Return the price of *use* in millionths: the price of a million tokens is that of one in millionths."""
        whole = (use.input - use.cached) * self.input + use.cached * self.cached + use.output * self.output
        return int(whole.to_integral_value(ROUND_HALF_UP))


@dataclass(frozen=True, slots=True)
class TokenUse:
    """Tokens of one call, or of several: *cached* are among *input*; *is_estimate*: the server did not say them."""

    input: int = 0
    cached: int = 0
    output: int = 0
    is_estimate: bool = False

    @property
    def total(self) -> int:
        """Return all tokens, in and out."""
        return self.input + self.output


@dataclass(frozen=True, slots=True)
class Spender:
    """For whom a model is called: *user* is "" for all who are not signed in; *groups* are the user's, in no order."""

    user: str
    groups: frozenset[str]
    protocol: str


@dataclass(frozen=True, slots=True)
class TokenCaps:
    """
    Most tokens for each user, for each group by its name, and for all together; none where a period is left out.

    A group that is named has an account of its own, also without a cap. *has_fallback*: at a cap the built-in model
    answers, marked as such, in place of a refusal.
    """

    user: Mapping[Period, int] = field(default_factory=dict)
    groups: Mapping[str, Mapping[Period, int]] = field(default_factory=dict)
    all: Mapping[Period, int] = field(default_factory=dict)
    has_fallback: bool = False


@dataclass(frozen=True, slots=True)
class CappedAccount:
    """One counter with its cap: *name* and *period* are its key, *ends_s* is when a new one begins."""

    name: str
    period: str
    tokens: int
    ends_s: float


@dataclass(frozen=True, slots=True)
class CostRow:
    """What calls of one model cost on one *day* (of UTC), for one user or one group, by one protocol."""

    day: str
    subject: Subject
    name: str
    model: str
    protocol: str
    calls: int
    estimated: int
    """How many of the calls were estimated, because the model's server did not say what they took."""
    use: TokenUse
    money: int | None
    """Millionths; None where `llm.prices` has no price for the model of one of the calls."""


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of *model*, or of the one that it is a version of ("gpt-4o" for "gpt-4o-2024-08-06")."""
    fits = [name for name in prices if model == name or model.startswith(f"{name}-")]
    return prices[max(fits, key=len)] if fits else None


def capped_accounts(spender: Spender, caps: TokenCaps, now_s: float) -> tuple[CappedAccount, ...]:
    """Return the counters that a call for *spender* has to fit into."""
    named = [("all", caps.all), (f"user {spender.user}", caps.user)]
    named += [(f"group {name}", caps.groups[name]) for name in sorted(spender.groups & caps.groups.keys())]
    return tuple(
        CappedAccount(name, period_at(now_s, period), limits[period], end_of(now_s, period))
        for name, limits in named
        for period in PERIODS
        if period in limits
    )


def accounted_for(spender: Spender, caps: TokenCaps) -> tuple[tuple[Subject, str], ...]:
    """Return whose accounts a call for *spender* is written to: the user's, and those of the groups with one."""
    groups: list[tuple[Subject, str]] = [("group", name) for name in sorted(spender.groups & caps.groups.keys())]
    return (("user", spender.user), *groups)


def period_at(at_s: float, period: Period) -> str:
    """Return the day or the month of *at_s*: 2026-11-24, 2026-11."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d}"[: 10 if period == "day" else 7]


def end_of(at_s: float, period: Period) -> float:
    """Return when the day or the month of *at_s* ends, in seconds since 1970."""
    day = datetime.fromtimestamp(at_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "day":
        return (day + timedelta(days=1)).timestamp()
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1).timestamp()


def use_in(usage: object) -> TokenUse | None:
    """Return what a reply's `usage` says, as OpenAI spells it; None where it is none, or cannot be true."""
    if not isinstance(usage, Mapping):
        return None
    prompt_tokens, completion_tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if prompt_tokens is None or completion_tokens is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    return TokenUse(prompt_tokens, min(cached or 0, prompt_tokens), completion_tokens)


def prices_in(value: object) -> Mapping[str, Price]:
    """
    Return the prices in *value*, the object of `llm.prices`: model → {"input", "cached", "output"}, decimal texts.

    Cached tokens without a price of their own cost as much as others.

    Raises: ValueError, with the member that is wrong, empty where it is no object at all.
    """
    return {model: _price(model, prices) for model, prices in _object("", value).items()}


def caps_in(value: object) -> TokenCaps:
    """
    Return the caps in *value*, the object of `limits.tokens`; all members may be left out.

    `{"user": {"day": 100000, "month": 2000000}, "groups": {"staff": {"day": 500000}}, "all": {}, "then": "builtin"}`

    Raises: ValueError, with the member that is wrong, empty where it is no object at all.
    """
    caps = _object("", value, ("user", "groups", "all", "then"))
    if caps.get("then", "refuse") not in ("refuse", "builtin"):
        raise ValueError("then")
    groups = _object("groups", caps.get("groups", {}))
    return TokenCaps(
        _limits("user", caps.get("user", {})),
        {name: _limits(f"groups.{name}", limits) for name, limits in groups.items()},
        _limits("all", caps.get("all", {})),
        has_fallback=caps.get("then") == "builtin",
    )


By = Literal["user", "group", "model", "protocol", "day", "month"]
BY: tuple[By, ...] = ("user", "group", "model", "protocol", "day", "month")


@dataclass(frozen=True, slots=True)
class CostTotal:
    """What all calls of one *name* took together; *money* is None where a price is missing for one of them."""

    name: str
    calls: int = 0
    estimated: int = 0
    use: TokenUse = TokenUse()
    money: int | None = 0

    def plus(self, row: CostRow) -> CostTotal:
        """Return the total with *row*."""
        mine, use = self.use, row.use
        return CostTotal(
            self.name,
            self.calls + row.calls,
            self.estimated + row.estimated,
            TokenUse(mine.input + use.input, mine.cached + use.cached, mine.output + use.output),
            None if self.money is None or row.money is None else self.money + row.money,
        )


def totals(rows: Iterable[CostRow], by: By) -> tuple[CostTotal, ...]:
    """
    Return the totals of *rows* for each value of *by*, the largest first; days and months in their order.

    A user's calls are in the accounts of the user and of the user's groups: only one of the two is summed.
    """
    subject: Subject = "group" if by == "group" else "user"
    sums: dict[str, CostTotal] = {}
    for row in rows:
        if row.subject == subject:
            named = {"model": row.model, "protocol": row.protocol, "day": row.day, "month": row.day[:7]}
            name = named.get(by, row.name)
            sums[name] = sums.get(name, CostTotal(name)).plus(row)
    if by in PERIODS:
        return tuple(sums[name] for name in sorted(sums))
    return tuple(sorted(sums.values(), key=lambda total: (-total.use.total, total.name)))


def money_text(millionths: int | None) -> str:
    """Return an amount with six decimals, and "?" for one that is not known."""
    return "?" if millionths is None else f"{Decimal(millionths) / MILLION:.6f}"


def days_before(now_s: float, days: int) -> str:
    """Return the first day of the last *days*, today included."""
    return period_at(now_s - (days - 1) * 86_400, "day")


def _object(name: str, value: object, members: Collection[str] | None = None) -> Mapping[str, object]:
    """Return the JSON object *value* with no other *members*. Raises: ValueError, with the name of what is wrong."""
    if not isinstance(value, Mapping):
        raise ValueError(name)
    for member in value:
        if members is not None and member not in members:
            raise ValueError(f"{name}.{member}" if name else member)
    return value


def _price(model: str, value: object) -> Price:
    prices = _object(model, value, ("input", "cached", "output"))
    if "input" not in prices:
        raise ValueError(model)
    decimals = {name: _decimal(f"{model}.{name}", text) for name, text in prices.items()}
    return Price(**{"cached": decimals["input"], **decimals})


_DECIMAL = re.compile(r"[0-9]{1,7}(\.[0-9]{1,12})?")


def _decimal(name: str, text: object) -> Decimal:
    """Return the decimal number *text*; a JSON number is none, since its digits may be others than those written."""
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise ValueError(name)
    return Decimal(text)


def _limits(name: str, value: object) -> Mapping[Period, int]:
    limits = _object(name, value, PERIODS)
    numbers: dict[Period, int] = {}
    for period in PERIODS:
        number = _count(limits.get(period, 0))
        if number is None or number > MAX_TOKENS:
            raise ValueError(f"{name}.{period}")
        if period in limits:
            numbers[period] = number
    return numbers


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
