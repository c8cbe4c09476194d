"""`datafari-rag passages`: synchronises passages in Solr with their documents. Results to stdout, else stderr."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import click

from datafari_rag.adapters.solr.factory import passage_store_for
from datafari_rag.adapters.vectors.factory import embedder_for
from datafari_rag.commands.index import settings_for
from datafari_rag.commands.terminal import CONF, Command, progress, sentence, typed
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.addresses import EMBEDDED
from datafari_rag.core.settings.table import Settings
from datafari_rag.ingest.passage_sync import PassageSync, SyncOutcome
from datafari_rag.ingest.run import RunListener


@click.group()
def passages() -> None:
    """Synchronise passages in Solr with its documents: answers read these, not whole documents."""


@passages.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag passages sync --conf conf/rag.properties
  datafari-rag passages sync --conf conf/rag.properties --follow 60
\b
Exit codes: 0 everything was synchronised; 1 something failed, or Solr or the model refused; 2 wrong usage.
""",
)
@CONF
@click.option(
    "--follow",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Keep running: look for changes again this many seconds after each run.",
)
@click.pass_context
def sync(context: click.Context, conf: Path, follow: float | None) -> None:
    """Update the passages in solr.vector.collection from the documents of solr.url.

    They have vectors where embeddings.endpoint is set; without them, answers by words read passages all the same.
    Adds the passages of new and changed documents, rights included, and removes those of deleted documents. You can
    stop it at any time, and several runs can work in parallel: the next run completes what is missing. Vectors of
    unchanged passages are kept.
    """
    settings = settings_for(conf)
    if settings.solr.url.startswith(EMBEDDED):
        way = "The embedded index has its own passages: `datafari-rag index PATH` writes them."
        raise click.ClickException(typed(way, conf))
    outcome = _run(settings)
    while follow is not None:
        time.sleep(follow)
        try:
            outcome = _run(settings)
        except RagError as error:
            # The next run tries again.
            click.echo(sentence(error), err=True)
            outcome = SyncOutcome(problems=1)
    context.exit(1 if outcome.problems else 0)


def _run(settings: Settings) -> SyncOutcome:
    with progress("Passages", "passages") as listener:
        outcome = synced(settings, listener)
    click.echo(
        f"{outcome.documents} documents written as {outcome.passages} passages, {outcome.removed} removed,"
        f" {outcome.problems} problems"
    )
    return outcome


def synced(settings: Settings, listener: RunListener) -> SyncOutcome:
    """Update the passages of *settings* from its documents. Raises: RagError."""
    with closing(passage_store_for(settings)) as store:
        return PassageSync(store, embedder_for(settings), listener).go()
