"""Who is asking, with his rights: the proved identity, then its tokens; a failure of either is no answer."""

from __future__ import annotations

import logging

from datafari_rag.core.access import ANONYMOUS, User, usable_tokens
from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.identity import mapped_name
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import VerifiedIdentity
from datafari_rag.web.runtime import ServiceSnapshot

log = logging.getLogger(__name__)

KEY_WITHOUT_USER = "The application's key is known, and it names no user: the user's own signed token is expected."


def user_for(identified: VerifiedIdentity, snapshot: ServiceSnapshot) -> User:
    """
    Return the user with the tokens that the source of rights gives him.

    Raises:
        NotAuthenticated: only an application proved itself, and callers without a name get nothing.
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
    tokens, dropped = usable_tokens(snapshot.rights.tokens_of(name, identified.claims))
    if dropped:
        log.warning("dropped %d unusable tokens of a user (empty or __nosecurity__)", dropped)
    return User(name, tokens, is_admin=is_admin(name, settings))


def is_admin(name: str | None, settings: Settings) -> bool:
    """Say whether the proved *name* is one of `security.admins`; they may be written with or without the domain."""
    return name in {mapped_name(admin, settings.security_domain) for admin in settings.security_admins}
