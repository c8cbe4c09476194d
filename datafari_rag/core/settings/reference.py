"""
The settings as documentation: `conf/rag.properties` and `docs/settings.md`, as texts.

Pure: returns texts and writes nothing. A test holds the files to what is returned here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from datafari_rag.core.settings.checks import Row, bounds_of
from datafari_rag.core.settings.table import BY_KEY, ROWS, Settings

SEED_KEYS = (
    *("rag.api.endpoint", "rag.api.token", "rag.model", "rag.template", "rag.temperature", "rag.maxTokens"),
    *("rag.maxFiles", "rag.maxJsonLength", "rag.addInstructions", "rag.solrField", "rag.hl.fragsize", "rag.operator"),
    *("rag.enable.logs", "solr.url"),
)
"""Keys that `conf/rag.properties` sets, as Datafari spells them; the others are commented out, with their defaults."""

ON_SCREEN = (
    *("rag.chars", "rag.evidence.min", "answer.unsupported", "retrieval.method", "embeddings.endpoint"),
    *("llm.context.window", "llm.server", "llm.limits.first_token_s", "openai.indexes", "chat.store.folder"),
    *("solr.facets", "log.level", "security.identity", "security.mode", "security.anonymous", "security.tokens"),
    *("security.tokens.file", "security.admins", "server.host", "server.port", "server.hosts"),
    *("server.limits.streams", "audit.folder"),
)
"""Keys of `conf/rag.properties` that most installations decide."""

_HEAD = """\
# Settings of datafari_rag. Check this file with: datafari-rag check FILE
# A line without # is a setting; a line that begins with # is a comment or a default. Changes take effect within two
# seconds, except those of server.*, which need a restart. Relative paths start at the folder of this file.
# ${VARIABLE} in a value is replaced from the environment; the value of a secret may be file:PATH.
# Most installations decide those in conf/rag.properties; `datafari-rag check --all` and docs/settings.md have all.
"""

_PAGE = """\
# Settings

All keys of `rag.properties`, with their defaults. This page and `conf/rag.properties`, which has those that most
installations decide, are generated from a table in the code; `datafari-rag check FILE` checks a file against the same
table, and `datafari-rag check --all` prints a file with all settings.

- Changes take effect within two seconds in every worker, except those of `server.*`, which need a restart.
- A file with an error is not used: the previous settings stay in effect, and `/health/ready` reports it.
- `${VARIABLE}` is replaced from the environment. A secret may be `file:PATH`. These values are never shown.
- Relative paths start at the folder of the file. The items of a list are separated by commas.
- The users in `security.admins` see the settings at `/admin`; the file is where they are changed.
- Write backslashes twice, as in every properties file. The file is UTF-8 or Latin-1.
"""


def title_of(group: str) -> str:
    """Return what the settings of *group* are about."""
    return (getattr(Settings(), group).__doc__ or group).partition("\n")[0].rstrip(".")


def on_one_screen() -> str:
    """Return `conf/rag.properties`: the settings that matter, Datafari's keys first and set."""
    seeds, others = ([BY_KEY[key] for key in keys] for keys in (SEED_KEYS, ON_SCREEN))
    return f"{_HEAD}\n{_entries(seeds)}\n{_entries(others)}"


def as_properties() -> str:
    """Return a file with all settings, each commented out with its description and its default."""
    groups = groupby(ROWS, attrgetter("group"))
    return _HEAD + "".join(f"\n# ---- {title_of(group)} ----\n{_entries(list(rows))}" for group, rows in groups)


def as_markdown() -> str:
    """Return `docs/settings.md`: one table for each group."""
    parts = [_PAGE]
    for group, rows in groupby(ROWS, attrgetter("group")):
        parts.append(f"\n## {title_of(group)}\n\n| key | default | values | description |\n|---|---|---|---|\n")
        for row in rows:
            default = f"`{row.default_text}`" if row.default_text else ""
            about = row.help.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
            parts.append(f"| `{row.key}` | {default} | {values_text(row)} | {about} |\n")
    return "".join(parts)


def values_text(row: Row) -> str:
    """Return in a few words which values *row* takes, for tables."""
    if row.check.is_secret:
        return "secret"
    if row.check.choices:
        return ", ".join(f"`{name}`" for name in row.check.choices)
    if bounds := bounds_of(row.type):
        return f"{bounds[0]:.15g} to {bounds[1]:.15g}"
    return "list" if isinstance(row.default, tuple) else "text" if isinstance(row.default, str) else "JSON object"


def _entries(rows: Sequence[Row]) -> str:
    return "".join(f"# {row.help}\n{'' if row.key in SEED_KEYS else '#'}{row.key}={row.default_text}\n" for row in rows)
