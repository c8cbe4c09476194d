"""`datafari-rag conformance URL`: checks on a running service what the contract promises of every door."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import click
import requests
from rich.console import Console
from rich.table import Table

from datafari_rag.commands.terminal import Command
from datafari_rag_trials.conformance.doors import DOORS, TIMEOUT_S, Door
from datafari_rag_trials.conformance.promises import PROMISES, USER_HEADER, Outcome, Service, outcome_of

NAMES = tuple(one.name for one in fields(Service) if one.name not in ("url", "session", "user_header"))
"""What `--set` may replace."""


class NothingAnswers(Exception):
    """There is no service at the address."""


def outcomes(service: Service, doors: Sequence[Door] = DOORS) -> Iterator[Outcome]:
    """
    Yield what came of every promise at each of *doors*, as soon as it is known.

    Raises:
        NothingAnswers: the service does not even say that it lives.
    """
    try:
        service.session.get(f"{service.url}/health/live", timeout=TIMEOUT_S)
    except requests.RequestException as error:
        raise NothingAnswers(service.url) from error
    for door in doors:
        yield from filter(None, (outcome_of(promise, service, door) for promise in PROMISES))


def print_report(tried: Sequence[Outcome], console: Console) -> None:
    """Print each broken promise, then a table with one line for each door."""
    table = Table("door", title="Promises by door", title_justify="left")
    for head in ("promises", "kept", "broken"):
        table.add_column(head, justify="right")
    for name in dict.fromkeys(str(one.door) for one in tried):
        here = [one for one in tried if str(one.door) == name]
        broken = [one for one in here if one.problem is not None]
        for one in broken:
            console.print(f"{name}: {one.says}\n    {one.problem}", style="red", markup=False, soft_wrap=True)
        table.add_row(name, str(len(here)), str(len(here) - len(broken)), str(len(broken)))
    console.print(table)


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag conformance http://127.0.0.1:8080
  datafari-rag conformance http://127.0.0.1:8080 --door openai --json
  datafari-rag conformance https://search.example.org --set question="How do I get a badge?"
\b
Exit codes: 0 every promise is kept, 1 one is broken, 2 wrong usage.
""",
)
@click.argument("url")
@click.option("--door", "names", multiple=True, type=click.Choice(list(dict.fromkeys(one.name for one in DOORS))))
@click.option("--user-header", default=USER_HEADER, show_default=True, help="Header that names the user.")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help=f"Replace one of {', '.join(NAMES)}.")
@click.option("--json", "is_json", is_flag=True, help="Print every outcome as JSON.")
def conformance(url: str, names: tuple[str, ...], user_header: str, values: tuple[str, ...], is_json: bool) -> None:
    """
    Check what the contract promises of every way to ask the service at URL.

    The promises are tried with the documents and users of `datafari-rag demo` (identity by header) unless --set names
    others, and with any model.
    """
    pairs: dict[str, Any] = dict(value.split("=", 1) for value in values if "=" in value)
    if len(pairs) != len(values) or not pairs.keys() <= set(NAMES):
        raise click.BadParameter(f"NAME=VALUE is expected, NAME one of {', '.join(NAMES)}.", param_hint="--set")
    service = Service(url.rstrip("/"), user_header=user_header, **pairs)
    try:
        tried = list(outcomes(service, [door for door in DOORS if not names or door.name in names]))
    except NothingAnswers:
        raise click.ClickException(f"Nothing answers at {service.url}.") from None
    broken = sum(one.problem is not None for one in tried)
    if is_json:
        rows = [
            {"door": str(one.door), "promise": one.promise, "says": one.says, "problem": one.problem} for one in tried
        ]
        told = {"service": service.url, "kept": len(rows) - broken, "broken": broken, "promises": rows}
        click.echo(json.dumps(told, ensure_ascii=False, indent=1))
    else:
        print_report(tried, Console())
    raise SystemExit(int(broken > 0))
