"""
Checks for addresses: of models, of search engines, of proxies and web sites.

Pure: nothing is opened or looked up. An impossible address is refused here; whether a server answers is not checked.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from urllib.parse import urlsplit

from datafari_rag.core.identity import bracketed, normalized
from datafari_rag.core.settings.checks import CONTROL, Check, filled, flag, items_of, members, path, text, valid

"""How the address of a Redis begins."""

BUILTIN_MODEL = "builtin:extractive"
EMBEDDED = "embedded:"
ZOOKEEPER = "zookeeper://"

_NAME = re.compile(r"[\w.-]+")
_HOST = re.compile(r"[A-Za-z0-9.:_\[\]-]+")
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Tls:
    """
    Trusted authorities and the client's certificate; empty means the system's authorities, or no certificate.

    *ca_file* may be a folder that `openssl rehash` has prepared. *key_file* empty means that the key is in *cert_file*.
    *is_checked* False is for trials only.
    """

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    is_checked: bool = True


PLAIN_TLS = Tls()
"""The system's authorities, and no certificate of ours."""


@dataclass(frozen=True, slots=True)
class TlsByServer:
    """How the certificates of the servers that are called are checked, and which one they are shown."""

    solr: Tls = PLAIN_TLS
    llm: Tls = PLAIN_TLS
    embeddings: Tls = PLAIN_TLS
    rerank: Tls = PLAIN_TLS


def tls() -> Check:
    """Return the check for the certificates of all servers that are called."""

    def tls_of(ca: str = "", cert: str = "", key: str = "", verify: bool = True) -> Tls:
        return Tls(ca, cert, key, verify)

    check = members(tls_of, ca=path(), cert=path(), key=path(), verify=flag())
    return members(TlsByServer, solr=check, llm=check, embeddings=check, rerank=check)


def host() -> Check:
    """Return the check for an address to listen on; empty does not fit."""
    return filled(text("host names and IP addresses", _HOST))


def hosts() -> Check:
    """Return the check for a list of hosts that callers may name, each with or without a port."""
    expectation = valid("lists of HOST and HOST:PORT, such as localhost, search.example.org:8080 and [::1]")

    def read(value: str, folder: str) -> tuple[str, ...]:
        items = [bracketed(item.lower()) for item in items_of(value)]
        if not all(normalized(item) for item in items):
            raise ValueError(expectation)
        return tuple(dict.fromkeys(items))

    return Check("list", read, expectation, is_optional=True)


def path_or_url() -> Check:
    """Return the check for an http(s) address, or a file as `path` has it (`file:` in front is allowed)."""
    expectation = valid("http(s) addresses and paths of files")

    def read(value: str, folder: str) -> str:
        if re.match(r"[a-z]+://", value) and not value.startswith("file://"):
            return _http_url(value, expectation)
        named = re.sub(r"^file:(//)?", "", value)
        if CONTROL.search(named):
            raise ValueError(expectation)
        return str(PurePath(folder) / named) if named else ""

    return Check("text", read, expectation, is_optional=True)


def url(*, is_optional: bool = False) -> Check:
    """Return the check for one http(s) address."""
    expectation = valid("http(s) addresses")

    def read(value: str, folder: str) -> str:
        return "" if is_optional and not value else _http_url(value, expectation)

    return Check("text", read, expectation, is_optional=is_optional)


def endpoint() -> Check:
    """Return the check for where a model answers: an http(s) address, or the built-in one."""
    expectation = valid(f'http(s) addresses and "{BUILTIN_MODEL}"')
    return Check("text", lambda value, folder: _endpoint(value, expectation), expectation)


def endpoints() -> Check:
    """Return the check for a list of `endpoint`s; the built-in one can only be the last, as it never fails."""
    last = f'"{BUILTIN_MODEL}"'
    expectation = valid(f"lists of http(s) addresses, of which the last may be {last}")

    def read(value: str, folder: str) -> tuple[str, ...]:
        addresses = tuple(_endpoint(item, expectation) for item in items_of(value))
        if BUILTIN_MODEL in addresses[:-1]:
            raise ValueError(expectation)
        return addresses

    return Check("list", read, expectation, is_optional=True)


