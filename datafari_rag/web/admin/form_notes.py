"""
What a setting's field on the page says besides its help: what is refused here on purpose, and what to do instead.

`core/settings/browser_guard.py` and `web/admin/page.py` refuse; this only tells it before anybody types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datafari_rag.core.settings.browser_guard import SENT_TO
from datafari_rag.core.settings.row import Row
from datafari_rag.core.settings.table import HIDDEN, without_password
from datafari_rag.web.pages.locale import Translate

AT_START = frozenset(
    {
        *("server.host", "server.port", "server.workers", "server.max_connections", "server.header_timeout_s"),
        *("server.grace_s", "server.secret", "server.traces.endpoint", "log.level", "log.format", "log.file"),
    }
)
"""Keys that are read once, when the service starts."""

BY_WHICH_ONE_IS_KNOWN = frozenset(
    {
        *("security.identity", "security.header", "security.trusted.proxies", "security.domain", "demo.users"),
        *("security.jwt.jwks", "security.jwt.secret", "security.jwt.algorithms", "security.jwt.issuer"),
        *("security.jwt.audience", "security.jwt.user_claim"),
    }
)
"""Keys by which the one who changes them can lock himself out."""


def notes_for(row: Row, key: str, written: Mapping[str, str], _: Translate) -> tuple[str, ...]:
    """Return the sentences beside the field of *key*, which the command line does not decide."""
    return tuple(_notes(row, key, written, _))


def _notes(row: Row, key: str, written: Mapping[str, str], _: Translate) -> Iterator[str]:
    if row.check.kind == "path":
        yield _("It names a file of the server, so it is changed in the settings file itself, not in a browser.")
    if row.is_secret:
        yield _("Type the secret itself; a reference (${NAME}, file:PATH) is written in the settings file itself.")
    if "${" in written.get(key, "") and not row.is_secret:
        yield _("It holds a reference, which stays as it is; a new one is written in the settings file itself.")
    for secret in _secrets_sent_to(key, written):
        yield _(
            "While {secret} is set, this is not moved alone: type that anew too, or tick “Remove it” there, and "
            "save both together."
        ).format(secret=secret)
    if without_password(written.get(key, "")) != written.get(key, "") and not row.is_secret:
        yield _("Its password is hidden ({hidden}): to change it, write the whole address with its password.").format(
            hidden=HIDDEN
        )
    if key == "security.admins":
        yield _("Your own name has to stay: another administrator can take you out.")
    if key in BY_WHICH_ONE_IS_KNOWN:
        yield _("By which you would no longer be known as an administrator is refused: change it in the settings file.")
    if key in AT_START:
        yield _("Takes effect when the service starts again.")


def _secrets_sent_to(key: str, written: Mapping[str, str]) -> Iterator[str]:
    return (secret for secret, places in SENT_TO.items() if key in places and written.get(secret, "").strip())
