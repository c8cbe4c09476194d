"""
The name that a trusted proxy has proved, from its header; or no name, for the setting anonymous.

The header of any other peer is ignored: it neither names nor refuses a user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.identity import Network, VerifiedIdentity, believed_name, is_trusted, networks

UNIDENTIFIED = VerifiedIdentity()


class AnonymousIdentity:
    """Every caller is anonymous: `security.identity=anonymous`."""

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """Return the anonymous user, whatever was sent."""
        return UNIDENTIFIED


@dataclass(frozen=True, slots=True)
class HeaderIdentity:
    """
    Believes one header from some networks: `security.identity=header`.

    *header* is compared without regard to case, but `-` and `_` are different: a proxy strips `X-Remote-User` and not
    `X_Remote_User`, which a WSGI server may hand over under the same name.
    """

    header: str
    trusted: tuple[Network, ...]
    domain: str = ""

    @classmethod
    def of(cls, header: str, proxies: Sequence[str], domain: str = "") -> HeaderIdentity:
        """
        Return the identity for the networks that *proxies* write.

        Raises:
            ValueError: one of them is no network.
        """
        return cls(header, networks(proxies), domain)

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """
        Return the mapped name of the header; anonymous if it is absent, blank, or sent by a peer that is not trusted.

        Raises:
            NotAuthenticated: a trusted peer sent a value that cannot be a name.
        """
        if not is_trusted(peer_address, self.trusted):
            return UNIDENTIFIED
        return VerifiedIdentity(name=believed_name(self._value(headers), self.domain))

    def _value(self, headers: Mapping[str, str]) -> str | None:
        wanted = self.header.lower()
        values = [value for name, value in headers.items() if name.lower() == wanted]
        # Two headers of this name mean that one of them passed through: neither is believed (a comma is no name).
        return _utf8(",".join(values)) if values else None


def _utf8(value: str) -> str:
    """Undo PEP 3333, which hands over a header's bytes as Latin-1; a value that is no UTF-8 stays as it is."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
