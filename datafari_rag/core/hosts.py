"""
Names under which a service may be called: `server.hosts` against the names in a request.

A page of another site can have its own name resolved to this machine (DNS rebinding); then the browser takes this
service for that site. What it cannot change is the name in `Host`. Pure rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_WRITTEN = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::(\d{1,5}))?")
_ADDRESS = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*")

_TARGET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")

DEFAULT_PORTS = frozenset({"80", "443"})


def normalized(text: str) -> tuple[str, str | None] | None:
    """
    Return host and port of `host`, `host:port`, `[IPv6]` or `[IPv6]:port`; None for anything else.

    Hosts are compared without case; a port that is not written is None.
    """
    found = _WRITTEN.fullmatch(text)
    return (found[1].lower(), found[2]) if found else None


def bracketed(text: str) -> str:
    """Return a bare IPv6 address as `Host` has it, in brackets; any other text as it is."""
    return f"[{text}]" if text.count(":") > 1 and _ADDRESS.fullmatch(text) else text


def authority_of(target: str) -> str | None:
    """Return the authority in a request target of the absolute form (`http://host/path`), None in any other."""
    found = _TARGET.match(target)
    return found[1] if found else None


def is_known(named: Sequence[str], hosts: Iterable[str]) -> bool:
    """
    Return whether each name in a request is one of *hosts*; a host without a port is known on any.

    A request without a name is not known. *named* are the `Host` header and the target's authority, where there is one.
    """
    known = [normalized(host) for host in hosts]
    return bool(named) and all(_is_one(normalized(name), known) for name in named)


def is_same(one: str, other: str) -> bool:
    """Return whether two authorities are one host and port, where the default port may be written or not."""
    first, second = normalized(one), normalized(other)
    return first is not None and second is not None and _without_default(first) == _without_default(second)


def _is_one(name: tuple[str, str | None] | None, known: Sequence[tuple[str, str | None] | None]) -> bool:
    return name is not None and (name in known or (name[0], None) in known)


def _without_default(name: tuple[str, str | None]) -> tuple[str, str | None]:
    return (name[0], None) if name[1] in DEFAULT_PORTS else name
