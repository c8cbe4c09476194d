"""
Where tokens and money are counted: an SQLite file for the workers of one server, Redis for several servers.

A reservation that is never settled, because a process was killed, stays counted until its day or month ends: caps err
to the safe side. What cannot be read or written is AccountsUnavailable; names of users are never logged.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.sqlite_file import FileUnusable, SqliteFile
from datafari_rag.core.accounts import CappedAccount, CostRow, TokenUse
from datafari_rag.core.errors import AccountsUnavailable
from datafari_rag.core.messages import Message, message
from datafari_rag.core.settings.addresses import REDIS
from datafari_rag.core.settings.table import LimitsSettings
from datafari_rag.ports import Ledger

T = TypeVar("T")

FILE = "accounts.sqlite3"
KEPT_DAYS = 731
"""How long a day's costs are kept at most; the file has this calendar year and the one before."""

WAIT_S = 2.0
"""How long a Redis is waited for."""

_MAX_BYTES = 4_000_000_000

_TABLES = """
CREATE TABLE spent (account TEXT NOT NULL, period TEXT NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (period, account))
    WITHOUT ROWID;
CREATE TABLE costs (
    day TEXT NOT NULL, subject TEXT NOT NULL, name TEXT NOT NULL, model TEXT NOT NULL, protocol TEXT NOT NULL,
    calls INTEGER NOT NULL, estimated INTEGER NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL,
    output INTEGER NOT NULL, money INTEGER NOT NULL, unpriced INTEGER NOT NULL,
    PRIMARY KEY (day, subject, name, model, protocol)
) WITHOUT ROWID;
"""

_AMOUNTS = ("calls", "estimated", "input", "cached", "output", "money", "unpriced")

_RESERVE = """
local count = #KEYS
for i = 1, count do
  if tonumber(redis.call('GET', KEYS[i]) or '0') >= tonumber(ARGV[2 * i - 1]) then return i end
end
for i = 1, count do
  redis.call('INCRBY', KEYS[i], ARGV[2 * count + 1])
  redis.call('EXPIREAT', KEYS[i], ARGV[2 * i])
end
return 0
"""
"""All counters together or none: the first that is full is named, by its place from 1."""


