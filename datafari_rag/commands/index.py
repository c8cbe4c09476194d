"""`datafari-rag index` and `forget`: documents into the configured search engine, and out. Results to stdout."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from datafari_rag.adapters.settings.file import StartRefused, snapshot_of
from datafari_rag.commands.terminal import CONF, counted, printable, progress
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.table import Settings, SolrSettings
from datafari_rag.engine_writer import writer_for
from datafari_rag.ingest.documents import MAX_ID_CHARS, Rights
from datafari_rag.ingest.embedding import EmbeddingWriter
from datafari_rag.ingest.files import key_of
from datafari_rag.ingest.manifest import Manifest, ManifestError
from datafari_rag.ingest.run import IndexOrder, IndexRun, RunListener, RunOutcome, in_words
from datafari_rag.ingest.sandbox import Sandbox, SandboxLimits

MANIFEST = "manifest.sqlite"
OPENED = "Warning: these files were indexed with --allow before; without it, everyone may see them now."
OTHER_MODEL = "Warning: {} documents of other PATHs have vectors of another embedding model: index them again as well."
MAX_KINDS = 12
"""Most kinds of files that the summary names one by one."""

MIN_MEMORY_MB = 300
"""What the parsers need for a small file, with some to spare."""


@click.command(
    epilog="""\b
Examples:
  datafari-rag index ~/Documents
  datafari-rag index handbook.jsonl --conf conf/rag.properties
  datafari-rag index /srv/personnel --allow group:hr --allow group:management
  datafari-rag index /srv/wiki --again
  datafari-rag index /srv/exports --trust-jsonl
\b
Exit codes: 0 everything was indexed; 1 something could not be indexed, or the search engine refused; 2 wrong usage.
"""
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
@click.option("-v", "--verbose", is_flag=True, help="Name each file that was passed over, or not taken as a whole.")
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
    _require_there(paths, options["conf"])
    allow, deny = options["allow"], options["deny"]
    if any(not token or len(token) > MAX_ID_CHARS for token in (*allow, *deny)):
        raise click.UsageError(f"A token has 1 to {MAX_ID_CHARS} characters.")
    if deny and not allow:
        click.echo("Warning: with --deny and no --allow no user can see the files (ManifoldCF's rule).", err=True)
    rights = Rights(allow, deny)
    with _in_words():
        settings = settings_for(options["conf"])
        with progress("Indexing", "documents") as listener:
            limits = SandboxLimits(options["file_seconds"], options["file_memory"])
            how = IndexOptions(options["again"], options["trust_jsonl"], limits)
            outcome = indexed(paths, settings=settings, rights=rights, listener=listener, how=how)
    click.echo(summary_of(outcome))
    if options["verbose"]:
        for where, what in outcome.notes:
            click.echo(printable(f"{where}: {what}"))
    context.exit(1 if outcome.problems else 0)


@contextmanager
def _in_words() -> Iterator[None]:
    """Turn failures into sentences of the command line."""
    try:
        yield
    except StartRefused as error:
        raise click.ClickException("\n".join(error.lines)) from error
    except RagError as error:
        raise click.ClickException(f"{error.reason} ({error.log})" if error.log else error.reason) from error
    except ManifestError as error:
        raise click.ClickException(str(error)) from error


def summary_of(outcome: RunOutcome) -> str:
    """Return what a run did in one line, and in further ones what it left out and passed over, if anything."""
    text = (
        f"{counted(outcome.documents, 'document')} written, {outcome.removed} removed,"
        f" {counted(outcome.unchanged, 'file')} unchanged, {counted(outcome.problems, 'problem')}"
    )
    if outcome.left_out:
        text += f"\nleft out of files that were read: {in_words(outcome.left_out)} (-v names the files)"
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
    paths: Sequence[Path], *, settings: Settings, rights: Rights, listener: RunListener, how: IndexOptions | None = None
) -> RunOutcome:
    """
    Bring the search engine of *settings* to what *paths* hold, one after the other; return what was done, summed up.

    Raises:
        RagError: the engine refuses, cannot be reached, is damaged, or another program is writing to it.
        ManifestError: the list of what was indexed cannot be kept.
    """
    total, how = RunOutcome(), how or IndexOptions()
    with closing(writer_for(settings)) as writer, Sandbox(how.limits) as reader:
        vectors = ""
        if isinstance(writer, EmbeddingWriter):
            vectors, writer.heard = writer.form, listener.within
        for path in paths:
            root = path.resolve()
            with closing(Manifest(manifest_of(settings.solr.url), key_of(root))) as manifest:
                if manifest.was_restricted(bool(rights.allow)) and not rights.allow:
                    listener.failed(str(path), OPENED)
                if how.again:
                    manifest.forget()
                order = IndexOrder(root, rights, how.trusts_lines, vectors=vectors)
                total += IndexRun(order, writer, manifest, listener, reader).go()
        if isinstance(writer, EmbeddingWriter) and (others := writer.unembedded()):
            listener.failed("embeddings.endpoint", OTHER_MODEL.format(others))
    return total


def _require_there(paths: Sequence[Path], conf: Path) -> None:
    """Refuse PATHs that are not there, and name what the index still has of them. Raises: UsageError."""
    for path in paths:
        if path.exists():
            continue
        try:
            by_root = held_of(str(path), settings_for(conf).solr)
        except (StartRefused, ManifestError):
            by_root = {}
        number = sum(len(ids) for files in by_root.values() for ids in files.values())
        still = f" The index has {counted(number, 'document')} of it: `datafari-rag forget {path}` takes them out."
        raise click.UsageError(f"There is no file or folder {path}.{still if number else ''}")


def held_of(name: str, solr: SolrSettings) -> dict[str, dict[str, list[str]]]:
    """
    Return PATH → file → ids of what earlier runs took that is at or below the path *name*, or has it as its id.

    Raises:
        ManifestError: the list of what was indexed cannot be read.
    """
    file = manifest_of(solr.url)
    if not file.exists():
        return {}
    with closing(Manifest(file, "")) as manifest:
        return manifest.held_of(key_of(Path(name).resolve())) or manifest.held_of(name)


def settings_for(conf: Path) -> Settings:
    """
    Return the settings of *conf*.

    Raises:
        StartRefused: the file cannot be read, or one of its `solr.*` or `embeddings.*` settings cannot be used.
    """
    snapshot = snapshot_of(conf, environ=os.environ)
    snapshot.require("solr.", "embeddings.")
    return snapshot.settings


def manifest_of(solr_url: str) -> Path:
    """
    Return the file of what was put into the engine *solr_url*.

    It is in the folder of an embedded index, so that both are removed together; for Solr in the user's folder
    for program state (XDG).
    """
    if solr_url.startswith(EMBEDDED):
        return Path(solr_url.removeprefix(EMBEDDED)) / MANIFEST
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "datafari-rag" / f"{hashlib.sha256(solr_url.encode()).hexdigest()[:16]}.sqlite"


@click.command(
    epilog="""\b
