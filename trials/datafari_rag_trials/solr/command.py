"""`datafari-rag solr`: a real Solr for trials and tests. Progress goes to stderr, what a script reads to stdout."""

from __future__ import annotations

from pathlib import Path

import click

from datafari_rag.commands.terminal import Command
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.jars import CannotRunSolr

FOLDER = click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("var/solr"),
    show_default=True,
    help="Folder for data, logs and the list of processes.",
)


@click.group()
def solr() -> None:
    """Run a real Solr (or a small SolrCloud) for testing, on the loopback address only."""


@solr.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag solr start
  datafari-rag solr start --dir /tmp/cloud --cloud 2
""",
)
@FOLDER
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the (first) node. [default: the last one, or any free port]"
)
@click.option(
    "--cloud", "nodes", type=click.IntRange(1, 8), help="Start SolrCloud with this many nodes and a ZooKeeper."
)
def start(folder: Path, port: int | None, nodes: int | None) -> None:
    """Start Solr and return when the collection FileShare can be searched.

    The last line printed is the value for solr.url. A JDK (tested with Java 17) and Maven are needed; Solr itself is
    downloaded from Maven Central the first time (85 MB).
    """
    try:
        running = solr_process.started(folder, port=port, nodes=nodes or 0, say=_print)
    except CannotRunSolr as error:
        raise click.ClickException(str(error)) from error
    click.echo(running.url)


@solr.command()
@FOLDER
def stop(folder: Path) -> None:
    """Stop the processes of the folder; its data is kept."""
    ended = solr_process.stopped(folder)
    _print(f"Stopped ({ended} programs)." if ended else "Nothing was running.")


@solr.command()
@FOLDER
@click.pass_context
def status(context: click.Context, folder: Path) -> None:
    """Show the processes of the folder: exit code 0 if all are running, otherwise 1."""
    running = solr_process.status(folder)
    if running is None:
        _print("Not running.")
        context.exit(1)
    for process in running.processes:
        _print(f"{process.role}: process {process.pid}, port {process.port}")
    click.echo(running.url)


def _print(text: str) -> None:
    click.echo(text, err=True)