class SqliteLedger:
    """A `Ledger` in *folder*, for all workers of this machine."""

    def __init__(self, folder: Path, machine: Machine = MACHINE) -> None:
        """Open nothing yet."""
        self._file = SqliteFile(folder / FILE, tables=_TABLES, version=1, max_bytes=_MAX_BYTES, machine=machine)

    def reserve(self, accounts: Sequence[CappedAccount], tokens: int) -> CappedAccount | None:
        """Count *tokens* in all *accounts*, or in none; return the one that is full. Raises: AccountsUnavailable."""

        def work(connection: sqlite3.Connection) -> CappedAccount | None:
            for account in accounts:
                row = connection.execute(
                    "SELECT tokens FROM spent WHERE period = ? AND account = ?", (account.period, account.name)
                ).fetchone()
                if (row[0] if row else 0) >= account.tokens:
                    return account
            _count(connection, accounts, tokens)
            return None

        return self._result_of(self._file.change, work) if accounts else None

    def settle(self, accounts: Sequence[CappedAccount], reserved: int, rows: Sequence[CostRow]) -> None:
        """Count what a call took in place of what was *reserved* for it. Raises: AccountsUnavailable."""

        def work(connection: sqlite3.Connection) -> None:
            _count(connection, accounts, rows[0].use.total - reserved)
            oldest = f"{int(rows[0].day[:4]) - 1}-01"
            connection.execute("DELETE FROM costs WHERE day < ?", (oldest,))
            connection.execute("DELETE FROM spent WHERE period < ?", (oldest,))
            added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _AMOUNTS)
            for row in rows:
                values = (row.day, row.subject, row.name, row.model, row.protocol, *_amounts(row))
                marks = ", ".join("?" * len(values))
                connection.execute(f"INSERT INTO costs VALUES ({marks}) ON CONFLICT DO UPDATE SET {added}", values)  # noqa: S608 - our own names

        self._result_of(self._file.change, work)

    def costs(self, since: str) -> Sequence[CostRow]:
        """Return the rows of all days from *since* (2026-11-24) on. Raises: AccountsUnavailable."""
        query = "SELECT * FROM costs WHERE day >= ? ORDER BY day, subject DESC, name, model, protocol"

        def work(connection: sqlite3.Connection) -> Sequence[CostRow]:
            return [_row(values[:5], values[5:]) for values in connection.execute(query, (since,))]

        return self._result_of(self._file.read, work)

    def problem(self) -> Message | None:
        """Return None while accounts can be written, else one sentence."""
        is_well = self._file.probe("SELECT 1 FROM spent LIMIT 1")
        return None if is_well else message("Tokens cannot be counted in limits.store.")

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()

    def _result_of(self, call: Callable[..., T], work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return call(work)
        except FileUnusable as error:
            raise AccountsUnavailable(log=f"file of accounts: {error}") from error


class RedisLedger:
    """A `Ledger` in a Redis that several servers share; its keys begin with `datafari_rag:`."""

    def __init__(self, url: str) -> None:
        """Connect to nothing yet. Raises: ModuleNotFoundError, without the extra `redis`."""
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        waits = {"socket_timeout": WAIT_S, "socket_connect_timeout": WAIT_S, "retry": Retry(NoBackoff(), 1)}
        self._redis = Redis.from_url(url, decode_responses=True, **waits)
        self._reserve = self._redis.register_script(_RESERVE)

    def reserve(self, accounts: Sequence[CappedAccount], tokens: int) -> CappedAccount | None:
        """Count *tokens* in all *accounts*, or in none; return the one that is full. Raises: AccountsUnavailable."""
        if not accounts:
            return None
        limits = [text for account in accounts for text in (account.tokens, int(account.ends_s) + 86_400)]
        with self._translated():
            full = int(self._reserve(keys=[_spent_key(account) for account in accounts], args=[*limits, tokens]))
        return accounts[full - 1] if full else None

    def settle(self, accounts: Sequence[CappedAccount], reserved: int, rows: Sequence[CostRow]) -> None:
        """Count what a call took in place of what was *reserved* for it. Raises: AccountsUnavailable."""
        with self._translated(), self._redis.pipeline(transaction=True) as pipeline:
            for account in accounts:
                pipeline.incrby(_spent_key(account), rows[0].use.total - reserved)
            for row in rows:
                key = f"datafari_rag:costs:{row.day}"
                place = [row.subject, row.name, row.model, row.protocol]
                for name, amount in zip(_AMOUNTS, _amounts(row), strict=True):
                    if amount:
                        pipeline.hincrby(key, json.dumps([*place, name]), amount)
                pipeline.expire(key, KEPT_DAYS * 86_400)
            pipeline.execute()

    def costs(self, since: str) -> Sequence[CostRow]:
        """Return the rows of all days from *since* (2026-11-24) on. Raises: AccountsUnavailable."""
        sums: dict[tuple[str, ...], dict[str, int]] = {}
        with self._translated():
            for key in sorted(self._redis.scan_iter("datafari_rag:costs:*", count=1000)):
                day = key.rpartition(":")[2]
                for place, amount in self._redis.hgetall(key).items() if day >= since else ():
                    *row, name = json.loads(place)
                    sums.setdefault((day, *row), dict.fromkeys(_AMOUNTS, 0))[name] = int(amount)
        return [_row(place, tuple(sums[place].values())) for place in sorted(sums)]

    def problem(self) -> Message | None:
        """Return None while accounts can be written, else one sentence."""
        try:
            with self._translated():
                self._redis.ping()
        except AccountsUnavailable:
            return message("Tokens cannot be counted in limits.store.")
        return None

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self._redis.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError) as error:
            raise AccountsUnavailable(log=f"Redis of accounts: {type(error).__name__}") from error


def ledger_for(limits: LimitsSettings, machine: Machine = MACHINE) -> Ledger | None:
    """Return where `limits.store` says that is counted, None where nothing is. Raises: ModuleNotFoundError."""
    store = limits.store
    if store.startswith(REDIS):
        return RedisLedger(store)
    return SqliteLedger(Path(store), machine) if store else None


def _count(connection: sqlite3.Connection, accounts: Sequence[CappedAccount], tokens: int) -> None:
    connection.executemany(
        "INSERT INTO spent VALUES (?, ?, max(?, 0)) ON CONFLICT DO UPDATE SET tokens = max(tokens + ?, 0)",
        [(account.name, account.period, tokens, tokens) for account in accounts],
    )


def _amounts(row: CostRow) -> tuple[int, ...]:
    use = row.use
    return (row.calls, row.estimated, use.input, use.cached, use.output, row.money or 0, int(row.money is None))


def _row(place: Sequence[Any], amounts: Sequence[int]) -> CostRow:
    day, subject, name, model, protocol = place
    calls, estimated, prompt, cached, completion, money, unpriced = amounts
    use = TokenUse(prompt, cached, completion, estimated > 0)
    return CostRow(day, subject, name, model, protocol, calls, estimated, use, None if unpriced else money)


def _spent_key(account: CappedAccount) -> str:
    return f"datafari_rag:spent:{account.period}:{account.name}"
