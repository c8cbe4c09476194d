"""
Words in a picture, by Tesseract, where it and its data are installed; nothing is guessed where they are not.

It runs within the process that reads the file, and so within its bounds; no file is written.
"""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from datafari_rag.extras import command_for
from datafari_rag.ingest.parsers.parsed import Unreadable

LANGUAGES = ("eng", "fra", "deu", "spa")
"""Languages that are read where their data is installed; if no such data is, all installed languages."""

DATA_FOLDERS = (
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)

MAX_PIXELS = 60_000_000
"""Largest picture that is read: a page of A3 at 450 dpi."""

HINT = f" With OCR it can be read: {command_for('ocr')}, and the package tesseract-ocr."


@dataclass(frozen=True, slots=True)
class Picture:
    """Grey values, a byte each, *stride* of them a line."""

    raw: bytes
    width: int
    height: int
    stride: int


@functools.cache
def is_installed() -> bool:
    """Say whether the library and data for at least one language are there."""
    return importlib.util.find_spec("tesserocr") is not None and data_folder() is not None


def hint() -> str:
    """Return how to have pictures read, "" where they are."""
    return "" if is_installed() else HINT


def read(picture: Picture) -> str:
    """Return the words of *picture*, lines as lines. Raises: Unreadable: no OCR is installed, or it is too large."""
    data = data_folder()
    if not is_installed() or data is None:
        raise Unreadable(f"This is a picture.{HINT}")
    if picture.width * picture.height > MAX_PIXELS:
        raise Unreadable(f"This picture has more than {MAX_PIXELS // 1_000_000} million pixels.")
    import tesserocr

    installed = sorted(file.stem for file in data.glob("*.traineddata"))
    languages = [code for code in LANGUAGES if code in installed] or [code for code in installed if code != "osd"]
    with tesserocr.PyTessBaseAPI(path=str(data), lang="+".join(languages)) as reader:
        reader.SetImageBytes(picture.raw, picture.width, picture.height, 1, picture.stride)
        return str(reader.GetUTF8Text())


@functools.cache
def data_folder() -> Path | None:
    """Return the folder with the data of at least one language, None where there is none."""
    return next((folder for folder in map(Path, DATA_FOLDERS) if any(folder.glob("[!o]*.traineddata"))), None)
