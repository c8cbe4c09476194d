"""
The linter of a properties file: every problem with its line, and the settings that the file gives.

Pure: the lines come in as entries, references to the environment and to files are resolved by a function that is
handed in. The same function runs for `datafari-rag check`, at start, at reload and when an administrator saves.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.messages import message, message_of
from datafari_rag.core.model.servers import retired
from datafari_rag.core.settings.other_keys import ALIASES, ELSEWHERE, FOLDED, folded_text, not_used
from datafari_rag.core.settings.parsing import Problem, bad_value, parse
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import BY_KEY, Settings, row_for, without_password

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
    found = [
        *problems,
        *failures,
        *(replace(problem, line=last[problem.key].line if problem.key in last else 1) for problem in misfits),
        *_advice(settings, last),
    ]
    return settings, tuple(sorted(found, key=lambda problem: problem.line))


def nearest(key: str) -> str | None:
    """Return the known key that is spelled most like *key*, None when none comes near."""
    spelled = {known.casefold(): known for known in (*BY_KEY, *ALIASES, *FOLDED)}
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
            problem = bad_value(key, "", wanted=REFERENCE_WANTED)
            wanted = message_of(error)
            reason = message("Invalid value for {key} property. {wanted}", key=key, wanted=wanted)
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
    yield from _unchecked(settings, last)
    yield from _of_model(settings, last)
    if settings.chat_store_folder and settings.security_identity == "anonymous" and not settings.demo_folder.users:
        advice = "chat.store.folder has no effect with security.identity=anonymous: nobody is signed in."
        yield Problem("chat.store.folder", advice, "warning", line=last["chat.store.folder"].line, kind="advice")
    if settings.rag_template == "openai" and not settings.rag_add_instructions:
        advice = "rag.addInstructions must be true with rag.template=openai: the instructions are sent all the same."
        line = last["rag.addInstructions"].line
        yield Problem("rag.addInstructions", advice, "warning", line=line, kind="advice")


def _of_model(settings: Settings, last: Mapping[str, Entry]) -> Iterable[Problem]:
    """Say how an address is completed, and warn of a model that its maker has switched off."""
    if settings.model_url != settings.rag_api_endpoint:
        key = "rag.api.endpoint"
        # A query may hold a key, and this goes into the log.
        address = without_password(settings.model_url.partition("?")[0])
        advice = f"{key} is a base address: requests go to {address}."
        yield Problem(key, advice, "note", line=last[key].line, kind="advice")
    since = retired(settings.model_url, settings.rag_model)
    named = [last[key] for key in ("rag.model", "rag.api.endpoint") if key in last]
    if since is not None and named:
        advice = f"rag.model: {settings.rag_model} is switched off by its maker as of {since}; choose another model."
        yield Problem("rag.model", advice, "warning", line=named[0].line, kind="advice")


def _unchecked(settings: Settings, last: Mapping[str, Entry]) -> Iterable[Problem]:
    """Warn where a token is believed that the issuer made for another application, or that names another issuer."""
    if settings.security_identity != "jwt":
        return
    for key, value, consequence in (
        ("security.jwt.audience", settings.security_jwt_audience, "tokens for other applications are accepted"),
        ("security.jwt.issuer", settings.security_jwt_issuer, "the issuer that a token names is not checked"),
    ):
        if not value:
            entry = last.get(key) or last.get("security.identity")
            advice = f"{key} is empty: {consequence}."
            yield Problem(key, advice, "warning", line=entry.line if entry else 1, kind="advice")
