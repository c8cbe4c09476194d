"""`datafari-rag index` and `forget`: documents into the configured search engine, and out. Results to stdout."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from datafari_rag.adapters.settings.file import snapshot_of
from datafari_rag.commands.terminal import CONF, Command, counted, printable, progress, typed
from datafari_rag.core.settings.table import Settings
from datafari_rag.engine_writer import writer_for
from datafari_rag.ingest.documents import MAX_ID_CHARS, Rights
from datafari_rag.ingest.embedding import EmbeddingWriter
from datafari_rag.ingest.run import IndexOrder, IndexRun, RunListener, RunOutcome, in_words
from datafari_rag.ingest.sandbox import Sandbox, SandboxLimits
from datafari_rag.ingest.stamps import Held

OTHER_MODEL = "Warning: {} documents of other PATHs have vectors of another embedding model: index them again as well."
MAX_NOTES = 20
"""Most files that are named behind the summary without -v."""

MAX_KINDS = 12
"""Most kinds of files that the summary names one by one."""

MIN_MEMORY_MB = 300
"""What the parsers need for a small file, with some to spare."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag index ~/Documents
  datafari-rag index handbook.jsonl --conf conf/rag.properties
  datafari-rag index /srv/personnel --allow group:hr --allow group:management
  datafari-rag index /srv/wiki --again
  datafari-rag index /srv/exports --trust-jsonl
