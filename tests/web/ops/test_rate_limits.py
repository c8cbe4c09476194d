"""Limits for users and addresses: counted over workers, reported with the seconds to wait."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from datafari_rag.core.errors import TooManyRequests
from datafari_rag.core.settings.table import RequestRates, Settings
from datafari_rag.web.ops.rate_limits import RateLimits, SharedCounters
from tests.settings import settings_with
from tests.support.clock import Clock


def refusals(times: int, check: Callable[[], None]) -> int:
    """Return how many of so many checks were refused."""
    count = 0
    for _ in range(times):
        try:
            check()
        except TooManyRequests:
            count += 1
    return count


def test_no_limit_refuses_nobody() -> None:
    limits, settings = RateLimits(), Settings()
    assert refusals(1000, lambda: limits.check_user(settings.server, "ann")) == 0
    assert refusals(1000, lambda: limits.check_address(settings.server, settings.security, {}, "192.0.2.1")) == 0


def test_a_user_has_his_own_count_and_the_anonymous_none() -> None:
    limits, settings = RateLimits(clock=Clock()), settings_with(server_rate=RequestRates(user=3))
    assert refusals(5, lambda: limits.check_user(settings.server, "ann")) == 2
    assert refusals(3, lambda: limits.check_user(settings.server, "bob")) == 0
    assert refusals(9, lambda: limits.check_user(settings.server, None)) == 0


def test_the_seconds_to_wait_are_told_and_right() -> None:
    clock = Clock()
    limits, settings = RateLimits(clock=clock), settings_with(server_rate=RequestRates(user=1))
    limits.check_user(settings.server, "ann")
    clock.now += 20
    with pytest.raises(TooManyRequests) as caught:
        limits.check_user(settings.server, "ann")
    assert caught.value.retry_after_s == 40
    clock.now += 40.001
    limits.check_user(settings.server, "ann")


def test_a_user_and_an_address_of_one_name_are_two() -> None:
    limits = RateLimits(clock=Clock())
    settings = settings_with(server_rate=RequestRates(user=1, client=1))
    limits.check_user(settings.server, "192.0.2.1")
    assert refusals(1, lambda: limits.check_address(settings.server, settings.security, {}, "192.0.2.1")) == 0
    assert refusals(1, lambda: limits.check_user(settings.server, "192.0.2.1")) == 1


def test_behind_a_trusted_proxy_each_client_has_its_count() -> None:
    limits, settings = RateLimits(clock=Clock()), settings_with(server_rate=RequestRates(client=1))
    for client in ("192.0.2.1", "192.0.2.2"):
        limits.check_address(settings.server, settings.security, {"x-forwarded-for": client}, "127.0.0.1")
    assert (
        refusals(
            1,
            lambda: limits.check_address(
                settings.server, settings.security, {"x-forwarded-for": "192.0.2.2"}, "127.0.0.1"
            ),
        )
        == 1
    )


def _count(path: Path, times: int) -> None:
    counters = SharedCounters(path)
    for _ in range(times):
        counters.add("ann")


def test_workers_share_one_count_and_lose_none(tmp_path: Path) -> None:
    workers = [
        multiprocessing.get_context("spawn").Process(target=_count, args=(tmp_path / "rates", 500)) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert SharedCounters(tmp_path / "rates").add("ann", 0)[0] == 1500


def test_counters_forget_when_their_window_ends() -> None:
    clock = Clock()
    counters = SharedCounters(clock=clock)
    assert [counters.add("ann") for _ in range(2)] == [(1, 60), (2, 60)]
    clock.now += 59
    assert counters.add("ann") == (3, 1)
    clock.now += 1
    assert counters.add("ann") == (1, 60)


def test_more_keys_than_slots_never_fail_and_never_count_for_another() -> None:
    counters = SharedCounters(clock=Clock())
    assert {counters.add(f"user{number}")[0] for number in range(70_000)} == {1}


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        pytest.param("2001:db8::1", "2001:db8::ffff:1", True, id="one subscriber's network"),
        pytest.param("2001:db8:0:1::1", "2001:db8:0:2::1", False, id="two networks"),
        pytest.param("::ffff:192.0.2.1", "192.0.2.1", True, id="one address written twice"),
        pytest.param("192.0.2.1", "192.0.2.2", False, id="two addresses"),
        pytest.param("fe80::1%eth0", "fe80::2%eth1", True, id="with a zone"),
    ],
)
def test_an_ipv6_address_is_counted_by_its_network(first: str, second: str, is_one: bool) -> None:
    limits, settings = RateLimits(clock=Clock()), settings_with(server_rate=RequestRates(client=1))
    limits.check_address(settings.server, settings.security, {}, first)
    assert refusals(1, lambda: limits.check_address(settings.server, settings.security, {}, second)) == is_one


def test_the_same_names_are_in_other_slots_after_each_start(tmp_path: Path) -> None:
    def marks(path: Path) -> set[int]:
        counters = SharedCounters(path)
        for number in range(50):
            counters.add(f"user {number}")
        memory = path.read_bytes()
        return {place for place in range(0, 65_536 * 24, 24) if any(memory[place : place + 8])}

    assert marks(tmp_path / "first") != marks(tmp_path / "second")


def test_workers_share_the_key_of_their_counters(tmp_path: Path) -> None:
    one, other = SharedCounters(tmp_path / "rates"), SharedCounters(tmp_path / "rates")
    assert [counters.add("ann")[0] for counters in (one, other, one)] == [1, 2, 3]
