"""
Texts of a properties file into `Settings`, and every way in which they do not fit.

A bad value leaves its default in place, so that a service can say what is wrong with its settings instead of being
silent. The linter has every problem with its line; it runs for `datafari-rag check`, at start and at reload. Pure:
the lines come in as entries, and references are resolved by a function that is handed in.
"""

from __future__ import annotations

import difflib
import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.model.servers import server_at
from datafari_rag.core.search_request import CATEGORY_FIELD
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.answers import AS_HYBRID, RagSettings
from datafari_rag.core.settings.checks import CONTROL
from datafari_rag.core.settings.other_keys import ALIASES, ELSEWHERE, FOLDED, folded_text, not_used
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.search import SecuritySettings
from datafari_rag.core.settings.table import ANSWER_GROUPS, BY_KEY, Settings, fields_of, row_for, without_password

ROOM_TOKENS = 128
"""Below this many tokens for documents no answer has any: the frame of one, and a sentence."""

MAX_SHOWN_CHARS = 80
"""Longest part of a value that a message repeats."""


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


def parse(
    values: Mapping[str, str], *, folder: str = "", written_as: Mapping[str, str] | None = None
) -> tuple[Settings, tuple[Problem, ...]]:
    """
    Return the settings that *values* (key → text) give, and every problem with them, without lines.

    Unknown keys are not looked at: that is the linter's. A bad value leaves its default in place. Relative paths
    start at *folder*. *written_as* has the original texts of the file where a reference was resolved.
    """
    settings = Settings()
    problems: list[Problem] = []
    for key, text in values.items():
        row = row_for(key)
        if row is None:
            continue
        try:
            settings = row.put_into(settings, value_of(row, text, folder=folder))
        except ValueError as error:
            problems.append(bad_value(key, (written_as or values).get(key, text), expectation=str(error)))
    return settings, (*problems, *contradictions(settings))


def value_of(row: SettingRow, text: str, *, folder: str = "") -> object:
    """
    Return what *text* means for *row*; an empty text means the default, but for `security.*` it must fit.

    Raises:
        ValueError: it does not fit; the text of the error is the second sentence of badSetting.
    """
    text = text.strip()
    if not text and not row.check.is_optional and row.group != "security":
        return row.default
    return row.check.read(text, folder)


def bad_value(key: str, text: str, *, expectation: str) -> Problem:
    """Return the problem of a value that does not fit; a secret's value is not shown."""
    row = row_for(key)
    first = f"Invalid value for {key} property."
    is_shown = bool(text) and row is not None and not row.is_secret
    if is_shown:
        whole = f"Invalid value for {key} property: {_quoted(text)}. {expectation}"
    else:
        whole = f"Invalid value for {key} property. {expectation}"
    return Problem(key, _hinted(whole, text), sentence=f"{first} {expectation}")


def contradictions(settings: Settings) -> tuple[Problem, ...]:
    """Return what is wrong between settings that are right one by one."""
    return tuple(
        Problem(key, expectation, sentence=f"Invalid value for {key} property. {expectation}")
        for is_wrong, key, expectation in _rules(settings)
        if is_wrong
    )


def _quoted(text: str) -> str:
    short = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
    return '"' + without_password(CONTROL.sub("�", short)) + '"'


def _hinted(problem: str, text: str) -> str:
    if CONTROL.search(text):
        return f"{problem} Write a backslash twice."
    if re.search(r"\S\s+[#!]", text):
        return f"{problem} Put the comment on its own line."
    if text[:1] in ("'", '"') and text[-1:] == text[:1]:
        return f"{problem} Leave out the quotation marks."
    return problem


def _rules(settings: Settings) -> Iterator[tuple[bool, str, str]]:
    """Yield (is wrong, key, sentence), security first."""
    yield from _identity_rules(settings.security)
    yield from _rights_rules(settings)
    yield (
        settings.demo.folder.users and not _is_loopback(settings.server.host),
        "demo.folder",
        "No users are expected, because server.host is not a loopback address.",
    )
    yield (
        settings.answer_tokens + settings.openai.limits.reserve_tokens + ROOM_TOKENS > settings.llm.context_window,
        "rag.maxTokens",
        "Together with openai.limits, it leaves no room for documents in llm.context.window.",
    )
    yield (
        len(settings.llm.fallback_models) > len(settings.llm.fallback),
        "llm.fallback.models",
        "At most one name for each endpoint of llm.fallback is expected.",
    )
    yield (
        len(settings.llm.fallback_tokens) > len(settings.llm.fallback),
        "llm.fallback.tokens",
        "At most one token for each endpoint of llm.fallback is expected.",
    )
    yield (
        settings.limits.tokens is not None and not settings.limits.store,
        "limits.tokens",
        "No limit can be kept to without limits.store.",
    )


