"""
Who may see what, as a value, and the one function that makes it.

`filter_for` is the only way to a `Filter`, and no retriever can be called without one. The rules are contract §5: for
each level (share, parent, document), with NS = `__nosecurity__` and T = the user's tokens,
``((NS in allow and NS in deny) or allow & T) and not deny & T``; with T empty all six fields must be NS.
This module decides; it never talks to a directory, a search engine or a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.errors import NotAuthenticated

NO_SECURITY = "__nosecurity__"
"""Value of an ACL field on which nothing was set (ManifoldCF)."""

LEVELS = ("share", "parent", "document")
"""The three levels of ManifoldCF; all must be satisfied."""

ACL_FIELDS = tuple(f"{verb}_token_{level}" for level in LEVELS for verb in ("allow", "deny"))

Mode = Literal["tokens", "plugin", "none"]


@dataclass(frozen=True, slots=True)
class User:
    """
    A user with his rights; *name* is None for the anonymous user.

    *name* is the mapped one (Datafari's rules), *tokens* what the source of rights gave.
    """

    name: str | None = None
    tokens: frozenset[str] = frozenset()
    is_admin: bool = False


ANONYMOUS = User()

_SEAL = object()


@dataclass(frozen=True, slots=True, init=False)
class Filter:
    """
    What one user's searches are narrowed to; made by `filter_for` alone.

    *tokens* are raw terms, sorted. In mode plugin *user_name* is handed to Solr's own component. A filter never
    shows its tokens in its repr, because reprs end in logs.
    """

    mode: Mode
    tokens: tuple[str, ...]
    user_name: str | None

    def __init__(self, mode: Mode, tokens: tuple[str, ...], user_name: str | None, *, seal: object) -> None:
        """Refuse to exist unless made in this module. Raises: TypeError."""
        if seal is not _SEAL:
            raise TypeError("a Filter is made by access.filter_for, and by nothing else")
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "user_name", user_name)

    def __repr__(self) -> str:
        """Name the kind and the number of tokens, never a token."""
        return f"Filter(mode={self.mode!r}, tokens={len(self.tokens)})"


def usable_tokens(tokens: Iterable[str]) -> tuple[frozenset[str], int]:
    """
    Return the tokens that may be used, and how many were dropped.

    `__nosecurity__` and empty strings are dropped: with them the deny rule would hide every document (contract §5).
    """
    given = list(tokens)
    kept = frozenset(token for token in given if token not in ("", NO_SECURITY))
    return kept, sum(token in ("", NO_SECURITY) for token in given)


def require_known(user: User, anonymous: Literal["public", "refuse"]) -> None:
    """Reject a user who may not send questions. Raises: NotAuthenticated."""
    if user.name is None and anonymous == "refuse":
        raise NotAuthenticated


def filter_for(user: User, *, mode: Mode, anonymous: Literal["public", "refuse"]) -> Filter:
    """
    Return the filter under which every search of *user* runs.

    Raises:
        NotAuthenticated: no user is signed in and *anonymous* is "refuse".
    """
    require_known(user, anonymous)
    tokens = tuple(sorted(usable_tokens(user.tokens)[0])) if mode == "tokens" else ()
    return Filter(mode, tokens, user.name if mode == "plugin" else None, seal=_SEAL)


def is_visible(acl: Mapping[str, Iterable[str]], tokens: frozenset[str]) -> bool:
    """
    Say whether a document with the six ACL fields *acl* may be seen with *tokens*.

    A missing or empty field counts as `__nosecurity__`, as the schema's default has it.
    """
    return all(
        _is_level_open(
            frozenset(acl.get(f"allow_token_{level}") or (NO_SECURITY,)),
            frozenset(acl.get(f"deny_token_{level}") or (NO_SECURITY,)),
            tokens,
        )
        for level in LEVELS
    )


def _is_level_open(allow: frozenset[str], deny: frozenset[str], tokens: frozenset[str]) -> bool:
    is_unset = NO_SECURITY in allow and NO_SECURITY in deny
    return (is_unset or bool(allow & tokens)) and not deny & tokens
