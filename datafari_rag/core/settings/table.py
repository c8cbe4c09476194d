"""
The settings: each value of a group in the frozen `Settings` declares key, type, bounds, default and help.

The loader, the linter, the admin page, `conf/rag.properties` and `docs/settings.md` all read `ROWS`; nothing else
says what a setting is. Pure: what is in a file or in the environment is read by `adapters/settings/file.py` and
handed in. What nobody would set is a constant (`Fixed`) beside the values, with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from msgspec import Meta, field

from datafari_rag.core.access import ACL_FIELDS, Mode
from datafari_rag.core.ask import Effort
from datafari_rag.core.events import UnsupportedPolicy
from datafari_rag.core.model.prompt import Window
from datafari_rag.core.model.servers import AUTO, SERVERS, THINKING_TOKENS, completed, needs_for
from datafari_rag.core.search_request import Content, Fields, Operator
from datafari_rag.core.settings.addresses import (
    BUILTIN_MODEL,
    Endpoint,
    Endpoints,
    Hosts,
    Indexes,
    ModelAddress,
    Networks,
    Origins,
    PathOrUrl,
    Proxy,
    SolrUrl,
    TlsByServer,
    Trust,
    Url,
)
from datafari_rag.core.settings.checks import (
    Check,
    Fixed,
    Group,
    Names,
    PathName,
    Row,
    Seconds,
    Secret,
    items,
    json_object,
    needed,
    one_of,
    rows_of,
    valid,
)

HIDDEN = "***"
"""Replaces a secret wherever a value is shown."""

ANSWER_GROUPS = frozenset({"rag", "answer", "llm", "openai", "chat", "retrieval", "embeddings", "rerank"})
"""Groups of which a bad value fails answers and not the start (contract §8); every other one refuses to start."""

AS_HYBRID = {"vector": "hybrid", "rrf": "hybrid"}
"""Datafari's methods that are not made here."""

FIELD_NAMES = (
    *("id", "title", "url", "exactContent", "preview_content", "content_prefix", "language", "last_modified"),
    *ACL_FIELDS,
)
"""The members of `solr.fields`: Datafari's names, each to be mapped to the schema's own."""

_OWN = ("model", "messages", "stream")
"""Keys of a request to the model that `llm.body` cannot replace."""


def _body(members: dict[str, Any], folder: str) -> dict[str, Any]:
    needed(not members.keys() & set(_OWN))
    return members


def _fields(names: dict[str, Any], folder: str) -> dict[str, Any]:
    needed(not names.keys() - set(FIELD_NAMES))
    return names


def _places(text: str, folder: str) -> tuple[str, ...]:
    """Return the items of a list whose places matter: doubles and empty items are kept."""
    return tuple(item.strip() for item in text.split(",")) if text else ()


