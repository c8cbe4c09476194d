"""`datafari-rag costs`: what the models cost, from where `limits.store` counts it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import cast

import click

from datafari_rag.adapters.ledgers import ledger_for
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.settings.snapshot import StartRefused
from datafari_rag.commands.index import settings_for
from datafari_rag.commands.terminal import CONF
from datafari_rag.core.accounts import BY, By, CostTotal, days_before, money_text, totals
from datafari_rag.core.errors import AccountsUnavailable
from datafari_rag.web.admin.costs import MOST_DAYS, USUAL_DAYS, as_json


@click.command(
    epilog="""\b
Examples:
  datafari-rag costs --conf /etc/datafari-rag/rag.properties
  datafari-rag costs --by model --days 7
  datafari-rag costs --by day --json
\b
Run it as the service's own account. Exit codes: 0 shown; 1 nothing is counted, or it cannot be read; 2 wrong usage.
"""
)
@CONF
@click.option("--by", type=click.Choice(BY), default="user", show_default=True, help="What is summed up.")
@click.option(
    "--days", type=click.IntRange(1, MOST_DAYS), default=USUAL_DAYS, show_default=True, help="Today included."
)
@click.option("--json", "is_json", is_flag=True, help="As JSON.")
def costs(conf: Path, by: str, days: int, is_json: bool) -> None:
    """Show what the models cost in the last days, the largest first; ? where llm.prices has no price."""
    try:
        ledger = ledger_for(settings_for(conf))
        if ledger is None:
            raise click.ClickException("limits.store is empty: nothing is counted.")
        with closing(ledger):
            found = totals(ledger.costs(days_before(MACHINE.wall(), days)), cast(By, by))
    except StartRefused as error:
        raise click.ClickException("\n".join(error.lines)) from error
    except AccountsUnavailable as error:
        raise click.ClickException(f"The accounts cannot be read: {error.log}.") from error
    if is_json:
        click.echo(json.dumps([as_json(one) for one in found], ensure_ascii=False, indent=2))
        return
    rows = [(by, "calls", "tokens in", "cached", "tokens out", "cost"), *map(_cells, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        click.echo("  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]))


def _cells(total: CostTotal) -> tuple[str, ...]:
    use = total.use
    numbers = (total.calls, use.input, use.cached, use.output)
    return (total.name or "(not signed in)", *(f"{number:,}" for number in numbers), money_text(total.money))
