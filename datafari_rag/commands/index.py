"""`datafari-rag index`: files and JSONL documents into the configured search engine. Results to stdout, else stderr."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from datafari_rag.adapters.settings.snapshot import StartRefused, snapshot_of
from datafari_rag.bootstrap import writer_for
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.table import Settings
from datafari_rag.ingest.documents import MAX_ID_CHARS, Rights
from datafari_rag.ingest.embedding import EmbeddingWriter
from datafari_rag.ingest.files import key_of
from datafari_rag.ingest.manifest import Manifest, ManifestError
from datafari_rag.ingest.run import IndexOrder, IndexRun, RunListener, RunOutcome
from datafari_rag.ingest.sandbox import Sandbox, SandboxLimits

if TYPE_CHECKING:
    # The only place where click gives the type of its bar a name.
    from click._termui_impl import ProgressBar

MANIFEST = "manifest.sqlite"
OPENED = "Warning: these files were indexed with --allow before; without it everybody may see them now."
OTHER_MODEL = "Warning: {} documents of other PATHs have vectors of another embedding model: index them again, too."
DEFAULT_CONF = Path("conf/rag.properties")
MIN_MEMORY_MB = 300
"""What the parsers need for a small file, with some to spare."""

CLEARED = "\r\033[K\033[?25h"
"""What takes a bar away from a terminal, and gives its cursor back."""


@click.command(
    epilog="""\b
Examples:
  datafari-rag index ~/Documents
  datafari-rag index handbook.jsonl --conf conf/rag.properties
  datafari-rag index /srv/personnel --allow group:hr --allow group:management
  datafari-rag index /srv/wiki --again
  datafari-rag index /srv/exports --trust-jsonl
\b
Exit codes: 0 all taken; 1 something could not be taken, or the search engine refused; 2 wrong usage.
"""
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH...")
@click.option("--allow", multiple=True, metavar="TOKEN", help="Who may see the files: an access token; repeatable.")
@click.option("--deny", multiple=True, metavar="TOKEN", help="Who may not, although allowed; repeatable.")
@click.option(
    "--conf",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The properties file whose solr.url is written to. [default: conf/rag.properties]",
)
@click.option("--again", is_flag=True, help="Write what did not change, too: after the engine was emptied.")
@click.option(
    "--trust-jsonl",
    is_flag=True,
    help="Let .jsonl files found in a folder give wider rights than --allow and --deny, as those named as PATH may.",
)
@click.option(
    "--file-seconds",
    type=click.FloatRange(1),
    default=SandboxLimits().seconds,
    show_default=True,
    help="Longest time for reading one file.",
)
@click.option(
    "--file-memory",
    type=click.IntRange(MIN_MEMORY_MB),
    default=SandboxLimits().memory_mb,
    show_default=True,
    metavar="MB",
    help="Most memory for reading one file.",
)
@click.pass_context
def index(context: click.Context, /, paths: tuple[Path, ...], *, again: bool, **given: Any) -> None:
    """Put files and folders into the search engine.

    Text, Markdown, HTML, PDF, office files (Word, PowerPoint, Excel, OpenDocument, RTF), mails with attachments, CSV,
    EPUB and ZIP files, and .jsonl files with one document a line (docs/indexing.md has the list). Only what changed
    since the last run is written, only what an earlier run took from the same PATH is removed, and the command
    returns when what it wrote can be found.

    Without --allow everybody may see the files, the anonymous too. Documents of a .jsonl file that carry their own
    allow_token_document or deny_token_document keep these instead when the file itself is named as PATH. In a .jsonl
    file found in a folder they narrow --allow and --deny further, unless --trust-jsonl is given.

    Links are not followed, and each file is read within bounds of time and memory; what exceeds them is named.
    """
    rights = _rights(given["allow"], given["deny"])
    try:
        settings = settings_for(given["conf"])
        with _progress() as listener:
            how = IndexOptions(again, given["trust_jsonl"], SandboxLimits(given["file_seconds"], given["file_memory"]))
            outcome = indexed(paths, settings=settings, rights=rights, listener=listener, how=how)
    except StartRefused as error:
        raise click.ClickException("\n".join(error.lines)) from error
    except RagError as error:
        raise click.ClickException(f"{error.reason} ({error.log})" if error.log else error.reason) from error
    except ManifestError as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"{outcome.written} documents written, {outcome.removed} removed, {outcome.unchanged} files unchanged,"
        f" {outcome.problems} problems"
    )
    context.exit(1 if outcome.problems else 0)


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
        RagError: the engine refuses, is gone, damaged, or written to by somebody else.
        ManifestError: the list of what was indexed cannot be kept.
    """
    total, how = RunOutcome(), how or IndexOptions()
    with closing(writer_for(settings)) as writer, Sandbox(how.limits) as reader:
        vectors = writer.form if isinstance(writer, EmbeddingWriter) else ""
        for path in paths:
            root = path.resolve()
            with closing(Manifest(manifest_of(settings.solr_url), key_of(root))) as manifest:
                if manifest.was_restricted(bool(rights.allow)) and not rights.allow:
                    listener.failed(str(path), OPENED)
                if how.again:
                    manifest.forget()
                order = IndexOrder(root, rights, how.trusts_lines, vectors=vectors)
                total += IndexRun(order, writer, manifest, listener, reader).go()
        if isinstance(writer, EmbeddingWriter) and (others := writer.unembedded()):
            listener.failed("embeddings.endpoint", OTHER_MODEL.format(others))
    return total


