"""
The user whom a signed token names: `Authorization: Bearer`, or the token alone in other headers; checked by PyJWT.

The keys choose the algorithm, never the token: each one has its own kind of key, `none` has no row, and
references to keys in a token (`jku`, `jwk`, `x5u`) are not read. An invalid token is refused, never treated as
anonymous.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt

from datafari_rag.adapters.rights import RightsServer
from datafari_rag.adapters.single_flight import Flights
from datafari_rag.core.errors import AuthorityTimeout, AuthorityUnavailable, ExpiredSignIn, InvalidSignIn
from datafari_rag.core.identity import VerifiedIdentity, believed_name, qualified_name
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
        self._cache: tuple[float, tuple[Jwk, ...]] | None = None
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
        matches = _with_id(keys, key_id)
        if matches or self._clock() - max(read_at, self._asked_at) < MIN_REFETCH_S:
            return matches
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
        cache, now = self._cache, self._clock()
        # Not every request calls a provider that fails or hangs: other requests use the known keys.
        is_just_asked = now - self._asked_at < MIN_REFETCH_S
        if cache is not None and now - cache[0] < (max(STALE_S, self._fresh_s) if is_just_asked else self._fresh_s):
            return cache
        try:
            return self._fetched()
        except (AuthorityUnavailable, AuthorityTimeout):
            if cache is not None and self._clock() - cache[0] < max(STALE_S, self._fresh_s):
                return cache
            raise

    def _fetched(self) -> tuple[float, tuple[Jwk, ...]]:
        def fetch() -> tuple[float, tuple[Jwk, ...]]:
            self._asked_at = self._clock()
            is_remote = self._source.startswith(("http://", "https://"))
            try:
                body = self._server.get() if is_remote else Path(self._source.removeprefix("file:")).read_bytes()
            except OSError as error:
                raise AuthorityUnavailable(log=f"key file: {error.strerror}") from error
            self._cache = (self._asked_at, _keys(body))
            return self._cache

        return self._flights.once(self._source, fetch)


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


MAX_TOKEN_CHARS = 32_768

NO_USER = "The token names no user."
TWO_USERS = "Two tokens were sent that name different users."


@dataclass(frozen=True, slots=True)
class TokenRules:
    """
    What makes a token valid, as `security.jwt.*` says.

    Empty *issuer* or *audience* are not checked; of several audiences a token names one. *tokens_claim* None means that
    the rights come from elsewhere, so that a token with too many groups to list is no failure.
    """

    issuer: str = ""
    audience: str | tuple[str, ...] = ""
    user_claim: str = "preferred_username"
    tokens_claim: str | None = "groups"
    leeway_s: float = 30.0
    domain: str = ""
    headers: tuple[str, ...] = ("Authorization",)


class JwtIdentity:
    """Believes tokens signed with the keys of *keys*, or with *secret* (HS256, HS384, HS512)."""

    def __init__(self, rules: TokenRules, *, keys: JwkSet | None = None, secret: str = "") -> None:
        """Hold the rules and the keys. Raises: ValueError: there are none."""
        self._rules = rules
        self._keys = keys
        self._secret = secret
        kinds = [*(["oct"] if self._secret else []), *(["RSA", "EC", "OKP"] if self._keys else [])]
        self._allowed = frozenset(name for name, kind in KINDS.items() if kind in kinds)
        if not self._allowed:
            raise ValueError("no allowed algorithm has a key")

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        """
        Return the user that the token names, the anonymous user without a token in any of the headers.

        Raises:
            InvalidSignIn: another scheme, a token that is not valid, or two tokens of different users.
            ExpiredSignIn: the token was valid.
            AuthorityUnavailable: the provider's keys cannot be read, or the token leaves the user's groups out.
            AuthorityTimeout: the provider did not answer in time.
        """
        identities = []
        for header in map(str.lower, self._rules.headers):
            values = [value for name, value in headers.items() if name.lower() == header]
            if values:
                identities.append(self._identified(_token_in(header, values)))
        if any(identity.name != identities[0].name for identity in identities):
            raise InvalidSignIn(TWO_USERS)
        return identities[0] if identities else VerifiedIdentity()

    def _identified(self, token: str) -> VerifiedIdentity:
        claims = self._verified(token)
        value = _claim(claims, self._rules.user_claim)
        name = believed_name(value if isinstance(value, str) else None, self._rules.domain, principal=qualified_name)
        if name is None:
            raise InvalidSignIn(NO_USER)
        issued_at = claims.get("iat")
        return VerifiedIdentity(
            name=name,
            claims=_tokens(claims, self._rules.tokens_claim),
            # PyJWT has checked that it is a number, where it is there.
            issued_at_s=None if issued_at is None else float(issued_at),
        )

    def _verified(self, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise InvalidSignIn(log=type(error).__name__) from error
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._allowed or "crit" in header or "b64" in header:
            raise InvalidSignIn(log="algorithm or extension not allowed")
        failure = "no such key"
        keys: Sequence[jwt.PyJWK | str | None] = [self._secret]
        if KINDS[algorithm] != "oct":
            candidates = self._keys.candidates(header.get("kid")) if self._keys else ()
            keys = [_key(candidate, algorithm) for candidate in candidates]
        for key in (key for key in keys if key is not None):
            try:
                return self._claims(token, key, algorithm)
            except jwt.ExpiredSignatureError as error:
                # Checked after the signature: only who was given the token learns this.
                raise ExpiredSignIn(log=type(error).__name__) from error
            except (jwt.PyJWTError, ValueError, TypeError) as error:
                failure = type(error).__name__
        raise InvalidSignIn(log=failure)

    def _claims(self, token: str, key: jwt.PyJWK | str, algorithm: str) -> Mapping[str, Any]:
        rules = self._rules
        with warnings.catch_warnings():
            # A short secret is the settings check's to complain about, once, and not each request's.
            warnings.simplefilter("ignore", jwt.InsecureKeyLengthWarning)
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=rules.issuer or None,
                audience=rules.audience or None,
                leeway=rules.leeway_s,
                options={
                    "require": ["exp", *(["iss"] if rules.issuer else []), *(["aud"] if rules.audience else [])],
                    "verify_aud": rules.audience != "",
                    "verify_iss": rules.issuer != "",
                },
            )


def _token_in(header: str, values: Sequence[str]) -> str:
    """Return the token in the *values* of one header. Raises: InvalidSignIn."""
    scheme, _, token = values[0].strip().partition(" ")
    if header != "authorization" and not token:
        scheme, token = "bearer", scheme
    if len(values) > 1 or scheme.lower() != "bearer" or len(token) > MAX_TOKEN_CHARS:
        raise InvalidSignIn
    return token.strip()


def _key(data: Jwk, algorithm: str) -> jwt.PyJWK | None:
    """Return the key when it is public, of the algorithm's kind and made for signatures, else None."""
    is_fitting = data.get("kty") == KINDS[algorithm] and data.get("alg", algorithm) == algorithm
    # With a published private key (`d`), everyone could sign.
    if not is_fitting or data.get("use", "sig") != "sig" or "d" in data:
        return None
    try:
        return jwt.PyJWK(dict(data), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):  # the library reads what it takes for text
        return None


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Return the claim of this name, else the one at this dotted path (`realm_access.roles`), else None."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _tokens(claims: Mapping[str, Any], path: str | None) -> tuple[str, ...]:
    """
    Return the user's tokens, none when the claim is absent.

    A claim of another form is refused rather than read as "no tokens": a missing token can also be one that a
    document denies.
    """
    if path is None:
        return ()
    value = _claim(claims, path)
    elsewhere = claims.get("_claim_names")
    if value is None and (claims.get("hasgroups") or (isinstance(elsewhere, dict) and path in elsewhere)):
        # Entra ID leaves the groups out when there are too many and signals it in this way.
        raise AuthorityUnavailable(log="the token leaves the groups out")
    if isinstance(value, str):
        value = [value]
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(token, str) for token in value):
        raise InvalidSignIn(log="the tokens claim is no list of strings")
    return tuple(value)


KINDS: Mapping[str, str] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    **dict.fromkeys(("HS256", "HS384", "HS512"), "oct"),
    "EdDSA": "OKP",
}
"""Signatures that are believed, and the kind of key that each needs: a shared secret those that begin with HS."""
