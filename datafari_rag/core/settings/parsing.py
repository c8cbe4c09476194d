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
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.model.servers import server_at
from datafari_rag.core.search_request import CATEGORY_FIELD
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.checks import CONTROL, Row
from datafari_rag.core.settings.table import ANSWER_GROUPS, AS_HYBRID, BY_KEY, Settings, fields_of, without_password

ROOM_TOKENS = 128
"""Below this many tokens for documents no answer has any: the frame of one, and a sentence."""

MAX_SHOWN_CHARS = 80
"""Longest part of a value that a message repeats."""

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

WITHOUT_EFFECT: Mapping[str, str] = {
    "ai.enable.*": "every action is answered here",
    "agentic.*": "here, rag.effort says how many searches a question may take",
    "assistant.*": "Datafari's own page reads it; here, chat.store.folder stores conversations",
    "chat.memory.history.size": "a memory carries 6 messages here",
    "chat.query.rewriting.enabled.vector": "chat.query.rewriting.enabled is for words and meaning alike here",
    "chunking.chunk.size": "here, documents are split into passages at question time",
    "inMemory.*": "vectors are kept in the index here; it is out of date in Datafari too",
    "prompt.chunking.strategy": "a summary is refined piece after piece here",
    "prompt.max.request.size": "40,000 characters of documents go into one request here",
    "rag.chunk.size": "documents are split into passages at question time here",
    "rag.enabled": "RAG is always on in this service",
    "rag.topK": "20 search results are examined here",
    "rrf.*": "words and meaning have one score here",
    "solr.topK": "the 100 nearest passages are asked for here, several of each document that is examined",
    "solr.enable.*": "this service words its searches by meaning itself",
    "solr.filtered.search.threshold": "this service words its searches by meaning itself",
    "summarization.chunks.number": "a summary is made of at most 10 pieces here",
    "synthesis.maxFiles": "5 documents are put together here",
}
"""Keys of a rag.properties of Datafari 7 that change nothing here, and why; `*` stands for anything."""


Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the file with its value, unescaped; *line* counts from 1, 0 where there is no file."""

    line: int
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Problem:
    """
    One thing wrong with a properties file.

    *message* is for administrators: key, value (never a secret's) and what was wanted. *sentence* is contract §4's
    badSetting, which callers may see; empty where the service can use the file all the same: an unknown key, or a
    folder that cannot be used now, is an error for `check` alone. A note says what becomes of a value that is right.
    """

    key: str
    message: str
    severity: Severity = "error"
    sentence: str = ""
    line: int = 0

    @property
    def stops(self) -> bool:
        """Say whether the service cannot use the file because of this."""
        return bool(self.sentence)

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
            text = resolve(row, entry.value)
        except ValueError as error:
            sentence = _bad(key, REFERENCE_WANTED)
            problems.append(Problem(key, _bad(key, CONTROL.sub("�", str(error))), sentence=sentence, line=entry.line))
            continue
        try:
            settings = row.put_into(settings, row.read(text, folder))
        except ValueError as error:
            problems.append(_bad_value(key, entry.value, expectation=str(error), line=entry.line))
    for severity, keys, told in (*_contradictions(settings), *_advice(settings)):
        # The first line where a default does not suit what is written elsewhere.
        line = next((last[key].line for key in keys if key in last), 1)
        sentence = _bad(keys[0], told) if severity == "error" else ""
        problems.append(Problem(keys[0], sentence or told, severity, sentence, line))
    return settings, tuple(sorted(problems, key=lambda problem: problem.line))


def _bad_value(key: str, text: str, *, expectation: str, line: int) -> Problem:
    """Return the problem of a value that does not fit; a secret's value is not shown."""
    shown = ""
    if text and not BY_KEY[key].check.is_secret:
        short = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
        shown = ': "' + without_password(CONTROL.sub("�", short)) + '"'
    hint = ""
    if CONTROL.search(text):
        hint = " Write a backslash twice."
    elif re.search(r"\S\s+[#!]", text):
        hint = " Put the comment on its own line."
    elif text[:1] in ("'", '"') and text[-1:] == text[:1]:
        hint = " Leave out the quotation marks."
    return Problem(key, _bad(key, expectation + hint, shown), sentence=_bad(key, expectation), line=line)


def nearest(key: str) -> str | None:
    """Return the known key that is spelled most like *key*, None when none comes near."""
    spelled = {name.casefold(): name for name in (*BY_KEY, *ALIASES)}
    close = difflib.get_close_matches(key.casefold(), spelled, n=1, cutoff=0.7)
    return ALIASES.get(spelled[close[0]], spelled[close[0]]) if close else None


def _bad(key: str, expectation: str, shown: str = "") -> str:
    return f"Invalid value for {key} property{shown}. {expectation}"


def _remarks(entry: Entry, key: str, *, earlier: Entry | None) -> Iterator[Problem]:
    """Yield what is to be said of *entry* alone; *key* is its key without aliases."""

    def told(advice: str, severity: Severity = "warning") -> Problem:
        return Problem(key, advice, severity, line=entry.line)

    row, text = BY_KEY.get(key), entry.value.strip()
    why = next((why for pattern, why in WITHOUT_EFFECT.items() if fnmatchcase(key, pattern)), None)
    if why is not None:
        yield told(f"{key} has no effect here: {why}.")
    elif row is None:
        near = nearest(key)
        hint = f": did you mean {near}?" if near else "."
        shown = CONTROL.sub("�", key)
        yield told(f"Unknown key {shown}{hint}" if key else "A key is missing before the equals sign.", "error")
    elif key != entry.key:
        yield told(f"{entry.key} is an alias of {key}; use {key}.")
    if earlier is not None:
        yield told(f"{key} is set twice: this line is used, line {earlier.line} is ignored.")
    if row is not None and not text and row.needs_text:
        yield told(f"{key} is empty: its default, {row.default_text}, is used.")
    if row is not None and re.search(r"<[A-Z_]+>", text):
        yield told(f"The value of {key} still contains a placeholder.")
    if key == "retrieval.method" and text in AS_HYBRID:
        yield told(f"{key}: {text} is read as hybrid.", "note")


Told = tuple[Severity, tuple[str, ...], str]
"""How loud, the key that it is about with others whose line is the next best, and what is said."""


def _contradictions(settings: Settings) -> Iterator[Told]:
    """Yield what is wrong where settings that are right one by one do not go together, security first."""
    security, llm, solr = settings.security, settings.llm, settings.solr
    is_jwt, is_tokens = security.identity == "jwt", security.mode == "tokens"
    if is_jwt and not security.jwt_secret and not security.jwt_jwks:
        yield "error", ("security.identity",), "With jwt, security.jwt.jwks or security.jwt.secret is expected."
    if security.identity == "demo" and not _is_loopback(settings.server.host):
        yield "error", ("security.identity",), "With demo, a loopback address in server.host is expected."
    if security.tokens == "claims" and is_tokens and not is_jwt:
        yield "error", ("security.tokens",), "With claims, security.identity=jwt is expected."
    if security.tokens == "authority" and is_tokens and not security.authority_url:
        yield "error", ("security.tokens",), "With authority, security.authority.url is expected."
    if security.mode == "plugin" and solr.url.startswith(EMBEDDED):
        yield "error", ("security.mode",), "The embedded index has no ManifoldCF component: tokens is expected."
    rights = {*ACL_FIELDS, *fields_of(solr.fields).acl.values()}
    if CATEGORY_FIELD in rights:
        yield "error", ("solr.fields",), "Callers narrow on the field source: it cannot hold access rights."
    if rights & set(solr.facets):
        yield "error", ("solr.facets",), "Fields with access rights cannot be used as facets."
    window = settings.window
    if window.answer + window.reserved + ROOM_TOKENS > window.size:
        yield "error", ("rag.maxTokens",), "It leaves no room for documents in llm.context.window."
    if len(llm.fallback_tokens) > len(llm.fallback):
        yield "error", ("llm.fallback.tokens",), "At most one item for each endpoint of llm.fallback is expected."
    if settings.limits.tokens is not None and not settings.limits.store:
        yield "error", ("limits.tokens",), "No limit can be kept to without limits.store."


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _advice(settings: Settings) -> Iterator[Told]:
    """Yield what is right and may not be what was meant."""
    security, rag = settings.security, settings.rag
    if security.identity == "jwt" and not security.jwt_audience:
        keys = "security.jwt.audience", "security.identity"
        yield "warning", keys, f"{keys[0]} is empty: tokens for other applications are accepted."
    if security.identity == "jwt" and not security.jwt_issuer:
        keys = "security.jwt.issuer", "security.identity"
        yield "warning", keys, f"{keys[0]} is empty: the issuer that a token names is not checked."
    if rag.model_url != rag.api_endpoint:
        # A query may hold a key, and this goes into the log.
        address = without_password(rag.model_url.partition("?")[0])
        yield "note", ("rag.api.endpoint",), f"rag.api.endpoint is a base address: requests go to {address}."
    is_openai = rag.template == "openai"
    if is_openai and not rag.model and server_at(rag.model_url) == "openai":
        named = "rag.model is empty: api.openai.com needs the name of a model."
        yield "warning", ("rag.model", "rag.api.endpoint"), named
    if settings.chat.store_folder and security.identity == "anonymous":
        nobody = "chat.store.folder has no effect with security.identity=anonymous: nobody is signed in."
        yield "warning", ("chat.store.folder",), nobody
    if is_openai and not rag.add_instructions:
        always = "rag.addInstructions must be true with rag.template=openai: the instructions are sent all the same."
        yield "warning", ("rag.addInstructions",), always
