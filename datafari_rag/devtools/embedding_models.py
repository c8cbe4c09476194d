"""
Small embedding models that Maven Central has, in the artifacts of langchain4j, and how one becomes a folder.

Each artifact holds a quantised ONNX model and its tokenizer; what it does not say (pooling, prefixes, languages, the
licence of the weights) is in the table here, taken from the models' own cards, and written beside the files. Both files
are compared with the SHA-256 of the table.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from datafari_rag.adapters.vectors.model_folder import DESCRIPTION_FILE, MODEL_FILES, TOKENIZER_FILE, Pooling
from datafari_rag.devtools.maven_artifact import CannotFetch, Say, fetched
from datafari_rag.devtools.solr_jars import cache_folder

GROUP = "dev.langchain4j"
BGE_QUERY = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model: the *artifact* and its *version*, the *stem* of its files there, and the facts of its card."""

    title: str
    artifact: str
    version: str
    stem: str
    digests: tuple[str, str]
    """SHA-256 of the model and of the tokenizer."""
    card: str
    licence: str
    dimensions: int
    pooling: Pooling
    languages: tuple[str, ...]
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int = 512
    megabytes: int = 25

    @property
    def coordinates(self) -> str:
        """The artifact as Maven names it."""
        return f"{GROUP}:langchain4j-embeddings-{self.artifact}:{self.version}"

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
            "sha256": {MODEL_FILES[0]: self.digests[0], TOKENIZER_FILE: self.digests[1]},
        }


def default_folder(name: str) -> Path:
    """Return where the model *name* is kept unless another folder is named."""
    return cache_folder() / "models" / name


def got(name: str, folder: Path, say: Say) -> Path:
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
            say(f"Fetching {model.title} from Maven Central ({model.megabytes} MB, once)…")
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as draft:
                _unpacked(model, fetched(model.coordinates, Path(draft), say), Path(draft) / "model")
                shutil.rmtree(folder, ignore_errors=True)
                (Path(draft) / "model").rename(folder)
    return folder


def is_there(model: KnownModel, folder: Path) -> bool:
    """Say whether *folder* holds *model*, every file of it as it should be."""
    try:
        described = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        files = tuple(_digest((folder / name).read_bytes()) for name in (MODEL_FILES[0], TOKENIZER_FILE))
    except (OSError, ValueError):
        return False
    return bool(described == model.described()) and files == model.digests


def _unpacked(model: KnownModel, jar: Path, into: Path) -> None:
    into.mkdir()
    names = {f"{model.stem}.onnx": MODEL_FILES[0], f"{model.stem}-tokenizer.json": TOKENIZER_FILE}
    try:
        with zipfile.ZipFile(jar) as archive:
            for (inside, name), digest in zip(names.items(), model.digests, strict=True):
                content = archive.read(inside)
                if _digest(content) != digest:
                    raise CannotFetch(f"{inside} of {model.coordinates} is not the expected file: its SHA-256 differs.")
                (into / name).write_bytes(content)
    except (zipfile.BadZipFile, KeyError) as error:
        raise CannotFetch(f"{model.coordinates} does not hold the expected files.") from error
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
        query_prefix=BGE_QUERY,
        megabytes=25,
    ),
    "e5-small": KnownModel(
        title="e5-small-v2, quantised",
        artifact="e5-small-v2-q",
        version="1.11.0-beta19",
        stem="e5-small-v2-q",
        digests=(
            "7d9092cb25f2bd1c023b7e8d2aa459044a02030ac880e5a59fdaf27af69f1ded",
            "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        ),
        card="https://huggingface.co/intfloat/e5-small-v2",
        licence="MIT",
        dimensions=384,
        pooling="mean",
        languages=("en",),
        query_prefix="query: ",
        passage_prefix="passage: ",
        megabytes=25,
    ),
    "minilm": KnownModel(
        title="all-MiniLM-L6-v2, quantised",
        artifact="all-minilm-l6-v2-q",
        version="1.20.0-beta30",
        stem="all-minilm-l6-v2-q",
        digests=(
            "afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1",
            "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
        ),
        card="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        licence="Apache-2.0",
        dimensions=384,
        pooling="mean",
        languages=("en",),
        max_tokens=256,
        megabytes=16,
    ),
    "bge-small-zh": KnownModel(
        title="bge-small-zh-v1.5, quantised",
        artifact="bge-small-zh-v15-q",
        version="1.11.0-beta19",
        stem="bge-small-zh-v1.5-q",
        digests=(
            "15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc",
            "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26",
        ),
        card="https://huggingface.co/BAAI/bge-small-zh-v1.5",
        licence="MIT",
        dimensions=512,
        pooling="cls",
        languages=("zh",),
        query_prefix="为这个句子生成表示以用于检索相关文章：",
        megabytes=17,
    ),
}
"""Name on the command line → model."""
