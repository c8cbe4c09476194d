"""
Settings of the answer itself: `rag.*`, `answer.*`, `retrieval.*`, `llm.*`, `token.*`, `embeddings.*`, `rerank.*`.

Rows only. A bad value of these never stops the service: each answer then is the badSetting error of that value, so
that the admin page can correct it (contract §8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from datafari_rag.core.ask import Effort, StepBudget
from datafari_rag.core.events import UnsupportedPolicy
from datafari_rag.core.model.replies import ModelLimits
from datafari_rag.core.model.servers import AUTO, SERVERS, completed
from datafari_rag.core.search_request import Content, Operator
from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.records import (
    EmbeddingOptions,
    ReplyShape,
    RerankOptions,
    SearchChoice,
)
from datafari_rag.core.settings.row import secret, setting

_COUNTER = re.compile(r"estimate|tiktoken:[\w.-]+")

ONNX = "onnx:"
"""The prefix of a local model's folder."""

AS_HYBRID = {"vector": "hybrid", "rrf": "hybrid"}
"""Datafari's methods that are not made here."""

_LANGUAGE = re.compile(r"[a-z]{2}")


def model_endpoint(path: str) -> checks.Check:
    """Return the check for where a model is: an http(s) address that ends in *path*, or the folder of a local one."""
    sentence = checks.valid(f"http(s) addresses of a {path}, and {ONNX}FOLDER")
    http = addresses.url(is_optional=True)

    def read(value: str, folder: str) -> object:
        if not value.startswith(ONNX):
            try:
                return http.read(value, folder)
            except ValueError:
                raise ValueError(sentence) from None
        named = value.removeprefix(ONNX).strip()
        if not named or checks.CONTROL.search(named):
            raise ValueError(sentence)
        return ONNX + str(PurePath(folder) / named)

    return checks.Check("text", read, sentence, is_optional=True)


def languages() -> checks.Check:
    """Return the check for a list of two-letter codes of languages."""
    expectation = checks.valid("lists of two-letter codes of languages such as en,fr")

    def read(value: str, folder: str) -> tuple[str, ...]:
        items = checks.items_of(value)
        if not all(_LANGUAGE.fullmatch(item) for item in items):
            raise ValueError(expectation)
        return items

    return checks.Check("list", read, expectation, is_optional=True)


