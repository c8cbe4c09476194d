"""
Vectors from any OpenAI-compatible `/v1/embeddings`.

Batches, retries within one deadline, bounded replies. No redirect is followed and nothing is read from the
environment (proxies, .netrc), since a request carries texts of documents and a key. Logs hold statuses and sizes,
never a text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from datafari_rag.adapters.http import TIMEOUTS, Client, Fault, Request
from datafari_rag.adapters.retries import retry_wait_s
from datafari_rag.core.errors import EmbeddingError, EmbeddingsGarbled, EmbeddingsTimeout, EmbeddingsUnavailable
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.text.cleaning import encodable
from datafari_rag.core.vectors import MAX_DIMENSIONS, EmbeddingModel, Purpose, Vector, unit_vector

MAX_NUMBER_BYTES = 32
"""Most bytes of one number of a vector in JSON, with its separators."""

MAX_HEAD_BYTES = 65_536
"""Bytes of a reply besides its vectors."""

MAX_TEXT_CHARS = 32_000
"""Longest text that is sent; no model of today reads more, and a question may be anything."""

BATCH = 32
"""Most texts that text-embeddings-inference takes in one request unless it is told otherwise."""

RETRIES = 2

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """
    How an endpoint is used: *prefixes* of texts, and the longest wait, by purpose.

    The vector of a question takes milliseconds, and words alone are searched without it; while documents are indexed,
    only a dead server has to be noticed.
    """

    model: str = ""
    token: str = field(default="", repr=False)
    prefixes: Mapping[Purpose, str] = field(default_factory=dict)
    languages: frozenset[str] = frozenset()
    limits_s: Mapping[Purpose, float] = field(default_factory=lambda: {"query": 1.0, "passage": 60.0})
    tls: Tls = PLAIN_TLS


class EndpointEmbedder:
    """A `ports.Embedder` over HTTP."""

    def __init__(
        self,
        url: str,
        options: EndpointOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Remember where the endpoint is; nothing is opened yet."""
        self._url, self._options = url, options
        self._clock, self._sleep = clock, sleep
        self._dimensions: int | None = None

    @property
    def model(self) -> EmbeddingModel:
        """What is known of the model; its dimensions after the first vector."""
        name = self._options.model or "the endpoint's model"
        # Of this form since vectors are stored with it.
        key = json.dumps([self._options.model, self._options.prefixes.get("passage", ""), None])
        return EmbeddingModel(name, key, self._dimensions, self._options.languages)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return one vector for each of *texts*. Raises: EmbeddingError."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            vectors += self._batch(texts[start : start + BATCH], purpose)
        return vectors

    def _batch(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        deadline = self._clock() + self._options.limits_s[purpose]
        prefix = self._options.prefixes.get(purpose, "")
        body: dict[str, object] = {
            "input": [encodable(f"{prefix}{text[:MAX_TEXT_CHARS]}") for text in texts],
            "encoding_format": "float",
        }
        if self._options.model:
            body["model"] = self._options.model
        for number in range(1, RETRIES + 2):
            try:
                vectors = self._requested(body, len(texts), deadline)
                break
            except EmbeddingError as error:
                wait_s = retry_wait_s(error, number, left_s=deadline - self._clock())
                if wait_s is None or number > RETRIES:
                    raise
                self._sleep(wait_s)
        self._dimensions = len(vectors[0])
        return vectors

    def _requested(self, body: Mapping[str, object], number: int, deadline: float) -> list[Vector]:
        left_s = deadline - self._clock()
        if left_s <= 0:
            raise EmbeddingsTimeout(log="no time is left for the request")
        most = MAX_HEAD_BYTES + number * (self._dimensions or MAX_DIMENSIONS) * MAX_NUMBER_BYTES
        headers = {"Content-Type": "application/json"}
        if self._options.token:
            headers["Authorization"] = f"Bearer {self._options.token}"
        request = Request("POST", self._url, (left_s, left_s), most, json.dumps(body).encode(), headers, is_safe=True)
        status, raw = self._client.whole(request, lambda: deadline - self._clock())
        if status != 200:
            raise EmbeddingsUnavailable(log=f"it answered {status}", can_repeat=status in _TRANSIENT)
        return vectors_of(raw, number, self._dimensions)

    @cached_property
    def _client(self) -> Client:
        try:
            return Client(self._url, failed, self._options.tls)
        except ValueError as error:
            # One of two fixed sentences.
            raise EmbeddingsUnavailable(log=str(error), can_repeat=False) from error


def failed(fault: Fault, log: str) -> EmbeddingError:
    """Return the core error of a fault of HTTP."""
    if fault in TIMEOUTS:
        return EmbeddingsTimeout(log="it did not answer in time")
    if fault is Fault.TOO_LONG:
        return EmbeddingsGarbled(log="its answer has more bytes than vectors of this size need")
    # Refused before anything was sent, or broken off: the same request may succeed in a moment.
    return EmbeddingsUnavailable(log=f"no answer ({log})", can_repeat=fault in (Fault.REFUSED, Fault.BROKEN))


def vectors_of(raw: bytes, number: int, dimensions: int | None) -> list[Vector]:
    """
    Return the vectors of a reply in the order of the texts, all of one size.

    Raises:
        EmbeddingsGarbled: not the JSON of embeddings, not *number* of them, one of another size or without meaning.
    """
    try:
        rows = json.loads(raw)["data"]
        places = [row["index"] for row in rows]
        lists = [row["embedding"] for row in rows]
    # RecursionError: brackets inside brackets, thousands of them.
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise EmbeddingsGarbled(log="its answer is not the JSON of embeddings") from error
    if sorted(place for place in places if type(place) is int) != list(range(number)):
        raise EmbeddingsGarbled(log=f"{len(rows)} vectors were returned for {number} texts, or their indexes are wrong")
    by_place: dict[int, Vector] = {}
    for place, values in zip(places, lists, strict=True):
        by_place[place] = vector = unit_vector(values, dimensions)
        dimensions = len(vector)
    return [by_place[place] for place in range(number)]
