"""
What a setting's field on the page says besides its help: why it is not changed here, and what to do instead.

`core/settings/browser_guard.py` refuses; this only shows it in advance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datafari_rag.core.settings.row import SettingRow
from datafari_rag.web.pages.locale import Translate

AT_START = frozenset(
    {
        *("server.host", "server.port", "server.workers", "server.max_connections", "server.header_timeout_s"),
        *("server.grace_s", "server.secret", "server.traces.endpoint", "log.level", "log.format", "log.file"),
    }
)
"""Keys that are read once, when the service starts."""


def notes_for(row: SettingRow, key: str, written: Mapping[str, str], _: Translate) -> tuple[str, ...]:
    """Return the notes at the field of *key*, which the command line does not decide."""
    return tuple(_notes(row, key, written, _))


def _notes(row: SettingRow, key: str, written: Mapping[str, str], _: Translate) -> Iterator[str]:
    if not row.is_for_browsers:
        yield _(
            "It affects rights, identity, addresses, secrets, files or the server, so it cannot be changed in a "
            "browser: edit the settings file, then run datafari-rag check."
        )
    elif "${" in written.get(key, ""):
        yield _(
            "It contains a reference, which stays as it is; a new reference can only be written in the settings file."
        )
    if key in AT_START:
        yield _("Takes effect when the service is restarted.")
