"""
The settings table: each field of a group in the frozen `Settings` declares key, type, default, help and check.

The loader, the linter, the admin form, `conf/rag.properties` and `docs/settings.md` all read `ROWS`; nothing else
says what a setting is. Pure: what is in a file or in the environment is read by `adapters/settings/file.py` and
handed in. The groups of callers and of searches are in `answers`, `dialects` and `search`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.model.servers import THINKING_TOKENS, needs_for
from datafari_rag.core.search_request import Fields
from datafari_rag.core.settings import addresses as addresses
from datafari_rag.core.settings import checks as checks
from datafari_rag.core.settings.answers import (
    AnswerSettings,
    EmbeddingsSettings,
    LlmSettings,
    RagSettings,
    RerankSettings,
    RetrievalSettings,
    TokenSettings,
)
from datafari_rag.core.settings.dialects import (
    AiSettings,
    ChatSettings,
    GroundingSettings,
    McpSettings,
    OpenaiSettings,
    PromptSettings,
    SummarizationSettings,
    SynthesisSettings,
)
from datafari_rag.core.settings.records import DemoFolder, RequestRates, ServerLimits
from datafari_rag.core.settings.row import SettingRow, field_of, rows_of, secret, setting
from datafari_rag.core.settings.search import SecuritySettings, SolrSettings

HIDDEN = "***"
"""Replaces a secret wherever a value is shown."""

ANSWER_GROUPS = frozenset(
    {"rag", "answer", "llm", "openai", "chat", "retrieval", "embeddings", "prompt", "token"}
    | {"ai", "synthesis", "summarization", "rerank"}
)
"""Groups of which a bad value fails answers and not the start (contract §8); every other one refuses to start."""


_AUDIT_KEY = re.compile(r"[^,\x00-\x1f\x7f-\x9f]{32,}")


@dataclass(frozen=True, slots=True, repr=False)
class ServerSettings:
    """Rows of `server.*`."""

    host: str = setting(
        "server.host",
        "127.0.0.1",
        check=addresses.host(),
        help="Address to listen on. 0.0.0.0: all network interfaces.",
    )
    port: int = setting(
        "server.port", 8080, check=checks.integer(0, 65_535), help="Port to listen on. 0: any free port."
    )
    workers: int | None = setting(
        "server.workers",
        None,
        check=checks.integer(1, 1024, is_optional=True),
        help="Number of worker processes. Empty: one for each CPU core.",
    )
    rate: RequestRates = setting(
        "server.rate",
        RequestRates(),
        check=checks.members(
            RequestRates,
            user=checks.integer(0, 1_000_000),
            client=checks.integer(0, 1_000_000),
            work=checks.integer(0, 1_000_000),
        ),
        help="Maximum per minute; 0: no limit. user: questions, checks and opened documents of one user. client: "
        "requests of one client address. work: units of work of one caller (user, else address) for plain searches "
        "and /grounding/check: a search is one unit, a check one for each 100,000 characters compared.",
    )
    limits: ServerLimits = setting(
        "server.limits",
        ServerLimits(),
        check=checks.members(
            ServerLimits,
            streams=checks.integer(1, 1_000_000),
            starting=checks.integer(1, 100_000),
            wait_s=checks.number(0.1, 600),
            connections=checks.integer(10, 1_000_000),
            header_s=checks.number(0.1, 3600),
            body_bytes=checks.integer(1, 2_000_000_000),
            grace_s=checks.number(0, 86_400),
            work_s=checks.number(0.1, 600),
        ),
        help="Limits of each worker. streams: open ones; further ones are refused with 503. starting: answers that "
        "search at the same time; the others wait in the order they came, and one that would wait longer than "
        "wait_s gets 503 and Retry-After. connections: open ones, idle ones included. header_s: time to send "
        "the headers of a request. body_bytes: size of a request body. grace_s: how long open streams may "
        "continue during shutdown. work_s: how long the texts of one answer may be processed.",
    )
    hosts: tuple[str, ...] = setting(
        "server.hosts",
        (),
        check=addresses.hosts(),
        help="Host names that requests may use, as HOST or HOST:PORT; behind a proxy, the names that it forwards. A "
        "request for any other name is refused with 421. Empty: any name.",
    )
    public_url: str = setting(
        "server.public_url",
        "",
        check=addresses.url(is_optional=True),
        help="URL at which readers and clients reach this service, for the links of citations and for /mcp: tokens may "
        "name it, with /mcp, as their audience. Empty: the address of the request.",
    )
    api_keys: tuple[str, ...] = secret(
        "server.api.keys",
        (),
        check=checks.keys(),
        help="Keys of calling applications, separated by commas; an application sends its key as Authorization: "
        "Bearer KEY. A key identifies no user. Empty: no keys.",
    )
    cors_origins: tuple[str, ...] = setting(
        "server.cors.origins",
        (),
        check=addresses.origins(),
        help="Web sites whose pages may call this service from the browser. Empty: none. *: any.",
    )
    secret: str = secret(
        "server.secret",
        "",
        check=checks.text("texts of at least 16 characters", re.compile(r".{16,}")),
        help="Secret that signs forms, cookies and the memory of chats. Empty: a new one at each start, and "
        "memories from before are lost. Servers behind the same address must share it.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class LimitsSettings:
    """Rows of `limits.*`: tokens counted by user and day, and a cap on them."""

    store: str = setting(
        "limits.store",
        "",
        check=checks.path(),
        help="Folder on a local disk in which the language model's tokens are counted by user and day, for the workers "
        "of one server. Empty: they are not counted.",
    )
    tokens: int | None = setting(
        "limits.tokens",
        None,
        check=checks.integer(1, 10**15, is_optional=True),
        help="Maximum number of tokens of a user a day (UTC); then answers are refused (429) until the next day. Needs "
        "limits.store. Empty: no limit.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class AuditSettings:
    """Rows of `audit.*`."""

    folder: str = setting(
        "audit.folder",
        "",
        check=checks.path(),
        help="Folder for the audit files: one line for each answer, without texts, in a hash chain. Empty: no audit.",
    )
    key: tuple[str, ...] = secret(
        "audit.key",
        (),
        check=checks.keys("lists of texts of at least 32 characters, separated by commas", _AUDIT_KEY),
        help="Secret that signs the lines of the audit, and after a comma each earlier one: what it signed is still "
        "verified. Users who can write the audit files must not have it. Empty: hashes alone.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class FeedbackSettings:
    """Rows of `feedback.*`."""

    file: str = setting(
        "feedback.file",
        "",
        check=checks.path(),
        help="File for readers' feedback (thumbs up and down), one JSON line for each. Empty: the page does not ask "
        "for feedback.",
    )
    text: bool = setting(
        "feedback.text",
        False,
        check=checks.flag(),
        help="Store the question and the answer with the feedback. false: ids only.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class LogSettings:
    """Rows of `log.*`."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "log.level",
        "INFO",
        check=checks.choice("DEBUG", "INFO", "WARNING", "ERROR"),
        help="Minimum level of messages that are logged. Questions are logged at DEBUG only.",
    )
    format: Literal["text", "json"] = setting(
        "log.format",
        "text",
        check=checks.choice("text", "json"),
        help="Format of a log line: text, or one JSON object.",
    )
    file: str = setting("log.file", "", check=checks.path(), help="Log file. Empty: standard error.")