Examples:
  datafari-rag forget ~/Documents/old
  datafari-rag forget file:///srv/wiki/page.html --conf conf/rag.properties
\b
Exit codes: 0 done; 1 nothing of one of them is in the index, or the search engine refused; 2 wrong usage.
"""
)
@click.argument("names", nargs=-1, required=True, metavar="PATH|ID...")
@CONF
def forget(names: tuple[str, ...], conf: Path) -> None:
    """Take documents out of the index: those of the file PATH, those below the folder PATH, or the one with ID.

    PATH may be gone. Only what `index` put in is taken out; documents of other programs are left alone. What is still
    below an indexed PATH comes back with its next `index`.
    """
    with _in_words():
        settings = settings_for(conf)
        removed = {name: forgotten(name, settings) for name in names}
    click.echo(f"{counted(sum(removed.values()), 'document')} removed")
    unknown = [name for name, number in removed.items() if not number]
    if unknown:
        raise click.ClickException(f"The index has nothing that `index` took from {', '.join(unknown)}.")


def forgotten(name: str, settings: Settings) -> int:
    """Remove what is at or below the path *name*, or has it as id; return how many documents that were."""
    by_root = held_of(name, settings.solr)
    for root, files in by_root.items():
        with (
            closing(Manifest(manifest_of(settings.solr.url), root)) as manifest,
            closing(writer_for(settings)) as writer,
        ):
            for path, ids in files.items():
                manifest.removing(path, ids)
                writer.delete(ids)
                manifest.read(path, "")
            # In the order of `IndexRun`, whose module says why.
            manifest.secure()
            writer.commit()
            manifest.settle()
    return sum(len(ids) for files in by_root.values() for ids in files.values())
