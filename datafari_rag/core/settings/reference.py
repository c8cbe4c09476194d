"""
The settings table as documentation: `conf/rag.properties` and `docs/settings.md`, as texts.

Pure: returns texts and writes nothing. A test holds the files to what is returned here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import FIELD_NAMES, ROWS

GROUPS: Mapping[str, str] = {
    "rag": "Answers",
    "answer": "What the documents do not prove",
    "retrieval": "Retrieval",
    "rrf": "Rank fusion",
    "embeddings": "Embedding model (search by meaning)",
    "llm": "The language model",
    "token": "Token counting",
    "openai": "OpenAI-compatible callers (/v1)",
    "chat": "Chat callers (/chat, /ask, /api/chat)",
    "ai": "Requests of Datafari 7 (/rest/v2.0/ai)",
    "synthesis": "Several documents together",
    "summarization": "Summaries of whole documents",
    "prompt": "Requests for whole documents",
    "grounding": "Checks of texts (/grounding/check)",
    "mcp": "Agents (/mcp)",
    "solr": "The search engine",
    "security": "Who may see what",
    "server": "The server",
    "audit": "Audit",
    "feedback": "Readers' feedback",
    "log": "Log",
    "demo": "Demo",
}
"""Title of each group, in the order of the table."""

SEED_KEYS = (
    *("rag.api.endpoint", "rag.api.token", "rag.model", "rag.template", "rag.temperature", "rag.maxTokens"),
    *("rag.maxFiles", "rag.maxJsonLength", "rag.addInstructions", "rag.solrField", "rag.hl.fragsize", "rag.operator"),
    *("rag.enable.logs", "solr.url"),
)
"""Keys that the file sets; the others are commented out, with their defaults."""

_HEAD = """\
# Settings of datafari_rag. Check this file with: datafari-rag check conf/rag.properties
#
# A line without # is a setting; a line that begins with # is a comment or a default. Changes take effect within two
# seconds, except those of server.*, which need a restart. Relative paths start at the folder of this file.
# ${VARIABLE} in a value is replaced from the environment; the value of a secret may be file:PATH.
"""

_WIDTH = 118


def as_properties() -> str:
    """Return `conf/rag.properties`: Datafari's keys set, all others commented out with their defaults."""
    parts = [_HEAD]
    for group, rows in _grouped():
        parts.append(f"\n# ---- {GROUPS[group]} ----\n")
        parts += [_as_entry(row) for row in rows]
    return "".join(parts)


def as_markdown() -> str:
    """Return `docs/settings.md`: one table for each group."""
    parts = [
        "# Settings\n\n"
        "All keys of `rag.properties`, with their defaults. This page and `conf/rag.properties` are generated from a\n"
        "table in the code; `datafari-rag check FILE` checks a file against the same table.\n\n"
        "- Changes take effect within two seconds in every worker, except those of `server.*`, which need a restart.\n"
        "- A file with an error is not used: the previous settings stay in effect, and `/health/ready` reports it.\n"
        "- `${VARIABLE}` is replaced from the environment. A secret may be `file:PATH`. These values are never shown.\n"
        "- Relative paths start at the folder of the file. The items of a list are separated by commas.\n"
        "- Keys marked ✎ can also be changed on the settings page by the users in `security.admins`.\n"
        "- Write backslashes twice, as in every properties file. The file is UTF-8 or Latin-1.\n"
    ]
    for group, rows in _grouped():
        parts.append(f"\n## {GROUPS[group]}\n\n| key | default | values | description |\n|---|---|---|---|\n")
        parts += [_as_table_line(row) for row in rows]
    return "".join(parts)


def values_text(row: SettingRow) -> str:
    """Return in a few words which values *row* takes, for tables and forms."""
    check = row.check
    if check.choices:
        return ", ".join(f"`{name}`" for name in check.choices)
    if check.low is not None and check.high is not None:
        return f"{check.low:.15g} to {check.high:.15g}"
    return "secret" if row.is_secret else check.kind


def _grouped() -> Iterator[tuple[str, Iterable[SettingRow]]]:
    ordered = sorted(ROWS, key=lambda row: list(GROUPS).index(row.group))
    return groupby(ordered, key=lambda row: row.group)


def _as_entry(row: SettingRow) -> str:
    has_choices_missing = row.check.kind != "flag" and any(name not in row.help for name in row.check.choices)
    text = f"{row.help} Values: {', '.join(row.check.choices)}." if has_choices_missing else row.help
    comment = textwrap.fill(
        text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )
    if row.is_prefix:
        return f"\n{comment}\n" + "".join(f"#{row.key}.{name}={_default_name(name)}\n" for name in FIELD_NAMES)
    sign = "" if row.key in SEED_KEYS else "#"
    return f"\n{comment}\n{sign}{row.key}={row.default_text}\n"


def _as_table_line(row: SettingRow) -> str:
    key = f"{row.key}.NAME" if row.is_prefix else row.key
    default = f"`{row.default_text}`" if row.default_text else ""
    sign = " ✎" if row.is_for_browsers else ""
    return f"| `{key}`{sign} | {default} | {values_text(row)} | {_escaped(row.help)} |\n"


def _default_name(name: str) -> str:
    return "content_" if name == "content_prefix" else name


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
