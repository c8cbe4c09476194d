"""`datafari-rag report`: which questions found no good answer, as one administrator may read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.settings.snapshot import StartRefused
from datafari_rag.commands.ask import line_for, printable
from datafari_rag.commands.terminal import CONF
from datafari_rag.core.answer.question_report import QuestionReport
from datafari_rag.core.errors import RagError
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.web.admin.questions import (
    MOST_DAYS,
    USUAL_DAYS,
    USUAL_OLD_DAYS,
    report_for,
    standalone_page,
)
from datafari_rag.web.pages.messages import problem_names
from datafari_rag.web.user import user_for


def _days(context: click.Context, parameter: click.Parameter, text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,3})d", text)
    if found is None or not 1 <= int(found[1]) <= MOST_DAYS:
        raise click.BadParameter(f"a number of days from 1d to {MOST_DAYS}d is expected")
    return int(found[1])


@click.command(
    epilog="""\b
Examples:
  datafari-rag report --conf /etc/datafari-rag/rag.properties --as admin
  datafari-rag report --since 30d --as admin --html > report.html
\b
Run it as the service's own account. Exit codes: 0 shown; 1 no questions are kept, or they or the documents cannot be
read, or the user is no administrator; 2 wrong usage.
"""
)
@CONF
@click.option("--since", default=f"{USUAL_DAYS}d", callback=_days, show_default=True, help="The last days, such as 7d.")
@click.option("--as", "name", required=True, help="One of security.admins; only documents that they may see count.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.option("--html", "form", flag_value="html", help="As a page.")
def report(conf: Path, since: int, name: str, form: str | None) -> None:
    """Show which questions of the last days found no good answer, those with the most problems first."""
    try:
        snapshot = line_for(conf)
        reader = user_for(VerifiedIdentity(name), snapshot)
        if not reader.is_admin:
            raise click.ClickException(f"{name} is not one of security.admins.")
        since_s = MACHINE.wall() - since * 86_400
        made = report_for(reader, snapshot, since_s=since_s, old_days=USUAL_OLD_DAYS)
    except StartRefused as refused:
        raise click.ClickException("\n".join(refused.lines)) from refused
    except RagError as error:
        raise click.ClickException(error.reason + (f" ({error.log})" if error.log else "")) from error
    if form == "json":
        click.echo(json.dumps(made.as_json(), ensure_ascii=False, indent=2))
    elif form == "html":
        click.echo(standalone_page(made))
    else:
        _show(made)


def _show(made: QuestionReport) -> None:
    names = problem_names(str)
    click.echo(f"{made.questions} questions")
    for group in made.groups:
        texts = " / ".join(one.text for one in group.texts) or "(too few people asked this to show it)"
        problems = ", ".join(f"{names[problem]} {count}" for problem, count in group.problems.items())
        click.echo(printable(f"{group.asked:>6} asked by {group.people}: {texts}: {problems}"))
    old = f"cited when older than {made.old_days} days"
    titles = {"citedOften": "cited often", "neverCited": "shown and never cited", "citedOld": old}
    for name, counts in made.documents.items():
        for document, count in counts:
            click.echo(printable(f"{count:>6} {titles[name]}: {document.title}"))
