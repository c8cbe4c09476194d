"""`datafari-rag check`: every problem of a rag.properties with its line; exit code 0 or 1."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from datafari_rag.adapters.private_files import group_with_rights
from datafari_rag.adapters.settings.file import SettingsFile, StartRefused, snapshot_of
from datafari_rag.bootstrap import Runtime
from datafari_rag.commands.terminal import CONF, Command, DocumentId
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.proof.checking import checked_against
from datafari_rag.core.proof.judging import UNSUPPORTED
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.reference import as_properties
from datafari_rag.core.settings.table import SolrSettings
from datafari_rag.core.text.cleaning import clean
from datafari_rag.protocols import grounding
from datafari_rag.protocols.grounding import GroundingResult, GroundingTask
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.grounding import documents_for, found_for
from datafari_rag.web.user import Signer, user_for


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag check conf/rag.properties
  datafari-rag check --strict /etc/datafari-rag/rag.properties
  datafari-rag check --all > all.properties
\b
Exit codes: 0 the file can be used (with --strict: and there is no warning), 1 it has errors, 2 wrong usage.
""",
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
    for line in shared_with(snapshot.settings.solr):
        click.echo(f"{file}: {line}")
    counts = Counter(problem.severity for problem in snapshot.problems)
    errors, warnings = counts["error"], counts["warning"]
    click.echo(f"{file}: {_counted(errors, 'error')}, {_counted(warnings, 'warning')}", err=True)
    if errors or (strict and warnings):
        raise SystemExit(1)


def shared_with(solr: SolrSettings) -> Iterator[str]:
    """Yield for each folder with texts of documents the group that may read it, if any."""
    if solr.url.startswith(EMBEDDED):
        folder = Path(solr.url.removeprefix(EMBEDDED))
        group = group_with_rights(folder)
        if group is not None:
            yield f"the index, with the texts of all documents, is open to the group {group}: {folder}"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


COLOURS = {"verified": "green", "quoted": "cyan", "near": "cyan", "unsupported": "yellow"}


@click.command("check-answer", cls=Command)
@click.argument("text", type=click.File(encoding="utf-8"), default="-")
@click.option(
    "--fact",
    "facts",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text file (UTF-8) to check against; repeatable.",
)
@click.option(
    "--document",
    "ids",
    type=DocumentId(),
    multiple=True,
    metavar="ID|PATH",
    help="A document of the index to check against; repeatable.",
)
@CONF
@click.option("--user", help="Read the documents as this user. [default: anonymous]")
@click.option("--threshold", default=str(grounding.DEFAULT_THRESHOLD), help="Minimum strength of cited proofs, 0 to 1.")
@click.option("--json", "is_json", is_flag=True, help="Print the response of POST /grounding/check instead.")
def check_answer(
    text: TextIO,
    facts: tuple[Path, ...],
    ids: tuple[str, ...],
    conf: Path,
    user: str | None,
    threshold: str,
    is_json: bool,
) -> None:
    """
    Check each sentence of TEXT, a file or - for standard input, against facts or documents.

    \b
    Examples:
      datafari-rag check-answer answer.txt --fact handbook.txt --fact leave.txt
      datafari-rag ask "…" | datafari-rag check-answer --document doc-7 --user alice --conf conf/rag.properties
    \b
    Exit codes: 0 every sentence is verified; 1 some are not, or the check failed; 2 wrong usage.
    """  # noqa: D301 # click reads \b
    try:
        body: dict[str, object] = {"answerCandidate": text.read(), "groundingSpec": {"citationThreshold": threshold}}
        if facts:
            body["facts"] = [
                {"factText": path.read_text("utf-8-sig"), "attributes": {"title": path.name, "uri": path.as_posix()}}
                for path in facts
            ]
        body |= {"documentIds": list(ids)} if ids else {}
        task = grounding.parse(Incoming("", body=body))
        result = _result(task, conf, user)
    except UnicodeDecodeError as error:
        raise click.ClickException("Text and facts must be UTF-8 text files; index others first.") from error
    report = grounding.reply(task, result)
    if is_json:
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        _show(task, result, report)
    sys.exit(0 if report["supportScore"] in (1.0, None) else 1)


def _result(task: GroundingTask, conf: Path, user: str | None) -> GroundingResult:
    """Return what is proved; settings are read only for documents. Raises: RagError, StartRefused."""
    if not task.ids:
        return GroundingResult(checked_against(task.candidate, task.facts), task.facts)
    file = SettingsFile(conf)
    file.snapshot().require("solr.", "security.")
    snapshot = Runtime(file, Signer("")).snapshot()
    read, missing = documents_for(task.ids, user_for(VerifiedIdentity(user), snapshot), snapshot)
    return replace(found_for(task.candidate, [*task.facts, *read], snapshot), missing=missing)


def _show(task: GroundingTask, result: GroundingResult, report: dict[str, object]) -> None:
    """Print each sentence after its status, in colours where a terminal shows them, then its proofs and the share."""
    titles = {document.id: document.title or document.id for document in result.documents}
    for sentence in result.check.sentences:
        status = grounding.status_of(sentence, task)
        words = _one_line(task.candidate[sentence.start : sentence.end])
        coloured = click.style(f"{status or '-':<13}", fg=COLOURS.get(status or ""))
        click.echo(f"{coloured}{words}")
        for place in sentence.places if status != UNSUPPORTED else ():
            click.echo(f'{"":<13}[{_one_line(titles[place.document_id or ""])}] "{_one_line(place.quote or "")}"')
    for missing in result.missing:
        click.echo(f"There is no document with this id: {_one_line(missing)}", err=True)
    score = report["supportScore"]
    click.echo("No sentence needs proof." if score is None else f"Verified: {score:.0%}")


def _one_line(text: str) -> str:
    """Return *text* on one line, without what a terminal would obey, or turn round, in place of showing it."""
    return clean(" ".join(text.split()), is_full=False)[0]
