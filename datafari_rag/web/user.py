"""The user with their rights: the proved identity, then its tokens; without either there is no answer."""

from __future__ import annotations

import hashlib
import json
import logging
import math

from datafari_rag.core.access import ANONYMOUS, REVOKED, Revocation, User, usable_tokens
from datafari_rag.core.errors import InvalidSignIn, NotAllowed, NotAuthenticated
from datafari_rag.core.identity import VerifiedIdentity, mapped_name
from datafari_rag.core.settings.table import Settings
from datafari_rag.web.runtime import ServiceSnapshot

log = logging.getLogger(__name__)

RECHECK_S = 5.0
"""How often the rights behind an open stream are looked up at most, however short `security.cache_s` is."""

_UNKNOWN = object()
"""No mark of revocations yet."""

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
        if identified.is_application and settings.security_anonymous == "refuse":
            raise NotAuthenticated(KEY_WITHOUT_USER)
        return ANONYMOUS
    if settings.security_mode != "tokens":
        return User(name, is_admin=is_admin(name, settings))
    if settings.security_tokens == "claims":
        revoked = snapshot.revocations.latest(name)
        if revoked.voids(identified.issued_at_s, settings.security_jwt_claims.leeway_s):
            raise InvalidSignIn(log="its claims were revoked")
    tokens, dropped = usable_tokens(snapshot.rights.tokens_of(name, identified.claims))
    if dropped:
        log.warning("dropped %d unusable tokens of a user (empty or __nosecurity__)", dropped)
    return User(name, tokens, is_admin=is_admin(name, settings))


class RightsOfRequest:
    """Who sent one request with their rights, looked up when they are first needed, and whether they still hold."""

    def __init__(self, identified: VerifiedIdentity, snapshot: ServiceSnapshot) -> None:
        """Look up nothing yet."""
        self.identified, self._snapshot = identified, snapshot
        self._user: User | None = None
        self._began_with: tuple[int, Revocation] | None = None
        self._digest = ""
        self._looked_up_at = math.inf
        self._max_age_s = max(RECHECK_S, snapshot.settings.security_cache_s)
        self._mark: object = _UNKNOWN

    def user(self) -> User:
        """Return the user, the same each time. Raises: as `user_for`."""
        self._found()
        if self._user is None:
            self._user = user_for(self.identified, self._snapshot)
        return self._user

    def fingerprint(self) -> str:
        """
        Return a text that changes with the user's rights, and with their revocation; for signed memories alone.

        Raises: as `user_for`.
        """
        _, revoked = self._found()
        return f"{self._digest} {revoked.at_s}"

    def require_held(self) -> None:
        """
        Continue an answer while its reader has the rights that it began with.

        Revocations count immediately; the source of rights is read again when what it said is as old as
        `security.cache_s`, and `RECHECK_S`.

        Raises:
            NotAllowed: the rights were revoked, or are others now.
            RagError: as `user_for`.
        """
        snapshot = self._snapshot
        # Called for each of the model's tokens, so that little is done while nothing changed.
        now, mark = snapshot.dependencies.clock(), snapshot.revocations.mark()
        is_old = now - self._looked_up_at >= self._max_age_s
        if mark == self._mark and not is_old:
            return
        tokens, revoked = self._found()
        # An open stream holds no tokens, of which there may be thousands.
        self._user, self._mark = None, mark
        if snapshot.revocations.latest(self.identified.name) != revoked:
            raise NotAllowed(REVOKED)
        if is_old:
            if hash(user_for(self.identified, snapshot).tokens) != tokens:
                raise NotAllowed(REVOKED)
            self._looked_up_at = now

    def _found(self) -> tuple[int, Revocation]:
        """Return the hash of the tokens, and the latest revocation, as they were when they were first needed."""
        if self._began_with is None:
            self._looked_up_at = self._snapshot.dependencies.clock()
            # Before the rights: what is revoked in between is noticed.
            revoked = self._snapshot.revocations.latest(self.identified.name)
            self._user = user_for(self.identified, self._snapshot)
            self._began_with = hash(self._user.tokens), revoked
            # A digest that all workers make alike costs a millisecond for thousands of tokens.
            self._digest = _digest(self._user) if self._snapshot.settings.chat_memory_enabled else ""
        return self._began_with


def _digest(user: User) -> str:
    return hashlib.sha256(json.dumps(sorted(user.tokens)).encode()).hexdigest()


def is_admin(name: str | None, settings: Settings) -> bool:
    """Say whether the proved *name* is one of `security.admins`; they may be written with or without the domain."""
    return name in {mapped_name(admin, settings.security_domain) for admin in settings.security_admins}
