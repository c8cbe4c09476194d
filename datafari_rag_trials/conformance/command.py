"""`datafari-rag conformance URL`: checks the contract on a running service row by row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import requests
from rich.console import Console
from rich.table import Table

from datafari_rag_trials.conformance.rows import (
    NEEDS,
    Kit,
    Row,
    Seen,
    UnknownVariable,
    filled,
    kit_of,
    problem_with,
    protocols_of,
    seen_by_model,
    seen_in,
    values_at,
    versions,
)

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class KitTarget:
    """
    What is under test: the *service*, also the *model* (a stub model's address) and an llm-service to *invoke*.

    *user_header* is the header by which the service believes who asks. None is not there.
    """

    service: str
    model: str | None = None
    invoke: str | None = None
    user_header: str = "X-Remote-User"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one row: *problem* is None when all is as it says."""

    row: Row
    problem: str | None


class NothingAnswers(Exception):
    """There is no service at the address."""


def outcomes(kit: Kit, rows: Sequence[Row], target: KitTarget, *, variables: Mapping[str, object]) -> Iterator[Outcome]:
    """
    Yield the outcome of each of *rows* as soon as it is known; *variables* replace the kit's own.

    Raises:
        NothingAnswers: the service does not even say that it lives.
    """
    known = {**kit.variables, **variables}
    with requests.Session() as session:
        session.trust_env = False
        try:
            session.get(f"{target.service}/health/live", timeout=TIMEOUT_S)
        except requests.RequestException as error:
            raise NothingAnswers(target.service) from error
        for row in rows:
            yield Outcome(row, _problem(session, row, target, known))


def _problem(session: requests.Session, row: Row, target: KitTarget, variables: Mapping[str, object]) -> str | None:
    missing = next((need for need in row.needs if need != "demo" and getattr(target, need) is None), None)
    if missing is not None:
        return f"cannot be tested without {NEEDS[missing]}"
    known = dict(variables)
    try:
        looks_at_model = "model" in row.needs
        for earlier in row.earlier:
            shown = _seen(session, earlier.request, target, known, looks_at_model=looks_at_model)
            found: dict[str, object] = {}
            for name, path in earlier.kept.items():
                values = values_at(shown, path)
                if "[*]" in path:
                    found[name] = values
                elif values:
                    found[name] = values[0]
            known |= found
        shown = _seen(session, row.request, target, known, looks_at_model=looks_at_model)
        problems = (problem_with(shown, one, known) for one in row.expectations)
        return next((problem for problem in problems if problem is not None), None)
    except UnknownVariable as unknown:
        return f"an earlier reply does not have what is compared: {unknown}"
    except (requests.RequestException, UnicodeError) as error:
        return f"no reply: {type(error).__name__}"


def _seen(
    session: requests.Session,
    asked: Mapping[str, Any],
    target: KitTarget,
    variables: Mapping[str, object],
    *,
    looks_at_model: bool = False,
) -> Seen:
    if looks_at_model:
        session.delete(f"{target.model}/requests", timeout=TIMEOUT_S)
    reply = session.request(**_arguments(filled(asked, variables), target), timeout=TIMEOUT_S, allow_redirects=False)
    shown = seen_in(reply.status_code, reply.headers, reply.content)
    if looks_at_model:
        shown |= seen_by_model(session.get(f"{target.model}/requests", timeout=TIMEOUT_S).json())
    return shown


def _arguments(asked: Mapping[str, Any], target: KitTarget) -> dict[str, Any]:
    """Return what `requests` is called with; parts and files make a multipart body."""
    base = target.invoke if asked.get("at") == "invoke" else target.service
    headers = {"Accept": "*/*", **asked.get("headers", {})}
    if "user" in asked:
        headers[target.user_header] = asked["user"]
    if "type" in asked:
        headers["Content-Type"] = asked["type"]
    arguments = {
        "method": asked["method"],
        "url": f"{base}{asked['path']}",
        "params": asked.get("query"),
        "headers": headers,
    }
    if "files" in asked:
        kind = asked.get("file_type", "text/plain")
        files = [("files", (name, text, kind)) for name, text in asked["files"].items()]
        return arguments | {"files": files, "data": asked["parts"]}
    if "json" in asked:
        return arguments | {"json": asked["json"]}
    return arguments | {"data": asked.get("form", asked.get("raw"))}


def print_report(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print one line for each row that fails, then a table with one line for each protocol."""
    for one in outcomes:
        if one.problem is not None:
            row = one.row
            console.print(f"[red]{row.severity}[/red] {row.id} {row.protocol}, {row.section}", highlight=False)
            console.print(f"    {row.says}", markup=False, highlight=False, soft_wrap=True)
            console.print(f"    {one.problem}", markup=False, highlight=False, soft_wrap=True)
    table = Table(title="Rows by protocol", title_justify="left")
    table.add_column("protocol")
    for head in ("rows", "passed", "failed: must", "should", "may"):
        table.add_column(head, justify="right")
    for protocol in protocols_of(one.row for one in outcomes):
        table.add_row(protocol, *_cells([one for one in outcomes if one.row.protocol == protocol]))
    table.add_section()
    table.add_row("all", *_cells(outcomes))
    console.print(table)


def as_json(outcomes: Sequence[Outcome], *, version: int, service: str) -> dict[str, Any]:
    """Return everything that a program wants to know of a run."""
    rows = [
        {
            "id": one.row.id,
            "protocol": one.row.protocol,
            "section": one.row.section,
            "severity": one.row.severity,
            "says": one.row.says,
            "passed": one.problem is None,
            "problem": one.problem,
        }
        for one in outcomes
    ]
    failed = sum(one.problem is not None for one in outcomes)
    return {"version": version, "service": service, "passed": len(rows) - failed, "failed": failed, "rows": rows}


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    failed = Counter(one.row.severity for one in outcomes if one.problem is not None)
    passed = len(outcomes) - failed.total()
    return [str(len(outcomes)), str(passed), *(str(failed[severity]) for severity in ("must", "should", "may"))]


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
        pairs = [value.partition("=") for value in values]
        if not all(name and sign for name, sign, _ in pairs):
            raise click.BadParameter("NAME=VALUE is expected.", param_hint="--set")
        found = list(outcomes(kit, rows, place, variables={name: value for name, _, value in pairs}))
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