def _identity_rules(security: SecuritySettings) -> Iterator[tuple[bool, str, str]]:
    is_jwt = security.identity == "jwt"
    is_hmac = [name.startswith("HS") for name in security.jwt_algorithms]
    has_secret, has_keys = bool(security.jwt_secret), bool(security.jwt_jwks)
    yield (
        is_jwt and not has_secret and not has_keys,
        "security.identity",
        "With jwt, security.jwt.jwks or security.jwt.secret is expected.",
    )
    yield (
        is_jwt and has_keys and all(is_hmac),
        "security.jwt.algorithms",
        'With security.jwt.jwks, "RS256" or a similar algorithm is expected.',
    )
    yield (
        is_jwt and not has_secret and has_keys and any(is_hmac) and not all(is_hmac),
        "security.jwt.algorithms",
        '"HS256" and similar algorithms need security.jwt.secret.',
    )
    yield (
        security.tokens == "claims" and security.mode == "tokens" and not is_jwt,
        "security.tokens",
        "With claims, security.identity=jwt is expected.",
    )


def _rights_rules(settings: Settings) -> Iterator[tuple[bool, str, str]]:
    is_embedded = settings.solr.url.startswith(EMBEDDED)
    yield (
        settings.security.mode == "plugin" and is_embedded,
        "security.mode",
        "The embedded index has no ManifoldCF component: tokens is expected.",
    )
    yield (
        settings.security.tokens == "authority"
        and settings.security.mode == "tokens"
        and not settings.security.authority_url,
        "security.tokens",
        "With authority, security.authority.url is expected.",
    )
    rights = {*ACL_FIELDS, *fields_of(settings.solr.fields).acl.values()}
    yield (
        CATEGORY_FIELD in rights,
        "solr.fields",
        "Callers narrow on the field source: it cannot hold access rights.",
    )
    yield (
        bool(rights & set(settings.solr.facets)),
        "solr.facets",
        "Fields with access rights cannot be used as facets.",
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


NEAR = 0.7
"""How alike a known key must be to be proposed, from 0 to 1 (difflib's ratio)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the file with its value, unescaped; *line* counts from 1. *flaw* says why it cannot be read."""

    line: int
    key: str
    value: str
    flaw: str = ""


Resolve = Callable[[SettingRow, str], str]
"""Replaces `${VARIABLE}` and `file:PATH` by their values. Raises: ValueError, with a sentence for admins."""

REFERENCE_WANTED = "Valid values are ${VARIABLE} of a variable that is set and file:PATH of a file that can be read."


def lint(entries: Sequence[Entry], *, resolve: Resolve, folder: str = "") -> tuple[Settings, tuple[Problem, ...]]:
    """
    Return the settings, and every problem in the order of lines.

    The last of several entries for one key counts. An entry with a problem leaves its setting's default.
    """
    problems: list[Problem] = []
    last: dict[str, Entry] = {}
    for entry in entries:
        key = ALIASES.get(entry.key, entry.key)
        problems += _remarks(entry, key, earlier=last.get(key))
        if key in FOLDED or row_for(key) is not None:
            last[key] = entry
    values, failures = _resolved(last, resolve)
    for key in [key for key in values if key in FOLDED]:
        last.setdefault(FOLDED[key][0], last[key])
        _fold(values, key)
    settings, misfits = parse(values, folder=folder, written_as={key: entry.value for key, entry in last.items()})
    # The first line where a default does not suit what is written elsewhere.
    all_problems = [
        *problems,
        *failures,
        *(replace(problem, line=last[problem.key].line if problem.key in last else 1) for problem in misfits),
        *_advice(settings, last),
    ]
    return settings, tuple(sorted(all_problems, key=lambda problem: problem.line))


def nearest(key: str) -> str | None:
    """Return the known key that is spelled most like *key*, None when none comes near."""
    spelled = {name.casefold(): name for name in (*BY_KEY, *ALIASES, *FOLDED)}
    close = difflib.get_close_matches(key.casefold(), spelled, n=1, cutoff=NEAR)
    return ALIASES.get(spelled[close[0]], spelled[close[0]]) if close else None


def _remarks(entry: Entry, key: str, *, earlier: Entry | None) -> Iterable[Problem]:
    advice = not_used(key)
    if advice is not None:
        yield Problem(key, advice, "warning", line=entry.line, kind="advice")
        return
    if key in FOLDED:
        advice = f"{key} is an earlier form: write {folded_text(key)}."
        yield Problem(key, advice, "warning", line=entry.line, kind="advice")
    elif row_for(key) is None:
        yield Problem(key, _unknown(entry), line=entry.line, kind="unknown")
        return
    if key != entry.key:
        advice = f"{entry.key} is an alias of {key}; use {key}."
        yield Problem(key, advice, "warning", line=entry.line, kind="advice")
    if earlier is not None:
        advice = f"{key} is set twice: this line is used, line {earlier.line} is ignored."
        yield Problem(key, advice, "warning", line=entry.line, kind="advice")


def _unknown(entry: Entry) -> str:
    if not entry.key:
        return "A key is missing before the equals sign."
    if entry.key in ELSEWHERE:
        return f"Unknown key {entry.key}: {ELSEWHERE[entry.key]}."
    near = nearest(entry.key)
    return f"Unknown key {entry.key}: did you mean {near}?" if near else f"Unknown key {entry.key}."


def _resolved(last: Mapping[str, Entry], resolve: Resolve) -> tuple[dict[str, str], list[Problem]]:
    values: dict[str, str] = {}
    failures: list[Problem] = []
    for key, entry in last.items():
        row = row_for(FOLDED[key][0] if key in FOLDED else key)
        try:
            if entry.flaw:
                raise ValueError(entry.flaw)
            values[key] = resolve(row, entry.value) if row is not None else entry.value
        except ValueError as error:
            problem = bad_value(key, "", expectation=REFERENCE_WANTED)
            reason = f"Invalid value for {key} property. {error}"
            failures.append(replace(problem, message=reason, line=entry.line))
    return values, failures


def _fold(values: dict[str, str], key: str) -> None:
    """Put the value of the former *key* into the JSON object of its setting, unless the object says it itself."""
    setting, *names, member = FOLDED[key]
    text = values.pop(key).strip()
    try:
        whole = json.loads(values.get(setting) or "{}")
        inner = whole
        for name in names:
            inner = inner.setdefault(name, {})
        if text:
            inner.setdefault(member, text)
    except (ValueError, AttributeError):
        return  # what is written there is no object: the check of the setting says so
    values[setting] = json.dumps(whole)


def _advice(settings: Settings, last: Mapping[str, Entry]) -> Iterable[Problem]:
    for key, entry in last.items():
        row = row_for(key)
        is_empty = not entry.value.strip() and row is not None and not row.check.is_optional
        if row is not None and is_empty and row.default_text and row.group != "security":
            advice = f"{key} is empty: its default, {row.default_text}, is used."
            yield Problem(key, advice, "warning", line=entry.line, kind="advice")
        if re.search(r"<[A-Z_]+>", entry.value):
            advice = f"The value of {key} still contains a placeholder."
            yield Problem(key, advice, "warning", line=entry.line, kind="advice")
    yield from _unchecked(settings.security, last)
    yield from _of_model(settings.rag, last)
    method = last.get("retrieval.method")
    if method is not None and method.value.strip() in AS_HYBRID:
        advice = f"retrieval.method: {method.value.strip()} is read as hybrid."
        yield Problem("retrieval.method", advice, "note", line=method.line, kind="advice")
    if settings.chat.store_folder and settings.security.identity == "anonymous" and not settings.demo.folder.users:
        advice = "chat.store.folder has no effect with security.identity=anonymous: nobody is signed in."
        yield Problem("chat.store.folder", advice, "warning", line=last["chat.store.folder"].line, kind="advice")
    if settings.rag.template == "openai" and not settings.rag.add_instructions:
        advice = "rag.addInstructions must be true with rag.template=openai: the instructions are sent all the same."
        yield Problem("rag.addInstructions", advice, "warning", line=last["rag.addInstructions"].line, kind="advice")


def _of_model(rag: RagSettings, last: Mapping[str, Entry]) -> Iterable[Problem]:
    """Say how an address is completed, and that OpenAI is to be told which model."""
    if rag.model_url != rag.api_endpoint:
        key = "rag.api.endpoint"
        # A query may hold a key, and this goes into the log.
        address = without_password(rag.model_url.partition("?")[0])
        advice = f"{key} is a base address: requests go to {address}."
        yield Problem(key, advice, "note", line=last[key].line, kind="advice")
    if not rag.model and rag.template == "openai" and server_at(rag.model_url) == "openai":
        entry = last.get("rag.model") or last.get("rag.api.endpoint")
        advice = "rag.model is empty: api.openai.com needs the name of a model."
        yield Problem("rag.model", advice, "warning", line=entry.line if entry else 1, kind="advice")


def _unchecked(security: SecuritySettings, last: Mapping[str, Entry]) -> Iterable[Problem]:
    """Warn where a token is believed that the issuer made for another application, or that names another issuer."""
    if security.identity != "jwt":
        return
    for key, value, consequence in (
        ("security.jwt.audience", security.jwt_audience, "tokens for other applications are accepted"),
        ("security.jwt.issuer", security.jwt_issuer, "the issuer that a token names is not checked"),
    ):
        if not value:
            entry = last.get(key) or last.get("security.identity")
            advice = f"{key} is empty: {consequence}."
            yield Problem(key, advice, "warning", line=entry.line if entry else 1, kind="advice")