def networks() -> Check:
    """Return the check for a list of IP networks; a single address is a network of one."""
    expectation = valid("lists of IP networks such as 10.0.0.0/8")

    def read(value: str, folder: str) -> tuple[str, ...]:
        try:
            return tuple(str(ipaddress.ip_network(item, strict=False)) for item in items_of(value))
        except ValueError:
            raise ValueError(expectation) from None

    return Check("list", read, expectation, is_optional=True)


def origins() -> Check:
    """Return the check for a list of web origins, or "*" alone."""
    expectation = valid('lists of origins such as https://search.example.org, and "*"')

    def read(value: str, folder: str) -> tuple[str, ...]:
        items = items_of(value)
        if items == ("*",):
            return items
        for item in items:
            parts = urlsplit(_http_url(item, expectation))
            if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
                raise ValueError(expectation)
        return tuple(item.rstrip("/").lower() for item in items)

    return Check("list", read, expectation, is_optional=True)


def solr_url() -> Check:
    """Return the check for where the search engine is; a relative embedded folder is relative to the file's folder."""
    return Check("text", _solr_url, _SOLR_WANTED)


def indexes() -> Check:
    """
    Return the check for `name` or `name=solr-url` items; the value maps each name to its address or "".

    A comma inside an address (several Solr or ZooKeeper hosts) is distinguished from one between items by what follows:
    a name has no colon and no slash.
    """
    expectation = valid("lists of NAME and NAME=SOLR-URL, each name once")

    def read(value: str, folder: str) -> Mapping[str, str]:
        urls: dict[str, str] = {}
        for item in _joined(items_of(value)):
            name, has_address, address = item.partition("=")
            if not _NAME.fullmatch(name.strip()) or name.strip() in urls:
                raise ValueError(expectation)
            urls[name.strip()] = _index_address(address.strip(), folder, expectation=expectation) if has_address else ""
        return MappingProxyType(urls)

    return Check("mapping", read, expectation, is_optional=True)


_SOLR_WANTED = valid(
    "http(s)://HOST/solr/COLLECTION, several of them separated by commas, "
    f"{ZOOKEEPER}HOST:2181/CHROOT#COLLECTION and {EMBEDDED}FOLDER"
)


def _solr_url(value: str, folder: str) -> str:
    if value.startswith(EMBEDDED):
        named = value.removeprefix(EMBEDDED).strip()
        if not named or CONTROL.search(named):
            raise ValueError(_SOLR_WANTED)
        return EMBEDDED + str(PurePath(folder) / named)
    if value.startswith(ZOOKEEPER):
        return _zookeeper_url(value)
    items = items_of(value)
    if not items:
        raise ValueError(_SOLR_WANTED)
    return ",".join(_collection_url(item) for item in items)


def _zookeeper_url(value: str) -> str:
    hosts, has_collection, collection = value.removeprefix(ZOOKEEPER).partition("#")
    listed = hosts.partition("/")[0].split(",")
    if not has_collection or not _NAME.fullmatch(collection):
        raise ValueError(_SOLR_WANTED)
    if not all(_HOST_PORT.fullmatch(item.strip()) for item in listed):
        raise ValueError(_SOLR_WANTED)
    return value


def _collection_url(value: str) -> str:
    address = _http_url(value, _SOLR_WANTED)
    if not urlsplit(address).path.strip("/") or "?" in address or "#" in address:
        raise ValueError(_SOLR_WANTED)
    return address.rstrip("/")


def _index_address(value: str, folder: str, *, expectation: str) -> str:
    try:
        return _solr_url(value, folder)
    except ValueError:
        raise ValueError(expectation) from None


def _joined(items: Sequence[str]) -> list[str]:
    joined: list[str] = []
    for item in items:
        if joined and not re.match(r"[\w.-]+\s*(=|$)", item):
            joined[-1] += f",{item}"
        else:
            joined.append(item)
    return joined


def _endpoint(value: str, expectation: str) -> str:
    return value if value == BUILTIN_MODEL else _http_url(value, expectation)


def _http_url(value: str, expectation: str) -> str:
    try:
        parts = urlsplit(value)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or re.search(r"\s", value) or CONTROL.search(value):
        raise ValueError(expectation)
    return value