def settings_for(conf: Path | None) -> Settings:
    """
    Return the settings of *conf*, of `conf/rag.properties` when it is None and that exists, else the defaults.

    Raises:
        StartRefused: the file cannot be read, or one of its `solr.*` or `embeddings.*` settings cannot be used.
    """
    path = DEFAULT_CONF if conf is None and DEFAULT_CONF.exists() else conf
    snapshot = snapshot_of(path, environ=os.environ)
    snapshot.require("solr.", "embeddings.")
    return snapshot.settings


def manifest_of(solr_url: str) -> Path:
    """
    Return the file of what was put into the engine *solr_url*.

    It stands in an embedded index's own folder, so that the two are removed together; for Solr in the user's folder
    for program state (XDG).
    """
    if solr_url.startswith(EMBEDDED):
        return Path(solr_url.removeprefix(EMBEDDED)) / MANIFEST
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "datafari-rag" / f"{hashlib.sha256(solr_url.encode()).hexdigest()[:16]}.sqlite"


class ProblemListener:
    """A listener that tells problems on stderr and nothing else."""

    def started(self, total_bytes: int) -> None:
        """Say nothing."""

    def reading(self, path: str) -> None:
        """Say nothing."""

    def advanced(self, size_bytes: int, documents: int) -> None:
        """Say nothing."""

    def failed(self, where: str, why: str) -> None:
        """Print one line."""
        click.echo(printable(f"{where}: {why}"), err=True)


class ProgressListener:
    """A listener that draws how far a run is, how fast, and how long it still takes."""

    def __init__(self) -> None:
        """Draw nothing yet."""
        self._bar: ProgressBar[int] | None = None
        self._documents = 0

    @classmethod
    @contextmanager
    def drawn(cls) -> Iterator[Self]:
        """Return one that draws on stderr until the end of the block."""
        try:
            yield cls()
        finally:
            click.echo(CLEARED, nl=False, err=True)

    def started(self, total_bytes: int) -> None:
        """Begin a new bar."""
        self._documents = 0
        self._bar = click.progressbar(
            length=total_bytes,
            label="Indexing",
            item_show_func=self._speed,
            show_eta=False,
            width=20,
            file=sys.stderr,
        )
        self._bar.render_progress()

    def reading(self, path: str) -> None:
        """Say nothing."""

    def advanced(self, size_bytes: int, documents: int) -> None:
        """Move the bar."""
        if self._bar is None:
            return
        self._documents += documents
        self._bar.update(size_bytes)

    def failed(self, where: str, why: str) -> None:
        """Print one line in the place of the bar, which is drawn again below when it moves."""
        click.echo(CLEARED + printable(f"{where}: {why}"), err=True)

    def _speed(self, _: int | None) -> str:
        if self._bar is None:
            return ""
        elapsed_s = time.time() - self._bar.start
        rate = self._documents / elapsed_s if elapsed_s else 0.0
        return f"{self._documents} documents, {rate:.0f}/s, left {self._bar.format_eta() or '-'}"


def printable(text: str) -> str:
    """
    Return *text* with every character spelled out that is not to be seen.

    Names of files may hold line ends, commands to the terminal, and marks that turn the direction of writing.
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _progress() -> AbstractContextManager[RunListener]:
    return ProgressListener.drawn() if sys.stderr.isatty() else _quiet()


@contextmanager
def _quiet() -> Iterator[ProblemListener]:
    yield ProblemListener()


def _rights(allow: tuple[str, ...], deny: tuple[str, ...]) -> Rights:
    if any(not token or len(token) > MAX_ID_CHARS for token in (*allow, *deny)):
        raise click.UsageError(f"A token has 1 to {MAX_ID_CHARS} characters.")
    if deny and not allow:
        click.echo("Warning: with --deny and no --allow no user can see the files (ManifoldCF's rule).", err=True)
    return Rights(allow, deny)
