"""PDF files with the pages that a citation opens: columns, a table, turned, scanned, locked, broken."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image, ImageChops
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Text

from datafari_rag.core.documents import FILE_FIELD, PLACES_FIELD, Document
from tests.ingest.house import House
from tests.ingest.parsers.written import pdf_of, ruled, words

LEFT = ("The pump of the north hall is", "inspected every second Mon-", "day by the people of Lyon.")
RIGHT = ("The valve of the south hall is", "inspected each Friday by the", "people of Grenoble.")
PUMP = "The pump of the north hall is inspected every second Monday by the people of Lyon."
VALVE = "The valve of the south hall is inspected each Friday by the people of Grenoble."
COMMENT = "The mayor asks whether this is still true."
RATES = [("Hall", "Inspector", "Minutes"), ("North hall", "Ada Lovelace", "45"), ("South hall", "Grace Hopper", "30")]


def column(lines: tuple[str, ...], x: int) -> str:
    return "".join(words(line, x, 400 - 14 * number) for number, line in enumerate(lines))


def two_columns(path: Path) -> None:
    pdf_of(path, words("Welcome to the halls of the company", 50, 420), column(LEFT, 40) + column(RIGHT, 280), "0 g")


def table(path: Path) -> None:
    pdf_of(path, words("Rates of the halls", 50, 450, 20) + ruled(RATES) + words(PUMP, 50, 300) + words(VALVE, 50, 284))


def rotated(path: Path) -> None:
    pdf_of(path, column(LEFT, 40))
    writer = PdfWriter(PdfReader(path))
    writer.pages[0].rotate(90)
    writer.write(path)


def scanned(path: Path) -> None:
    """A picture with the text of an OCR program behind it, which is not drawn."""
    content = f"q 400 0 0 100 40 350 cm /I Do Q 3 Tr {column(LEFT, 40)}"
    pdf_of(path, content, picture=b"\xc0" * 40_000)


def commented(path: Path) -> None:
    """A remark of a reader on the second page, which is kept as text and stands nowhere in its letters."""
    two_columns(path)
    writer = PdfWriter(PdfReader(path))
    writer.add_annotation(1, Text(rect=(400, 100, 420, 120), text=COMMENT))
    writer.write(path)


def locked(path: Path) -> None:
    two_columns(path)
    writer = PdfWriter(PdfReader(path))
    writer.encrypt("x", algorithm="RC4-128")
    writer.write(path)


def document_in(house: House, name: str) -> Document:
    """Return the document of the file *name* as an engine gives it to a reader who may see it."""
    stored = house.writer.found[(house.root / name).as_uri()]
    text, places, file = (stored.get(key) for key in ("exactContent", PLACES_FIELD, FILE_FIELD))
    return Document(
        str(stored["id"]), str(text), places=None if places is None else str(places), file=str(file) if file else None
    )


def yellow(png: bytes) -> tuple[int, int, int, int, int] | None:
    """Return left, top, right and bottom of what is marked in a picture, as per cent of its sides, and its width."""
    picture = Image.open(BytesIO(png)).convert("RGB")
    wide, high = picture.size
    red, _, blue = picture.split()
    marks = ImageChops.subtract(red, blue).point(lambda difference: 255 * (difference > 100))
    box = marks.getbbox()
    if box is None:
        return None
    return 100 * box[0] // wide, 100 * box[1] // high, 100 * box[2] // wide, 100 * box[3] // high, wide
