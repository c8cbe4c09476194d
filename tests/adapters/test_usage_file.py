"""The count of tokens: sums by user and day, a cap that processes share, and files that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest

from datafari_rag.adapters.usage_file import FILE, UsageFile
from datafari_rag.core.errors import AccountsUnavailable
from datafari_rag.core.usage import DayUsage

DAY = "2026-11-24"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[UsageFile]:
    with closing(UsageFile(tmp_path)) as found:
        yield found


def test_tokens_are_summed_by_user_and_day(store: UsageFile) -> None:
    for user, day, tokens in (
        ("bob", DAY, 1),
        ("ann", "2026-11-25", 5),
        ("ann", DAY, 2),
        ("ann", DAY, 3),
        ("", DAY, 4),
    ):
        assert store.add(user, day, tokens)
    assert store.since(DAY) == [
        DayUsage(DAY, "", 4),
        DayUsage(DAY, "ann", 5),
        DayUsage(DAY, "bob", 1),
        DayUsage("2026-11-25", "ann", 5),
    ]
    assert store.since("2026-11-26") == []


def test_a_name_is_a_value_and_no_query(store: UsageFile) -> None:
    name = "é ' \" \n); DROP TABLE usage; --"
    store.add(name, DAY, 1)
    assert [row.user for row in store.since(DAY)] == [name]


def test_from_the_cap_on_nothing_is_added_until_the_next_day(store: UsageFile) -> None:
    assert [store.add("ann", DAY, 60, cap=100) for _ in range(3)] == [True, True, False]
    assert store.since(DAY) == [DayUsage(DAY, "ann", 120)]
    assert store.add("bob", DAY, 60, cap=100)
    assert store.add("ann", "2026-11-25", 60, cap=100)


def test_what_a_call_took_replaces_what_was_reserved(store: UsageFile) -> None:
    store.add("ann", DAY, 100, cap=100)
    store.add("ann", DAY, 40 - 100)
    assert store.since(DAY) == [DayUsage(DAY, "ann", 40)]
    store.add("ann", DAY, -50)
    assert store.since(DAY) == [DayUsage(DAY, "ann", 0)], "the file may have been deleted in between"


def test_years_before_the_last_one_are_forgotten(store: UsageFile) -> None:
    for day in ("2024-12-31", "2025-01-01", DAY):
        store.add("ann", day, 1)
    assert [row.day for row in store.since("2000-01-01")] == ["2025-01-01", DAY]


def _added(folder: str, times: int) -> int:
    with closing(UsageFile(Path(folder))) as store:
        return sum(store.add("ann", DAY, 1, cap=50) for _ in range(times))


def test_processes_share_one_cap(tmp_path: Path) -> None:
    with get_context("spawn").Pool(2) as pool:
        assert sum(pool.starmap(_added, [(str(tmp_path), 40)] * 2)) == 50


def test_a_file_that_is_deleted_begins_again(store: UsageFile, tmp_path: Path) -> None:
    store.add("ann", DAY, 100, cap=100)
    for path in tmp_path.iterdir():
        path.unlink()
    assert store.add("ann", DAY, 100, cap=100)
    assert store.problem() is None


def test_the_file_is_for_its_own_account_alone(store: UsageFile, tmp_path: Path) -> None:
    store.add("ann", DAY, 1)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_file_of_another_program_is_not_touched_and_is_named(store: UsageFile, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    with pytest.raises(AccountsUnavailable) as caught:
        store.add("ann", DAY, 1)
    assert "ann" not in caught.value.log
    assert store.problem() == "Tokens cannot be counted in limits.store."
    assert (tmp_path / FILE).read_bytes().startswith(b"no database")
