"""Both places where tokens are counted: caps hold between processes, sums are exact, and what fails has its name."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from datafari_rag.adapters.ledgers import FILE, RedisLedger, SqliteLedger, ledger_for
from datafari_rag.core.accounts import CappedAccount, CostRow, TokenUse
from datafari_rag.core.errors import AccountsUnavailable
from datafari_rag.ports import Ledger
from tests.required import program
from tests.settings import settings_with
from tests.waiting import until

ENDS_S = 4_000_000_000.0
MINE = CappedAccount("user ann", "2026-11-24", 100, ENDS_S)
ALL = CappedAccount("all", "2026-11", 250, ENDS_S)


def row(tokens: int = 40, *, name: str = "ann", money: int | None = 7) -> CostRow:
    return CostRow("2026-11-24", "user", name, "gpt", "ragapi", 1, 0, TokenUse(tokens - 1, 0, 1), money)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = program("redis-server", "apt-get install redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        url = f"redis://127.0.0.1:{port}/0"
        with closing(RedisLedger(url)) as ledger:
            until(lambda: ledger.problem() is None)
        yield url
        process.terminate()


@pytest.fixture(params=["SQLite", "Redis"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "SQLite":
        found: Ledger = SqliteLedger(tmp_path)
    else:
        url = request.getfixturevalue("redis")
        found = RedisLedger(url)
        found._redis.flushall()
    with closing(found):
        yield found


def test_there_is_room_until_a_cap_is_reached_and_the_full_account_is_named(ledger: Ledger) -> None:
    assert ledger.reserve((MINE, ALL), 60) is None
    assert ledger.reserve((MINE, ALL), 60) is None
    assert ledger.reserve((MINE, ALL), 60) == MINE
    other = CappedAccount("user bob", "2026-11-24", 1000, ENDS_S)
    assert ledger.reserve((other, ALL), 130) is None
    assert ledger.reserve((other, ALL), 1) == ALL


def test_what_is_refused_is_counted_nowhere(ledger: Ledger) -> None:
    ledger.reserve((MINE,), 100)
    assert ledger.reserve((ALL, MINE), 240) == MINE
    assert ledger.reserve((ALL,), 249) is None


def test_what_a_call_took_replaces_what_was_reserved(ledger: Ledger) -> None:
    ledger.reserve((MINE,), 100)
    ledger.settle((MINE,), 100, [row(40)])
    assert ledger.reserve((MINE,), 60) is None
    ledger.settle((MINE,), 60, [row(60)])
    assert ledger.reserve((MINE,), 1) == MINE


def test_another_day_is_another_account(ledger: Ledger) -> None:
    ledger.reserve((MINE,), 100)
    assert ledger.reserve((CappedAccount("user ann", "2026-11-25", 100, ENDS_S),), 1) is None


def test_without_an_account_nothing_is_reserved(ledger: Ledger) -> None:
    assert ledger.reserve((), 10**9) is None


def test_costs_are_summed_by_day_user_model_and_protocol(ledger: Ledger) -> None:
    for one in (row(), row(), row(name="bob", money=None), row(name="é ' \" \n")):
        ledger.settle((), 0, [one])
    found = {one.name: one for one in ledger.costs("2026-11-24")}
    assert found["ann"] == CostRow("2026-11-24", "user", "ann", "gpt", "ragapi", 2, 0, TokenUse(78, 0, 2), 14)
    assert found["bob"].money is None and "é ' \" \n" in found
    assert ledger.costs("2026-11-25") == []


def test_a_cap_of_zero_lets_nothing_through(ledger: Ledger) -> None:
    assert ledger.reserve((CappedAccount("all", "2026-11", 0, ENDS_S),), 1) is not None


def _reserved(folder: str, times: int) -> int:
    with closing(SqliteLedger(Path(folder))) as ledger:
        return sum(ledger.reserve((CappedAccount("all", "2026-11", 50, ENDS_S),), 1) is None for _ in range(times))


def test_processes_share_one_cap(tmp_path: Path) -> None:
    with get_context("spawn").Pool(2) as pool:
        assert sum(pool.starmap(_reserved, [(str(tmp_path), 40)] * 2)) == 50


def test_a_file_that_is_deleted_begins_anew(tmp_path: Path) -> None:
    with closing(SqliteLedger(tmp_path)) as ledger:
        ledger.reserve((MINE,), 100)
        for path in tmp_path.iterdir():
            path.unlink()
        assert ledger.reserve((MINE,), 100) is None
        assert ledger.problem() is None


def test_a_file_of_another_program_is_not_touched_and_has_its_name(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    with closing(SqliteLedger(tmp_path)) as ledger:
        with pytest.raises(AccountsUnavailable) as caught:
            ledger.reserve((MINE,), 1)
        assert "ann" not in caught.value.log
        assert ledger.problem() == "Tokens cannot be counted in limits.store."
    assert (tmp_path / FILE).read_bytes().startswith(b"no database")


def test_a_redis_that_is_not_there_has_its_name() -> None:
    with closing(RedisLedger("redis://127.0.0.1:1/0")) as ledger:
        assert ledger.problem() == "Tokens cannot be counted in limits.store."
        with pytest.raises(AccountsUnavailable):
            ledger.costs("2026-11-24")


@pytest.mark.parametrize(
    ("store", "kind"), [("", type(None)), ("accounts", SqliteLedger), ("redis://127.0.0.1:1/0", RedisLedger)]
)
def test_the_setting_says_where_is_counted(store: str, kind: type) -> None:
    assert isinstance(ledger_for(settings_with(limits_store=store).limits), kind)
