"""Words on pictures and scanned pages, where Tesseract and its data are installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from datafari_rag.core.documents import place_at
from datafari_rag.ingest import ocr
from datafari_rag.ingest.parsers.parsed import Unreadable
from datafari_rag.ingest.parsers.registry import is_readable
from tests.ingest.parsers.test_registry import parse
from tests.ingest.parsers.written import pdf_of
from tests.required import missing


@pytest.fixture
def installed() -> None:
    if importlib.util.find_spec("tesserocr") is None or not ocr.is_installed():
        missing("Tesseract", ".ci/setup test")


def picture_of(text: str) -> Image.Image:
    picture = Image.new("L", (400, 100), 255)
    ImageDraw.Draw(picture).text((20, 30), text, fill=0, font=ImageFont.load_default(32))
    return picture


@pytest.mark.usefixtures("installed")
def test_words_of_a_picture_are_read(tmp_path: Path) -> None:
    picture_of("Gateway Asia").save(tmp_path / "a.png")
    assert parse(tmp_path / "a.png").text == "Gateway Asia"
    assert is_readable("a.png")


@pytest.mark.usefixtures("installed")
def test_a_scanned_page_is_read_and_has_its_number(tmp_path: Path) -> None:
    drawn = "q 400 0 0 100 50 300 cm /I Do Q"
    path = pdf_of(tmp_path / "a.pdf", "", drawn, picture=picture_of("Gateway Asia").tobytes())
    found = parse(path)
    place = place_at(found.places, found.text, found.text.index("Gateway Asia"))
    assert place is not None and place.label() == "p. 2"


@pytest.mark.usefixtures("installed")
def test_each_page_of_a_tiff_is_read(tmp_path: Path) -> None:
    first, second = picture_of("First page"), picture_of("Second page")
    first.save(tmp_path / "a.tiff", save_all=True, append_images=[second])
    found = parse(tmp_path / "a.tiff")
    place = place_at(found.places, found.text, found.text.index("Second"))
    assert "First page" in found.text and place is not None and place.number == 2


def test_without_ocr_a_picture_in_a_folder_is_passed_over_and_one_that_is_named_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "DATA_FOLDERS", (str(tmp_path / "nothing"),))
    ocr.is_installed.cache_clear()
    ocr.data_folder.cache_clear()
    try:
        picture_of("words").save(tmp_path / "a.png")
        assert not is_readable("a.png")
        with pytest.raises(Unreadable, match="tesseract-ocr"):
            parse(tmp_path / "a.png")
        with pytest.raises(Unreadable, match=r"only pictures[.] With OCR it can be read"):
            parse(pdf_of(tmp_path / "a.pdf", ""))
    finally:
        ocr.is_installed.cache_clear()
        ocr.data_folder.cache_clear()
