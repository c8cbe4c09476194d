"""Builds the identification of users from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from datafari_rag.adapters.identity.application_key import KeyedIdentity
from datafari_rag.adapters.identity.header import AnonymousIdentity, HeaderIdentity
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Identity


def configured_identity(settings: Settings) -> Identity:
    """Return the identification of users, as `security.identity` and `server.api.keys` have it."""
    proved = IDENTITIES[settings.security_identity](settings)
    if not settings.server_api_keys:
        return proved
    is_jwt = settings.security_identity == "jwt"
    reads_tokens = is_jwt and "authorization" in {name.lower() for name in settings.security_jwt_header}
    return KeyedIdentity(proved, settings.server_api_keys, reads_tokens)


def token_identity_for_agents(settings: Settings) -> Identity | None:
    """Return what reads tokens that were made for /mcp, None where no setting says what such a token has to name."""
    public = settings.server_public_url.rstrip("/")
    of_address = f"{public}/mcp" if public else ""
    audiences = tuple(filter(None, (settings.security_jwt_audience, of_address)))
    return _jwt_identity(settings, audiences) if audiences else None


def _header_identity(settings: Settings) -> Identity:
    return HeaderIdentity.of(settings.security_header, settings.security_trusted_proxies, settings.security_domain)


def _jwt_identity(settings: Settings, audiences: tuple[str, ...] = ()) -> Identity:
    # Imported here: the extra `jwt` is only needed by those who use it.
    from datafari_rag.adapters.identity.jwt import JwkSet, JwtIdentity, TokenRules

    rules = TokenRules(
        algorithms=settings.security_jwt_algorithms,
        issuer=settings.security_jwt_issuer,
        audience=audiences or settings.security_jwt_audience,
        user_claim=settings.security_jwt_claims.user,
        tokens_claim=settings.security_jwt_claims.tokens if settings.security_tokens == "claims" else None,
        leeway_s=settings.security_jwt_claims.leeway_s,
        domain=settings.security_domain,
        headers=settings.security_jwt_header,
    )
    source = settings.security_jwt_jwks
    keys = JwkSet(source) if source else None
    return JwtIdentity(rules, keys=keys, secret=settings.security_jwt_secret)


IDENTITIES: Mapping[str, Callable[[Settings], Identity]] = {
    "anonymous": lambda settings: AnonymousIdentity(),
    "header": _header_identity,
    "jwt": _jwt_identity,
}
