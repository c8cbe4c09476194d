"""Who asks, by header, application key or the demo's cookie (by token: `jwt`), built from the settings."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.cookies import CookieError, SimpleCookie

from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.identity import Network, VerifiedIdentity, believed_name, is_trusted, networks
from datafari_rag.core.settings.table import SecuritySettings, Settings
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
        morsel = None
        with suppress(CookieError):
            morsel = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        return VerifiedIdentity(self.opened("" if morsel is None else morsel.value))


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
        scheme, _, key = values[0].strip().partition(" ")
        key_bytes = key.strip().encode("utf-8", "surrogatepass")
        # All are compared, so that the time reveals nothing about similar keys.
        matches = [hmac.compare_digest(key_bytes, own.encode("utf-8")) for own in self.keys]
        if len(values) == 1 and scheme.lower() == "bearer" and any(matches):
            others = {name: value for name, value in headers.items() if name.lower() != "authorization"}
            return replace(self.proved.identify(others, peer_address), is_application=True)
        if not self.reads_tokens:
            raise NotAuthenticated(UNKNOWN_KEY)
        return self.proved.identify(headers, peer_address)


class AnonymousIdentity:
    """Every caller is anonymous: `security.identity=anonymous`."""

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """Return the anonymous user, whatever was sent."""
        return VerifiedIdentity()


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

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """
        Return the mapped name of the header; anonymous if it is absent, blank, or sent by a peer that is not trusted.

        Raises:
            NotAuthenticated: a trusted peer sent a value that cannot be a name.
        """
        if not is_trusted(peer_address, self.trusted):
            return VerifiedIdentity()
        values = [value for name, value in headers.items() if name.lower() == self.header.lower()]
        # Two headers of this name mean that one of them passed through: neither is believed (a comma is no name).
        value = ",".join(values) if values else None
        # PEP 3333 hands over a header's bytes as Latin-1; a value that is no UTF-8 stays as it is.
        with suppress(UnicodeError):
            value = value and value.encode("latin-1").decode("utf-8")
        return VerifiedIdentity(name=believed_name(value, self.domain))


def configured_identity(settings: Settings) -> Identity:
    """Return the identification of users, as `security.identity` and `server.api.keys` have it."""
    proved = IDENTITIES[settings.security.identity](settings.security)
    if not settings.server.api_keys:
        return proved
    is_jwt = settings.security.identity == "jwt"
    reads_tokens = is_jwt and "authorization" in {name.lower() for name in settings.security.jwt_header}
    return KeyedIdentity(proved, settings.server.api_keys, reads_tokens)


def token_identity_for_agents(settings: Settings) -> Identity | None:
    """Return what reads tokens that were made for /mcp, None where no setting says what such a token has to name."""
    public = settings.server.public_url.rstrip("/")
    of_address = f"{public}/mcp" if public else ""
    audiences = tuple(filter(None, (settings.security.jwt_audience, of_address)))
    return _jwt_identity(settings.security, audiences) if audiences else None


def _header_identity(security: SecuritySettings) -> Identity:
    return HeaderIdentity(security.header, networks(security.trusted_proxies), security.domain)


def _jwt_identity(security: SecuritySettings, audiences: tuple[str, ...] = ()) -> Identity:
    # Imported here: the extra `jwt` is only needed by those who use it.
    from datafari_rag.adapters.identity.jwt import JwkSet, JwtIdentity, TokenRules

    rules = TokenRules(
        issuer=security.jwt_issuer,
        audience=audiences or security.jwt_audience,
        user_claim=security.jwt_claims.user,
        tokens_claim=security.jwt_claims.tokens if security.tokens == "claims" else None,
        leeway_s=security.jwt_claims.leeway_s,
        domain=security.domain,
        headers=security.jwt_header,
    )
    source = security.jwt_jwks
    keys = JwkSet(source) if source else None
    return JwtIdentity(rules, keys=keys, secret=security.jwt_secret)


IDENTITIES: Mapping[str, Callable[[SecuritySettings], Identity]] = {
    "anonymous": lambda security: AnonymousIdentity(),
    "header": _header_identity,
    "demo": _header_identity,
    "jwt": _jwt_identity,
}
