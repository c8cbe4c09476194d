"""`datafari-rag passages`: keeps passages in Solr true to their documents. Results to stdout, all else to stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from datafari_rag.adapters.settings.snapshot import StartRefused
from datafari_rag.adapters.solr.factory import passage_store_for
from datafari_rag.adapters.vectors.factory import embedder_for
from datafari_rag.commands.index import CLEARED, printable, settings_for
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.table import Settings
from datafari_rag.ingest.passage_sync import PassageSync, SyncListener, SyncOutcome

if TYPE_CHECKING:
    # The only place where click gives the type of its bar a name.
    from click._termui_impl import ProgressBar


@click.group()
def passages() -> None:
    """Keep passages with vectors beside the documents of a Solr, for search by meaning."""


@passages.command(
    epilog="""\b
Examples:
  datafari-rag passages sync --conf conf/rag.properties
  datafari-rag passages sync --conf conf/rag.properties --follow 60
\b
Exit codes: 0 all taken; 1 something could not be taken, or Solr or the model refused; 2 wrong usage.
"""
)
@click.option("--conf", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The properties file.")
@click.option(
    "--follow",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Go on: look for changes again so many seconds after each run, until it is stopped.",
)
@click.pass_context
def sync(context: click.Context, conf: Path, follow: float | None) -> None:
    """Bring the passages in solr.vector.collection to what the documents of solr.url hold now.

    Takes what is new or changed, rights included, and removes what is gone. It can be stopped at any moment, and
    several can run at once: the next run finds what is not as it should be. Vectors of unchanged passages are kept.
    """
    try:
        settings = settings_for(conf)
        outcome = _told(settings)
        while follow is not None:
            time.sleep(follow)
            outcome = _synced_again(settings)
    except StartRefused as error:
        raise click.ClickException("\n".join(error.lines)) from error
    except RagError as error:
        raise click.ClickException(f"{error.reason} ({error.log})" if error.log else error.reason) from error
    context.exit(1 if outcome.problems else 0)


def _synced_again(settings: Settings) -> SyncOutcome:
    """Run once more; what cannot be reached now is tried again the next time."""
    try:
        return _told(settings)
    except RagError as error:
        click.echo(printable(f"{error.reason} ({error.log})"), err=True)
        return SyncOutcome(problems=1)


def _told(settings: Settings) -> SyncOutcome:
    with _progress() as listener:
        outcome = synced(settings, listener)
    click.echo(
        f"{outcome.taken} documents taken as {outcome.passages} passages, {outcome.removed} removed,"
        f" {outcome.problems} problems"
    )
    return outcome


def synced(settings: Settings, listener: SyncListener) -> SyncOutcome:
    """Bring the passages of *settings* to what its documents are. Raises: RagError, ClickException."""
    embedder = embedder_for(settings)
    if embedder is None:
        raise click.ClickException("embeddings.endpoint is empty: there is no model to make vectors with.")
    if settings.solr_url.startswith(EMBEDDED):
        raise click.ClickException("The embedded index has its own vectors: datafari-rag index writes them.")
    with closing(passage_store_for(settings)) as store:
        return PassageSync(store, embedder, listener).go()


class SyncLines:
    """A listener that tells problems on stderr and nothing else."""

    def started(self, documents: int) -> None:
        """Say nothing."""

    def advanced(self, documents: int, passages: int) -> None:
        """Say nothing."""

    def failed(self, where: str, why: str) -> None:
        """Print one line."""
        click.echo(printable(f"{where}: {why}"), err=True)


class _Bar:
    """A listener that draws how far a run is, how fast, and how long it still takes."""

    def __init__(self) -> None:
        self._bar: ProgressBar[int] | None = None
        self._passages = 0

    @classmethod
    @contextmanager
    def drawn(cls) -> Iterator[Self]:
        """Return one that draws on stderr until the end of the block."""
        try:
            yield cls()
        finally:
            click.echo(CLEARED, nl=False, err=True)

    def started(self, documents: int) -> None:
        """Begin a new bar."""
        self._passages = 0
        self._bar = click.progressbar(
            length=documents,
            label="Passages",
            item_show_func=self._speed,
            show_eta=False,
            width=20,
            file=sys.stderr,
        )
        self._bar.render_progress()

    def advanced(self, documents: int, passages: int) -> None:
        """Move the bar."""
        self._passages += passages
        if self._bar is not None:
            self._bar.update(documents)

    def failed(self, where: str, why: str) -> None:
        """Print one line in the place of the bar, which is drawn again below when it moves."""
        click.echo(CLEARED + printable(f"{where}: {why}"), err=True)

    def _speed(self, _: int | None) -> str:
        if self._bar is None:
            return ""
        elapsed_s = time.time() - self._bar.start
        rate = self._passages / elapsed_s if elapsed_s else 0.0
        return f"{self._passages} passages, {rate:.0f}/s, left {self._bar.format_eta() or '-'}"


def _progress() -> AbstractContextManager[SyncListener]:
    return _Bar.drawn() if sys.stderr.isatty() else _quiet()


@contextmanager
def _quiet() -> Iterator[SyncLines]:
    yield SyncLines()
