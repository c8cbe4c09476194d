"""`datafari-rag demo`: from nothing to a service over real documents, in one command."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import click

from datafari_rag import server
from datafari_rag.adapters.private_files import made_private
from datafari_rag.commands.terminal import Command, demo_place, program

SLOW = (
    "Files are read at some 7,000 characters a second on two cores, since each passage gets a vector; "
    "the page says how far."
)

TRIES = (
    ("anyone", "", "How+do+I+copy+a+file+in+Python%3F"),
    ("alice, who may read the Python manual", "-H 'X-Remote-User: alice' ", "How+are+Enums+and+Flags+different%3F"),
    ("bob, who may not", "-H 'X-Remote-User: bob' ", "How+are+Enums+and+Flags+different%3F"),
)


@click.command(cls=Command)
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--port", type=click.IntRange(0, 65_535), default=8080, show_default=True, help="Port to listen on.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Number of worker processes.")
@click.option("--meaning", metavar="onnx:FOLDER|URL", help="Search by meaning as well, with this embedding model.")
@click.option("--model", metavar="URL[#NAME]", help="Let this model answer: the first that the server lists, or NAME.")
def demo(folder: Path | None, port: int, workers: int, *, meaning: str | None, model: str | None) -> None:
    """
    Serve the shipped documents, or those of FOLDER, on 127.0.0.1.

    \b
    Examples:
      datafari-rag demo
      datafari-rag demo ~/Documents --port 8090
      datafari-rag demo --meaning onnx:models/bge-small-en-v1.5
      datafari-rag demo --model http://127.0.0.1:11434/v1
    \b
    Files that are added, changed or removed in FOLDER while the demo runs are indexed within seconds.
    --meaning is as embeddings.endpoint; docs/embeddings.md says where to get a model.
    Nothing leaves this machine: the index is a folder, and answers are sentences of the documents themselves. With
    --model the passages that answer a question are sent there; docs/models.md has more, also for servers with a key.
    Everything is kept under $DATAFARI_RAG_HOME (default: ~/.local/share/datafari-rag); delete it to start again.
    """  # noqa: D301 # click reads \b
    server.prepare()
    from datafari_rag.commands.serve import start

    options: dict[str, str | int | None] = {"server.host": "127.0.0.1", "server.port": port, "server.workers": workers}
    if model is not None:
        from datafari_rag.commands.demo.index import settings_of_model

        options |= settings_of_model(model)
    endpoint = _endpoint(meaning)
    if endpoint:
        options["embeddings.endpoint"] = endpoint
    place = demo_place(folder, is_near=bool(endpoint))
    made_private(place)
    # Settings and users are copied once: changes to them are kept.
    for name in ("rag.properties", "users.json"):
        if not (place / name).exists():
            with resources.as_file(resources.files("datafari_rag.resources") / "demo" / name) as source:
                shutil.copyfile(source, place / name)
    if folder is None:
        _index_demo(place / "index", endpoint)
    if folder is not None:
        _keep_endpoint(place / "rag.properties", endpoint)
        options |= _watched(folder, place)
    start(
        place / "rag.properties",
        options,
        on_ready=lambda: _print_addresses(port, place, is_demo=folder is None),
    )


def _keep_endpoint(conf: Path, endpoint: str) -> None:
    """Write the embedding model, "" for none, where the watcher and other commands find it too; say what it costs."""
    from datafari_rag.adapters.embedded.schema import write_whole

    lines = [line for line in conf.read_text("utf-8").splitlines() if not line.startswith("embeddings.endpoint=")]
    if endpoint:
        lines.append("embeddings.endpoint=" + endpoint.replace("\\", "\\\\"))
    write_whole(conf, "\n".join(lines) + "\n")
    if endpoint:
        click.echo(SLOW, err=True)


def _endpoint(meaning: str | None) -> str:
    """Return the setting for the model *meaning*, "" without one. Raises: ClickException: it cannot be used."""
    from datafari_rag.adapters.vectors.factory import embedder_for
    from datafari_rag.core.errors import EmbeddingError
    from datafari_rag.core.settings.addresses import ONNX, model_address
    from datafari_rag.core.settings.table import EmbeddingsSettings, Settings

    if not meaning:
        return ""
    try:
        endpoint = model_address(meaning, str(Path.cwd()))
        embedder_for(Settings(embeddings=EmbeddingsSettings(endpoint=endpoint)))
    except ValueError as error:
        raise click.UsageError(f"--meaning: {ONNX}FOLDER or the address of an embedding model is expected.") from error
    except EmbeddingError as error:
        raise click.ClickException(f"--meaning: {error.reason}") from error
    return endpoint


def _index_demo(index: Path, endpoint: str) -> None:
    from datafari_rag.adapters.vectors.factory import embedder_for
    from datafari_rag.commands.demo.index import build_demo_index
    from datafari_rag.core.errors import EmbeddingError
    from datafari_rag.core.settings.table import EmbeddingsSettings, Settings

    if not index.exists():
        how_long = "a minute or two" if endpoint else "a few seconds"
        click.echo(f"Indexing the demo documents (once, {how_long})…", err=True)
    try:
        build_demo_index(index, embedder_for(Settings(embeddings=EmbeddingsSettings(endpoint=endpoint))))
    except EmbeddingError as error:
        raise click.ClickException(error.reason) from error


def _watched(folder: Path, place: Path) -> dict[str, str | int | None]:
    """
    Start what reads *folder* and takes up its changes; return the settings of a demo over one's own files.

    There are no users but the one at this machine, who may see everything.
    """
    from datafari_rag.adapters.embedded.schema import created
    from datafari_rag.core.errors import SearchUnavailable
    from datafari_rag.core.settings.addresses import PROGRESS

    conf = place / "rag.properties"
    # Pages can be asked for before the first file is read.
    (place / PROGRESS).write_text("{}")
    try:
        created(place / "index")
    except SearchUnavailable:
        # Damaged, or of another version. It holds nothing that FOLDER does not.
        shutil.rmtree(place / "index")
        created(place / "index")
    command = [sys.executable, "-m", "datafari_rag", "demo-watch", str(folder), "--conf", str(conf)]
    subprocess.Popen([*command, "--parent", str(os.getpid())])  # noqa: S603 # our own program
    return {"security.identity": "anonymous"}


def _print_addresses(port: int, place: Path, *, is_demo: bool) -> None:
    """Print what to open, and what to type; *place* has the settings, whatever DATAFARI_RAG_HOME is in that shell."""
    address = f"http://127.0.0.1:{port}"
    click.echo(f"\ndatafari_rag is ready. Open {address}")
    if not is_demo:
        click.echo("Everybody with an account on this machine can ask it at this address, whoever may read the files.")
        click.echo("The files are being read; a line below says when all of them can be found.")
    path = place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place
    click.echo(f"\nOr ask from a terminal: {program()} ask 'QUESTION' --conf {shlex.quote(str(path))}")
    if is_demo:
        click.echo("\nOr over HTTP, as")
        for who, header, question in TRIES:
            click.echo(f"\n# {who}\ncurl -s {header}'{address}/search/select?action=rag&q={question}'")
    click.echo(f"\nAgents (MCP): {address}/mcp")
    click.echo("\nCtrl-C stops it.")
