"""
Draws one page of a PDF for `page_pictures`, in the process of `sandbox_child`, whose limits are the only ones.

The whole file is read once: what is compared with what was indexed is what is drawn. The marks are shapes on the page
itself, so that its rotation and its box are pdfium's to know.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from typing import BinaryIO

from pypdfium2 import PdfDocument, PdfiumError, PdfPage
from pypdfium2 import raw as pdfium

from datafari_rag.ingest.page_words import PageJob, letters_of, places_of
from datafari_rag.ingest.parsers.parsed import Unreadable

MAX_PIXELS = 8_000_000
MARK = (255, 214, 10, 255)


def drawn(file: BinaryIO, job: PageJob) -> dict[str, object]:
    """
    Return the page as PNG in base64, the number of pages, and whether its words were found and marked.

    Raises:
        Unreadable: it is not the file that was indexed, or cannot be drawn.
    """
    content = file.read()
    if hashlib.sha256(content).hexdigest() != job.digest:
        raise Unreadable("The file has changed since it was indexed.")
    try:
        document = PdfDocument(content)
        if document.get_formtype() != pdfium.FORMTYPE_NONE:
            document.init_forms()
        if not 1 <= job.number <= len(document):
            raise Unreadable("There is no such page.")
        page = document.get_page(job.number - 1)
        is_marked = bool(job.cells) and _mark(page, job)
        return {"png": base64.b64encode(_png(page, job.width)).decode(), "pages": len(document), "is_marked": is_marked}
    except (PdfiumError, ValueError) as error:
        raise Unreadable("This PDF cannot be drawn.") from error


def _mark(page: PdfPage, job: PageJob) -> bool:
    text = page.get_textpage()
    letters = [letters_of(chr(pdfium.FPDFText_GetUnicode(text, index))) for index in range(text.count_chars())]
    owners = [index for index, own in enumerate(letters) for _ in own]
    places = places_of(job, "".join(letters))
    for start, end in places:
        first = owners[start]
        for number in range(text.count_rects(first, owners[end - 1] - first + 1)):
            left, bottom, right, top = text.get_rect(number)
            shape = pdfium.FPDFPageObj_CreateNewRect(left - 1, bottom - 1, right - left + 2, top - bottom + 2)
            pdfium.FPDFPageObj_SetFillColor(shape, *MARK)
            # What is below stays as dark as it is.
            pdfium.FPDFPageObj_SetBlendMode(shape, b"Multiply")
            pdfium.FPDFPath_SetDrawMode(shape, pdfium.FPDF_FILLMODE_WINDING, False)
            pdfium.FPDFPage_InsertObject(page, shape)
    return bool(places)


def _png(page: PdfPage, width: int) -> bytes:
    """Return *page* as PNG, *width* pixels wide, narrower where it would have more than `MAX_PIXELS`."""
    wide, high = page.get_size()
    # pdfium's wrapper rounds up.
    scale = min(width / wide, (MAX_PIXELS / (wide * high)) ** 0.5) * (1 - 1e-9)
    picture = page.render(scale=scale, rev_byteorder=True)
    wide, high, stride = picture.width, picture.height, picture.stride
    rows = memoryview(picture.buffer)
    lines = b"".join(b"\0" + rows[at : at + 3 * wide] for at in range(0, high * stride, stride))
    header = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    chunks = (b"IHDR" + header, b"IDAT" + zlib.compress(lines), b"IEND")
    framed = (struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
