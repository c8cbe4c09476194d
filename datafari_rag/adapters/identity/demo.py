"""
The user chosen in the demo's menu, if the configured identity names none.

Only for `demo.users=true`, which is refused unless the server listens to this machine alone; and believed only from
this machine, so that a proxy in front of it cannot open it to others by mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from datafari_rag.core.identity import VerifiedIdentity, is_trusted, networks
from datafari_rag.ports import Identity

LOOPBACK = networks(("127.0.0.0/8", "::1/128"))


@dataclass(frozen=True, slots=True)
class DemoIdentity:
    """
    Asks *proved* first; a name from there wins.

    *opened* returns the name in a signed cookie's value, None when we have not signed it or it is too old.
    """

    proved: Identity
    cookie: str
    opened: Callable[[str], str | None]

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """Return the user. Raises: NotAuthenticated, as the configured way has it."""
        identified = self.proved.identify(headers, peer_address)
        if identified.name is not None or "x-forwarded-for" in headers or not is_trusted(peer_address, LOOPBACK):
            return identified
        return VerifiedIdentity(self.opened(_value(headers.get("cookie", ""), self.cookie)))


def _value(header: str, name: str) -> str:
    try:
        morsel = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value
