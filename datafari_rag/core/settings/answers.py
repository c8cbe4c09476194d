"""
Settings of the answer itself: `rag.*`, `answer.*`, `retrieval.*`, `llm.*`, `token.*`, `embeddings.*`, `rerank.*`.

A bad value of these never stops the service: each answer then is the badSetting error of that value (contract §8).
What nobody would set is a constant beside the values, with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from datafari_rag.core.ask import Effort, StepBudget
from datafari_rag.core.events import UnsupportedPolicy
from datafari_rag.core.model.servers import AUTO, SERVERS, completed
from datafari_rag.core.search_request import Content, Operator
from datafari_rag.core.settings.addresses import BUILTIN_MODEL, Endpoint, Endpoints, ModelAddress, Url
from datafari_rag.core.settings.checks import (
    Check,
    Fixed,
    Group,
    Seconds,
    Secret,
    as_it_is,
    json_object,
    needed,
    one_of,
    places,
    valid,
)

AS_HYBRID = {"vector": "hybrid", "rrf": "hybrid"}
"""Datafari's methods that are not made here."""

_LIST = valid("lists, separated by commas")
_OWN = ("model", "messages", "stream")
"""Keys of a request to the model that `llm.body` cannot replace."""


def _method(text: str, folder: str) -> str:
    return AS_HYBRID.get(text, text)


def _further(body: dict[str, Any], folder: str) -> dict[str, Any]:
    needed(not body.keys() & set(_OWN))
    return body


class SearchChoice(Group, frozen=True):
    """How documents are looked for."""

    candidates: Fixed[int] = 20
    """The best rag.maxFiles are chosen from these; each more is read by the engine for every question."""
    min_score: Fixed[float] = 0.0
    """A score means something in one collection and for one question alone: a request may set it, no installation."""


class ReplyShape(Group, frozen=True):
    """How RagAPI and Datafari 7's API reply."""

    http_errors: bool = False
    """Errors have an HTTP status of their own. false: always 200, as Datafari's callers expect."""


class RagSettings(Group, frozen=True):
    """Answers."""

    api_endpoint: Endpoint = field(name="api.endpoint", default="https://api.openai.com/v1/chat/completions")
    """Address of the language model: an OpenAI-compatible URL, a Datafari /invoke, or builtin:extractive (none)."""
    api_token: Secret = field(name="api.token", default="")
    """Key for that endpoint. Keep it out of this file: ${OPENAI_API_KEY} or file:token.txt."""
    model: str = "gpt-4.1-mini"
    """Name of the model. Empty: no model name is sent."""
    template: Literal["openai", "datafari"] = "openai"
    """Request format: openai, or datafari for a Datafari External LLM service."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = 0.7
    """How freely the answer is worded: 0 is the most predictable, 2 the most random. Empty: not sent."""
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = field(name="maxTokens", default=250)
    """Maximum length of an answer in tokens. Empty: not sent; a quarter of llm.context.window is kept free for it."""
    max_files: Annotated[int, Meta(ge=1, le=1000)] = field(name="maxFiles", default=8)
    """Maximum number of documents in one answer; they share rag.chars."""
    max_json_length: Annotated[int, Meta(ge=1, le=2_000_000_000)] = field(name="maxJsonLength", default=150_000_000)
    """Maximum number of characters in all extracts of one request; the weakest are cut first."""
    chars: Annotated[int, Meta(ge=0, le=2_000_000_000)] = 16_000
    """Characters of all extracts of an answer. 0: as many as fit. The window and ratio of /v1 count in its place."""
    add_instructions: bool = field(name="addInstructions", default=True)
    """Send rag-instructions.txt beside this file, else the packaged one. rag.template=openai always does."""
    solr_field: Annotated[Content, one_of("highlighting", "preview_content", "exactContent")] = field(
        name="solrField", default="exactContent"
    )
    """Text that is used: exactContent (all), preview_content (its beginning), highlighting (the engine's snippets)."""
    hl_fragsize: Annotated[int, Meta(ge=0, le=100_000_000)] = field(name="hl.fragsize", default=200)
    """Minimum length of a snippet in characters, for rag.solrField=highlighting. 0: the whole field."""
    operator: Operator = "AND"
    """OR: a document needs any word of the question. AND: all key words, and fewer step by step."""
    enable_logs: bool = field(name="enable.logs", default=False)
    """Log one line for each step of an answer: ids, counts, sizes and times, never texts."""
    effort: Effort = "none"
    """Searches a question: none is one, minimal also looks for names in what it found, low lets the model plan."""
    search: SearchChoice = SearchChoice()
    evidence_min: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | Literal["auto"] | None,
        Check('"auto" or a number between 0 and 1 is expected.', as_it_is),
    ] = field(name="evidence.min", default=None)
    """Minimum evidence, 0 to 1, for an answer. auto: as measured. Empty: auto without a language model, else 0."""
    reply: ReplyShape = ReplyShape()

    extract: Fixed[Literal["passages", "head"]] = "passages"
    """What is taken from a text that is too long."""
    clean: Fixed[bool] = True
    """Line breaks, tabs and backslashes of extracts become spaces and slashes, as in Datafari's own code."""
    effort_limits: Fixed[StepBudget] = StepBudget()
    """What further searches may take; a request bounds its own by its effort, and the answer has a limit of time."""

    @property
    def model_url(self) -> str:
        """Return where the model answers: `rag.api.endpoint`, completed where it is a base address."""
        is_base = self.template == "openai" and self.api_endpoint != BUILTIN_MODEL
        return completed(self.api_endpoint) if is_base else self.api_endpoint