\b
Exit codes: 0 everything was indexed; 1 something could not be indexed, or the search engine refused; 2 wrong usage.
""",
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option(
    "--allow", multiple=True, metavar="TOKEN", help="Access token of users who may see the files; repeatable."
)
@click.option(
    "--deny",
    multiple=True,
    metavar="TOKEN",
    help="Access token of users who may not see them, even if allowed; repeatable.",
)
@CONF
@click.option("--again", is_flag=True, help="Also write unchanged files, for example after the index was emptied.")
@click.option(
    "--trust-jsonl",
    is_flag=True,
    help="Let .jsonl files found in a folder grant wider rights than --allow and --deny, as a .jsonl file "
    "named as PATH can.",
)
@click.option(
    "--file-seconds",
    type=click.FloatRange(1),
    default=SandboxLimits().seconds,
    show_default=True,
    help="Maximum time for reading one file.",
)
@click.option(
    "--file-memory",
    type=click.IntRange(MIN_MEMORY_MB),
    default=SandboxLimits().memory_mb,
    show_default=True,
    metavar="MB",
    help="Maximum memory for reading one file.",
)
@click.option("-v", "--verbose", is_flag=True, help="Name all files that were not taken as a whole, not only 20.")
@click.pass_context
def index(context: click.Context, /, paths: tuple[Path, ...], **options: Any) -> None:
    """Index files and folders.

    Text, Markdown, HTML, PDF, office files (Word, PowerPoint, Excel, OpenDocument, RTF), mails with attachments, CSV,
    EPUB and ZIP files, and .jsonl files with one document per line (docs/indexing.md has the list). Only changes since
    the last run are written, and only documents that an earlier run indexed from the same PATH are removed. The
    command returns when the documents can be found.

    Without --allow, everyone may see the files, including anonymous users. If a .jsonl file is named as PATH, its
    documents keep their own allow_token_document and deny_token_document. If it was found in a folder, these only
    narrow --allow and --deny further, unless --trust-jsonl is given.

    Links are not followed. Time and memory for each file are limited; files that exceed the limits are reported.
    """
    for path in paths:
        if not path.exists():
            way = f"`datafari-rag forget {shlex.quote(str(path))}` takes what the index has of it out."
            raise click.UsageError(typed(f"There is no file or folder {path}. {way}", options["conf"]))
    allow, deny = options["allow"], options["deny"]
    if any(not token or len(token) > MAX_ID_CHARS for token in (*allow, *deny)):
        raise click.UsageError(f"A token has 1 to {MAX_ID_CHARS} characters.")
    if deny and not allow:
        click.echo("Warning: with --deny and no --allow no user can see the files (ManifoldCF's rule).", err=True)
    rights = Rights(allow, deny)
    settings = settings_for(options["conf"])
    with progress("Indexing", "documents") as listener:
        limits = SandboxLimits(options["file_seconds"], options["file_memory"])
        how = IndexOptions(options["again"], options["trust_jsonl"], limits)
        outcome = indexed(paths, settings=settings, rights=rights, listener=listener, how=how)
    click.echo(summary_of(outcome))
    # By what became of them, each kind in the order of the run.
    notes = sorted(outcome.notes, key=lambda note: note[1].partition(":")[0])
    for where, what in notes if options["verbose"] else notes[:MAX_NOTES]:
        click.echo(printable(f"{where}: {what}"))
    if len(notes) > MAX_NOTES and not options["verbose"]:
        click.echo(f"… and {len(notes) - MAX_NOTES:,} more: -v names all.")
    context.exit(1 if outcome.problems else 0)


def summary_of(outcome: RunOutcome) -> str:
    """Return what a run did in one line, and in further ones what it left out and passed over, if anything."""
    text = (
        f"{counted(outcome.documents, 'document')} written, {outcome.removed} removed,"
        f" {counted(outcome.unchanged, 'file')} unchanged, {counted(outcome.problems, 'problem')}"
    )
    if outcome.left_out:
        text += f"\nleft out of files that were read: {in_words(outcome.left_out)}"
    if not outcome.passed_over and not outcome.unreadable:
        return text
    text += f"\n{counted(outcome.read, 'file')} read, {outcome.unreadable} not readable"
    if not outcome.passed_over:
        return text
    kinds = [f"{number} {kind}" for kind, number in outcome.passed_over.most_common(MAX_KINDS)]
    kinds += ["others"] if len(outcome.passed_over) > MAX_KINDS else []
    return f"{text}, {outcome.passed_over.total()} passed over: {', '.join(kinds)}"


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """
    How a run goes on.

    *again* writes what did not change as well, *trusts_lines* believes `.jsonl` files found in folders, and *limits*
    are those of one file.
    """

    again: bool = False
    trusts_lines: bool = False
    limits: SandboxLimits = field(default_factory=SandboxLimits)


def indexed(
    paths: Sequence[Path],
    *,
    settings: Settings,
    rights: Rights,
    listener: RunListener,
    how: IndexOptions | None = None,
    reader: Sandbox | None = None,
) -> RunOutcome:
    """
    Bring the search engine of *settings* to what *paths* hold, one after the other; return what was done, summed up.

    Raises:
        RagError: the engine refuses, cannot be reached, is damaged, or another program is writing to it.
    """
    total, how = RunOutcome(), how or IndexOptions()
    with closing(writer_for(settings)) as writer, reader or Sandbox(how.limits) as opened:
        vectors = ""
        if isinstance(writer, EmbeddingWriter):
            vectors, writer.heard = writer.form, listener.within
        for path in paths:
            order = IndexOrder(path.resolve(), rights, how.trusts_lines, vectors=vectors, again=how.again)
            total += IndexRun(order, writer, listener, opened).go()
        if isinstance(writer, EmbeddingWriter) and (others := writer.unembedded()):
            listener.failed("embeddings.endpoint", OTHER_MODEL.format(others))
    return total


def settings_for(conf: Path) -> Settings:
    """
    Return the settings of *conf*.

    Raises:
        StartRefused: the file cannot be read, or one of its `solr.*` or `embeddings.*` settings cannot be used.
    """
    snapshot = snapshot_of(conf, environ=os.environ)
    snapshot.require("solr.", "embeddings.")
    return snapshot.settings


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag forget ~/Documents/old
  datafari-rag forget file:///srv/wiki/page.html --conf conf/rag.properties
\b
Exit codes: 0 done; 1 nothing of one of them is in the index, or the search engine refused; 2 wrong usage.
""",
)
@click.argument("names", nargs=-1, required=True, metavar="PATH|ID...")
@CONF
def forget(names: tuple[str, ...], conf: Path) -> None:
    """Take documents out of the index: those of the file PATH, those below the folder PATH, or the one with ID.

    PATH may be gone. Only what `index` put in is taken out; documents of other programs are left alone. What is still
    below an indexed PATH comes back with its next `index`.
    """
    settings = settings_for(conf)
    removed = {name: forgotten(name, settings) for name in names}
    click.echo(f"{counted(sum(removed.values()), 'document')} removed")
    unknown = [name for name, number in removed.items() if not number]
    if unknown:
        raise click.ClickException(f"The index has nothing that `index` took from {', '.join(unknown)}.")


def forgotten(name: str, settings: Settings) -> int:
    """Remove what is at or below the path *name*, or has it as id; return how many documents that were."""
    with closing(writer_for(settings, has_vectors=False)) as writer:
        held = Held(writer.stamps())
        ids = set[str]().union(*held.below(Path(name).resolve()).values()) or held.named(name)
        if ids:
            writer.delete([*ids])
            writer.commit()
    return len(ids)
