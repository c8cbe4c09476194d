"""`datafari-rag usage`, `conversations` and `audit`: what the service keeps, read and deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import click

from datafari_rag import bootstrap
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.settings.file import snapshot_of
from datafari_rag.commands.ask import printable
from datafari_rag.commands.terminal import CONF, Command, counted
from datafari_rag.core.answer.audit_record import Keys, broken, keys_by_id, read_head
from datafari_rag.core.identity import mapped_name
from datafari_rag.core.settings.table import AuditSettings, Settings
from datafari_rag.core.usage import DAY_S, day_of


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag usage --conf /etc/datafari-rag/rag.properties
  datafari-rag usage --days 7 --json
\b
Run it as the service's own account. Exit codes: 0 shown; 1 nothing is counted, or it cannot be read; 2 wrong usage.
""",
)
@CONF
@click.option("--days", type=click.IntRange(1, 731), default=30, show_default=True, help="Today included.")
@click.option("--json", "is_json", is_flag=True, help="As JSON.")
def usage(conf: Path, days: int, is_json: bool) -> None:
    """Show how many tokens of the language model each user took on each of the last days."""
    store = bootstrap.usage_for(_settings(conf, "limits.").limits)
    if store is None:
        raise click.ClickException("limits.store is empty: nothing is counted.")
    with closing(store):
        rows = store.since(day_of(MACHINE.wall() - (days - 1) * DAY_S))
    if is_json:
        click.echo(json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=2))
        return
    for row in rows:
        click.echo(f"{row.day} {row.tokens:>15,} {printable(row.user) or '(not signed in)'}")


@click.group()
def conversations() -> None:
    """Manage stored conversations (chat.store.folder)."""


@conversations.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag conversations delete --conf /etc/datafari-rag/rag.properties --user alice
\b
Run it as the service's own account. Exit codes: 0 deleted, also when there were none; 1 not; 2 wrong usage.
""",
)
@CONF
@click.option("--user", required=True, help="Whose conversations are deleted, as the service knows the user.")
def delete(conf: Path, user: str) -> None:
    """Delete all stored conversations of one user; the service may run meanwhile."""
    settings = _settings(conf, "chat.", "security.domain")
    store = bootstrap.conversations_for(settings.chat)
    if store is None:
        raise click.ClickException("chat.store.folder is empty: nothing is stored.")
    with closing(store):
        number = store.delete_all(mapped_name(user, settings.security.domain)) if store.is_there else 0
    click.echo(f"{counted(number, 'conversation')} deleted")


_FOLDER = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))


@click.group()
def audit() -> None:
    """Check the audit files."""


@audit.command(cls=Command)
@_FOLDER
@click.option(
    "--conf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The settings, for the keys of signed chains (audit.key).",
)
@click.option(
    "--unsigned/--no-unsigned",
    "allows_unsigned",
    default=False,
    help="Accept lines that are not signed although a key is given. [default: no]",
)
def verify(folder: Path, conf: Path | None, allows_unsigned: bool) -> None:
    """
    Verify every chain in FOLDER: no line was changed, moved or removed.

    With a key, every line was written with it. That whole chains are gone, or were cut off together with their heads,
    is only visible in a copy kept elsewhere.

    Exit code 0 if all chains are intact (and, with --conf of a service that audits, if there is one), otherwise 1 and
    one line for each problem: FILE:LINE: what is wrong.
    """
    kept = AuditSettings() if conf is None else _settings(conf, "audit.").audit
    keys = keys_by_id(kept.key)
    chains = sorted({path.with_suffix(".jsonl") for path in folder.iterdir() if path.suffix in (".jsonl", ".head")})
    # Who removes the only chain leaves a folder like this: where answers are audited there is one.
    is_bare = not chains and bool(kept.folder)
    problems = [f"{folder}: there is no chain; it was removed, or nothing was audited here yet."] if is_bare else []
    for chain in chains:
        problems += _chain_problems(chain, keys, needs_key=bool(keys) and not allows_unsigned)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise SystemExit(1)
    if not chains:
        click.echo("There are no chains: nothing was verified.")
        return
    lines = sum(chain.read_bytes().count(b"\n") for chain in chains)
    click.echo(f"{len(chains)} chains, {lines} lines: nothing was changed.")


@audit.command(cls=Command)
@_FOLDER
@click.option("--document", required=True, help="The document's id.")
def find(folder: Path, document: str) -> None:
    """
    List the answers that used a document: when, the request's id, who, and the version of the document.

    One line of JSON each, oldest first; the chains are not checked (`audit verify` does that).

    Exit code 0 when there are any, else 1.
    """
    lines = [line for chain in sorted(folder.glob("*.jsonl")) for line in _uses(chain, document)]
    for line in sorted(lines, key=lambda line: str(line["at"])):
        click.echo(json.dumps(line, ensure_ascii=False))
    if not lines:
        click.echo("No answer in these chains used this document.", err=True)
        raise SystemExit(1)


def _uses(chain: Path, document: str) -> Iterator[Mapping[str, object]]:
    with chain.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
                used = [entry for entry in record.get("documents", ()) if entry["id"] == document]
            except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
                continue  # a line that was changed is for `verify`
            if used:
                about = {name: record.get(name) for name in ("at", "id", "who", "dialect", "outcome")}
                yield {**about, "versions": [entry.get("version") for entry in used], "chain": chain.name}


def _settings(conf: Path, *prefixes: str) -> Settings:
    """Return the settings of *conf*; only those with *prefixes* need to be usable. Raises: StartRefused."""
    snapshot = snapshot_of(conf, environ=os.environ)
    snapshot.require(*prefixes)
    return snapshot.settings


def _chain_problems(chain: Path, keys: Keys, *, needs_key: bool) -> list[str]:
    if not chain.exists():
        return [f"{chain}:1: The chain's file is missing; its head file is here."]
    head_file = chain.with_suffix(".head")
    head = read_head(head_file.read_bytes()) if head_file.exists() else None
    with chain.open("rb") as lines:
        return [
            f"{chain}:{max(number, 1)}: {problem}" for number, problem in broken(lines, head, keys, needs_key=needs_key)
        ]
