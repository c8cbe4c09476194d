"""requests' transport with replies whose head has to be there in time (`head_in_time.py`); nothing else is changed."""

from __future__ import annotations

from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from datafari_rag.adapters.http.head_timeout import HeadInTime


class _Connection(HTTPConnection):
    response_class = HeadInTime


class _SafeConnection(HTTPSConnection):
    response_class = HeadInTime


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SafePool(HTTPSConnectionPool):
    ConnectionCls = _SafeConnection


class Punctual(HTTPAdapter):
    """A transport adapter: the read time-out of a request bounds the reply's head as a whole, not each byte of it."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools, of connections of ours."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SafePool}
