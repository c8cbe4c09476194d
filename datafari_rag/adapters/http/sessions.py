"""
Sessions of requests, made in one place: they send only what the caller passes, and trust only what is configured.

No redirect is followed, no cookie is kept, no proxy and no password of the environment is used, no content coding is
requested. Certificates come from an SSL context of our own, so that a key with a password is refused in place of
prompted for. A reply's head and each of its pieces have to arrive in time, and a connection is used again only after a
reply that ended exactly (`timed_reply.py`). A request is never sent twice.
"""

from __future__ import annotations

import base64
import logging
import ssl
import time
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError
from urllib3.response import HTTPResponse

from datafari_rag.adapters.http.timed_reply import TimedReply
from datafari_rag.core.settings.addresses import Tls

IDLE_S = 30.0
"""A connection idle for longer is not used again: firewalls drop such connections without a word."""

POOL = 64
"""Most idle connections kept for one server, where the number of requests at the same time is small."""


def session_for(url: str, tls: Tls, *, proxy: str = "", pool: int = POOL) -> requests.Session:
    """
    Return a session for the server at *url*; nothing is opened yet.

    *proxy* is the address of an HTTP proxy, with user and password if it wants them; empty for none. *pool* is how many
    idle connections are kept.

    Raises:
        ValueError: *url* or *proxy* is no http or https URL, or a PEM file cannot be used.
    """
    without_credentials(url)
    session = _Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    # Whatever is inflated takes memory that no limit foresees.
    session.headers = {"User-Agent": "datafari-rag", "Accept-Encoding": "identity"}
    if proxy:
        without_credentials(proxy)
        session.proxies = {"http": proxy, "https": proxy}
    # Reading the system's authorities takes a moment, and they are only needed for TLS.
    transport = _Transport(_context(tls) if url.lower().startswith("https:") else None, pool)
    for scheme in ("http://", "https://"):
        session.mount(scheme, transport)
    for library in ("urllib3", "pysolr"):
        # Their messages hold addresses with whole queries, and what servers answered.
        logging.getLogger(library).setLevel(logging.CRITICAL)
    return session


def without_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """
    Return the address, and the user and password that it contains, decoded, or None.

    Raises:
        ValueError: *url* is no http or https URL.
    """
    wanted = "An http or https URL is expected."
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise ValueError(wanted) from error
    if not is_usable:
        raise ValueError(wanted)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def basic(user: str, password: str) -> str:
    """Return the value of an authorization header (RFC 7617, in UTF-8)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


class _Session(requests.Session):
    """requests' session, which would read the whole body of a redirect to find out where it leads."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return None: no reply leads elsewhere."""
        return None


class _Transport(HTTPAdapter):
    """requests' transport with our SSL context, our proxy header and connections whose replies end in time."""

    def __init__(self, context: ssl.SSLContext | None, pool: int) -> None:
        """Hold the context for all connections, None where there is no TLS."""
        self._context = context
        super().__init__(pool_maxsize=pool)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Create the pools with the connection classes of this module."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Return the pools for requests through *proxy*, with the connection classes of this module."""
        manager = super().proxy_manager_for(proxy, proxy_ssl_context=self._context, **options)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Return the header that authenticates the service to the proxy; requests would write it in Latin-1."""
        _, credentials = without_credentials(proxy)
        return {"Proxy-Authorization": basic(*credentials)} if credentials else {}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: object, cert: object = None
    ) -> Any:
        """Return where *request* goes, and the SSL context, which has all settings of certificates."""
        place, _ = super().build_connection_pool_key_attributes(request, True)
        return place, {"ssl_context": self._context} if self._context else {}

    def cert_verify(self, conn: object, url: object, verify: object, cert: object) -> None:
        """Add nothing to the SSL context: requests would add its own list of authorities."""


class _Timed(HTTPConnection):
    """urllib3's connection, whose replies end in time and which is not used again after a long silence."""

    used_at = 0.0
    timed: TimedReply | None = None

    def response_class(self, sock: Any, **options: Any) -> TimedReply:  # type: ignore[override] # a class or its like
        """Return the reply that `http.client` is about to read, and remember it for `getresponse`."""
        self.timed = TimedReply(sock, **options)
        return self.timed

    def connect(self) -> None:
        """Connect. Raises: ConnectTimeoutError, also if the TLS handshake takes too long."""
        try:
            super().connect()
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "not connected in time") from error

    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as urllib3 has it
        """Return the reply, with what bounds it as `timed`."""
        reply = super().getresponse()
        reply.timed, self.timed = self.timed, None  # type: ignore[attr-defined]
        self.used_at = time.monotonic()
        return reply

    @property
    def is_connected(self) -> bool:
        """Say whether it can be used again: its last reply began lately, and it is neither closed nor readable."""
        return time.monotonic() - self.used_at < IDLE_S and super().is_connected


class _TimedTls(_Timed, HTTPSConnection):
    """The same with TLS."""

    @property
    def is_connected(self) -> bool:
        """Say the same, and that TLS holds no bytes back: urllib3 looks at the socket, which has none of those."""
        # A connection that cannot report it (TLS through the TLS of a proxy) is not used again.
        return super().is_connected and getattr(self.sock, "pending", lambda: 1)() == 0


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Timed


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTls


_POOLS: Mapping[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _TlsPool}


def _context(tls: Tls) -> ssl.SSLContext:
    believed = Path(tls.ca_file) if tls.ca_file and tls.is_checked else None
    try:
        is_folder = believed is not None and believed.is_dir()
        context = ssl.create_default_context(
            cafile=None if is_folder else believed, capath=believed if is_folder else None
        )
        if tls.cert_file:
            # A key with a password would be prompted for at a terminal; with an empty one it is refused.
            context.load_cert_chain(tls.cert_file, tls.key_file or None, password="")  # nosec B106
    except OSError as error:
        raise ValueError("Readable PEM files of authorities, certificate and key are expected.") from error
    if not tls.is_checked:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # The start warns of it once; a line for each request would drown everything else.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return context