@dataclass(frozen=True, slots=True, repr=False)
class DemoSettings:
    """Rows of `demo.*`."""

    folder: DemoFolder = setting(
        "demo.folder",
        DemoFolder(),
        check=checks.members(DemoFolder, users=checks.flag(), progress=checks.path()),
        help="Set by `datafari-rag demo`. users: show a menu of demo users on the page; refused unless server.host is "
        "a loopback address. progress: file in which the watcher reports its progress.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """
    All that an administrator can choose, by groups: `rag.maxFiles` is `rag.max_files`. Without arguments all defaults.

    One request reads one of these from its beginning to its end. The repr names what differs from the defaults and
    shows no secret.
    """

    rag: RagSettings = field(default_factory=RagSettings)
    answer: AnswerSettings = field(default_factory=AnswerSettings)
    retrieval: RetrievalSettings = field(default_factory=RetrievalSettings)
    embeddings: EmbeddingsSettings = field(default_factory=EmbeddingsSettings)
    rerank: RerankSettings = field(default_factory=RerankSettings)
    llm: LlmSettings = field(default_factory=LlmSettings)
    token: TokenSettings = field(default_factory=TokenSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    openai: OpenaiSettings = field(default_factory=OpenaiSettings)
    chat: ChatSettings = field(default_factory=ChatSettings)
    ai: AiSettings = field(default_factory=AiSettings)
    synthesis: SynthesisSettings = field(default_factory=SynthesisSettings)
    summarization: SummarizationSettings = field(default_factory=SummarizationSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    grounding: GroundingSettings = field(default_factory=GroundingSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    solr: SolrSettings = field(default_factory=SolrSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    tls: addresses.TlsByServer = setting(
        "tls",
        addresses.TlsByServer(),
        check=addresses.tls(),
        help="Certificates of the servers solr, llm, embeddings and rerank, as a JSON object such as "
        '{"solr": {"ca": "ca.pem"}}. '
        "ca: PEM file with the authorities that sign the server's certificate (absent: the system's). "
        "cert and key: PEM files of the client. verify: false for tests only; a warning is logged at startup.",
    )
    audit: AuditSettings = field(default_factory=AuditSettings)
    feedback: FeedbackSettings = field(default_factory=FeedbackSettings)
    log: LogSettings = field(default_factory=LogSettings)
    demo: DemoSettings = field(default_factory=DemoSettings)

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


ROWS: tuple[SettingRow, ...] = rows_of(Settings)
"""The table, in the order of the properties file."""

BY_KEY: Mapping[str, SettingRow] = {row.key: row for row in ROWS}


def row_for(key: str) -> SettingRow | None:
    """Return the row of *key*, None for an unknown key."""
    return BY_KEY.get(key)


def safe_text(row: SettingRow, value: object) -> str:
    """Return *value* for people: secrets and passwords inside addresses hidden."""
    if row.is_secret:
        return HIDDEN if value else "''"
    return without_password(repr(dict(value) if isinstance(value, Mapping) else value))


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Return the values of all secrets that are set, those of lists one by one."""
    values = [row.value_in(settings) for row in ROWS if row.is_secret]
    return tuple(
        secret_value
        for value in values
        for secret_value in (value if isinstance(value, tuple) else (value,))
        if secret_value
    )


def without_password(text: str) -> str:
    """Return *text* with the part between `//` and `@` of an address hidden."""
    return re.sub(r"//[^/@\s]*@", f"//{HIDDEN}@", text)


def fields_of(solr_fields: Mapping[str, str]) -> Fields:
    """Return the schema's field names: Datafari's, except those that *solr_fields* (`solr.fields`) replaces."""
    named = dict(solr_fields)
    acl = {name: named.pop(name) for name in ACL_FIELDS if name in named}
    fields: dict[str, Any] = {field_of(name): text for name, text in named.items()}
    return Fields(**fields, acl=acl)
