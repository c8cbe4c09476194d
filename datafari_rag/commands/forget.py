"""`datafari-rag forget`: takes out of the search engine what `index` put in, and what may be gone from the disk."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from datafari_rag.adapters.settings.snapshot import StartRefused
from datafari_rag.commands.index import held_of, manifest_of, settings_for
from datafari_rag.commands.terminal.conf import CONF
from datafari_rag.commands.terminal.progress import counted
from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.table import Settings
from datafari_rag.engine_writer import writer_for
from datafari_rag.ingest.manifest import Manifest, ManifestError


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
    try:
        settings = settings_for(conf)
        removed = {name: forgotten(name, settings) for name in names}
    except StartRefused as error:
        raise click.ClickException("\n".join(error.lines)) from error
    except RagError as error:
        raise click.ClickException(f"{error.reason} ({error.log})" if error.log else error.reason) from error
    except ManifestError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{counted(sum(removed.values()), 'document')} removed")
    unknown = [name for name, number in removed.items() if not number]
    if unknown:
        raise click.ClickException(f"The index has nothing that `index` took from {', '.join(unknown)}.")


def forgotten(name: str, settings: Settings) -> int:
    """Remove what is at or below the path *name*, or has it as id; return how many documents that were."""
    held = held_of(name, settings)
    for root, files in held.items():
        with (
            closing(Manifest(manifest_of(settings.solr_url), root)) as manifest,
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
    return sum(len(ids) for files in held.values() for ids in files.values())
