"""
The settings table as documentation: `conf/rag.properties` and `docs/settings.md`, as texts.

Pure: returns texts and writes nothing. A test holds the files to what is returned here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter

from datafari_rag.core.settings.other_keys import FOLDED, folded_text
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import ROWS

GROUPS: Mapping[str, str] = {
    "rag": "Answers",
    "answer": "What the documents do not prove",
    "retrieval": "Retrieval",
    "embeddings": "Embedding model (search by meaning)",
    "rerank": "Reranker",
    "llm": "The language model",
    "token": "Token counting",
    "limits": "Tokens of the language model",
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
    "tls": "Encrypted connections",
    "audit": "Audit",
    "feedback": "Readers' feedback",
    "log": "Log",
    "demo": "Demo",
}
"""Title of each group, in the order of `Settings`."""

SEED_KEYS = (
    *("rag.api.endpoint", "rag.api.token", "rag.model", "rag.template", "rag.temperature", "rag.maxTokens"),
    *("rag.maxFiles", "rag.maxJsonLength", "rag.addInstructions", "rag.solrField", "rag.hl.fragsize", "rag.operator"),
    *("rag.enable.logs", "solr.url"),
)
"""Keys that `conf/rag.properties` sets; the others are commented out, with their defaults."""

ON_SCREEN = frozenset(
    {
        *SEED_KEYS,
        *("rag.evidence.min", "answer.unsupported", "retrieval.method", "embeddings.endpoint", "llm.context.window"),
        *("llm.server", "openai.indexes", "chat.store.folder", "solr.facets", "security.identity", "security.mode"),
        *("security.anonymous", "security.tokens", "security.tokens.file", "security.admins", "server.host"),
        *("server.port", "server.hosts", "audit.folder", "log.level", "rag.chars"),
    }
)
"""Keys of `conf/rag.properties`, the file that people edit: those that most installations decide."""

_HEAD = """\
# Settings of datafari_rag. Check this file with: datafari-rag check FILE
# A line without # is a setting; a line that begins with # is a comment or a default. Changes take effect within two
# seconds, except those of server.*, which need a restart. Relative paths start at the folder of this file.
# ${VARIABLE} in a value is replaced from the environment; the value of a secret may be file:PATH.
"""

_MORE = """\
# These are the settings that most installations decide. All others: docs/settings.md, datafari-rag check --all.
"""

_WIDTH = 118

_KINDS = {"json": "JSON object"}


def on_one_screen() -> str:
    """Return `conf/rag.properties`: the settings that matter, Datafari's keys set, the others commented out."""
    parts = [_HEAD, _MORE]
    for group, rows in groupby(ROWS, attrgetter("group")):
        on_screen = [row for row in rows if row.key in ON_SCREEN]
        parts += [f"\n# ---- {GROUPS[group]} ----\n"] if on_screen else []
        parts += [_as_entry(row, f"# {_first_line(row.help)}\n", is_set=row.key in SEED_KEYS) for row in on_screen]
    return "".join(parts)


def as_properties() -> str:
    """Return a file with all settings, each commented out with its whole description and its default."""
    parts = [_HEAD]
    for group, rows in groupby(ROWS, attrgetter("group")):
        parts.append(f"\n# ---- {GROUPS[group]} ----\n")
        parts += [f"\n{_as_entry(row, _comment(row))}" for row in rows]
    return "".join(parts)


def as_markdown() -> str:
    """Return `docs/settings.md`: one table for each group."""
    parts = [
        "# Settings\n\n"
        "All keys of `rag.properties`, with their defaults. This page and `conf/rag.properties`, which has those that\n"
        "most installations decide, are generated from a table in the code; `datafari-rag check FILE` checks a file\n"
        "against the same table, and `datafari-rag check --all` prints a file with all settings.\n\n"
        "- Changes take effect within two seconds in every worker, except those of `server.*`, which need a restart.\n"
        "- A file with an error is not used: the previous settings stay in effect, and `/health/ready` reports it.\n"
        "- `${VARIABLE}` is replaced from the environment. A secret may be `file:PATH`. These values are never shown.\n"
        "- Relative paths start at the folder of the file. The items of a list are separated by commas.\n"
        "- The users in `security.admins` see the settings at `/admin`; the file is where they are changed.\n"
        "- Write backslashes twice, as in every properties file. The file is UTF-8 or Latin-1.\n"
    ]
    for group, rows in groupby(ROWS, attrgetter("group")):
        parts.append(f"\n## {GROUPS[group]}\n\n| key | default | values | description |\n|---|---|---|---|\n")
        parts += [_as_table_line(row) for row in rows]
    parts.append(
        "\n## Earlier forms of settings\n\n"
        "They are still read; each is a warning at the start and in `datafari-rag check`.\n\n"
    )
    parts += [f"- `{key}`: `{folded_text(key)}`\n" for key in FOLDED]
    return "".join(parts)


def values_text(row: SettingRow) -> str:
    """Return in a few words which values *row* takes, for tables."""
    check = row.check
    if check.choices:
        return ", ".join(f"`{name}`" for name in check.choices)
    if check.low is not None and check.high is not None:
        return f"{check.low:.15g} to {check.high:.15g}"
    return "secret" if row.is_secret else _KINDS.get(check.kind, check.kind)


def _as_entry(row: SettingRow, comment: str, *, is_set: bool = False) -> str:
    return f"{comment}{'' if is_set else '#'}{row.key}={row.default_text}\n"


def _first_line(text: str) -> str:
    """Return the first sentence of *text*, and those after it that stand on the same line."""
    sentences = re.split(r"(?<=[.!…]) (?=[A-Z0-9])", text)
    line = sentences[0]
    for sentence in sentences[1:]:
        if len(line) + len(sentence) + 1 > _WIDTH - 2:
            break
        line += f" {sentence}"
    return textwrap.fill(line, _WIDTH - 2).replace("\n", "\n# ")


def _comment(row: SettingRow) -> str:
    has_choices_missing = row.check.kind != "flag" and any(name not in row.help for name in row.check.choices)
    text = f"{row.help} Values: {', '.join(row.check.choices)}." if has_choices_missing else row.help
    comment = textwrap.fill(
        text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )
    return f"{comment}\n"


def _as_table_line(row: SettingRow) -> str:
    default = f"`{row.default_text}`" if row.default_text else ""
    return f"| `{row.key}` | {default} | {values_text(row)} | {_escaped(row.help)} |\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
