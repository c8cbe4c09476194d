"""CSV and TSV files: each record a row, whatever the separator and the quotation marks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.parsed import Parsed, TextPiece, Unreadable, placed, row_line
from datafari_rag.ingest.parsers.plain_text import decoded

MAX_FIELD_CHARS = 1_000_000
SAMPLE_CHARS = 10_000
SEPARATORS = ",;\t|"


def parse(file: BinaryIO) -> Parsed:
    """Return the rows of *file*, each with its number. Raises: OSError; Unreadable: no text, or no rows."""
    text = decoded(file.read())
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        return placed(_pieces(text))
    except csv.Error as error:
        raise Unreadable(f"This is not a table: a value has more than {MAX_FIELD_CHARS:,} characters.") from error


def _pieces(text: str) -> Iterator[TextPiece]:
    is_neighbour = False
    # csv.Sniffer needs the square of the time for some texts, and guesses letters.
    separator = max(SEPARATORS, key=text[:SAMPLE_CHARS].count)
    for number, cells in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=separator), 1):
        line = row_line(cells)
        if line:
            yield TextPiece(f"{line}\n", None if is_neighbour else Place("row", number))
        elif is_neighbour:
            yield TextPiece("\n")
        is_neighbour = bool(line)
