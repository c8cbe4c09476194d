"""
The settings: each value of a group in the frozen `Settings` declares key, type, bounds, default and help.

The loader, the linter, the admin page, `conf/rag.properties` and `docs/settings.md` all read `ROWS`; nothing else
says what a setting is. Pure: what is in a file or in the environment is read by `adapters/settings/file.py` and
handed in. The groups of callers and of searches are in `answers`, `dialects` and `search`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.model.servers import THINKING_TOKENS, needs_for
from datafari_rag.core.search_request import Fields
from datafari_rag.core.settings.addresses import Hosts, Origins, TlsByServer, Trust, Url
from datafari_rag.core.settings.answers import (
    AnswerSettings,
    EmbeddingsSettings,
    LlmSettings,
    RagSettings,
    RerankSettings,
    RetrievalSettings,
)
from datafari_rag.core.settings.checks import Fixed, Group, PathName, Row, items, matching, rows_of
from datafari_rag.core.settings.dialects import (
    ChatSettings,
    OpenaiSettings,
)
from datafari_rag.core.settings.search import SecuritySettings, SolrSettings

HIDDEN = "***"
"""Replaces a secret wherever a value is shown."""

ANSWER_GROUPS = frozenset({"rag", "answer", "llm", "openai", "chat", "retrieval", "embeddings", "rerank"})
"""Groups of which a bad value fails answers and not the start (contract §8); every other one refuses to start."""

_KEYS = "keys of at least 16 characters without spaces"

Keys = Annotated[tuple[str, ...], items(_KEYS, r"[\x21-\x7e]{16,512}", is_secret=True)]
Rate = Annotated[int, Meta(ge=0, le=1_000_000)]


class RequestRates(Group, frozen=True):
    """How much a minute one user, one client address and one caller may ask; 0: no limit."""

    user: Rate = 0
    """Questions, checks and opened documents of one user a minute. 0: no limit."""
    client: Rate = 0
    """Requests of one client address a minute. 0: no limit."""
    work: Rate = 300
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

    host: Annotated[str, matching("[A-Za-z0-9.:_\\[\\]-]+", "host names and IP addresses", is_optional=False)] = (
        "127.0.0.1"
    )
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
    secret: Annotated[str, matching(".{16,}", "texts of at least 16 characters", is_secret=True)] = ""
    """Secret that signs forms, cookies and chats' memory; servers share it. Empty: a new one at each start."""


class LimitsSettings(Group, frozen=True):
    """Tokens of the language model."""

    store: PathName = ""
    """Folder on a local disk in which tokens are counted by user and day. Empty: they are not."""
    tokens: Annotated[int, Meta(ge=1, le=10**15)] | None = None
    """Maximum number of a user's tokens a day (UTC); then 429 until the next. Needs limits.store. Empty: no limit."""


class AuditSettings(Group, frozen=True):
    """Audit."""

    folder: PathName = ""
    """Folder for the audit files: one line an answer, without texts. Empty: no audit."""
    key: Annotated[
        tuple[str, ...], items("texts of at least 32 characters", "[^\\x00-\\x1f\\x7f-\\x9f]{32,}", is_secret=True)
    ] = ()
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

    One request reads one of these from its beginning to its end. The repr names what differs from the defaults and
    shows no secret.
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
    def answer_tokens(self) -> int:
        """
        Return how many tokens of the model's window are kept for an answer, and for thoughts before it.

        A quarter of the window where no limit is sent, and as much besides where the model is known to think.
        """
        quarter = self.llm.context_window // 4
        answer = quarter if self.rag.max_tokens is None else self.rag.max_tokens
        thinks = needs_for(self.llm.server, self.rag.model_url, self.rag.model).thinking != "none"
        return answer + min(quarter, THINKING_TOKENS) if thinks else answer

    def __repr__(self) -> str:
        """Name what differs from the defaults, secrets hidden."""
        changed = [row for row in ROWS if row.value_in(self) != row.default]
        return f"Settings({', '.join(f'{row.path}={safe_text(row, row.value_in(self))}' for row in changed)})"


ROWS: tuple[Row, ...] = tuple(rows_of(Settings))
"""The table, in the order of the properties file."""

BY_KEY: Mapping[str, Row] = {row.key: row for row in ROWS}


def row_for(key: str) -> Row | None:
    """Return the row of *key*, None for an unknown key."""
    return BY_KEY.get(key)


def safe_text(row: Row, value: object) -> str:
    """Return *value* for people: secrets and passwords inside addresses hidden."""
    if row.is_secret:
        return HIDDEN if value else "''"
    return without_password(repr(value))


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Return the values of all secrets that are set, those of lists one by one."""
    values = [row.value_in(settings) for row in ROWS if row.is_secret]
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
