"""`datafari-rag conformance URL`: checks the contract on a running service row by row."""

from __future__ import annotations

import json

import click
from rich.console import Console

from datafari_rag.conformance.asking import KitTarget, NothingAnswers, outcomes
from datafari_rag.conformance.report import as_json, print_report
from datafari_rag.conformance.rows import kit_of, protocols_of, versions


@click.command(
    epilog="""\b
Examples:
  datafari-rag conformance http://127.0.0.1:8080
  datafari-rag conformance http://127.0.0.1:8080 --protocol "OpenAI" --json
  datafari-rag conformance https://search.example.org --set question="How do I get a badge?"
\b
Exit codes: 0 every row passed, 1 a row failed, 2 wrong usage.
"""
)
@click.argument("url")
@click.option(
    "--protocol", "protocols", multiple=True, help="Check only this protocol; the beginning of its name is enough."
)
@click.option("--model", help="URL of the stub-llm that the service under test uses as its model.")
@click.option("--invoke", help="URL of an llm-service, for its rows.")
@click.option("--user-header", default="X-Remote-User", show_default=True, help="Header that names the user.")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help="Replace a variable, such as question.")
@click.option(
    "--version", "version", type=click.IntRange(1), help="Use this version of the rows.  [default: the newest]"
)
@click.option("--json", "is_json", is_flag=True, help="Print the outcome of every row as JSON.")
def conformance(
    url: str, protocols: tuple[str, ...], values: tuple[str, ...], is_json: bool, **options: object
) -> None:
    """
    Check the service at URL against its contract, row by row.

    Rows need the documents and users of `datafari-rag demo` (identity by header). Rows about the model need a service
    whose model is a stub-llm with the name "cite", and its URL in --model; rows about /invoke need --invoke. Rows that
    cannot be tested fail: limit the run with --protocol.
    """
    kit = kit_of(_version(options["version"]))
    rows = kit.of(protocols)
    if not rows:
        known = ", ".join(protocols_of(kit.rows))
        raise click.BadParameter(f"Unknown protocol. Known protocols: {known}.", param_hint="--protocol")
    place = KitTarget(
        url.rstrip("/"), _address(options["model"]), _address(options["invoke"]), str(options["user_header"])
    )
    try:
        found = list(outcomes(kit, rows, place, variables=_variables(values)))
    except NothingAnswers:
        raise click.ClickException(f"Nothing answers at {place.service}.") from None
    if is_json:
        click.echo(json.dumps(as_json(found, version=kit.version, service=place.service), ensure_ascii=False, indent=1))
    else:
        print_report(found, Console())
    raise SystemExit(int(any(one.problem is not None for one in found)))


def _version(wanted: object) -> int:
    known = versions()
    if wanted is None:
        return known[-1]
    if wanted not in known:
        raise click.BadParameter(f"Known are {', '.join(map(str, known))}.", param_hint="--version")
    return int(str(wanted))


def _address(value: object) -> str | None:
    return None if value is None else str(value).rstrip("/")


def _variables(values: tuple[str, ...]) -> dict[str, object]:
    pairs = [value.partition("=") for value in values]
    if not all(name and sign for name, sign, _ in pairs):
        raise click.BadParameter("NAME=VALUE is expected.", param_hint="--set")
    return {name: value for name, _, value in pairs}
