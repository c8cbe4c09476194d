"""
Who may see what, as a value, and the one function that makes it.

`filter_for` is the only way to a `Filter`, and no retriever can be called without one. The rules are contract §5: for
each level (share, parent, document), with NS = `__nosecurity__` and T = the user's tokens,
``((NS in allow and NS in deny) or allow & T) and not deny & T``; with T empty all six fields must be NS.
A revocation says from when on nothing counts that was known of a user's rights before. This module decides; it never
talks to a directory, a search engine or a log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.errors import NotAuthenticated

NO_SECURITY = "__nosecurity__"
"""Value of an ACL field on which nothing was set (ManifoldCF)."""

LEVELS = ("share", "parent", "document")
"""The three levels of ManifoldCF; all must be satisfied."""

ACL_FIELDS = tuple(f"{verb}_token_{level}" for level in LEVELS for verb in ("allow", "deny"))

MAX_NAME_CHARS = 100
"""So much of a user's name is shown."""

Mode = Literal["tokens", "plugin", "none"]


@dataclass(frozen=True, slots=True)
class User:
    """
    A user with their rights; *name* is None for the anonymous user.

    *name* is the mapped one (Datafari's rules), *tokens* what the source of rights gave.
    """

    name: str | None = None
    tokens: frozenset[str] = frozenset()
    is_admin: bool = False


ANONYMOUS = User()


class BadUsers(ValueError):
    """A file of users that is not in its form; the text names the line, and the user where it is one."""


def users_in(raw: bytes) -> Mapping[str, tuple[str, ...]]:
    """
    Return the users of a file, a JSON object of names, with the list of access tokens of each.

    Raises:
        BadUsers: it is none.
    """
    try:
        data = json.loads(raw)
    except json.JSONDecodeError as error:
        raise BadUsers(f"line {error.lineno} is not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise BadUsers("it is not JSON in UTF-8") from error
    if not isinstance(data, dict):
        raise BadUsers("line 1: a JSON object of users is expected")
    for name, tokens in data.items():
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            # The last entry of a name counts, as everywhere in JSON.
            spellings = (json.dumps(name), json.dumps(name, ensure_ascii=False))
            at = max(raw.rfind(spelling.encode("utf-8", "replace")) for spelling in spellings)
            line = raw[: max(at, 0)].count(b"\n") + 1
            place = f"line {line}, " if at >= 0 else ""
            raise BadUsers(f"{place}user {name[:MAX_NAME_CHARS]}: a list of tokens in quotation marks is expected")
    return {name: tuple(tokens) for name, tokens in data.items()}


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
    all_tokens = list(tokens)
    usable = frozenset(token for token in all_tokens if token not in ("", NO_SECURITY))
    return usable, sum(token in ("", NO_SECURITY) for token in all_tokens)


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


@dataclass(frozen=True, slots=True)
class Revocation:
    """
    The latest revocation that concerns one user.

    *serial* changes with each revocation and means nothing outside one process. *at_s* is seconds since 1970, None
    where the user was never revoked.
    """

    serial: tuple[int, int] = (0, 0)
    at_s: float | None = None

    def voids(self, issued_at_s: float | None, leeway_s: float) -> bool:
        """
        Say whether claims that were signed at *issued_at_s*, None for an unknown time, are no longer believed.

        The issuer's clock may be *leeway_s* ahead, and issuers round to whole seconds: a token of the very second of
        the revocation may be older than it.
        """
        if self.at_s is None:
            return False
        return issued_at_s is None or issued_at_s <= self.at_s + leeway_s


NEVER = Revocation()


def same_user(name: str) -> str:
    """Return *name* as revocations compare it: one too many for a namesake is better than none for "Alice"."""
    return name.strip().casefold()


def line_of(name: str | None, *, at_s: float, by: str) -> bytes:
    """Return the line that revokes *name*, None everybody, with its line end; *by* is the administrator."""
    return json.dumps({"at": at_s, "user": name, "by": by}, ensure_ascii=True).encode("ascii") + b"\n"


def read_line(line: bytes) -> tuple[str | None, float]:
    """Return whom *line* revokes, None for everyone, and when. Raises: ValueError: it is not such a line."""
    data = json.loads(line)
    if not isinstance(data, Mapping) or "user" not in data:
        raise ValueError("no revocation")
    name, at_s = data["user"], data.get("at")
    is_name = name is None or (isinstance(name, str) and same_user(name) != "")
    if not is_name or isinstance(at_s, bool) or not isinstance(at_s, int | float):
        raise ValueError("no revocation")
    return name, float(at_s)
