"""The catalogues: every sentence of the pages has its French, and the binary files are what the texts say."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from babel.messages.pofile import read_po

from datafari_rag.web.pages.messages import script_parts

ROOT = Path(__file__).parents[3]
MEND = "run: python docs/write_catalogues.py"


@pytest.fixture(scope="module")
def writer() -> Any:
    spec = importlib.util.spec_from_file_location("write_catalogues", ROOT / "docs" / "write_catalogues.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_sentence_is_translated(writer: Any) -> None:
    assert {str(path.parent.parent.name): writer.missing(path) for path in writer.sources()} == {"fr": set()}


def test_the_binary_catalogues_are_up_to_date(writer: Any) -> None:
    stale = [path for path in writer.sources() if path.with_suffix(".mo").read_bytes() != writer.compiled(path)]
    assert stale == [], MEND


def test_no_translation_loses_a_place_for_a_value(writer: Any) -> None:
    for path in writer.sources():
        with path.open("rb") as file:
            for message in read_po(file):
                places = [sorted(re.findall(r"{\w+}", str(text))) for text in (message.id, message.string)]
                assert not message.id or places[0] == places[1], message.id


def test_french_has_one_kind_of_apostrophe(writer: Any) -> None:
    for path in writer.sources():
        with path.open("rb") as file:
            texts = [str(message.string) for message in read_po(file) if message.id]
        assert [text for text in texts if re.search(r"[^\W\d_]'[^\W\d_{/]", text)] == []


def test_no_two_parts_of_the_scripts_words_have_the_same_name() -> None:
    """The second one would take the place of the first on every page."""
    names = Counter(name for part in script_parts(str) for name in part)
    assert [name for name, number in names.items() if number > 1] == []
