"""The user with their rights: the proved identity, then its tokens; without either there is no answer."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Callable, Mapping

from itsdangerous import BadData, URLSafeTimedSerializer

from datafari_rag.core.access import ANONYMOUS, Revocation, User, usable_tokens
from datafari_rag.core.errors import InvalidSignIn, NotAuthenticated
from datafari_rag.core.identity import VerifiedIdentity, mapped_name
from datafari_rag.core.settings.table import SecuritySettings
from datafari_rag.web.runtime import ServiceSnapshot

log = logging.getLogger(__name__)

KEY_WITHOUT_USER = "The application's key is known, and it names no user: the user's own signed token is expected."


def user_for(identified: VerifiedIdentity, snapshot: ServiceSnapshot) -> User:
    """
    Return the user with the tokens that the source of rights gives them.

    Raises:
        NotAuthenticated: only an application proved itself, and callers without a name get nothing.
        InvalidSignIn: the rights were revoked after the token that claims them was signed.
        AuthorityError: the source cannot be read; without known rights there is no answer.
    """
    name = identified.name
    settings = snapshot.settings
    if name is None:
        if identified.is_application and settings.security.anonymous == "refuse":
            raise NotAuthenticated(KEY_WITHOUT_USER)
        return ANONYMOUS
    if settings.security.mode != "tokens":
        return User(name, is_admin=is_admin(name, settings.security))
    if settings.security.tokens == "claims":
        revoked = snapshot.revocations.latest(name)
        if revoked.voids(identified.issued_at_s, settings.security.jwt_claims.leeway_s):
            raise InvalidSignIn(log="its claims were revoked")
    tokens, dropped = usable_tokens(snapshot.rights.tokens_of(name, identified.claims))
    if dropped:
        log.warning("dropped %d unusable tokens of a user (empty or __nosecurity__)", dropped)
    return User(name, tokens, is_admin=is_admin(name, settings.security))


class RightsOfRequest:
    """Who sent one request, with their rights: looked up once, when they are first needed, and kept to its end."""

    def __init__(self, identified: VerifiedIdentity, snapshot: ServiceSnapshot) -> None:
        """Look up nothing yet."""
        self.identified, self._snapshot = identified, snapshot
        self._known: tuple[Revocation, User] | None = None

    def user(self) -> User:
        """Return the user, the same each time. Raises: as `user_for`."""
        return self._looked_up()[1]

    def fingerprint(self) -> str:
        """
        Return a text that changes with the user's rights, and with their revocation; for signed memories alone.

        Raises: as `user_for`.
        """
        revoked, user = self._looked_up()
        return f"{_digest(user)} {revoked.at_s}"

    def _looked_up(self) -> tuple[Revocation, User]:
        if self._known is None:
            # Before the rights: a memory that is signed with rights that are revoked in between is not opened again.
            revoked = self._snapshot.revocations.latest(self.identified.name)
            self._known = revoked, user_for(self.identified, self._snapshot)
        return self._known


def _digest(user: User) -> str:
    """Return a digest that all workers make alike."""
    return hashlib.sha256(json.dumps(sorted(user.tokens)).encode()).hexdigest()


def is_admin(name: str | None, security: SecuritySettings) -> bool:
    """Say whether the proved *name* is one of `security.admins`; they may be written with or without the domain."""
    return name in {mapped_name(admin, security.domain) for admin in security.admins}


FORM_LIFE_S = 12 * 3600
"""How long a form may lie open."""

TOKEN_FIELD = "csrf_token"  # noqa: S105 - the field's name
TOKEN_HEADER = "x-csrf-token"  # noqa: S105 - the header's name, for scripts


class UserSigning:
    """Signs texts for one purpose and one user (`core.answer.conversations.Signing`)."""

    def __init__(self, make: Callable[[], URLSafeTimedSerializer]) -> None:
        """Sign with what *make* returns when it is needed: what it is made of may cost a look-up, and may raise."""
        self._make = make

    def signed(self, text: str) -> str:
        """Return *text* with a signature and the time."""
        return str(self._make().dumps(text))

    def opened(self, signed: str, *, max_age_s: int | None = None) -> str | None:
        """Return the text that was signed so, at most *max_age_s* ago where that is given, else None."""
        serializer = self._make()
        try:
            text = serializer.loads(signed, max_age=max_age_s)
        except (BadData, UnicodeError):
            return None
        return text if isinstance(text, str) else None


class Signer:
    """One secret for all workers: `server.secret`, else one made before the workers are."""

    def __init__(self, secret: str = "") -> None:
        """Take *secret*; an empty one is replaced by a random one of this process."""
        self._secret = secret or secrets.token_urlsafe(32)

    def signed(self, purpose: str, text: str) -> str:
        """Return *text* with a signature for *purpose* and the time."""
        return self.for_user(purpose, None).signed(text)

    def opened(self, purpose: str, signed: str | None, *, max_age_s: int) -> str | None:
        """Return the text that was signed for *purpose* at most *max_age_s* ago, else None."""
        return self.for_user(purpose, None).opened(signed or "", max_age_s=max_age_s)

    def digest(self, purpose: str, data: bytes) -> str:
        """Return a word for *data* that only this service can make, so that it cannot be guessed."""
        return hmac.new(f"{purpose} {self._secret}".encode(), data, hashlib.sha256).hexdigest()

    def for_user(self, purpose: str | Callable[[], str], user_name: str | None) -> UserSigning:
        """Return what signs for *purpose* and one user, None the anonymous: no text of another user opens."""

        def make() -> URLSafeTimedSerializer:
            salt = f"datafari-rag {purpose if isinstance(purpose, str) else purpose()}"
            if user_name is not None:
                salt += f" {self.digest('user', user_name.encode('utf-8', 'surrogatepass'))}"
            return URLSafeTimedSerializer(self._secret, salt=salt)

        return UserSigning(make)

    def form_token(self, user_name: str) -> str:
        """Return the token that a form of this user carries."""
        return self.signed("form", user_name)

    def is_own_form(self, user_name: str, token: str | None, headers: Mapping[str, str]) -> bool:
        """
        Say whether a POST comes from a page of this service that this user opened.

        The token must be theirs, and the browser must not say that another site sent it. *headers* have lower-case
        names.
        """
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        return self.opened("form", token, max_age_s=FORM_LIFE_S) == user_name
