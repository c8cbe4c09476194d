"""
Who a proved name belongs to: Datafari's mapping of names, and which peers may vouch for one.

Pure rules. What is proved, and by what, is an identity adapter's; nothing here reads a request's parameters.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from datafari_rag.core.errors import InvalidSignIn

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::(\d{1,5}))?")
_ADDRESS = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*")

_TARGET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")

DEFAULT_PORTS = frozenset({"80", "443"})


def normalized(text: str) -> tuple[str, str | None] | None:
    """
    Return host and port of `host`, `host:port`, `[IPv6]` or `[IPv6]:port`; None for anything else.

    Hosts are compared without case; a port that is not written is None.
    """
    match = _HOST.fullmatch(text)
    return (match[1].lower(), match[2]) if match else None


def bracketed(text: str) -> str:
    """Return a bare IPv6 address as `Host` has it, in brackets; any other text as it is."""
    return f"[{text}]" if text.count(":") > 1 and _ADDRESS.fullmatch(text) else text


def authority_of(target: str) -> str | None:
    """Return the authority in a request target of the absolute form (`http://host/path`), None in any other."""
    match = _TARGET.match(target)
    return match[1] if match else None


def is_known(named: Sequence[str], hosts: Iterable[str]) -> bool:
    """
    Return whether each name in a request is one of *hosts*; a host without a port is known on any.

    A request without a name is not known. *named* are the `Host` header and the target's authority, where there is one.
    """
    own, names = [normalized(host) for host in hosts], [normalized(name) for name in named]
    return bool(names) and all(name is not None and (name in own or (name[0], None) in own) for name in names)


def is_same(name: str, other: str) -> bool:
    """Return whether two authorities are one host and port, where the default port may be written or not."""
    first, second = normalized(name), normalized(other)
    return first is not None and second is not None and _without_default(first) == _without_default(second)


def _without_default(name: tuple[str, str | None]) -> tuple[str, str | None]:
    return (name[0], None) if name[1] in DEFAULT_PORTS else name


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_NAME_CHARS = 256
"""Longest name that is accepted; a longer one identifies no user."""

UNSET = frozenset({"", "(null)"})
"""Values that mean "anonymous": Apache's mod_headers writes the second for a variable that is not set."""


@dataclass(frozen=True, slots=True)
class VerifiedIdentity:
    """
    The proved sender of a request: *name* None is the anonymous user; *claims* are tokens of a verified token.

    *issued_at_s* is when that token was signed, None if it does not say.
    """

    name: str | None = None
    claims: tuple[str, ...] = ()
    issued_at_s: float | None = field(default=None, compare=False)
    is_application: bool = False
    """Whether a calling application proved itself by its key, which names no user."""


def mapped_name(name: str, domain: str = "") -> str:
    r"""
    Return the principal that the source of rights knows: `DOMAIN\` is stripped, `@domain` appended when it has none.

    The empty string when nothing is left of *name*. Case is kept, as Datafari keeps it.
    """
    return qualified_name(name.rpartition("\\")[2], domain)


def qualified_name(name: str, domain: str = "") -> str:
    r"""
    Return *name* with `@domain` appended when it names no domain; nothing is stripped but white space.

    For names that an issuer signed: `EVIL\alice` and `alice` are two users of theirs, and only they know which is ours.
    """
    bare = name.strip()
    if bare == "" or "@" in bare or "\\" in bare or domain == "":
        return bare
    return f"{bare}@{domain.lstrip('@')}"


def believed_name(
    value: str | None, domain: str = "", *, principal: Callable[[str, str], str] = mapped_name
) -> str | None:
    """
    Return the name in a header's or a claim's *value*, mapped by *principal*; None when it is absent or blank.

    Raises:
        InvalidSignIn: the value cannot be a name: too long, a control character in it, two names joined by a
            comma (a header sent twice), or nothing left after mapping. Its sender is not treated as anonymous.
    """
    if value is None or value.strip() in UNSET:
        return None
    if len(value) > MAX_NAME_CHARS or "," in value or not value.isprintable():
        raise InvalidSignIn
    name = principal(value, domain)
    if name == "" or name.startswith("@"):
        raise InvalidSignIn
    return name


def naming_headers(headers: Iterable[str], own: str) -> tuple[str, ...]:
    """Return those of *headers*, lower-case names, that name a user in plain text; *own* is `security.header`."""
    names = NAMING_HEADERS | {own.lower()}
    return tuple(name for name in headers if name in names)


NAMING_HEADERS = frozenset(
    (
        *("x-remote-user", "remote-user", "x-forwarded-user", "x-forwarded-email", "x-forwarded-preferred-username"),
        *("x-auth-request-user", "x-auth-request-email", "x-authenticated-user", "x-webauth-user", "x-user"),
        *("x-user-id", "x-user-email", "x-openwebui-user-name", "x-openwebui-user-id", "x-openwebui-user-email"),
        "x-openwebui-user-role",
    )
)
"""Headers in which programs and proxies name a user without a proof."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """
    Return the networks that *texts* write, blank ones left out.

    Raises:
        ValueError: one of them is no network; the message is the standard library's and names it.
    """
    return tuple(ipaddress.ip_network(text.strip()) for text in texts if text.strip())


def is_trusted(peer_address: str, trusted: Iterable[Network]) -> bool:
    """
    Return whether *peer_address*, the other end of the connection, is in one of the networks.

    An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) is the IPv4 address. What is no address (a socket's
    path, nothing) is not trusted.
    """
    try:
        address = ipaddress.ip_address(peer_address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in trusted)


def client_address(peer_address: str, forwarded_for: str, trusted: Iterable[Network]) -> str:
    """
    Return the address that a request came from, for limits alone: the last one before our trusted proxies.

    *forwarded_for* is `X-Forwarded-For`; it counts only when the peer is trusted, and only back to the first address
    that is not, because the caller can write anything before that.
    """
    networks_trusted = tuple(trusted)
    address = peer_address
    for hop in reversed(forwarded_for.split(",")):
        if not is_trusted(address, networks_trusted):
            break
        try:
            ipaddress.ip_address(hop.strip())
        except ValueError:
            break
        address = hop.strip()
    return address


def counted_address(address: str) -> str:
    """
    Return what limits count of *address*: an IPv6 address by its first 64 bits, which one subscriber is given.

    An IPv4 address, also one that is written as IPv6, is counted by itself, and what is no address as it is.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))
