"""
Settings of the answer itself: `rag.*`, `retrieval.*`, `llm.*`, `token.*`.

Rows only. A bad value of these never stops the service: each answer then is the badSetting error of that value, so
that the admin page can mend it (contract §8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.messages import message
from datafari_rag.core.query.search_request import Content, Operator
from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.row import secret, setting
from datafari_rag.core.steps.budgets import Effort

_COUNTER = re.compile(r"estimate|tiktoken:[\w.-]+")


@dataclass(frozen=True, slots=True, repr=False)
class AnswerSettings:
    """Rows of the answer: what is found, what the model is told, which model."""

    rag_api_endpoint: str = setting(
        "rag.api.endpoint",
        "https://api.openai.com/v1/chat/completions",
        check=addresses.endpoint(),
        help="Where the language model answers: the whole address of an OpenAI-compatible chat completions "
        "service or of "
        "a Datafari /invoke service, or builtin:extractive, which answers with sentences of the documents and needs "
        "no model.",
    )
    rag_api_token: str = secret(
        "rag.api.token",
        "",
        check=checks.text(),
        help="Token of that service, sent as Bearer. Empty: no Authorization header. Best written ${OPENAI_API_KEY} or "
        "file:token.txt, so that this file holds no secret.",
    )
    rag_model: str = setting(
        "rag.model",
        "gpt-3.5-turbo",
        check=checks.text(),
        help="Name of the model. Empty: the key is left out of the request.",
        browser=True,
    )
    rag_template: Literal["openai", "datafari"] = setting(
        "rag.template",
        "openai",
        check=checks.choice("openai", "datafari"),
        help="Form of the request: openai for OpenAI-compatible services, datafari for a Datafari External LLM "
        "service.",
        browser=True,
    )
    rag_temperature: float = setting(
        "rag.temperature",
        0.7,
        check=checks.number(0, 2),
        help="How freely the model words its answer: 0 is the most exact, 2 the most random.",
        browser=True,
    )
    rag_max_tokens: int = setting(
        "rag.maxTokens",
        250,
        check=checks.integer(1, 10_000_000),
        help="Longest answer, in tokens of the model (about three quarters of a word each).",
        browser=True,
    )
    rag_max_files: int = setting(
        "rag.maxFiles",
        3,
        check=checks.integer(1, 1000),
        help="Most documents that one answer is made from. More of them cost time and tokens.",
        browser=True,
    )
    rag_effort: Effort = setting(
        "rag.effort",
        "none",
        check=checks.choice("none", "minimal", "low", "medium"),
        help="How many steps a search may take where the request does not say: none is one search; minimal searches "
        "again for the names that the first passages bring, without the model; low lets the model plan the searches "
        "once; medium lets it plan again when it has seen what was found. Each step costs time.",
        browser=True,
    )
    rag_effort_max_searches: int = setting(
        "rag.effort.max_searches",
        12,
        check=checks.integer(1, 100),
        help="Most searches of one question at any effort, relaxed repeats counted. A request may ask for fewer.",
    )
    rag_effort_max_model_calls: int = setting(
        "rag.effort.max_model_calls",
        6,
        check=checks.integer(0, 20),
        help="Most calls of the model before the answer, at any effort. 0: no model plans or chooses searches.",
    )
    rag_effort_max_tokens: int = setting(
        "rag.effort.max_tokens",
        12000,
        check=checks.integer(0, 10_000_000),
        help="Most tokens that go to the model and come from it before the answer.",
    )
    rag_effort_max_seconds: float = setting(
        "rag.effort.max_seconds",
        20.0,
        check=checks.number(0, 3600),
        help="How long after the question further steps may begin, in seconds. A search that has begun ends within the "
        "limits of solr.*.",
    )
    rag_max_json_length: int = setting(
        "rag.maxJsonLength",
        150_000_000,
        check=checks.integer(1, 2_000_000_000),
        help="Most characters of all the documents' extracts of one request together; what does not fit is cut or left "
        "out, best first.",
        browser=True,
    )
    rag_add_instructions: bool = setting(
        "rag.addInstructions",
        True,
        check=checks.flag(),
        help="Put the instructions of rag.instructions.file before the documents. The openai template always does.",
        browser=True,
    )
    rag_instructions_file: str = setting(
        "rag.instructions.file",
        "",
        check=checks.path(),
        help="Text file with the instructions for the model; {language} and {format} in it are replaced. Empty: "
        "rag-instructions.txt beside this file, else the one of the package.",
    )
    rag_solr_field: Content = setting(
        "rag.solrField",
        "exactContent",
        check=checks.choice("highlighting", "preview_content", "exactContent"),
        help="What is read of each document: exactContent (its whole text, of which the best passages are taken), "
        "preview_content (its beginning) or highlighting (the search engine's snippets).",
        browser=True,
    )
    rag_hl_fragsize: int = setting(
        "rag.hl.fragsize",
        200,
        check=checks.integer(0, 100_000_000),
        help="Least size of a snippet in characters, for rag.solrField=highlighting; a snippet is made of whole "
        "sentences. 0: the whole field.",
        browser=True,
    )
    rag_operator: Operator = setting(
        "rag.operator",
        "AND",
        check=checks.choice("AND", "OR"),
        help="OR: any word of the question is enough. AND: all words are needed. With rag.query.relax, AND needs all "
        "key words first, then a third of them, then any; of a whole sentence any of its own words, or a fifth of "
        "many. The trace names what was used.",
        browser=True,
    )
    rag_query_relax: bool = setting(
        "rag.query.relax",
        True,
        check=checks.flag(),
        help="When nothing is found, ask again with fewer words required, step by step.",
        browser=True,
    )
    rag_candidates: int = setting(
        "rag.candidates",
        20,
        check=checks.integer(1, 1000),
        help="How many found documents are looked at before the best rag.maxFiles are kept.",
        browser=True,
    )
    rag_extract: Literal["passages", "head"] = setting(
        "rag.extract",
        "passages",
        check=checks.choice("passages", "head"),
        help="What is taken of a text longer than its share: the passages that answer best, or its head.",
        browser=True,
    )
    rag_evidence_min: float = setting(
        "rag.evidence.min",
        0.0,
        check=checks.number(0, 1),
        help="Evidence that the passages must give, 0 to 1, before the question is sent to the model; below "
        "it, the answer is that no documents were found. 0: off.",
        browser=True,
    )
    rag_score_min: float = setting(
        "rag.score.min",
        0.0,
        check=checks.number(0, 1_000_000),
        help="Weakest hit that is used, by the search engine's score (higher is better). 0: off.",
        browser=True,
    )
    rag_clean: bool = setting(
        "rag.clean",
        True,
        check=checks.flag(),
        help="Turn line breaks, tabs and backslashes of the extracts into spaces and slashes. Invisible control "
        "characters are dropped in any case.",
        browser=True,
    )
    rag_linebreaks: Literal["escaped", "newline", "html"] = setting(
        "rag.linebreaks",
        "escaped",
        check=checks.choice("escaped", "newline", "html"),
        help="How line breaks stand in the message of search/select: as the two characters \\n, as a line break, or as "
        "<br/> in escaped HTML.",
        browser=True,
    )
    rag_documents_shape: Literal["array", "object"] = setting(
        "rag.documents.shape",
        "array",
        check=checks.choice("array", "object"),
        help='Form of the documents of search/select: an array, or an object with the keys "0", "1"…',
        browser=True,
    )
    rag_http_errors: bool = setting(
        "rag.http.errors",
        False,
        check=checks.flag(),
        help="Answer an error of action=rag with its own HTTP status. false: always 200, as Datafari's callers expect.",
        browser=True,
    )
    rag_enable_logs: bool = setting(
        "rag.enable.logs",
        False,
        check=checks.flag(),
        help="Log one line for each step of an answer: ids, counts, sizes, milliseconds; never texts.",
        browser=True,
    )
    retrieval_method: Literal["hybrid", "bm25", "vector", "rrf"] = setting(
        "retrieval.method",
        "hybrid",
        check=checks.choice("hybrid", "bm25", "vector", "rrf"),
        help="How documents are found: hybrid (words and meaning in one score), bm25 (words), vector (meaning), rrf "
        "(two lists, fused by rank as Datafari does). Where there are no vectors, or they cannot be used now: words.",
        browser=True,
    )
    rrf_top_k: int = setting(
        "rrf.topK",
        50,
        check=checks.integer(1, 1000),
        help="With retrieval.method=rrf: how many documents of each of the two lists are fused.",
        browser=True,
    )
    rrf_rank_constant: int = setting(
        "rrf.rank.constant",
        60,
        check=checks.integer(1, 10_000),
        help="With retrieval.method=rrf: the constant of the ranks; the larger, the less the first places count.",
        browser=True,
    )

    llm_context_window: int = setting(
        "llm.context.window",
        16_384,
        check=checks.integer(256, 100_000_000),
        help="Tokens that the model can take at once, question, documents and answer together.",
        browser=True,
    )
    token_counter: str = setting(
        "token.counter",
        "estimate",
        check=checks.text(message("estimate and tiktoken:ENCODING"), _COUNTER),
        help="How tokens are counted: estimate (never far too low), or tiktoken:o200k_base and the like, which "
        "needs the "
        "extra tokens and its vocabulary on disk.",
        browser=True,
    )
    llm_retries: int = setting(
        "llm.retries",
        2,
        check=checks.integer(0, 20),
        help="How often a failed call to the model is repeated, before its first token: after a refused connection and "
        "the statuses 429, 502, 503 and 504. 408, 500 and all other statuses are not repeated.",
        browser=True,
    )
    llm_connect_timeout_s: float = setting(
        "llm.connect_timeout_s",
        5.0,
        check=checks.number(0.01, 3600),
        help="Longest wait for a connection to the model, in seconds.",
        browser=True,
    )
    llm_first_token_timeout_s: float = setting(
        "llm.first_token_timeout_s",
        60.0,
        check=checks.number(0.01, 3600),
        help="Longest wait for the first piece of a streamed answer, in seconds.",
        browser=True,
    )
    llm_stall_timeout_s: float = setting(
        "llm.stall_timeout_s",
        30.0,
        check=checks.number(0.01, 3600),
        help="Longest silence between two pieces of a streamed answer, in seconds.",
        browser=True,
    )
    llm_total_timeout_s: float = setting(
        "llm.total_timeout_s",
        300.0,
        check=checks.number(0.01, 86_400),
        help="Longest time for a whole answer of the model, repeats included, in seconds.",
        browser=True,
    )
    llm_breaker_failures: int = setting(
        "llm.breaker.failures",
        5,
        check=checks.integer(0, 10_000),
        help="After so many failures of one endpoint in a row it is left alone for a while. 0: never.",
        browser=True,
    )
    llm_breaker_reset_s: float = setting(
        "llm.breaker.reset_s",
        30.0,
        check=checks.number(0.01, 86_400),
        help="How long such an endpoint is left alone, in seconds.",
        browser=True,
    )
    llm_fallback: tuple[str, ...] = setting(
        "llm.fallback",
        (),
        check=addresses.endpoints(),
        help="Further endpoints, tried in order when rag.api.endpoint fails. The last may be builtin:extractive.",
    )
    llm_fallback_models: tuple[str, ...] = setting(
        "llm.fallback.models",
        (),
        check=checks.plain_list(),
        help="Names of the models at those endpoints, in the same order. Where none is given: rag.model.",
        browser=True,
    )
    llm_fallback_tokens: tuple[str, ...] = secret(
        "llm.fallback.tokens",
        (),
        check=checks.plain_list(),
        help="Tokens of those endpoints, in the same order. Where none is given: no Authorization header; "
        "rag.api.token "
        "is never sent to them.",
    )
    llm_proxy: str = secret(
        "llm.proxy",
        "",
        check=addresses.url(is_optional=True),
        help="Address of an HTTP proxy through which the model's server is reached, as http://user:password@host:3128. "
        "Empty: none; proxies that the environment names are never used.",
    )
    llm_tls_ca: str = setting(
        "llm.tls.ca",
        "",
        check=checks.path(),
        help="PEM file of the authorities that sign the model's certificate. Empty: those of the system.",
    )
    llm_tls_cert: str = setting(
        "llm.tls.cert",
        "",
        check=checks.path(),
        help="PEM file of our own certificate for the model's server, when it asks for one.",
    )
    llm_tls_key: str = setting(
        "llm.tls.key",
        "",
        check=checks.path(),
        help="PEM file of the key of that certificate. Empty: it is in the same file.",
    )
    llm_tls_verify: bool = setting(
        "llm.tls.verify",
        True,
        check=checks.flag(),
        help="Check the certificate of the model's server. false is for tests only; a warning is logged at startup.",
    )