@dataclass(frozen=True, slots=True, repr=False)
class RagSettings:
    """Rows of `rag.*`: the search, the prompt and the model of an answer."""

    api_endpoint: str = setting(
        "rag.api.endpoint",
        "https://api.openai.com/v1/chat/completions",
        check=addresses.endpoint(),
        help="Address of the language model: the URL of an OpenAI-compatible chat completions endpoint (its base "
        "address, which ends in /v1 or has no path, is completed) or of a Datafari /invoke endpoint, or "
        "builtin:extractive, which answers with sentences from the documents and needs no model.",
    )
    api_token: str = secret(
        "rag.api.token",
        "",
        check=checks.text(),
        help="Key for that endpoint, sent as llm.server wants it: as a bearer token, or in the header api-key. Empty: "
        "none is sent. Use ${OPENAI_API_KEY} or file:token.txt to keep the secret out of this file.",
    )
    model: str = setting(
        "rag.model",
        "gpt-4.1-mini",
        check=checks.text(),
        help="Name of the model. Empty: no model name is sent.",
    )
    template: Literal["openai", "datafari"] = setting(
        "rag.template",
        "openai",
        check=checks.choice("openai", "datafari"),
        help="Request format: openai for OpenAI-compatible services, datafari for a Datafari External LLM service.",
    )
    temperature: float | None = setting(
        "rag.temperature",
        0.7,
        check=checks.number(0, 2, is_optional=True),
        help="How freely the model words its answer: 0 is the most predictable, 2 the most random. Empty: not sent.",
    )
    max_tokens: int | None = setting(
        "rag.maxTokens",
        250,
        check=checks.integer(1, 10_000_000, is_optional=True),
        help="Maximum length of an answer, in tokens of the model (a token is about three quarters of a word). Empty: "
        "not sent; a quarter of llm.context.window is then kept free for the answer.",
    )
    max_files: int = setting(
        "rag.maxFiles",
        8,
        check=checks.integer(1, 1000),
        help="Maximum number of documents used for one answer; they share rag.chars. 8 instead of 3 have the answer to "
        "1 or 2 questions in 100 more.",
    )
    effort: Effort = setting(
        "rag.effort",
        "none",
        check=checks.choice("none", "minimal", "low"),
        help="How many steps a search may take if the request does not set it: none is one search; minimal searches "
        "again for the names that the first passages bring, without the model; low lets the model plan the searches "
        "once. Each step costs time.",
    )
    effort_limits: StepBudget = setting(
        "rag.effort.limits",
        StepBudget(),
        check=checks.members(
            StepBudget,
            searches=checks.integer(1, 100),
            model_calls=checks.integer(0, 1),
            tokens=checks.integer(0, 10_000_000),
            seconds=checks.number(0, 3600),
        ),
        help="What the steps of one question may take at most, at any effort: searches, calls of the model and tokens "
        "before the answer, and the seconds after which no further step begins.",
    )
    max_json_length: int = setting(
        "rag.maxJsonLength",
        150_000_000,
        check=checks.integer(1, 2_000_000_000),
        help="Maximum number of characters in all document extracts of one request; the weakest extracts are cut or "
        "left out first.",
    )
    chars: int = setting(
        "rag.chars",
        16_000,
        check=checks.integer(0, 2_000_000_000),
        help="Characters of all document extracts that an answer is made from; 0 for as many as the model's window and "
        "rag.maxJsonLength hold. The window and ratio of /v1 count in its place.",
    )
    add_instructions: bool = setting(
        "rag.addInstructions",
        True,
        check=checks.flag(),
        help="Put the instructions before the documents: rag-instructions.txt beside this file, else the packaged "
        "ones. The openai template always does.",
    )
    solr_field: Content = setting(
        "rag.solrField",
        "exactContent",
        check=checks.choice("highlighting", "preview_content", "exactContent"),
        help="Which text of a document is used: exactContent (the full text, from which the best passages are "
        "chosen), preview_content (the beginning of the text) or highlighting (the search engine's snippets).",
    )
    hl_fragsize: int = setting(
        "rag.hl.fragsize",
        200,
        check=checks.integer(0, 100_000_000),
        help="Minimum length of a snippet in characters, for rag.solrField=highlighting; a snippet consists of whole "
        "sentences. 0: the whole field.",
    )
    operator: Operator = setting(
        "rag.operator",
        "AND",
        check=checks.choice("AND", "OR"),
        help="OR: a document needs any word of the question. AND: it needs all words. With relax of rag.search, AND "
        "requires all key words first, then a third of them, then any; a full sentence requires any of its own "
        "words, or a fifth of them if there are many. The trace shows which rule was used.",
    )
    search: SearchChoice = setting(
        "rag.search",
        SearchChoice(),
        check=checks.members(
            SearchChoice, candidates=checks.integer(1, 1000), relax=checks.flag(), min_score=checks.number(0, 1_000_000)
        ),
        help="How documents are looked for. candidates: how many search results are examined to choose the best "
        "rag.maxFiles documents. relax: if nothing is found, search again with fewer required words, step by step. "
        "min_score: least score of a search result, as the search engine returns it (higher is better). 0: off.",
    )
    extract: Literal["passages", "head"] = setting(
        "rag.extract",
        "passages",
        check=checks.choice("passages", "head"),
        help="What is taken from a text that is longer than its share of the prompt: passages (those that answer "
        "best) or head (the beginning).",
    )
    evidence_min: float | Literal["auto"] | None = setting(
        "rag.evidence.min",
        None,
        check=checks.number_or("auto", 0, 1),
        help="Minimum evidence in the documents, from 0 to 1, for a question to be answered; below it, the reply says "
        "that no document answers. 0: off. auto: the measured threshold. Empty: auto without a language model, else 0.",
    )
    clean: bool = setting(
        "rag.clean",
        True,
        check=checks.flag(),
        help="Replace line breaks, tabs and backslashes in the extracts with spaces and slashes. Invisible control "
        "characters are always removed.",
    )
    enable_logs: bool = setting(
        "rag.enable.logs",
        False,
        check=checks.flag(),
        help="Log one line for each step of an answer: ids, counts, sizes and milliseconds, never texts.",
    )
    reply: ReplyShape = setting(
        "rag.reply",
        ReplyShape(),
        check=checks.members(
            ReplyShape,
            linebreaks=checks.choice("escaped", "newline", "html"),
            documents=checks.choice("array", "object"),
            http_errors=checks.flag(),
        ),
        help="Shape of RagAPI's replies (search/select). linebreaks in a message: the two characters \\n (escaped), "
        "line breaks (newline) or <br/> in escaped HTML (html). documents: an array, or an object with the keys "
        '"0", "1"… http_errors: errors have their own HTTP status; false: always 200, as Datafari\'s callers '
        "expect.",
    )

    @property
    def model_url(self) -> str:
        """Return where the model answers: `rag.api.endpoint`, completed where it is a base address."""
        is_base = self.template == "openai" and self.api_endpoint != addresses.BUILTIN_MODEL
        return completed(self.api_endpoint) if is_base else self.api_endpoint


