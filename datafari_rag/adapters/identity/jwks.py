"""
The public keys of an identity provider: a JWK set from a URL or a file, as plain dicts by key id.

Fetched when needed, kept for some minutes, fetched again when a token names a key that is not there (rotation), but
not more often than strangers' tokens should be able to make us ask. Which key fits a token is not decided here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from datafari_rag.adapters.http.rights_server import RightsServer
from datafari_rag.adapters.http.single_flight import Flights
from datafari_rag.core.errors import AuthorityTimeout, AuthorityUnavailable
from datafari_rag.core.messages import message

STALE_S = 3600.0
"""How long a set is still used while the provider cannot be reached; after that all tokens are refused."""

MIN_REFETCH_S = 5.0
"""Shortest time between two fetches because of unknown key ids."""

TIMEOUT_S = (5.0, 10.0)
"""Longest time to connect to the provider, and for its whole answer."""

_MAX_BYTES = 1_000_000

Jwk = Mapping[str, object]


class JwkSet:
    """The keys of one provider; safe for many threads."""

    def __init__(
        self,
        source: str,
        *,
        fresh_s: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        timeout_s: tuple[float, float] = TIMEOUT_S,
    ) -> None:
        """Remember where the keys are, an http(s) URL, else a file; *fresh_s* they are used without asking again."""
        self._source = source
        self._fresh_s = fresh_s
        self._clock = clock
        self._server = RightsServer(source, timeout_s, _MAX_BYTES)
        self._flights: Flights[tuple[float, tuple[Jwk, ...]]] = Flights()
        self._held: tuple[float, tuple[Jwk, ...]] | None = None
        self._asked_at = float("-inf")

    def candidates(self, key_id: str | None) -> tuple[Jwk, ...]:
        """
        Return the keys that a token with *key_id* may be signed with: those of that id, without id all of them.

        Empty when the provider has no such key.

        Raises:
            AuthorityUnavailable: there are no keys, or they are older than an hour and cannot be fetched.
            AuthorityTimeout: as above, and the provider did not answer in time.
        """
        read_at, keys = self._current()
        found = _with_id(keys, key_id)
        if found or self._clock() - max(read_at, self._asked_at) < MIN_REFETCH_S:
            return found
        try:
            return _with_id(self._fetched()[1], key_id)
        except (AuthorityUnavailable, AuthorityTimeout):
            return ()

    def probe(self) -> str | None:
        """Return None when there are keys, else one sentence that says what is wrong."""
        try:
            self._current()
        except (AuthorityUnavailable, AuthorityTimeout) as error:
            return message(
                "The keys of the identity provider (security.jwt.jwks) cannot be read: {cause}.", cause=error.log
            )
        return None

    def _current(self) -> tuple[float, tuple[Jwk, ...]]:
        held, now = self._held, self._clock()
        # Not every request calls a provider that fails or hangs: other requests use the known keys.
        is_just_asked = now - self._asked_at < MIN_REFETCH_S
        if held is not None and now - held[0] < (max(STALE_S, self._fresh_s) if is_just_asked else self._fresh_s):
            return held
        try:
            return self._fetched()
        except (AuthorityUnavailable, AuthorityTimeout):
            if held is not None and self._clock() - held[0] < max(STALE_S, self._fresh_s):
                return held
            raise

    def _fetched(self) -> tuple[float, tuple[Jwk, ...]]:
        return self._flights.once(self._source, self._fetch)

    def _fetch(self) -> tuple[float, tuple[Jwk, ...]]:
        self._asked_at = self._clock()
        self._held = (self._asked_at, _keys(self._read()))
        return self._held

    def _read(self) -> bytes:
        if not self._source.startswith(("http://", "https://")):
            try:
                return Path(self._source.removeprefix("file:")).read_bytes()
            except OSError as error:
                raise AuthorityUnavailable(log=f"key file: {type(error).__name__}") from error
        return self._server.get()


def _keys(body: bytes) -> tuple[Jwk, ...]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise AuthorityUnavailable(log="not JSON") from error
    keys = data.get("keys") if isinstance(data, dict) else None
    usable = tuple(key for key in keys if isinstance(key, dict)) if isinstance(keys, list) else ()
    if not usable:
        raise AuthorityUnavailable(log="not a set of keys")
    return usable


def _with_id(keys: tuple[Jwk, ...], key_id: str | None) -> tuple[Jwk, ...]:
    return keys if key_id is None else tuple(key for key in keys if key.get("kid") == key_id)
