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
from datafari_rag.core.identity import Network, client_address, networks
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
            trusted = _trusted(settings)
            address = client_address(peer, headers.get("x-forwarded-for", ""), trusted)
            self._hit("address", address, settings.server_rate_address_per_minute)

    def check_user(self, settings: Settings, name: str | None) -> None:
        """
        Count one request of the user *name*; the anonymous are limited by address alone.

        Raises:
            TooManyRequests: more than `server.rate.user_per_minute`, with the seconds until the next minute.
        """
        if name is not None and settings.server_rate_user_per_minute > 0:
            self._hit("user", name, settings.server_rate_user_per_minute)

    def _hit(self, kind: str, name: str, per_minute: int) -> None:
        item = RateLimitItemPerMinute(per_minute)
        if self._limiter.hit(item, kind, name):
            return
        ends = self._limiter.get_window_stats(item, kind, name).reset_time
        raise TooManyRequests(retry_after_s=max(1.0, math.ceil(ends - self._clock())), log=f"limit of the {kind}")


def _trusted(settings: Settings) -> tuple[Network, ...]:
    return networks(settings.security_trusted_proxies)
