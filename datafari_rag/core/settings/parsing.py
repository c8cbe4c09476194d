"""
Texts of a properties file into `Settings`, and every way in which they do not fit, each with its line.

A bad value leaves its default in place, so that a service can say what is wrong with its settings instead of being
silent. Runs for `datafari-rag check`, at start and at reload. Pure: the lines come in as entries, and references are
resolved by a function that is handed in.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.model.servers import server_at
from datafari_rag.core.search_request import CATEGORY_FIELD
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.answers import AS_HYBRID
from datafari_rag.core.settings.checks import CONTROL, Row
from datafari_rag.core.settings.table import ANSWER_GROUPS, BY_KEY, Settings, fields_of, row_for, without_password

ROOM_TOKENS = 128
"""Below this many tokens for documents no answer has any: the frame of one, and a sentence."""

MAX_SHOWN_CHARS = 80
"""Longest part of a value that a message repeats."""

NEAR = 0.7
"""How alike a known key must be to be proposed, from 0 to 1 (difflib's ratio)."""

ALIASES: Mapping[str, str] = {
    "rag.maxToken": "rag.maxTokens",
    "llm.maxTokens": "rag.maxTokens",
    "llm.model": "rag.model",
    "llm.temperature": "rag.temperature",
    "ai.api.token": "rag.api.token",
    "ai.llm.service": "rag.template",
    "rag.llm.service": "rag.template",
    "chunking.maxFiles": "rag.maxFiles",
    "chat.query.rewriting.enabled.bm25": "chat.query.rewriting.enabled",
    "shards.tolerant": "solr.shards.tolerant",
}
"""Other spellings, of Datafari's documentation and of its later versions, that mean exactly the same here."""

ELSEWHERE: Mapping[str, str] = {
    "ai.api.endpoint": "here, rag.api.endpoint is the full URL, with /chat/completions",
    "rag.enabled": "RAG is always on in this service",
    "rag.chunk.size": "here, documents are split into passages at question time",
}
"""Keys of earlier Datafari versions that have no equal here, and what to use in their place."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "ai.enable.*": "every action is answered here",
    "chat.memory.history.size": "a memory carries 6 messages here",
    "synthesis.maxFiles": "5 documents are put together here",
    "summarization.chunks.number": "a summary is made of at most 10 pieces here",
    "prompt.chunking.strategy": "a summary is refined piece after piece here",
    "prompt.max.request.size": "40,000 characters of documents go into one request here",
    "agentic.*": "here, rag.effort says how many searches a question may take",
    "assistant.*": "Datafari's own page reads it; here, chat.store.folder stores conversations",
    "inMemory.*": "vectors are kept in the index here; it is out of date in Datafari too",
    "chunking.chunk.size": "here, documents are split into passages at question time",
    "rag.topK": "20 search results are examined here",
    "rrf.topK": "50 documents of each list are fused here",
    "rrf.rank.constant": "ranks are fused with the constant 60 here, the usual one",
    "solr.topK": "the 100 nearest passages are asked for here, several of each document that is examined",
    "chat.query.rewriting.enabled.vector": "chat.query.rewriting.enabled is for words and meaning alike here",
    "solr.enable.ladr": "this service words its searches by meaning itself",
    "solr.enable.acorn": "this service words its searches by meaning itself",
    "solr.filtered.search.threshold": "this service words its searches by meaning itself",
}
"""Keys of a rag.properties of Datafari 7 that change nothing here, and why; `*` stands for anything."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the file with its value, unescaped; *line* counts from 1. *flaw* says why it cannot be read."""

    line: int
    key: str
    value: str
    flaw: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """
    One thing wrong with a properties file.

    *message* is for administrators: key, value (never a secret's) and what was wanted. *sentence* is contract §4's
    badSetting, which callers may see; empty where callers are not concerned. *line* counts from 1, 0 where there is
    no file. A note says what becomes of a value that is right. *kind* marks what stops only `check`: keys that are not
    known, and places that cannot be used now.
    """

    key: str
    message: str
    severity: Literal["error", "warning", "note"] = "error"
    sentence: str = ""
    line: int = 0
    kind: Literal["value", "unknown", "place", "advice"] = "value"

    @property
    def stops(self) -> bool:
        """Say whether the service cannot use the file because of this."""
        return self.severity == "error" and self.kind not in ("unknown", "place")

    @property
    def is_of_answers(self) -> bool:
        """Say whether this fails answers and not the start."""
        return self.key.partition(".")[0] in ANSWER_GROUPS


Resolve = Callable[[Row, str], str]
"""Replaces `${VARIABLE}` and `file:PATH` by their values. Raises: ValueError, with a sentence for admins."""

REFERENCE_WANTED = "Valid values are ${VARIABLE} of a variable that is set and file:PATH of a file that can be read."


def lint(entries: Sequence[Entry], *, resolve: Resolve, folder: str = "") -> tuple[Settings, tuple[Problem, ...]]:
    """
    Return the settings, and every problem in the order of lines.

    The last of several entries for one key counts. An entry with a problem leaves its setting's default. Relative
    paths start at *folder*.
    """
    settings, problems, last = Settings(), list[Problem](), dict[str, Entry]()
    for entry in entries:
        key = ALIASES.get(entry.key, entry.key)
        problems += _remarks(entry, key, earlier=last.get(key))
        if key in BY_KEY:
            last[key] = entry
    for key, entry in last.items():
        row = BY_KEY[key]
        try:
            if entry.flaw:
                raise ValueError(entry.flaw)
            text = resolve(row, entry.value)
        except ValueError as error:
            problem = bad_value(key, "", expectation=REFERENCE_WANTED)
            message = f"Invalid value for {key} property. {error}"
            problems.append(replace(problem, message=message, line=entry.line))
            continue
        try:
            settings = row.put_into(settings, row.read(text, folder))
        except ValueError as error:
            problems.append(replace(bad_value(key, entry.value, expectation=str(error)), line=entry.line))
    # The first line where a default does not suit what is written elsewhere.
    lines = {key: entry.line for key, entry in last.items()}
    problems += [
        replace(bad_value(key, "", expectation=sentence), line=lines.get(key, 1))
        for is_wrong, key, sentence in _contradictions(settings)
        if is_wrong
    ]
    problems += [
        Problem(
            key, advice, severity, line=next((lines[one] for one in (key, *others) if one in lines), 1), kind="advice"
        )
        for is_so, severity, (key, *others), advice in _advice(settings, last)
        if is_so
    ]
    return settings, tuple(sorted(problems, key=lambda problem: problem.line))


def bad_value(key: str, text: str, *, expectation: str) -> Problem:
    """Return the problem of a value that does not fit; a secret's value is not shown."""
    row = row_for(key)
    shown = f": {_quoted(text)}." if text and row is not None and not row.is_secret else "."
    hint = ""
    if CONTROL.search(text):
        hint = " Write a backslash twice."
    elif re.search(r"\S\s+[#!]", text):
        hint = " Put the comment on its own line."
    elif text[:1] in ("'", '"') and text[-1:] == text[:1]:
        hint = " Leave out the quotation marks."
    message = f"Invalid value for {key} property{shown} {expectation}{hint}"
    return Problem(key, message, sentence=f"Invalid value for {key} property. {expectation}")


def nearest(key: str) -> str | None:
    """Return the known key that is spelled most like *key*, None when none comes near."""
    spelled = {name.casefold(): name for name in (*BY_KEY, *ALIASES)}
    close = difflib.get_close_matches(key.casefold(), spelled, n=1, cutoff=NEAR)
    return ALIASES.get(spelled[close[0]], spelled[close[0]]) if close else None


def _quoted(text: str) -> str:
    short = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
    return '"' + without_password(CONTROL.sub("�", short)) + '"'


def _remarks(entry: Entry, key: str, *, earlier: Entry | None) -> Iterator[Problem]:
    """Yield what is to be said of the key of *entry*, which is *key* without aliases."""
    why = next((why for pattern, why in WITHOUT_EFFECT.items() if fnmatchcase(key, pattern)), None)
    if why is not None:
        yield Problem(key, f"{key} has no effect here: {why}.", "warning", line=entry.line, kind="advice")
    elif key not in BY_KEY:
        near = nearest(key)
        hint = f": {ELSEWHERE[key]}." if key in ELSEWHERE else f": did you mean {near}?" if near else "."
        message = f"Unknown key {key}{hint}" if key else "A key is missing before the equals sign."
        yield Problem(key, message, line=entry.line, kind="unknown")
    elif key != entry.key:
        advice = f"{entry.key} is an alias of {key}; use {key}."
        yield Problem(key, advice, "warning", line=entry.line, kind="advice")
    if earlier is not None:
        advice = f"{key} is set twice: this line is used, line {earlier.line} is ignored."
        yield Problem(key, advice, "warning", line=entry.line, kind="advice")


def _contradictions(settings: Settings) -> Iterator[tuple[bool, str, str]]:
    """Yield (is wrong, key, what is expected) of settings that are right one by one, security first."""
    security, llm = settings.security, settings.llm
    is_jwt, is_tokens = security.identity == "jwt", security.mode == "tokens"
    has_secret, has_keys = bool(security.jwt_secret), bool(security.jwt_jwks)
    named = "With jwt, security.jwt.jwks or security.jwt.secret is expected."
    yield is_jwt and not has_secret and not has_keys, "security.identity", named
    claims = security.tokens == "claims" and is_tokens and not is_jwt
    yield claims, "security.tokens", "With claims, security.identity=jwt is expected."
    plugin = security.mode == "plugin" and settings.solr.url.startswith(EMBEDDED)
    yield plugin, "security.mode", "The embedded index has no ManifoldCF component: tokens is expected."
    authority = security.tokens == "authority" and is_tokens and not security.authority_url
    yield authority, "security.tokens", "With authority, security.authority.url is expected."
    rights = {*ACL_FIELDS, *fields_of(settings.solr.fields).acl.values()}
    narrowed = "Callers narrow on the field source: it cannot hold access rights."
    yield CATEGORY_FIELD in rights, "solr.fields", narrowed
    facets = bool(rights & set(settings.solr.facets))
    yield facets, "solr.facets", "Fields with access rights cannot be used as facets."
    demo = security.identity == "demo" and not _is_loopback(settings.server.host)
    yield demo, "security.identity", "demo is for this machine alone: a loopback address in server.host is expected."
    needed = settings.answer_tokens + settings.openai.limits.reserve_tokens + ROOM_TOKENS
    room = "It leaves no room for documents in llm.context.window."
    yield needed > llm.context_window, "rag.maxTokens", room
    most = "At most one item for each endpoint of llm.fallback is expected."
    yield len(llm.fallback_tokens) > len(llm.fallback), "llm.fallback.tokens", most
    capped = settings.limits.tokens is not None and not settings.limits.store
    yield capped, "limits.tokens", "No limit can be kept to without limits.store."


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


Advice = tuple[bool, Literal["warning", "note"], tuple[str, ...], str]
"""Whether it is to be said, how loud, the key that it is about with others whose line is the next best, and what."""


def _advice(settings: Settings, last: Mapping[str, Entry]) -> Iterator[Advice]:
    security, rag = settings.security, settings.rag
    for key, entry in last.items():
        row, text = BY_KEY[key], entry.value.strip()
        is_empty = not text and not row.check.is_optional and row.group != "security"
        yield is_empty, "warning", (key,), f"{key} is empty: its default, {row.default_text}, is used."
        has_placeholder = re.search(r"<[A-Z_]+>", text) is not None
        yield has_placeholder, "warning", (key,), f"The value of {key} still contains a placeholder."
        is_other = key == "retrieval.method" and text in AS_HYBRID
        yield is_other, "note", (key,), f"{key}: {text} is read as hybrid."
    is_jwt, identity = security.identity == "jwt", "security.identity"
    audience = "security.jwt.audience is empty: tokens for other applications are accepted."
    yield is_jwt and not security.jwt_audience, "warning", ("security.jwt.audience", identity), audience
    issuer = "security.jwt.issuer is empty: the issuer that a token names is not checked."
    yield is_jwt and not security.jwt_issuer, "warning", ("security.jwt.issuer", identity), issuer
    # A query may hold a key, and this goes into the log.
    address = without_password(rag.model_url.partition("?")[0])
    base = f"rag.api.endpoint is a base address: requests go to {address}."
    yield rag.model_url != rag.api_endpoint, "note", ("rag.api.endpoint",), base
    is_openai = rag.template == "openai"
    is_nameless = not rag.model and is_openai and server_at(rag.model_url) == "openai"
    named = "rag.model is empty: api.openai.com needs the name of a model."
    yield is_nameless, "warning", ("rag.model", "rag.api.endpoint"), named
    is_in_vain = bool(settings.chat.store_folder) and security.identity == "anonymous"
    nobody = "chat.store.folder has no effect with security.identity=anonymous: nobody is signed in."
    yield is_in_vain, "warning", ("chat.store.folder",), nobody
    always = "rag.addInstructions must be true with rag.template=openai: the instructions are sent all the same."
    yield is_openai and not rag.add_instructions, "warning", ("rag.addInstructions",), always
