"""Settings for tests, in one call over all groups."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from datafari_rag.core.settings.parsing import Entry, Problem, lint
from datafari_rag.core.settings.table import Settings


def settings_with(settings: Settings | None = None, **values: object) -> Settings:
    """Return *settings*, else the defaults, with *values* under group and field: `rag_max_files=3`."""
    changed = settings or Settings()
    for name, value in values.items():
        changed = _put(changed, name, value)
    return changed


def parsed(values: Mapping[str, str], folder: str = "") -> tuple[Settings, tuple[Problem, ...]]:
    """Return the settings that *values* (key → text) give, and what is wrong with them; advice is left out."""
    entries = [Entry(line, key, text) for line, (key, text) in enumerate(values.items(), 1)]
    settings, problems = lint(entries, resolve=lambda row, text: text, folder=folder)
    return settings, tuple(problem for problem in problems if problem.stops)


def _put(settings: Settings, name: str, value: object) -> Settings:
    group, _, field = name.partition("_")
    if not field:
        return structs.replace(settings, **{group: value})
    return structs.replace(settings, **{group: structs.replace(getattr(settings, group), **{field: value})})
