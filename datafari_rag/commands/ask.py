"""`datafari-rag ask`: one answer in the terminal, as it is written. The answer to stdout, all else to stderr."""

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

from datafari_rag.adapters.settings.file import SettingsFile
from datafari_rag.bootstrap import Runtime
from datafari_rag.commands.terminal import CONF, Command, DocumentId, counted
from datafari_rag.core.access import User
from datafari_rag.core.ask import (
    ANSWER_FORMATS,
    EFFORTS,
    MAX_QUESTION_CHARS,
    Activity,
    AnswerFormat,
    Ask,
    DocumentWork,
    Effort,
)
from datafari_rag.core.errors import NoQuery, QueryTooLong
from datafari_rag.core.events import Answer, Delta, Event, Failed, Finished, Progress, Sources, Waiting, WorkEvent
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.text.cleaning import clean
from datafari_rag.core.whole import SENTENCES
from datafari_rag.pipeline import answer, collect
from datafari_rag.protocols import ragapi
from datafari_rag.protocols.ai import ACTIONS
from datafari_rag.protocols.request import ReplyContext
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import Signer, user_for
from datafari_rag.whole_documents import worked

NEEDED = ("solr.", "security.", "rag.", "answer.", "llm.", "openai.")


@click.command(cls=Command)
@click.argument("question")
@CONF
@click.option(
    "--user", help="Ask as this user, with the access tokens from the configured source. [default: anonymous]"
)
@click.option("--format", "answer_format", type=click.Choice(ANSWER_FORMATS), help="Format of the answer.")
@click.option("--lang", help="Language of the answer, like en or fr. [default: the question's]")
@click.option("--effort", type=click.Choice(EFFORTS), help="In how many steps to search. [default: rag.effort]")
@click.option("--trace", is_flag=True, help="Show how the answer was made.")
@click.option("--json", "is_json", is_flag=True, help="Print the complete RagAPI envelope instead.")
def ask(
    question: str,
    conf: Path,
    user: str | None,
    answer_format: AnswerFormat | None,
    lang: str | None,
    effort: Effort | None,
    trace: bool,
    is_json: bool,
) -> None:
    """
    Answer QUESTION once, streamed.

    \b
    Examples:
      datafari-rag ask "How do I open a file in Python?" --conf conf/rag.properties
      datafari-rag ask "…" --conf conf/rag.properties --user alice --format bulletpoint --trace
      datafari-rag ask "…" --conf conf/rag.properties --effort minimal
      datafari-rag ask "…" --conf conf/rag.properties --json | jq .content.documents
    \b
    Exit codes: 0 answered; 1 not answered, the reason is on stderr; 2 wrong usage.
    """  # noqa: D301 # click reads \b
    service_snapshot = line_for(conf)
    if not question.strip():
        raise NoQuery
    if len(question) > MAX_QUESTION_CHARS:
        raise QueryTooLong
    task = Ask(
        question=question,
        answer_format=answer_format,
        language=lang,
        is_streamed=not is_json,
        wants_trace=trace,
        effort=effort,
    )
    asking = user_for(VerifiedIdentity(user), service_snapshot)
    answered = _as_json(task, asking, service_snapshot) if is_json else _as_text(task, asking, service_snapshot)
    if answered.finished.activity is not None and not is_json:
        _show_activity(answered.finished.activity)
    if trace and not is_json:
        _show_trace(answered)


def line_for(conf: Path) -> ServiceSnapshot:
    """Return the service over the settings of *conf*. Raises: StartRefused."""
    file = SettingsFile(conf)
    file.snapshot().require(*NEEDED)
    return Runtime(file, Signer("")).snapshot()


def _as_json(request: Ask, user: User, service_snapshot: ServiceSnapshot) -> Answer:
    """Print the envelope. Raises: RagError."""
    with closing(
        answer(request, user, settings=service_snapshot.settings, dependencies=service_snapshot.dependencies)
    ) as events:
        whole = collect(events)
    context = ReplyContext(request, service_snapshot.settings, uuid.uuid4().hex, time.time())
    click.echo(json.dumps(ragapi.reply(whole, context), ensure_ascii=False, indent=2))
    return whole


def _as_text(request: Ask, user: User, service_snapshot: ServiceSnapshot) -> Answer:
    """Print the answer as it comes, then its sources. Raises: RagError."""
    sources = Sources(())
    with closing(
        answer(request, user, settings=service_snapshot.settings, dependencies=service_snapshot.dependencies)
    ) as events:
        for event in events:
            match event:
                case Sources():
                    sources = event
                case Waiting():
                    click.echo(f"Waiting for the language model, next try in {event.seconds:.0f} s", err=True)
                case Delta():
                    click.echo(printable(event.text), nl=False)
                    sys.stdout.flush()
                case Failed():
                    click.echo()
                    raise event.error
                case Finished():
                    whole = Answer(sources, event)
    show_sources(whole)
    return whole


