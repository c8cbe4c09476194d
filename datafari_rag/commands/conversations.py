"""`datafari-rag conversations delete`: deletes all stored conversations of one user, for an erasure."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from datafari_rag import bootstrap
from datafari_rag.adapters.settings.snapshot import StartRefused
from datafari_rag.commands.index import settings_for
from datafari_rag.commands.terminal import CONF
from datafari_rag.core.errors import ConversationsUnavailable
from datafari_rag.core.identity import mapped_name


@click.group()
def conversations() -> None:
    """Manage stored conversations (chat.store.folder)."""


@conversations.command(
    epilog="""\b
Examples:
  datafari-rag conversations delete --conf /etc/datafari-rag/rag.properties --user alice
\b
Run it as the service's own account. Exit codes: 0 deleted, also when there were none; 1 not; 2 wrong usage.
"""
)
@CONF
@click.option("--user", required=True, help="Whose conversations are deleted, as the service knows the user.")
def delete(conf: Path, user: str) -> None:
    """Delete all stored conversations of one user; the service may run meanwhile."""
    try:
        settings = settings_for(conf)
        store = bootstrap.conversations_for(settings)
        if store is None:
            raise click.ClickException("chat.store.folder is empty: nothing is stored.")
        with closing(store):
            number = store.delete_all(mapped_name(user, settings.security_domain)) if store.is_there else 0
    except StartRefused as error:
        raise click.ClickException("\n".join(error.lines)) from error
    except ConversationsUnavailable as error:
        raise click.ClickException(f"{error.reason} ({error.log})") from error
    click.echo(f"{number} {'conversation' if number == 1 else 'conversations'} deleted")
