"""
Texts of a properties file into `Settings`, and every way in which they do not fit.

Pure: the texts are handed in, references to the environment already resolved. A bad value leaves its default in
place, so that a service can say what is wrong with its settings instead of being silent.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.core.messages import Message, message, message_of
from datafari_rag.core.search_request import CATEGORY_FIELD
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.checks import CONTROL
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import ANSWER_GROUPS, Settings, fields_of, row_for, without_password

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
    found: dict[str, object] = {}
    problems: list[Problem] = []
    for key, text in values.items():
        row = row_for(key)
        if row is None:
            continue
        try:
            found[row.field] = value_of(row, text, folder=folder)
        except ValueError as error:
            problems.append(bad_value(key, (written_as or values).get(key, text), wanted=message_of(error)))
    settings = Settings(**found)  # type: ignore[arg-type]  # each value was made by its own row's check
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


def bad_value(key: str, text: str, *, wanted: str) -> Problem:
    """Return the problem of a value that does not fit; a secret's value is not shown."""
    row = row_for(key)
    first = f"Invalid value for {key} property."
    is_shown = bool(text) and row is not None and not row.is_secret
    if is_shown:
        whole = message(
            "Invalid value for {key} property: {value}. {wanted}", key=key, value=_quoted(text), wanted=wanted
        )
    else:
        whole = message("Invalid value for {key} property. {wanted}", key=key, wanted=wanted)
    return Problem(key, _hinted(whole, text), sentence=f"{first} {wanted}")


def contradictions(settings: Settings) -> tuple[Problem, ...]:
    """Return what is wrong between settings that are right one by one."""
    return tuple(
        Problem(key, wanted, sentence=f"Invalid value for {key} property. {wanted}")
        for is_wrong, key, wanted in _rules(settings)
        if is_wrong
    )


def _quoted(text: str) -> str:
    short = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"
    return '"' + without_password(CONTROL.sub("�", short)) + '"'


def _hinted(problem: Message, text: str) -> Message:
    if CONTROL.search(text):
        return message("{problem} Write a backslash twice.", problem=problem)
    if re.search(r"\S\s+[#!]", text):
        return message("{problem} Put the comment on its own line.", problem=problem)
    if text[:1] in ("'", '"') and text[-1:] == text[:1]:
        return message("{problem} Leave out the quotation marks.", problem=problem)
    return problem


def _rules(settings: Settings) -> Iterator[tuple[bool, str, str]]:
    """Yield (is wrong, key, sentence), security first."""
    yield from _identity_rules(settings)
    yield from _rights_rules(settings)
    yield (
        settings.demo_folder.users and not _is_loopback(settings.server_host),
        "demo.folder",
        message("No users are expected, because server.host is not a loopback address."),
    )
    yield (
        bool(settings.demo_folder.dropped) and not (_is_loopback(settings.server_host) and settings.server_hosts),
        "demo.folder",
        message("No folder is expected, unless server.host is this machine alone and server.hosts names it."),
    )
    yield (
        settings.answer_tokens + settings.openai_limits.reserve_tokens + ROOM_TOKENS > settings.llm_context_window,
        "rag.maxTokens",
        message("Together with openai.limits, it leaves no room for documents in llm.context.window."),
    )
    yield (
        len(settings.llm_fallback_models) > len(settings.llm_fallback),
        "llm.fallback.models",
        message("At most one name for each endpoint of llm.fallback is expected."),
    )
    yield (
        len(settings.llm_fallback_tokens) > len(settings.llm_fallback),
        "llm.fallback.tokens",
        message("At most one token for each endpoint of llm.fallback is expected."),
    )


def _identity_rules(settings: Settings) -> Iterator[tuple[bool, str, str]]:
    is_jwt = settings.security_identity == "jwt"
    is_hmac = [name.startswith("HS") for name in settings.security_jwt_algorithms]
    has_secret, has_keys = bool(settings.security_jwt_secret), bool(settings.security_jwt_jwks)
    yield (
        is_jwt and not has_secret and not has_keys,
        "security.identity",
        message("With jwt, security.jwt.jwks or security.jwt.secret is expected."),
    )
    yield (
        is_jwt and has_keys and all(is_hmac),
        "security.jwt.algorithms",
        message('With security.jwt.jwks, "RS256" or a similar algorithm is expected.'),
    )
    yield (
        is_jwt and not has_secret and has_keys and any(is_hmac) and not all(is_hmac),
        "security.jwt.algorithms",
        message('"HS256" and similar algorithms need security.jwt.secret.'),
    )
    yield (
        settings.security_tokens == "claims" and settings.security_mode == "tokens" and not is_jwt,
        "security.tokens",
        message("With claims, security.identity=jwt is expected."),
    )


def _rights_rules(settings: Settings) -> Iterator[tuple[bool, str, str]]:
    is_embedded = settings.solr_url.startswith(EMBEDDED)
    yield (
        settings.security_mode == "plugin" and is_embedded,
        "security.mode",
        message("The embedded index has no ManifoldCF component: tokens is expected."),
    )
    yield (
        settings.security_tokens == "authority"
        and settings.security_mode == "tokens"
        and not settings.security_authority_url,
        "security.tokens",
        message("With authority, security.authority.url is expected."),
    )
    rights = {*ACL_FIELDS, *fields_of(settings.solr_fields).acl.values()}
    yield (
        CATEGORY_FIELD in rights,
        "solr.fields",
        message("Callers narrow on the field source: it cannot hold access rights."),
    )
    yield (
        bool(rights & set(settings.solr_facets)),
        "solr.facets",
        message("Fields with access rights cannot be used as facets."),
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_for_browsers(key: str) -> bool:
    """Say whether administrators may change *key* on the settings page; unknown keys never."""
    row = row_for(key)
    return row is not None and row.is_for_browsers


def refusals(changes: Mapping[str, str | None]) -> tuple[Problem, ...]:
    """Return why *changes* (key → text, None for the default) may not be made from a browser; empty when they may."""
    problems = []
    for key, text in changes.items():
        if not is_for_browsers(key):
            problems.append(Problem(key, message("{key} can only be changed in the settings file.", key=key)))
        elif text is not None and "${" in text:
            reason = message("A reference in {key} can only be written in the settings file.", key=key)
            problems.append(Problem(key, reason))
    return tuple(problems)
