"""
The key of a calling application: `Authorization: Bearer KEY`, one of `server.api.keys`.

A key proves an application, not a user: the configured way proves the user, from the other headers. So a chat
program can have a key and send each of its users with his own signed token.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.ports import Identity

UNKNOWN_KEY = "This key is not known here."


@dataclass(frozen=True, slots=True)
class KeyedIdentity:
    """
    Takes a known key out of the headers, and asks *proved* for the user.

    *reads_tokens* says that *proved* reads `Authorization` itself, which may contain a user's token.
    """

    proved: Identity
    keys: tuple[str, ...] = field(repr=False)
    reads_tokens: bool

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """Return the user. Raises: NotAuthenticated: a key that is not known; and as the configured way has it."""
        values = [value for name, value in headers.items() if name.lower() == "authorization"]
        if not values:
            return self.proved.identify(headers, peer_address)
        if len(values) == 1 and self._is_known(values[0]):
            others = {name: value for name, value in headers.items() if name.lower() != "authorization"}
            return replace(self.proved.identify(others, peer_address), is_application=True)
        if not self.reads_tokens:
            raise NotAuthenticated(UNKNOWN_KEY)
        return self.proved.identify(headers, peer_address)

    def _is_known(self, value: str) -> bool:
        scheme, _, key = value.strip().partition(" ")
        given = key.strip().encode("utf-8", "surrogatepass")
        # All are compared, so that the time reveals nothing about similar keys.
        matches = [hmac.compare_digest(given, known.encode("utf-8")) for known in self.keys]
        return scheme.lower() == "bearer" and any(matches)
