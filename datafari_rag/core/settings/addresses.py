"""
Kinds of settings that are addresses: of models, search engines, proxies and web sites, and how servers are trusted.

Pure: nothing is opened or looked up. An impossible address is refused here; whether a server answers is not checked.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, structs

from datafari_rag.core.identity import bracketed, normalized
from datafari_rag.core.settings.checks import CONTROL, items_of, json_object, needed, path_in, valid

BUILTIN_MODEL = "builtin:extractive"
EMBEDDED = "embedded:"
PROGRESS = "progress.json"
"""Beside an embedded index, how far the watcher of a folder is, while one runs."""
ZOOKEEPER = "zookeeper://"
ONNX = "onnx:"
"""The prefix of a local model's folder."""

_NAME = re.compile(r"[\w.-]+")
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?")


class Tls(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"ca_file": "ca", "cert_file": "cert", "key_file": "key", "is_checked": "verify"},
):
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


class TlsByServer(Struct, frozen=True, forbid_unknown_fields=True):
    """Certificates of the servers that are called, and those they are shown."""

    solr: Tls = PLAIN_TLS
    llm: Tls = PLAIN_TLS
    embeddings: Tls = PLAIN_TLS
    rerank: Tls = PLAIN_TLS


def _url(text: str, folder: str = "") -> str:
    parts = urlsplit(text)
    needed(parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    needed(not re.search(r"\s", text) and not CONTROL.search(text))
    return text


def _optional_url(text: str, folder: str) -> str:
    return _url(text) if text else ""


def _folder(text: str, prefix: str, folder: str) -> str:
    named = text.removeprefix(prefix).strip()
    needed(named)
    return prefix + path_in(named, folder)


def model_address(text: str, folder: str) -> str:
    """Return where embeddings are made: an http(s) address, or the folder of a local model. Raises: ValueError."""
    return _folder(text, ONNX, folder) if text.startswith(ONNX) else _optional_url(text, folder)


def _solr(text: str, folder: str) -> str:
    if text.startswith(EMBEDDED):
        return _folder(text, EMBEDDED, folder)
    if text.startswith(ZOOKEEPER):
        hosts, _, collection = text.removeprefix(ZOOKEEPER).partition("#")
        needed(_NAME.fullmatch(collection))
        needed(all(_HOST_PORT.fullmatch(item.strip()) for item in hosts.partition("/")[0].split(",")))
        return text
    found = items_of(text)
    needed(found and all(urlsplit(_url(item)).path.strip("/") and not re.search("[?#]", item) for item in found))
    return ",".join(item.rstrip("/") for item in found)


def _endpoint(text: str, folder: str) -> str:
    return text if text == BUILTIN_MODEL else _url(text)


def _endpoints(text: str, folder: str) -> tuple[str, ...]:
    """The built-in one can only be the last, as it never fails."""
    found = tuple(_endpoint(item, folder) for item in items_of(text))
    needed(BUILTIN_MODEL not in found[:-1])
    return found


def _path_or_url(text: str, folder: str) -> str:
    if re.match(r"[a-z]+://", text) and not text.startswith("file://"):
        return _url(text)
    return path_in(re.sub(r"^file:(//)?", "", text), folder)


def _hosts(text: str, folder: str) -> tuple[str, ...]:
    found = items_of(",".join(map(bracketed, items_of(text.lower()))))
    needed(all(map(normalized, found)))
    return found


def _networks(text: str, folder: str) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_network(item, strict=False)) for item in items_of(text))


def _origins(text: str, folder: str) -> tuple[str, ...]:
    found = items_of(text.lower())
    for parts in () if found == ("*",) else map(urlsplit, map(_url, found)):
        needed(not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc))
    return tuple(item.rstrip("/") for item in found)


def _indexes(text: str, folder: str) -> dict[str, str]:
    urls: dict[str, str] = {}
    # A comma inside an address stands between hosts: what follows is no name, as a name has no colon and no slash.
    for item in re.split(r",(?=\s*[\w.-]+\s*(?:[=,]|$))", text) if text else ():
        name, has_address, address = item.partition("=")
        needed(_NAME.fullmatch(name.strip()) and name.strip() not in urls)
        urls[name.strip()] = _solr(address.strip(), folder) if has_address else ""
    return urls


def _tls(servers: dict[str, Any], folder: str) -> TlsByServer:
    found = msgspec.convert(servers, TlsByServer)
    for server, files in structs.asdict(found).items():
        ca, cert, key = (path_in(name, folder) for name in (files.ca_file, files.cert_file, files.key_file))
        found = structs.replace(found, **{server: Tls(ca, cert, key, files.is_checked)})
    return found


_SOLR = f"http(s)://HOST/solr/COLLECTION, several of them separated by commas, {ZOOKEEPER}HOST:2181/CHROOT#COLLECTION"
_HOSTS = "lists of HOST and HOST:PORT, such as localhost, search.example.org:8080 and [::1]"
_LAST = f'lists of http(s) addresses, of which the last may be "{BUILTIN_MODEL}"'
_TLS = "with some of the members solr, llm, embeddings and rerank, each an object with ca, cert, key and verify,"
_ORIGINS = 'lists of origins such as https://search.example.org, and "*"'

Url = Annotated[str, valid("http(s) addresses", _optional_url)]
Proxy = Annotated[str, valid("http(s) addresses", _optional_url, is_secret=True)]
Endpoint = Annotated[str, valid(f'http(s) addresses and "{BUILTIN_MODEL}"', _endpoint)]
Endpoints = Annotated[tuple[str, ...], valid(_LAST, _endpoints)]
ModelAddress = Annotated[str, valid(f"http(s) addresses of /v1/embeddings and {ONNX}FOLDER", model_address)]
SolrUrl = Annotated[str, valid(f"{_SOLR} and {EMBEDDED}FOLDER", _solr)]
PathOrUrl = Annotated[str, valid("http(s) addresses and paths of files", _path_or_url)]
Hosts = Annotated[tuple[str, ...], valid(_HOSTS, _hosts)]
Networks = Annotated[tuple[str, ...], valid("lists of IP networks such as 10.0.0.0/8", _networks)]
Origins = Annotated[tuple[str, ...], valid(_ORIGINS, _origins)]
Indexes = Annotated[dict[str, str], valid("lists of NAME and NAME=SOLR-URL, each name once", _indexes)]
Trust = Annotated[TlsByServer, json_object(_TLS, _tls)]
