"""An endpoint that is sent JSON and answers with JSON: a second judge, a reranker. It may fail, and answers go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.text.folding import encodable

if TYPE_CHECKING:
    import requests

    from datafari_rag.adapters.http.exchange import HttpFailure

MAX_REPLY_BYTES = 1_000_000
"""Some servers send the texts back."""

Failing = Literal["Unavailable", "Timeout", "Garbled"]
"""How an endpoint fails, as its label ends."""


class NoReply(Exception):
    """There is no reply: *failing* is how; *log* is for the log alone, a status or a kind of failure."""

    def __init__(self, failing: Failing, log: str = "") -> None:
        """Remember how and why."""
        self.failing, self.log = failing, log
        super().__init__(failing)


@dataclass(frozen=True)
class JsonEndpoint:
    """Where it is and how it is spoken to; nothing is opened before the first request."""

    url: str = field(repr=False)
    token: str = field(default="", repr=False)
    tls: Tls = PLAIN_TLS
    clock: Callable[[], float] = time.monotonic

    def reply(self, body: Mapping[str, object], deadline: float) -> object:
        """
        Return what a POST of *body* is answered with before *deadline* of the clock.

        Raises:
            NoReply: there is none.
            ValueError, RecursionError: it is no JSON, or has brackets inside brackets, thousands of them.
        """
        # Imported here: requests takes 4 MB of each worker that needs it for nothing else.
        from datafari_rag.adapters.http.exchange import Request, exchanged

        left_s = deadline - self.clock()
        if left_s <= 0:
            raise NoReply("Timeout")
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        sent = encodable(json.dumps(body, ensure_ascii=False)).encode()
        request = Request("POST", self.url, (left_s, left_s), MAX_REPLY_BYTES, sent, headers)
        with exchanged(self._session, request, _no_reply) as reply:
            if reply.status != 200:
                raise NoReply("Unavailable", f"it answered {reply.status}")
            return json.loads(b"".join(reply.pieces(lambda: deadline - self.clock())))

    @cached_property
    def _session(self) -> requests.Session:
        from datafari_rag.adapters.http.sessions import session_for

        try:
            return session_for(self.url, self.tls)
        except ValueError as error:
            # One of two sentences of ours.
            raise NoReply("Unavailable", str(error)) from error


def _no_reply(failure: HttpFailure) -> NoReply:
    from datafari_rag.adapters.http.exchange import Fault

    if failure.fault in (Fault.LATE, Fault.UNCONNECTED):
        return NoReply("Timeout")
    is_garbled = failure.fault in (Fault.TOO_LONG, Fault.CODED, Fault.GARBLED)
    return NoReply("Garbled" if is_garbled else "Unavailable", failure.log)
