"""
The second judge behind an HTTP endpoint: one deadline for all requests of a check, no retry, bounded replies.

No redirect is followed and nothing is read from the environment, since a request carries texts of documents and a key.
Logs hold labels, statuses and counts, never a text. Whatever goes wrong is a value: the first judge then counts alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import requests

from datafari_rag.adapters.http.exchange import Fault, HttpFailure, Request, exchanged
from datafari_rag.adapters.http.sessions import session_for
from datafari_rag.adapters.judge.formats import JUDGE_FORMATS
from datafari_rag.core.judging.second_judge import Doubt, JudgeFailure, Verdict
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.text.cleaning import encodable

log = logging.getLogger(__name__)

MAX_REPLY_BYTES = 1_000_000

_FAILED_BY: Mapping[Fault, JudgeFailure] = {
    Fault.LATE: JudgeFailure("judgeTimeout"),
    Fault.UNCONNECTED: JudgeFailure("judgeTimeout"),
    Fault.TOO_LONG: JudgeFailure("judgeGarbled", "its answer is too long"),
    Fault.CODED: JudgeFailure("judgeGarbled", "a content coding that was not requested"),
    Fault.GARBLED: JudgeFailure("judgeGarbled", "no HTTP"),
}


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How the endpoint is spoken to; *timeout_s* is for all requests of one check together."""

    format: str = "nli"
    token: str = field(default="", repr=False)
    timeout_s: float = 2.0
    least_score: float = 0.7
    tls: Tls = PLAIN_TLS


class _Failed(Exception):
    """The judge says nothing: *failure* is why."""

    def __init__(self, failure: JudgeFailure) -> None:
        self.failure = failure
        super().__init__(failure.label)


class EndpointJudge:
    """A `SecondJudge` over HTTP."""

    def __init__(self, url: str, options: JudgeOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember where the endpoint is; nothing is opened yet."""
        self._url, self._options, self._clock = url, options, clock

    def judge(self, doubts: Sequence[Doubt]) -> Sequence[Verdict] | JudgeFailure:
        """Return one verdict for each of *doubts*, or how that failed."""
        deadline = self._clock() + self._options.timeout_s
        format_ = JUDGE_FORMATS[self._options.format]
        try:
            replies = [self._reply(body, deadline) for body in format_.bodies(doubts)]
            return format_.verdicts(doubts, replies, self._options.least_score)
        except _Failed as failed:
            failure = failed.failure
        # RecursionError: brackets inside brackets, thousands of them.
        except (ValueError, RecursionError):
            failure = JudgeFailure("judgeGarbled", "not the JSON of its format")
        log.warning("%s claims=%d %s", failure.label, len(doubts), failure.log)
        return failure

    def _reply(self, body: Mapping[str, object], deadline: float) -> object:
        left_s = deadline - self._clock()
        if left_s <= 0:
            raise _Failed(JudgeFailure("judgeTimeout"))
        headers = {"Content-Type": "application/json"}
        if self._options.token:
            headers["Authorization"] = f"Bearer {self._options.token}"
        sent = encodable(json.dumps(body, ensure_ascii=False)).encode()
        request = Request("POST", self._url, (left_s, left_s), MAX_REPLY_BYTES, sent, headers)
        with exchanged(self._session, request, _failed) as reply:
            if reply.status != 200:
                raise _Failed(JudgeFailure("judgeUnavailable", f"it answered {reply.status}"))
            return json.loads(b"".join(reply.pieces(lambda: deadline - self._clock())))

    @cached_property
    def _session(self) -> requests.Session:
        try:
            return session_for(self._url, self._options.tls)
        except ValueError as error:
            # One of two sentences of ours.
            raise _Failed(JudgeFailure("judgeUnavailable", str(error))) from error


def _failed(failure: HttpFailure) -> _Failed:
    """Return the exception for a failure of HTTP."""
    return _Failed(_FAILED_BY.get(failure.fault, JudgeFailure("judgeUnavailable", failure.log)))
