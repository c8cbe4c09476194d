"""`datafari-rag check`: every problem of a rag.properties with its line; exit code 0 or 1."""

from __future__ import annotations

import os
from pathlib import Path

import click

from datafari_rag.adapters.settings.snapshot import SettingsSnapshot, StartRefused, snapshot_of


@click.command(
    epilog="""\b
Examples:
  datafari-rag check conf/rag.properties
  datafari-rag check --strict /etc/datafari-rag/rag.properties
\b
Exit codes: 0 the file can be used (with --strict: and there is no warning), 1 it has errors, 2 wrong usage.
"""
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
def check(file: Path, strict: bool) -> None:
    """Check a rag.properties file: print every problem as FILE:LINE: message.

    References to the environment and to other files are resolved as in the service. No server is contacted, and no
    secret is shown.
    """
    try:
        snapshot = snapshot_of(file, environ=os.environ)
    except StartRefused as refused:
        for line in refused.lines:
            click.echo(line)
        raise SystemExit(1) from None
    for line in snapshot.lines():
        click.echo(line)
    errors, warnings = _counts(snapshot)
    click.echo(f"{file}: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}", err=True)
    if errors or (strict and warnings):
        raise SystemExit(1)


def _counts(snapshot: SettingsSnapshot) -> tuple[int, int]:
    errors = sum(problem.severity == "error" for problem in snapshot.problems)
    return errors, len(snapshot.problems) - errors


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
