"""What work on whole documents prints: its words as they arrive, then their sources; progress to stderr."""

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
from datafari_rag.commands.terminal.progress import counted
from datafari_rag.core.ask import Ask, DocumentWork
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer, Delta, Event, Failed, Finished, Progress, Sources, WorkEvent
from datafari_rag.core.identity import VerifiedIdentity
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
                click.echo(f"{event.step} {event.done}/{event.total}", err=True)
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
        click.echo(
            f"{counted(cost.chars, 'character')} in {counted(cost.pieces, 'piece')}, at most"
            f" {counted(cost.calls, 'call')} of the model ({cost.strategy})",
            err=True,
        )