Amount = Annotated[int, Meta(ge=0, le=2_000_000_000)]
Positive = Annotated[int, Meta(ge=1, le=2_000_000_000)]
FieldName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*\Z")]
FieldNames = Annotated[
    Mapping[str, FieldName], json_object(f"with names of fields for some of {', '.join(FIELD_NAMES)}", _fields)
]
Body = Annotated[Mapping[str, Any], json_object(f"without the keys {', '.join(_OWN)}", _body)]
Facets = Annotated[tuple[FieldName, ...], items("names of fields")]
Handler = Annotated[
    str, Meta(pattern=r"^(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+\Z"), valid("paths of request handlers such as /select")
]
Header = Annotated[str, Meta(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z"), valid("names of HTTP headers")]
Headers = Annotated[tuple[Header, ...], Meta(min_length=1), items("names of HTTP headers")]
Keys = Annotated[
    tuple[Annotated[str, Meta(pattern=r"^[\x21-\x7e]{16,512}\Z")], ...],
    items("keys of at least 16 characters without spaces", is_secret=True),
]
AuditKeys = Annotated[
    tuple[Annotated[str, Meta(min_length=32)], ...], items("texts of at least 32 characters", is_secret=True)
]
LongSecret = Annotated[str, Meta(pattern=r"^(.{16,})?\Z"), valid("texts of at least 16 characters", is_secret=True)]
Claim = Annotated[str, Meta(min_length=1), valid("names of claims")]
Collection = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\Z"), valid("names of collections")]
Host = Annotated[str, Meta(pattern=r"^[A-Za-z0-9.:_\[\]-]+\Z"), valid("host names and IP addresses")]
Method = Annotated[
    Literal["hybrid", "bm25"], replace(one_of("hybrid", "bm25"), read=lambda text, folder: AS_HYBRID.get(text, text))
]
Evidence = Annotated[
    Annotated[float, Meta(ge=0, le=1)] | Literal["auto"] | None,
    Check('"auto" or a number between 0 and 1 is expected.'),
]


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
    max_json_length: Positive = field(name="maxJsonLength", default=150_000_000)
    """Maximum number of characters in all extracts of one request; the weakest are cut first."""
    chars: Amount = 16_000
    """Characters of all extracts of an answer. 0: as many as fit. The window and ratio of /v1 count in its place."""
    add_instructions: bool = field(name="addInstructions", default=True)
    """Send rag-instructions.txt beside this file, else the packaged one. rag.template=openai always does."""
    solr_field: Content = field(name="solrField", default="exactContent")
    """Text that is used: exactContent (all), preview_content (its beginning), highlighting (the engine's snippets)."""
    hl_fragsize: Amount = field(name="hl.fragsize", default=200)
    """Minimum length of a snippet in characters, for rag.solrField=highlighting. 0: the whole field."""
    operator: Operator = "AND"
    """OR: a document needs any word of the question. AND: all key words, and fewer step by step."""
    enable_logs: bool = field(name="enable.logs", default=False)
    """Log one line for each step of an answer: ids, counts, sizes and times, never texts."""
    effort: Effort = "none"
    """Searches a question: none is one, minimal also looks for names in what it found, low lets the model plan."""
    evidence_min: Evidence = field(name="evidence.min", default=None)
    """Minimum evidence, 0 to 1, for an answer. auto: as measured. Empty: auto without a language model, else 0."""
    reply_http_errors: bool = field(name="reply.http_errors", default=False)
    """Errors have an HTTP status of their own. false: always 200, as Datafari's callers expect."""

    clean: Fixed[bool] = True
    """Line breaks, tabs and backslashes of extracts become spaces and slashes, as in Datafari's own code."""

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

    method: Method = "hybrid"
    """How documents are found: by words and meaning in one score (hybrid), or by words (bm25)."""


class EmbeddingsSettings(Group, frozen=True):
    """Embedding model (search by meaning)."""

    endpoint: ModelAddress = ""
    """Where vectors are made: a /v1/embeddings address, or onnx:FOLDER (docs/embeddings.md). Empty: words only."""
    token: Secret = ""
    """Bearer token for it. Empty: no Authorization header."""
    options_model: str = field(name="options.model", default="")
    """Name of the model, sent to the endpoint. Empty: none is sent."""


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
    body: Body = field(default_factory=dict)
    """Further keys of each request to rag.api.endpoint, as {"reasoning_effort": "low"}. Empty: none."""
    context_window: Annotated[int, Meta(ge=256, le=100_000_000)] = field(name="context.window", default=16_384)
    """Context window in tokens: question, documents and answer together."""
    fallback: Endpoints = ()
    """Endpoints tried in order when rag.api.endpoint fails, as URL or URL#MODEL. The last may be builtin:extractive."""
    fallback_tokens: Annotated[tuple[str, ...], valid("lists, separated by commas", _places, is_secret=True)] = field(
        name="fallback.tokens", default=()
    )
    """Tokens for them, in the same order; rag.api.token is never sent to them."""
    limits: ModelLimits = ModelLimits()
    proxy: Proxy = ""
    """HTTP proxy for the model, as http://user:password@host:3128. The environment's is never used."""


class LimitsSettings(Group, frozen=True):
    """Tokens of the language model."""

    store: PathName = ""
    """Folder on a local disk in which tokens are counted by user and day. Empty: they are not."""
    tokens: Annotated[int, Meta(ge=1, le=10**15)] | None = None
    """Maximum number of a user's tokens a day (UTC); then 429 until the next. Needs limits.store. Empty: no limit."""


class OpenaiSettings(Group, frozen=True):
    """OpenAI-compatible callers (/v1)."""

    client_passthrough: bool = field(name="client.passthrough", default=True)
    """Send requests for which no documents were found, or that name no index, on to the model."""
    indexes: Indexes = field(default_factory=lambda: {"default": ""})
    """Values of index_name on /v1. NAME alone is the collection of solr.url; NAME=SOLR-URL is another."""


class ChatLimits(Group, frozen=True):
    """What a chat client may send: documents, tokens of its history; bytes, seconds and messages of a memory."""

    top: Fixed[int] = 50
    history_tokens: Fixed[int] = 4000
    memory_bytes: Fixed[int] = 16_384
    memory_age_s: Fixed[int] = 86_400
    messages: Fixed[int] = 6
    """Far above what clients send; a quarter of the context window limits the history where that is less."""


class ChatSettings(Group, frozen=True):
    """Chat callers (/chat, /ask, /api/chat)."""

    limits: ChatLimits = ChatLimits()
    memory_enabled: bool = field(name="memory.enabled", default=False)
    """Return the last messages in a signed session_state, for clients that send only the new one."""
    store_folder: PathName = field(name="store.folder", default="")
    """Folder on a local disk for the conversations of signed-in users (Datafari 7). Empty: none."""
    query_rewriting_enabled: bool = field(name="query.rewriting.enabled", default=True)
    """Let the model write the search query of a follow-up: one more short request to it."""


class SolrLimits(Group, frozen=True):
    """How long Solr is waited for, in seconds, and how often a failed search is repeated."""

    wait_s: Seconds = 10.0
    """Maximum wait for a response of Solr, or of the authority, in seconds."""
    connect_s: Fixed[float] = 2.0
    """A server in the same network accepts a connection in milliseconds."""
    retries: Fixed[int] = 1
    """A second node may answer; a third try would only add load to a failing cluster."""


class SolrSettings(Group, frozen=True):
    """The search engine."""

    url: SolrUrl = "http://localhost:8983/solr/FileShare"
    """http(s)://HOST/solr/COLLECTION (several after commas), zookeeper://HOST:2181#COLLECTION, or embedded:FOLDER."""
    handler: Handler = "/select"
    """Solr request handler used for searches."""
    limits: SolrLimits = SolrLimits()
    shards_tolerant: bool = field(name="shards.tolerant", default=False)
    """If a shard does not respond, answer from the others and say so. false: return an error."""
    user: str = ""
    """User name for Solr's basic authentication."""
    password: Secret = ""
    """Password for Solr's basic authentication."""
    vector_collection: Collection = field(name="vector.collection", default="VectorMain")
    """Collection with the passages, in the same Solr: Datafari's, or one that datafari-rag passages sync maintains."""
    facets: Facets = ("extension", "language", "source", "last_modified")
    """Fields that callers may use for filters and facet counts; never those of access rights."""
    fields: FieldNames = field(default_factory=dict)
    """Field names of a schema that differs from Datafari's, as {"title": "dc_title"}."""


class JwtClaims(Group, frozen=True):
    """The claims that name a token's user and access tokens."""

    user: Claim = "preferred_username"
    """Claim with the user's name."""
    tokens: Claim = "groups"
    """Claim with the user's access tokens, for security.tokens=claims."""
    leeway_s: Fixed[float] = 30.0
    """By how much the clocks of the issuer and this service may differ, in seconds."""


class SecuritySettings(Group, frozen=True):
    """Who may see what."""

    identity: Literal["anonymous", "header", "jwt", "demo"] = "anonymous"
    """Who callers are: unknown, as a trusted proxy's header or a signed token (jwt) says, or as a demo's menu says."""
    header: Header = "X-Remote-User"
    """Header in which a trusted proxy names the user."""
    trusted_proxies: Networks = field(name="trusted.proxies", default=("127.0.0.1/32", "::1/128"))
    """Networks from which that header is accepted; it is removed from all other requests."""
    domain: str = ""
    """Domain that is added to user names without one: alice becomes alice@DOMAIN, as in Datafari."""
    anonymous: Literal["public", "refuse"] = "public"
    """What anonymous callers get: the documents without access rights, or the error 401."""
    mode: Mode = "tokens"
    """What filters documents by rights: this service (tokens), Solr's ManifoldCF component (plugin), or nothing."""
    tokens: Literal["file", "authority", "claims"] = "file"
    """Where a user's access tokens come from: a file, ManifoldCF's authority, or the signed token."""
    tokens_file: PathName = field(name="tokens.file", default="")
    """JSON file with the access tokens of each user, as {"alice": ["group:hr"]}. Empty: no user has tokens."""
    authority_url: Url = field(name="authority.url", default="")
    """URL of ManifoldCF's authority service; /UserACLs is added to it."""
    cache_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """Seconds for which a user's access tokens are cached. 0: never."""
    revocations_file: PathName = field(name="revocations.file", default="")
    """File that keeps revoked rights (POST /admin/revoke); servers may share it. Empty: kept until a restart."""
    jwt_jwks: PathOrUrl = field(name="jwt.jwks", default="")
    """Public keys of the token issuer: a URL or a file (JWKS)."""
    jwt_header: Headers = field(name="jwt.header", default=("Authorization",))
    """Headers that may hold a user's token, such as X-OpenWebUI-User-Jwt; several tokens must name the same user."""
    jwt_secret: Secret = field(name="jwt.secret", default="")
    """Secret shared with the issuer, for HS256 and similar algorithms."""
    jwt_issuer: str = field(name="jwt.issuer", default="")
    """Required issuer of a token. Empty: the issuer is not checked."""
    jwt_audience: str = field(name="jwt.audience", default="")
    """Required audience of a token. Empty: the audience is not checked."""
    jwt_claims: JwtClaims = field(name="jwt.claims", default=JwtClaims())
    admins: Names = ()
    """Users who may open /admin and see how answers were made. Empty: no one."""


class RequestRates(Group, frozen=True):
    """How much a minute one user, one client address and one caller may ask; 0: no limit."""

    user: Amount = 0
    """Questions, checks and opened documents of one user a minute. 0: no limit."""
    client: Amount = 0
    """Requests of one client address a minute. 0: no limit."""
    work: Amount = 300
    """Units of work of a caller a minute: a plain search, or a check of 100,000 characters. 0: no limit."""


class ServerLimits(Group, frozen=True):
    """What one worker takes at most."""

    streams: Annotated[int, Meta(ge=1, le=1_000_000)] = 2000
    """Open streams of each worker; further ones are refused with 503."""
    starting: Fixed[int] = 16
    """Answers of each worker that search at the same time; more would only share the same processor."""
    wait_s: Fixed[float] = 5.0
    """Seconds in line for that: who would wait longer is better served by 503 and Retry-After."""
    connections: Fixed[int] = 10_000
    """Open ones, idle ones included; the operating system's limit of open files is set for them."""
    header_s: Fixed[float] = 10.0
    """Seconds to send the headers of a request: they are one packet, and slow senders hold places."""
    body_bytes: Fixed[int] = 10_485_760
    """Bytes of a request body: twenty times the longest text that is checked."""
    grace_s: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    """How long open streams may continue during a shutdown, in seconds."""
    work_s: Fixed[float] = 10.0
    """How long the texts of one answer may be processed: a bound on hostile texts, far above what real ones take."""


class ServerSettings(Group, frozen=True):
    """The server."""

    host: Host = "127.0.0.1"
    """Address to listen on. 0.0.0.0: all network interfaces."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8080
    """Port to listen on. 0: any free port."""
    workers: Annotated[int, Meta(ge=1, le=1024)] | None = None
    """Number of worker processes. Empty: one for each CPU core."""
    rate: RequestRates = RequestRates()
    limits: ServerLimits = ServerLimits()
    hosts: Hosts = ()
    """Host names that requests may use, as HOST or HOST:PORT; any other is refused with 421. Empty: any name."""
    public_url: Url = ""
    """URL at which clients reach this service, for links and (with /mcp) audiences. Empty: the request's address."""
    api_keys: Keys = field(name="api.keys", default=())
    """Keys of calling applications, sent as Authorization: Bearer KEY; a key identifies no user. Empty: no keys."""
    cors_origins: Origins = field(name="cors.origins", default=())
    """Web sites whose pages may call this service from the browser. Empty: none. *: any."""
    secret: LongSecret = ""
    """Secret that signs forms, cookies and chats' memory; servers share it. Empty: a new one at each start."""

    @property
    def root(self) -> str:
        """The path of `public_url`, below which all our paths are; "" at the root of a host."""
        return urlsplit(self.public_url).path.rstrip("/")


class AuditSettings(Group, frozen=True):
    """Audit."""

    folder: PathName = ""
    """Folder for the audit files: one line an answer, without texts. Empty: no audit."""
    key: AuditKeys = ()
    """Secret that signs the lines of the audit, and after commas earlier ones; not for who can write them."""


class FeedbackSettings(Group, frozen=True):
    """Readers' feedback."""

    file: PathName = ""
    """File for readers' thumbs, one JSON line for each. Empty: the page asks for none."""


class LogSettings(Group, frozen=True):
    """Log."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Minimum level of messages that are logged. Questions are logged at DEBUG only."""
    format: Literal["text", "json"] = "text"
    """Format of a log line: text, or one JSON object."""


class Settings(Group, frozen=True):
    """
    All that an administrator can choose, by groups: `rag.maxFiles` is `rag.max_files`. Without arguments all defaults.

    One request reads one of these from its beginning to its end.
    """

    rag: RagSettings = RagSettings()
    answer: AnswerSettings = AnswerSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    embeddings: EmbeddingsSettings = EmbeddingsSettings()
    rerank: RerankSettings = RerankSettings()
    llm: LlmSettings = LlmSettings()
    limits: LimitsSettings = LimitsSettings()
    openai: OpenaiSettings = OpenaiSettings()
    chat: ChatSettings = ChatSettings()
    solr: SolrSettings = SolrSettings()
    security: SecuritySettings = SecuritySettings()
    server: ServerSettings = ServerSettings()
    tls: Trust = TlsByServer()
    """Files of certificates (ca, cert, key) for solr, llm, embeddings and rerank, as {"solr": {"ca": "ca.pem"}}."""
    audit: AuditSettings = AuditSettings()
    feedback: FeedbackSettings = FeedbackSettings()
    log: LogSettings = LogSettings()

    @property
    def window(self) -> Window:
        """
        The model's window, with what of it is kept for an answer, and for thoughts before it.

        A quarter of it where no limit is sent, and as much besides where the model is known to think.
        """
        quarter = self.llm.context_window // 4
        answer = quarter if self.rag.max_tokens is None else self.rag.max_tokens
        thinks = needs_for(self.llm.server, self.rag.model_url, self.rag.model).thinking != "none"
        return Window(self.llm.context_window, answer + min(quarter, THINKING_TOKENS) if thinks else answer)


ROWS: tuple[Row, ...] = tuple(rows_of(Settings))
"""The table, in the order of the properties file."""

BY_KEY: Mapping[str, Row] = {row.key: row for row in ROWS}


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Return the values of all secrets that are set, those of lists one by one."""
    values = [row.value_in(settings) for row in ROWS if row.check.is_secret]
    return tuple(one for value in values for one in (value if isinstance(value, tuple) else (value,)) if one)


def without_password(text: str) -> str:
    """Return *text* with the part between `//` and `@` of an address hidden."""
    return re.sub(r"//[^/@\s]*@", f"//{HIDDEN}@", text)


def fields_of(solr_fields: Mapping[str, str]) -> Fields:
    """Return the schema's field names: Datafari's, except those that *solr_fields* (`solr.fields`) replaces."""
    named = dict(solr_fields)
    acl = {name: named.pop(name) for name in ACL_FIELDS if name in named}
    fields: dict[str, Any] = {re.sub(r"([A-Z])", r"_\1", name).lower(): text for name, text in named.items()}
    return Fields(**fields, acl=acl)
