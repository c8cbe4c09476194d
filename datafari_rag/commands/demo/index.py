"""The index of the shipped corpus, made once and left alone while it is current; and which model `--model` means."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from importlib import resources
from pathlib import Path

import click

from datafari_rag.adapters.embedded.schema import META_FILE, versions, write_whole
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.model.endpoint import Endpoint, ModelServer
from datafari_rag.commands.terminal import ProblemListener
from datafari_rag.core.errors import ModelError
from datafari_rag.core.model.servers import advice_for, completed, named_in
from datafari_rag.ingest.embedding import FORM as EMBEDDING_FORM
from datafari_rag.ingest.embedding import EmbeddingWriter
from datafari_rag.ingest.run import IndexOrder, IndexRun
from datafari_rag.ingest.sandbox import Sandbox
from datafari_rag.ports import Embedder

CORPUS = "docs.jsonl.gz"
MARK = "demo-corpus.sha256"


def build_demo_index(directory: Path, embedder: Embedder | None = None) -> None:
    """
    Index the shipped pages, with their rights, in *directory*; return immediately when the index has them.

    With *embedder* they have vectors. A demo index of another version, or of another model, is created again.

    Raises:
        SearchUnavailable: the index there is damaged, or being written to.
        EmbeddingError: the model cannot be used.
    """
    corpus = resources.files("datafari_rag.resources") / "demo" / CORPUS
    form = {} if embedder is None else {"vectors": [EMBEDDING_FORM, embedder.model.key]}
    state = (hashlib.sha256(corpus.read_bytes()).hexdigest(), json.dumps({**versions(), **form}))
    mark = _marked(directory)
    if mark == state and (directory / META_FILE).exists():
        return
    if mark is not None:
        shutil.rmtree(directory)
    with resources.as_file(corpus) as path, closing(EmbeddedWriter(directory)) as writer, Sandbox() as reader:
        into = writer if embedder is None else EmbeddingWriter(writer, embedder)
        IndexRun(IndexOrder(path), into, ProblemListener(), reader).go()
        write_whole(directory / MARK, "\n".join(state))


def _marked(directory: Path) -> tuple[str, str] | None:
    """Return the corpus and the versions that a demo index was made of; None when *directory* holds none."""
    try:
        corpus, _, made_by = (directory / MARK).read_text(encoding="utf-8").partition("\n")
    except OSError:
        return None
    return corpus, made_by


def settings_of_model(address: str) -> dict[str, str | int | None]:
    """
    Return the settings for the model at *address*: URL, or URL#NAME for one of several; and print which it is.

    Raises:
        ClickException: no server is there, or it lists no model of this name.
    """
    url, _, model = address.partition("#")
    try:
        listing = ModelServer(Endpoint(completed(url)))
        names = listing.names()
    except ValueError as error:
        raise click.UsageError("--model: the http or https address of a server is expected.") from error
    except ModelError as error:
        raise click.ClickException(f"--model: {error.reason} {advice_for(error)}.") from error
    if not names:
        raise click.ClickException(f"--model: the server at {url} lists no models at /v1/models.")
    name = named_in(names, model) if model else names[0]
    if name is None:
        raise click.ClickException(f"--model: no {model} at {url}; it has {_several(names)}.")
    others = "" if model or len(names) == 1 else f", the first of {_several(names)}; {url}#NAME chooses another"
    click.echo(f"The model is {name}{others}. Passages of the documents are sent to {url}.", err=True)
    window = listing.window(name)
    return {
        "rag.api.endpoint": url,
        "rag.model": name,
        "rag.template": "openai",
        **({} if window is None else {"llm.context.window": window}),
    }


def _several(names: tuple[str, ...]) -> str:
    text = ", ".join(name[:80] for name in names[:5])
    return text if len(names) <= 5 else f"{text} and {len(names) - 5} more"
