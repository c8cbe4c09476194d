"""A reranker over HTTP, in the form of text-embeddings-inference or, with a model named, of Cohere (Jina, vLLM)."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from statistics import pstdev

from datafari_rag.adapters.http import TIMEOUTS, UNREADABLE, Client, Fault, Request
from datafari_rag.core.meaning.reranker import RerankFailure
from datafari_rag.core.meaning.spread import PAIRS
from datafari_rag.core.settings.addresses import Tls
from datafari_rag.core.settings.table import RerankSettings
from datafari_rag.core.text.cleaning import encodable

MAX_REPLY_BYTES = 1_000_000
"""Some servers send the texts back."""

log = logging.getLogger(__name__)


class EndpointReranker:
    """A `core.meaning.reranker.Reranker` over HTTP."""

    def __init__(self, rerank: RerankSettings, tls: Tls, clock: Callable[[], float]) -> None:
        """Remember where the endpoint is; nothing is opened yet."""
        self._rerank, self._tls, self._options, self._clock = rerank, tls, rerank.options, clock
        self._scale: tuple[bool, float] | None = None

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | RerankFailure:
        """Return a score for each of *texts*; the first call measures the scale, by texts that do not answer."""
        deadline = self._clock() + self._options.timeout_s
        try:
            if self._scale is None:
                rows = [self._asked(asked, [text for _, text in PAIRS], deadline) for asked, _ in PAIRS[:4]]
                foreign = [value for place, row in enumerate(rows) for value in row[:place] + row[place + 1 :]]
                # Shares of one hardly differ near 0: their logits do.
                are_shares = all(0 <= value <= 1 for row in rows for value in row)
                self._scale = (are_shares, pstdev(map(_logit, foreign) if are_shares else foreign))
            are_shares, spread = self._scale
            found = self._asked(question, texts, deadline)
            return [(_logit(value) if are_shares else value) / spread for value in found]
        except _NoReply as none:
            failure = none.failure
        # No index, the same score for all texts, thousands of brackets inside brackets.
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            failure = RerankFailure("rerankerGarbled", "not the JSON of a reranker, or no scores")
        log.warning("%s passages=%d %s", failure.label, len(texts), failure.log)
        return failure

    def _asked(self, question: str, texts: Sequence[str], deadline: float) -> list[float]:
        body: dict[str, object] = {"query": question, "texts": list(texts), "raw_scores": True, "truncate": True}
        if self._options.model:
            body = {"model": self._options.model, "query": question, "documents": list(texts), "top_n": len(texts)}
        reply = self._reply(body, deadline)
        rows = reply.get("results") if isinstance(reply, Mapping) else reply
        scores: dict[int, float] = {}
        for row in rows if isinstance(rows, list) else ():
            place, score = row["index"], row.get("relevance_score", row.get("score"))
            if type(place) is not int or type(score) not in (int, float) or not math.isfinite(score):
                raise ValueError("no index or no score")
            scores[place] = float(score)
        return [scores[place] for place in range(len(texts))]

    def _reply(self, body: Mapping[str, object], deadline: float) -> object:
        left_s = deadline - self._clock()
        if left_s <= 0:
            raise _failed(Fault.LATE, "")
        rerank = self._rerank
        headers = {"Content-Type": "application/json"}
        if rerank.token:
            headers["Authorization"] = f"Bearer {rerank.token}"
        payload = encodable(json.dumps(body, ensure_ascii=False)).encode()
        request = Request("POST", rerank.endpoint, (left_s, left_s), MAX_REPLY_BYTES, payload, headers, is_safe=True)
        status, data = self._client.whole(request, lambda: deadline - self._clock())
        if status != 200:
            raise _failed(Fault.BROKEN, f"it answered {status}")
        return json.loads(data)

    @cached_property
    def _client(self) -> Client:
        try:
            return Client(self._rerank.endpoint, _failed, self._tls)
        except ValueError as error:
            # One of two sentences of ours.
            raise _failed(Fault.UNSENDABLE, str(error)) from error


class _NoReply(Exception):
    """The server did not answer, as *failure* says."""

    def __init__(self, failure: RerankFailure) -> None:
        super().__init__(failure.label)
        self.failure = failure


def _failed(fault: Fault, log: str) -> _NoReply:
    if fault in TIMEOUTS:
        return _NoReply(RerankFailure("rerankerTimeout", ""))
    return _NoReply(RerankFailure("rerankerGarbled" if fault in UNREADABLE else "rerankerUnavailable", log))


def _logit(share: float) -> float:
    # Servers round: 0 and 1 are not surer than this.
    share = min(max(share, 1e-7), 1 - 1e-7)
    return math.log(share / (1 - share))