@dataclass(frozen=True, slots=True, repr=False)
class AnswerSettings:
    """Rows of `answer.*`: what an answer must prove."""

    unsupported: UnsupportedPolicy = setting(
        "answer.unsupported",
        "mark",
        check=checks.choice("mark", "drop"),
        help="How to handle a sentence of an answer that no document supports. mark: it is shown, and the reply lists "
        "these sentences. drop: it is left out, unless it is close to the documents; streams are then about one "
        "paragraph late.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class RetrievalSettings:
    """Rows of `retrieval.*`."""

    method: Literal["hybrid", "bm25"] = setting(
        "retrieval.method",
        "hybrid",
        check=checks.choice("hybrid", "bm25", read_as=AS_HYBRID),
        help="How documents are found: hybrid (words and meaning in one score) or bm25 (words). vector and rrf are "
        "read as hybrid. If there are no vectors, or they cannot be used, the search uses words.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class EmbeddingsSettings:
    """Rows of `embeddings.*`: the model that makes vectors."""

    endpoint: str = setting(
        "embeddings.endpoint",
        "",
        check=model_endpoint("/v1/embeddings"),
        help="Where vectors are made: the URL of an OpenAI-compatible /v1/embeddings endpoint, or onnx:FOLDER for a "
        "local model (docs/embeddings.md; needs the extra vectors). Empty: no vectors, the search uses words only.",
    )
    token: str = secret(
        "embeddings.token",
        "",
        check=checks.text(),
        help="Bearer token for the endpoint. Empty: no Authorization header.",
    )
    options: EmbeddingOptions = setting(
        "embeddings.options",
        EmbeddingOptions(),
        check=checks.members(
            EmbeddingOptions,
            model=checks.text(),
            dimensions=checks.integer(1, 8192),
            languages=languages(),
            prefixes=checks.members(checks.frozen_mapping, query=checks.text(), passage=checks.text()),
            timeout_s=checks.number(0.01, 60),
        ),
        help="model: name sent to the endpoint; absent: no name is sent, and a local model has its own. "
        "dimensions of a vector: the number is sent to the endpoint, and every vector is checked against it; "
        "absent: it is not sent, and the first vector sets it. languages that the model supports, as two-letter codes "
        'such as "en,fr": questions in others are searched by words only; absent: those in the local model\'s folder, '
        "otherwise any. prefixes that the model expects before a question and a passage, for E5 "
        '{"query": "query:", "passage": "passage:"}; a space is added after each; absent: those in that folder. '
        "timeout_s: maximum wait for the vector of a question; after that, words only.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class RerankSettings:
    """Rows of `rerank.*`."""

    endpoint: str = setting(
        "rerank.endpoint",
        "",
        check=addresses.url(is_optional=True),
        help="A reranker that puts the found passages into order: the URL of a /rerank endpoint "
        "(text-embeddings-inference, or Cohere's form: Jina, vLLM, Infinity). It is sent passages that the user may "
        "see. Empty: none, and nothing is sent.",
    )
    token: str = secret(
        "rerank.token", "", check=checks.text(), help="Bearer token for the endpoint. Empty: no Authorization header."
    )
    options: RerankOptions = setting(
        "rerank.options",
        RerankOptions(),
        check=checks.members(RerankOptions, model=checks.text(), timeout_s=checks.number(0.05, 60)),
        help="model: name sent to the endpoint, in Cohere's form; absent: the form of text-embeddings-inference, which "
        "has one model. timeout_s: maximum wait in one search; after that, the order without the reranker.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class LlmSettings:
    """Rows of `llm.*`: the model's server, its limits, and what stands in for it."""

    server: str = setting(
        "llm.server",
        AUTO,
        check=checks.choice(*SERVERS),
        help="Which server answers at rag.api.endpoint, and so how requests to it are made (docs/models.md). auto: the "
        "one that its address names. Fallback endpoints are always auto.",
    )
    body: str = setting(
        "llm.body",
        "",
        check=checks.json_object(without=("model", "messages", "stream")),
        help='Further keys of each request to rag.api.endpoint, as a JSON object such as {"reasoning_effort": "low"}; '
        "they win over those that this service sends. Empty: none.",
    )
    context_window: int = setting(
        "llm.context.window",
        16_384,
        check=checks.integer(256, 100_000_000),
        help="Size of the model's context window in tokens: question, documents and answer together.",
    )
    fallback: tuple[str, ...] = setting(
        "llm.fallback",
        (),
        check=addresses.endpoints(),
        help="Fallback endpoints, tried in order when rag.api.endpoint fails. The last one may be builtin:extractive.",
    )
    fallback_models: tuple[str, ...] = setting(
        "llm.fallback.models",
        (),
        check=checks.plain_list(),
        help="Model names for the fallback endpoints, in the same order. An endpoint without a name uses rag.model.",
    )
    fallback_tokens: tuple[str, ...] = secret(
        "llm.fallback.tokens",
        (),
        check=checks.plain_list(),
        help="Tokens for the fallback endpoints, in the same order. An endpoint without a token gets no "
        "Authorization header; rag.api.token is never sent to it.",
    )
    limits: ModelLimits = setting(
        "llm.limits",
        ModelLimits(),
        check=checks.members(
            ModelLimits,
            connect_s=checks.number(0.01, 3600),
            first_token_s=checks.number(0.01, 3600),
            stall_s=checks.number(0.01, 3600),
            total_s=checks.number(0.01, 86_400),
            retries=checks.integer(0, 20),
            breaker_failures=checks.integer(0, 10_000),
            breaker_reset_s=checks.number(0.01, 86_400),
        ),
        help="How long the model is waited for, in seconds: to connect, for the first token of a stream, between two "
        "tokens, and for a whole answer with its retries. retries: how often a request is repeated before its "
        "first token, after a refused connection and the statuses 429, 502, 503 and 504. After breaker_failures "
        "failures in a row (0: never) an endpoint is not used for breaker_reset_s.",
    )
    proxy: str = secret(
        "llm.proxy",
        "",
        check=addresses.url(is_optional=True),
        help="HTTP proxy for requests to the model, as http://user:password@host:3128. Empty: none; proxies set in "
        "the environment are never used.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class TokenSettings:
    """Rows of `token.*`."""

    counter: str = setting(
        "token.counter",
        "estimate",
        check=checks.text("estimate and tiktoken:ENCODING", _COUNTER),
        help="How tokens are counted: estimate (never much too low), or tiktoken:o200k_base and similar, which needs "
        "the extra tokens and its vocabulary on disk.",
    )