def show_sources(whole: Answer) -> None:
    """Print the sources of an answer: its documents, and how far each of its marks is proved."""
    click.echo("\n")
    if whole.finished.finish_reason == "length":
        click.echo("(The model stopped at its token limit: rag.maxTokens.)", err=True)
    for extract in whole.sources.extracts:
        click.echo(f"[{extract.number}] {extract.label}  {_one_line(extract.document.url or extract.document.id)}")
    for citation in whole.finished.citations:
        place = f"at {citation.answer_start}: [{_one_line(citation.label)}] {citation.status}"
        where = f" ({_one_line(citation.place)})" if citation.place else ""
        click.echo(f"    {place}" + (f': "{_one_line(citation.quote)}"{where}' if citation.quote else ""))


def _show_activity(activity: Activity) -> None:
    """Print each step to stderr, with what it found or took, then the sums."""
    click.echo("", err=True)
    for step in activity.steps:
        text = _one_line(step.text or "; ".join(step.queries))
        documents = "" if step.count is None else f" found={step.count}"
        tokens = f" tokens={step.input_tokens}+{step.output_tokens}" if step.model_calls else ""
        failed = "" if step.failure is None else f" failed={step.failure}"
        click.echo(f"  {step.kind}{documents}{tokens}{failed} {step.elapsed_ms:.0f} ms {text}".rstrip(), err=True)
    spent = activity.spent
    sums = f"searches={spent.searches} model calls={spent.model_calls} tokens={spent.tokens}"
    click.echo(f"effort {activity.effort}: {sums} {spent.elapsed_ms:.0f} ms", err=True)


def printable(text: str) -> str:
    """Return *text* without what a terminal would obey, or turn round, in place of showing it."""
    return clean(text.replace("\r", ""), is_full=False)[0]


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _show_trace(whole: Answer) -> None:
    click.echo("", err=True)
    for thought in whole.sources.thoughts:
        text = thought.description
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str)
        click.echo(printable(f"{thought.title}: {text}"), err=True)
        for name, value in (thought.props or {}).items():
            click.echo(f"  {name}: {json.dumps(value, ensure_ascii=False, default=str)}", err=True)
    for stage, took_ms in whole.finished.timings_ms:
        click.echo(f"  {stage}: {took_ms:.1f} ms", err=True)


WHY = {"notFound": "not there for this user", "empty": "without text", "overLimit": "more than synthesis.maxFiles"}


def show_work(ask: Ask, work: DocumentWork, *, conf: Path, user: str | None, is_json: bool) -> None:
    """Do *work* as *user* and print it, with *is_json* as the reply of `POST /rest/v2.0/ai`; exit 1 when it fails."""
    service = line_for(conf)
    asking = user_for(VerifiedIdentity(user), service)
    with closing(worked(ask, work, asking, settings=service.settings, dependencies=service.dependencies)) as events:
        if is_json:
            whole = collect(cast("Generator[Event, None, None]", events))
            context = ReplyContext(ask, service.settings, uuid.uuid4().hex, time.time())
            click.echo(json.dumps(ACTIONS[work.kind].reply(whole, context), ensure_ascii=False, indent=2))
        else:
            _work_as_text(events)


def _work_as_text(events: Generator[WorkEvent, None, None]) -> None:
    sources = Sources(())
    for event in events:
        match event:
            case Sources():
                sources = event
                for skip in event.skipped:
                    click.echo(f"Left out: {printable(' '.join(skip.id.split()))} ({WHY[skip.reason]})", err=True)
                cost = event.estimate
                if cost is not None:
                    size = f"{counted(cost.chars, 'character')} in {counted(cost.pieces, 'piece')}"
                    calls = f"at most {counted(cost.calls, 'call')} of the model ({cost.strategy})"
                    click.echo(f"{size}, {calls if cost.calls else 'no model'}", err=True)
            case Progress():
                click.echo(f"{event.step}: {event.count} of {event.total}", err=True)
            case Delta():
                click.echo(printable(event.text), nl=False)
                sys.stdout.flush()
            case Failed():
                raise event.error
            case Finished():
                if event.text:
                    show_sources(Answer(sources, event))


@click.command(cls=Command)
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
    size = next(name for name in SENTENCES if name == length)
    work = DocumentWork("summarize", size, is_estimate=estimate)
    ask = Ask("", language=lang, document_ids=(document_id,), work=work)
    show_work(ask, work, conf=conf, user=user, is_json=is_json)


@click.command(cls=Command)
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
