"""Settings for tests, in one call over all groups."""

from __future__ import annotations

from datafari_rag.core.settings.table import ROWS, Settings

BY_NAME = {row.path.replace(".", "_"): row for row in ROWS}


def settings_with(settings: Settings | None = None, **values: object) -> Settings:
    """Return *settings*, else the defaults, with *values* under group and field: `rag_max_files=3`."""
    changed = settings or Settings()
    for name, value in values.items():
        changed = BY_NAME[name].put_into(changed, value)
    return changed
