"""`summarize` and `compare`: work on whole documents, word by word, then their sources; progress to stderr."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import cast

import click

from datafari_rag.adapters.settings.snapshot import StartRefused
from datafari_rag.answer_streams import collect
from datafari_rag.commands.ask import line_for, printable, show_sources
from datafari_rag.commands.terminal import CONF, DocumentId, counted
from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, DocumentWork
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer, Delta, Event, Failed, Finished, Progress, Sources, WorkEvent
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.whole.work import SENTENCES
from datafari_rag.protocols.ai.action import ACTIONS
from datafari_rag.protocols.request import ReplyContext
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import user_for
from datafari_rag.whole_documents import worked

WHY = {"notFound": "not there for this user", "empty": "without text", "overLimit": "more than synthesis.maxFiles"}


def show_work(ask: Ask, work: DocumentWork, *, conf: Path, user: str | None, is_json: bool) -> None:
    """Do *work* as *user* and print it, with *is_json* as the reply of `POST /rest/v2.0/ai`; exit 1 when it fails."""
    try:
        service = line_for(conf)
        with closing(_events(ask, work, service, user)) as events:
            if is_json:
                _as_json(ask, work, service, events)
            else:
                _as_text(events)
    except StartRefused as refused:
        raise click.ClickException("\n".join(refused.lines)) from refused
    except RagError as error:
        click.echo(f"{error.label}: {error.reason}" + (f" ({error.log})" if error.log else ""), err=True)
        sys.exit(1)


def _events(
    ask: Ask, work: DocumentWork, service: ServiceSnapshot, user: str | None
) -> Generator[WorkEvent, None, None]:
    asking = user_for(VerifiedIdentity(user), service)
    return worked(ask, work, asking, settings=service.settings, dependencies=service.dependencies)


def _as_json(ask: Ask, work: DocumentWork, service: ServiceSnapshot, events: Generator[WorkEvent, None, None]) -> None:
    whole = collect(cast("Generator[Event, None, None]", events))
    context = ReplyContext(ask, service.settings, uuid.uuid4().hex, time.time())
    click.echo(json.dumps(ACTIONS[work.kind].reply(whole, context), ensure_ascii=False, indent=2))


def _as_text(events: Generator[WorkEvent, None, None]) -> None:
    sources = Sources(())
    for event in events:
        match event:
            case Sources():
                sources = event
                _show_cost(event)
            case Progress():
                click.echo(f"{event.step}: {event.done} of {event.total}", err=True)
            case Delta():
                click.echo(printable(event.text), nl=False)
                sys.stdout.flush()
            case Failed():
                raise event.error
            case Finished():
                if event.text:
                    show_sources(Answer(sources, event))


def _show_cost(sources: Sources) -> None:
    for one in sources.skipped:
        click.echo(f"Left out: {printable(' '.join(one.id.split()))} ({WHY[one.reason]})", err=True)
    cost = sources.estimate
    if cost is not None:
        calls = f"at most {counted(cost.calls, 'call')} of the model ({cost.strategy})" if cost.calls else "no model"
        click.echo(f"{counted(cost.chars, 'character')} in {counted(cost.pieces, 'piece')}, {calls}", err=True)


@click.command()
@click.argument("document_id", type=DocumentId(), metavar="ID|PATH")
@CONF
@click.option("--user", help="Read as this user, with the tokens of the configured source. [default: anonymous]")
@click.option("--length", type=click.Choice(tuple(SENTENCES)), default="medium", show_default=True)
@click.option("--lang", help="Language of the summary, like en or fr. [default: the document's]")
@click.option("--estimate", is_flag=True, help="Only say how many calls of the model it would take.")
@click.option("--json", "is_json", is_flag=True, help="Print the reply of POST /rest/v2.0/ai instead, whole.")
def summarize(
    document_id: str, conf: Path, user: str | None, length: str, lang: str | None, estimate: bool, is_json: bool
) -> None:
    """
    Summarise the document ID, or the one that was made of the file PATH.

    \b
    Examples:
      datafari-rag summarize doc-7 --conf conf/rag.properties --user alice
      datafari-rag summarize "notes/remote work.md" --length short --lang fr
      datafari-rag summarize doc-7 --estimate
    \b
    Exit codes: 0 summarised; 1 not, the reason is on stderr; 2 wrong usage.
    """  # noqa: D301 # click reads \b
    wanted = next(name for name in SENTENCES if name == length)
    work = DocumentWork("summarize", wanted, is_estimate=estimate)
    ask = Ask("", language=lang, document_ids=(document_id,), work=work)
    show_work(ask, work, conf=conf, user=user, is_json=is_json)


@click.command()
@click.argument("ids", type=DocumentId(), metavar="ID|PATH…", nargs=-1, required=True)
@click.option(
    "--question", default="", help="What is to be compared. [default: what they have in common, and what not]"
)
@CONF
@click.option("--user", help="Read as this user, with the tokens of the configured source. [default: anonymous]")
@click.option("--lang", help="Language of the answer, like en or fr. [default: the question's]")
@click.option("--json", "is_json", is_flag=True, help="Print the reply of POST /rest/v2.0/ai instead, whole.")
def compare(ids: tuple[str, ...], question: str, conf: Path, user: str | None, lang: str | None, is_json: bool) -> None:
    """
    Put together what several documents say, each named by its id or by the path of its file.

    \b
    Examples:
      datafari-rag compare offer-1 offer-2 offer-3 --question "What do they cost?" --user alice
      datafari-rag compare contract-2023 contract-2024 --conf conf/rag.properties
    \b
    Documents that are not there for the user are named on stderr and left out.
    Exit codes: 0 compared; 1 not, the reason is on stderr; 2 wrong usage.
    """  # noqa: D301 # click reads \b
    if len(question) > MAX_QUESTION_CHARS:
        raise click.BadParameter(f"at most {MAX_QUESTION_CHARS} characters", param_hint="--question")
    work = DocumentWork("synthesize")
    ask = Ask(question.strip(), language=lang, document_ids=tuple(dict.fromkeys(ids)), work=work)
    show_work(ask, work, conf=conf, user=user, is_json=is_json)
