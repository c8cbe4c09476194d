"""The pictures of docs/ are read as a reader reads them: no text of theirs is one with its values left out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.required import program

IMAGES = sorted((Path(__file__).parents[1] / "docs" / "images").glob("*.png"))


@pytest.mark.slow
@pytest.mark.parametrize("picture", IMAGES, ids=lambda picture: picture.stem)
def test_a_picture_shows_words_and_no_place_of_a_value(picture: Path) -> None:
    command = [program("tesseract", ".ci/setup test"), str(picture), "-"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout

    assert len(re.findall(r"[a-z]{3,}", text)) > 5 or picture.stem == "right-to-left"
    assert re.findall(r"\{\s*\w+\s*\}", text) == []
