"""`datafari-rag check`: every problem of a rag.properties with its line; exit code 0 or 1."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from datafari_rag.adapters.private_files import group_with_rights
from datafari_rag.adapters.settings.snapshot import StartRefused, snapshot_of
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.reference import as_properties
from datafari_rag.core.settings.table import Settings


@click.command(
    epilog="""\b
Examples:
  datafari-rag check conf/rag.properties
  datafari-rag check --strict /etc/datafari-rag/rag.properties
  datafari-rag check --all > all.properties
\b
Exit codes: 0 the file can be used (with --strict: and there is no warning), 1 it has errors, 2 wrong usage.
"""
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
@click.option("--all", "is_whole", is_flag=True, help="Print a file with all settings and their defaults instead.")
def check(file: Path | None, strict: bool, is_whole: bool) -> None:
    """Check a rag.properties file: print every problem as FILE:LINE: message.

    References to the environment and to other files are resolved as in the service. No server is contacted, and no
    secret is shown.
    """
    if is_whole:
        click.echo(as_properties(), nl=False)
        return
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    try:
        snapshot = snapshot_of(file, environ=os.environ)
    except StartRefused as refused:
        for line in refused.lines:
            click.echo(line)
        raise SystemExit(1) from None
    for line in snapshot.lines():
        click.echo(line)
    for line in shared_with(snapshot.settings):
        click.echo(f"{file}: {line}")
    counts = Counter(problem.severity for problem in snapshot.problems)
    errors, warnings = counts["error"], counts["warning"]
    click.echo(f"{file}: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}", err=True)
    if errors or (strict and warnings):
        raise SystemExit(1)


def shared_with(settings: Settings) -> Iterator[str]:
    """Yield for each folder with texts of documents the group that may read it, if any."""
    if settings.solr_url.startswith(EMBEDDED):
        folder = Path(settings.solr_url.removeprefix(EMBEDDED))
        group = group_with_rights(folder)
        if group is not None:
            yield f"the index, with the texts of all documents, is open to the group {group}: {folder}"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
