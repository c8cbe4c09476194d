"""Pictures (PNG, JPEG, TIFF, …): the words on them, page by page, where OCR is installed."""

from __future__ import annotations

import warnings
from typing import BinaryIO

from PIL import Image, ImageSequence, UnidentifiedImageError

from datafari_rag.core.documents import Place
from datafari_rag.ingest import ocr
from datafari_rag.ingest.parsers.blocks import Blocks, taken
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
MAX_PAGES = 500


def parse(file: BinaryIO) -> Parsed:
    """Return the words of *file*. Raises: OSError; Unreadable: broken, too large, or no OCR is installed."""
    try:
        with warnings.catch_warnings(), Image.open(file, formats=FORMATS) as picture:
            warnings.simplefilter("ignore")
            if picture.width * picture.height > ocr.MAX_PIXELS:
                raise Unreadable(f"This picture has more than {ocr.MAX_PIXELS // 1_000_000} million pixels.")
            return taken(lambda blocks: _read(picture, blocks)).parsed()
    except Image.DecompressionBombError as error:
        raise Unreadable(f"This picture has more than {ocr.MAX_PIXELS // 1_000_000} million pixels.") from error
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, LookupError, TypeError) as error:
        raise Unreadable("This picture is broken.") from error


def _read(picture: Image.Image, blocks: Blocks) -> None:
    is_many = getattr(picture, "n_frames", 1) > 1 and picture.format == "TIFF"
    for number, frame in enumerate(ImageSequence.Iterator(picture), 1):
        grey = frame.convert("L")
        text = ocr.read(ocr.Picture(grey.tobytes(), grey.width, grey.height, grey.width))
        if is_many:
            blocks.place(Place("page", number))
        blocks.line(text)
        if not is_many or number == MAX_PAGES:
            return
