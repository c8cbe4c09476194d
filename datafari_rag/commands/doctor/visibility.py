"""
What one user may see of the index, in numbers, and which of their tokens that comes from.

Every number is a search as a user, through the one filter; nothing is read around it, and no text is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from datafari_rag.core.access import User
from datafari_rag.core.search_request import Browse
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import Dependencies, browse, fetch

MAX_TOKENS = 30
"""Most tokens that are tried one by one; each is two searches."""


@dataclass(frozen=True, slots=True)
class TokenEffect:
    """What one of a user's tokens does: how many documents they see by it alone, and how many it hides from them."""

    token: str
    opens: int
    hides: int


@dataclass(frozen=True, slots=True)
class Visibility:
    """
    How many documents a user sees: *public* of them without a token.

    *tokens* is how many they have; *effects* are those of the first `MAX_TOKENS` that do anything.
    """

    documents: int
    public: int
    tokens: int
    effects: tuple[TokenEffect, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """
    Whether a user sees one document, and why.

    *decisive* are the tokens without which it would be the other way round: without one of them they would not see it,
    or would, because the document denies it. *is_public*: anybody sees it.
    """

    is_seen: bool
    is_public: bool
    decisive: tuple[str, ...]


def visibility_of(user: User, settings: Settings, dependencies: Dependencies) -> Visibility:
    """Return what *user* sees. Raises: SearchError, NotAuthenticated."""

    def count(tokens: frozenset[str]) -> int:
        return _number(browse(Browse(None, rows=0), _with(user, tokens), settings=settings, dependencies=dependencies))

    all_seen, public = count(user.tokens), count(frozenset())
    tried = sorted(user.tokens)[:MAX_TOKENS]
    effects = (
        TokenEffect(one, count(frozenset({one})) - public, max(0, count(user.tokens - {one}) - all_seen))
        for one in tried
    )
    return Visibility(all_seen, public, len(user.tokens), tuple(one for one in effects if one.opens or one.hides))


def reason_for(document_id: str, user: User, settings: Settings, dependencies: Dependencies) -> Reason:
    """Return whether *user* sees a document, and by which tokens. Raises: SearchError, NotAuthenticated."""

    def is_seen(tokens: frozenset[str]) -> bool:
        asked = _with(user, tokens)
        return any(
            fetch(document_id, field, asked, settings=settings, dependencies=dependencies) is not None
            for field in ("exactContent", "preview_content")
        )

    found = is_seen(user.tokens)
    tried = sorted(user.tokens)[:MAX_TOKENS]
    decisive = tuple(one for one in tried if is_seen(user.tokens - {one}) is not found)
    return Reason(found, is_public=is_seen(frozenset()), decisive=decisive)


def newest_date(user: User, settings: Settings, dependencies: Dependencies) -> str | None:
    """Return the newest `last_modified` that *user* sees, None when there is none. Raises: SearchError."""
    wanted = Browse(None, rows=1, sort=("last_modified", True), fields=("id", "last_modified"))
    found = browse(wanted, user, settings=settings, dependencies=dependencies)
    rows = _part(found, "response").get("docs") or ()
    value = rows[0].get("last_modified") if rows and isinstance(rows[0], Mapping) else None
    return str(value[0] if isinstance(value, list) and value else value) if value else None


def _with(user: User, tokens: frozenset[str]) -> User:
    return replace(user, tokens=tokens)


def _number(page: Mapping[str, object]) -> int:
    return int(_part(page, "response")["numFound"])


def _part(page: Mapping[str, object], name: str) -> Mapping[str, Any]:
    found = page[name]
    return found if isinstance(found, Mapping) else {}
