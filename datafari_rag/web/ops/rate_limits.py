"""
How much one user and one address may ask: `server.rate.*`, counted over all workers of this server.

The address is checked before anything is proved, so that guessing at tokens is limited too; the user when he is
known. A user's limit reveals nothing about other users.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from limits import RateLimitItemPerMinute
from limits.strategies import FixedWindowRateLimiter

from datafari_rag.core.errors import TooManyRequests
from datafari_rag.core.identity import client_address, counted_address, networks
from datafari_rag.core.settings.table import Settings
from datafari_rag.web.ops.shared_counters import SharedCounters


class RateLimits:
    """The counters of this server; *folder* is one that its workers share, None counts in this worker alone."""

    def __init__(self, folder: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Open nothing yet."""
        counters = SharedCounters(folder / "rates" if folder else None, clock=clock)
        self._limiter = FixedWindowRateLimiter(counters)
        self._clock = clock

    def check_address(self, settings: Settings, headers: Mapping[str, str], peer: str) -> None:
        """
        Count one request of the address it came from; behind a trusted proxy that is the proxy's `X-Forwarded-For`.

        *headers* have lower-case names.

        Raises:
            TooManyRequests: more than `server.rate.address_per_minute`, with the seconds until the next minute.
        """
        if settings.server_rate_address_per_minute > 0:
            self._hit("address", address_of(settings, headers, peer), settings.server_rate_address_per_minute)

    def check_user(self, settings: Settings, name: str | None) -> None:
        """
        Count one request of the user *name*; the anonymous are limited by address alone.

        Raises:
            TooManyRequests: more than `server.rate.user_per_minute`, with the seconds until the next minute.
        """
        if name is not None and settings.server_rate_user_per_minute > 0:
            self._hit("user", name, settings.server_rate_user_per_minute)

    def check_work(self, settings: Settings, caller: str, units: int) -> None:
        """
        Count *units* of work of *caller*; a caller without any may begin work of any size.

        Raises:
            TooManyRequests: more than `server.rate.work_per_minute`, with the seconds until the next minute.
        """
        most = settings.server_rate_work_per_minute
        if most > 0:
            self._hit("work", caller, most, min(units, most))

    def _hit(self, kind: str, name: str, per_minute: int, units: int = 1) -> None:
        item = RateLimitItemPerMinute(per_minute)
        if self._limiter.hit(item, kind, name, cost=units):
            return
        ends = self._limiter.get_window_stats(item, kind, name).reset_time
        raise TooManyRequests(retry_after_s=max(1.0, math.ceil(ends - self._clock())), log=f"limit of the {kind}")


def address_of(settings: Settings, headers: Mapping[str, str], peer: str) -> str:
    """Return what a caller without a name is counted by; *headers* have lower-case names."""
    trusted = networks(settings.security_trusted_proxies)
    return counted_address(client_address(peer, headers.get("x-forwarded-for", ""), trusted))
