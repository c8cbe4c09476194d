"""`datafari-rag ask`: one answer in the terminal, as it is written. The answer to stdout, all else to stderr."""

from __future__ import annotations

import json
import sys
import time
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from datafari_rag.adapters.settings.file import SettingsFile
from datafari_rag.adapters.settings.snapshot import StartRefused
from datafari_rag.answer_streams import collect
from datafari_rag.bootstrap import Runtime
from datafari_rag.commands.terminal import CONF
from datafari_rag.core.access import User
from datafari_rag.core.ask import ANSWER_FORMATS, MAX_QUESTION_CHARS, Ask
from datafari_rag.core.effort import EFFORTS, Activity
from datafari_rag.core.errors import NoQuery, QueryTooLong, RagError
from datafari_rag.core.events import Answer, Delta, Failed, Finished, Sources
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.text.folding import clean
from datafari_rag.pipeline import answer
from datafari_rag.protocols import ragapi
from datafari_rag.protocols.request import ReplyContext
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.signing import Signer
from datafari_rag.web.user import user_for

NEEDED = ("solr.", "security.", "rag.", "answer.", "llm.", "openai.", "token.")


@click.command()
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
    answer_format: str | None,
    lang: str | None,
    effort: str | None,
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
    try:
        service_snapshot = line_for(conf)
        asked = replace(
            _ask(question, answer_format=answer_format, language=lang, is_streamed=not is_json, wants_trace=trace),
            effort=next((known for known in EFFORTS if known == effort), None),
        )
        asking = _user(user, service_snapshot)
        answered = _as_json(asked, asking, service_snapshot) if is_json else _as_text(asked, asking, service_snapshot)
    except StartRefused as refused:
        raise click.ClickException("\n".join(refused.lines)) from refused
    except RagError as error:
        click.echo(f"{error.label}: {error.reason}" + (f" ({error.log})" if error.log else ""), err=True)
        sys.exit(1)
    if answered.finished.activity is not None and not is_json:
        _show_activity(answered.finished.activity)
    if trace and not is_json:
        _show_trace(answered)


def line_for(conf: Path) -> ServiceSnapshot:
    """Return the service over the settings of *conf*. Raises: StartRefused."""
    file = SettingsFile(conf)
    file.snapshot().require(*NEEDED)
    return Runtime(file, Signer("")).snapshot()


def _ask(
    question: str, *, answer_format: str | None, language: str | None, is_streamed: bool, wants_trace: bool
) -> Ask:
    if not question.strip():
        raise NoQuery
    if len(question) > MAX_QUESTION_CHARS:
        raise QueryTooLong
    return Ask(
        question=question,
        answer_format=next((known for known in ANSWER_FORMATS if known == answer_format), None),
        language=language,
        is_streamed=is_streamed,
        wants_trace=wants_trace,
    )


def _user(name: str | None, service_snapshot: ServiceSnapshot) -> User:
    return user_for(VerifiedIdentity(name), service_snapshot)


def _as_json(asked: Ask, user: User, service_snapshot: ServiceSnapshot) -> Answer:
    """Print the envelope. Raises: RagError."""
    with closing(
        answer(asked, user, settings=service_snapshot.settings, dependencies=service_snapshot.dependencies)
    ) as events:
        whole = collect(events)
    context = ReplyContext(asked, service_snapshot.settings, uuid.uuid4().hex, time.time())
    click.echo(json.dumps(ragapi.reply(whole, context), ensure_ascii=False, indent=2))
    return whole


def _as_text(asked: Ask, user: User, service_snapshot: ServiceSnapshot) -> Answer:
    """Print the answer as it comes, then its sources. Raises: RagError."""
    sources = Sources(())
    with closing(
        answer(asked, user, settings=service_snapshot.settings, dependencies=service_snapshot.dependencies)
    ) as events:
        for event in events:
            match event:
                case Sources():
                    sources = event
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
        found = "" if step.found is None else f" found={step.found}"
        tokens = f" tokens={step.input_tokens}+{step.output_tokens}" if step.model_calls else ""
        failed = "" if step.failure is None else f" failed={step.failure}"
        click.echo(f"  {step.kind}{found}{tokens}{failed} {step.elapsed_ms:.0f} ms {text}".rstrip(), err=True)
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