class AnswerSettings(Group, frozen=True):
    """What the documents do not prove."""

    unsupported: UnsupportedPolicy = "mark"
    """A sentence that no document proves is shown and listed (mark), or left out unless it is close to them (drop)."""


class RetrievalSettings(Group, frozen=True):
    """Retrieval."""

    method: Annotated[Literal["hybrid", "bm25"], one_of("hybrid", "bm25", read=_method)] = "hybrid"
    """How documents are found: by words and meaning in one score (hybrid), or by words (bm25)."""


class EmbeddingOptions(Group, frozen=True):
    """The embedding model, and how long a question waits for it."""

    model: str = ""
    """Name of the model, sent to the endpoint. Empty: none is sent."""
    timeout_s: Fixed[float] = 1.0
    """Seconds for the vector of a question, which takes milliseconds; after that, words only."""


class EmbeddingsSettings(Group, frozen=True):
    """Embedding model (search by meaning)."""

    endpoint: ModelAddress = ""
    """Where vectors are made: a /v1/embeddings address, or onnx:FOLDER (docs/embeddings.md). Empty: words only."""
    token: Secret = ""
    """Bearer token for it. Empty: no Authorization header."""
    options: EmbeddingOptions = EmbeddingOptions()


class RerankOptions(Group, frozen=True):
    """The model that a reranker is asked for, and how long a search waits for it."""

    model: str = ""
    """Name of the model, in Cohere's form. Empty: text-embeddings-inference's form, without one."""
    timeout_s: Fixed[float] = 3.0
    """Longer, and the better order is not worth the wait: the answer goes on without it."""


class RerankSettings(Group, frozen=True):
    """Reranker."""

    endpoint: Url = ""
    """A /rerank address (text-embeddings-inference, Jina, vLLM, Infinity) that orders the passages. Empty: none."""
    token: Secret = ""
    """Bearer token for it. Empty: no Authorization header."""
    options: RerankOptions = RerankOptions()


class ModelLimits(Group, frozen=True):
    """How long the model is waited for; first_token_s and stall_s hold for streams alone."""

    connect_s: Fixed[float] = 5.0
    """A server that takes longer to accept a connection is down."""
    first_token_s: Seconds = 60.0
    """Maximum wait for the first token of a stream, in seconds."""
    stall_s: Seconds = 30.0
    """Maximum wait between two tokens of a stream, in seconds."""
    total_s: Annotated[float, Meta(ge=0.01, le=86_400)] = 300.0
    """Maximum time of a whole answer with all its tries, in seconds."""
    retries: Annotated[int, Meta(ge=0, le=20)] = 2
    """Further tries before the first token, after a refused connection and the statuses 429, 502, 503 and 504."""
    breaker_failures: Annotated[int, Meta(ge=0, le=10_000)] = 5
    """An endpoint that fails so often in a row is left alone for 30 seconds, its fallbacks answer. 0: never."""
    breaker_reset_s: Fixed[float] = 30.0
    """One request tries it again so often, which is soon enough for a restart and seldom enough for an outage."""


class LlmSettings(Group, frozen=True):
    """The language model."""

    server: Annotated[str, one_of(*SERVERS)] = AUTO
    """Server at rag.api.endpoint (docs/models.md). auto: as the address says, and for fallbacks."""
    body: Annotated[Mapping[str, Any], json_object(_further, f"without the keys {', '.join(_OWN)}")] = field(
        default_factory=dict
    )
    """Further keys of each request to rag.api.endpoint, as {"reasoning_effort": "low"}. Empty: none."""
    context_window: Annotated[int, Meta(ge=256, le=100_000_000)] = field(name="context.window", default=16_384)
    """Context window in tokens: question, documents and answer together."""
    fallback: Endpoints = ()
    """Endpoints tried in order when rag.api.endpoint fails, as URL or URL#MODEL. The last may be builtin:extractive."""
    fallback_tokens: Annotated[tuple[str, ...], Check(_LIST, places, is_secret=True)] = field(
        name="fallback.tokens", default=()
    )
    """Tokens for them, in the same order; rag.api.token is never sent to them."""
    limits: ModelLimits = ModelLimits()
    proxy: Annotated[str, Check(valid("http(s) addresses"), Url.__metadata__[0].read, is_secret=True)] = ""
    """HTTP proxy for the model, as http://user:password@host:3128. The environment's is never used."""
