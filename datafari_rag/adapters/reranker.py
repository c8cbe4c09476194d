"""
A reranker over HTTP: what is sent for a question and some passages, and what the reply says of them.

Two forms that servers speak. Text-embeddings-inference has one model and takes `texts`; in Cohere's form, which Jina,
vLLM and Infinity took over, a request names its model and has `documents`. Which one is sent follows from whether a
model is named; the reply is recognised by what it holds. What is in neither form is garbled, and so is what cannot be
true: a passage scored twice or not at all, a score that is no finite number.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from datafari_rag.adapters.http.exchange import Failing, JsonEndpoint, NoReply
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.errors import EmbeddingError
from datafari_rag.core.meaning.reranker import Reranker, RerankFailure, RerankLabel, RerankScale, scale_of
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.settings.answers import ONNX
from datafari_rag.core.settings.table import Settings
from datafari_rag.extras import command_for
from datafari_rag.ports import Offload, inline

NEEDS_EXTRA = f"A local reranker needs the extra `vectors`: {command_for('vectors')}"

log = logging.getLogger(__name__)

MAX_TEXTS = 32
"""Passages of one question, in one request: the default of text-embeddings-inference (`--max-client-batch-size`)."""


_LABELS: Mapping[Failing, RerankLabel] = {
    "Unavailable": "rerankerUnavailable",
    "Timeout": "rerankerTimeout",
    "Garbled": "rerankerGarbled",
}


@dataclass(frozen=True, slots=True)
class RerankerOptions:
    """How the endpoint is spoken to; *timeout_s* is for all requests of one question together."""

    model: str = ""
    token: str = field(default="", repr=False)
    timeout_s: float = 2.0
    tls: Tls = PLAIN_TLS


class EndpointReranker:
    """A `core.meaning.reranker.Reranker` over HTTP."""

    most = MAX_TEXTS

    def __init__(self, url: str, options: RerankerOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember where the endpoint is; nothing is opened yet."""
        self._options, self._clock = options, clock
        self._endpoint = JsonEndpoint(url, options.token, options.tls, clock)
        self._scale: RerankScale | None = None

    def knows(self, language: str) -> bool:
        """Say yes: which languages its model knows, the server does not say."""
        return True

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | RerankFailure:
        """Return how well each of *texts* answers, in spreads, or how that failed; the first call learns the spread."""
        deadline = self._clock() + self._options.timeout_s

        def score(query: str, passages: Sequence[str]) -> list[float]:
            return scores_in(self._endpoint.reply(_body(query, passages, self._options.model), deadline), len(passages))

        try:
            scale = self._scale = self._scale or scale_of(score)
            return scale.of(score(question, texts))
        except NoReply as none:
            failure = RerankFailure(_LABELS[none.failing], none.log)
        # RecursionError: brackets inside brackets, thousands of them.
        except (ValueError, RecursionError):
            failure = RerankFailure("rerankerGarbled", "not the JSON of a reranker, or no scores")
        log.warning("%s passages=%d %s", failure.label, len(texts), failure.log)
        return failure


def _body(question: str, texts: Sequence[str], model: str) -> dict[str, object]:
    if not model:
        # As logits: shares of one are all but equal where they are near 0.
        return {"query": question, "texts": list(texts), "raw_scores": True, "truncate": True}
    return {"model": model, "query": question, "documents": list(texts), "top_n": len(texts)}


def scores_in(reply: object, number: int) -> list[float]:
    """Return the scores of a *reply* in either form, in the order of the *number* texts. Raises: ValueError."""
    rows = reply.get("results") if isinstance(reply, Mapping) else reply
    scores: dict[int, float] = {}
    for row in rows if isinstance(rows, list) else ():
        place = row.get("index") if isinstance(row, Mapping) else None
        if type(place) is not int or place in scores:
            raise ValueError("no index, or one twice")
        score = row.get("relevance_score", row.get("score"))
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise ValueError("a score that is no number")
        scores[place] = float(score)
    if sorted(scores) != list(range(number)):
        raise ValueError("not one score for each text")
    return [scores[place] for place in range(number)]


def reranker_for(settings: Settings, machine: Machine = MACHINE, offload: Offload = inline) -> Reranker | None:
    """
    Return the reranker, None where `rerank.endpoint` is empty.

    *offload* is where a local model works. If it cannot be used, the reason is logged: the service starts in any case.
    """
    endpoint = settings.rerank.endpoint
    if not endpoint:
        return None
    if not endpoint.startswith(ONNX):
        call = settings.rerank.options
        options = RerankerOptions(call.model, settings.rerank.token, call.timeout_s, settings.tls.rerank)
        return EndpointReranker(endpoint, options, clock=machine.monotonic)
    try:
        from datafari_rag.adapters.vectors.onnx import LateInteraction

        return LateInteraction(Path(endpoint.removeprefix(ONNX)), offload)
    except ImportError:
        log.error("Reranking is off. %s", NEEDS_EXTRA)
    except EmbeddingError as error:
        log.error("Reranking is off. %s (%s)", error.reason, error.log)
    return None
