"""Writes one small file of each kind, with the libraries that write them, and the same table in all of them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path
from typing import Protocol

import docx
import odfdo
import pptx
import xlsxwriter
from pptx.util import Inches
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, FloatObject, NameObject

DATA = Path(__file__).parents[2] / "data" / "files"
Rows = Sequence[Sequence[str]]

TABLE: Rows = (("Region", "Gateway"), ("Europe", "eu.vpn.example.org"), ("South Asia", "sg.vpn.example.org"))
ROW = "South Asia | sg.vpn.example.org"


class FileWriter(Protocol):
    """Writes a file of one kind that has *rows* as its table, if it has one."""

    def __call__(self, path: Path, rows: Rows = TABLE) -> None: ...


def docx_of(path: Path, rows: Rows = TABLE) -> None:
    document = docx.Document()
    document.add_heading("Gateways", 1)
    table = document.add_table(len(rows), 2)
    for number, row in enumerate(rows):
        table.cell(number, 0).text, table.cell(number, 1).text = row
    document.save(str(path))


def pptx_of(path: Path, rows: Rows = TABLE) -> None:
    show = pptx.Presentation()
    first = show.slides.add_slide(show.slide_layouts[5])
    first.shapes.title.text = "Welcome"
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Gateways"
    box = slide.shapes.add_group_shape().shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1))
    box.text_frame.text = "In a group"
    table = slide.shapes.add_table(len(rows), 2, Inches(1), Inches(2), Inches(6), Inches(2)).table
    for number, row in enumerate(rows):
        table.cell(number, 0).text, table.cell(number, 1).text = row
    slide.notes_slide.notes_text_frame.text = "Say it slowly."
    show.save(str(path))


def xlsx_of(path: Path, rows: Rows = TABLE) -> None:
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("Q1").write_row(0, 0, ["nothing"])
        sheet = book.add_worksheet("Q3")
        for number, row in enumerate(rows):
            sheet.write_row(11 + number, 1, row)
        sheet.write_row(20, 1, ["Total", 42.0, True])


def ods_of(path: Path, rows: Rows = TABLE) -> None:
    document = odfdo.Document("spreadsheet")
    document.body.clear()
    table = odfdo.Table("Q3")
    for row in rows:
        table.append_row(odfdo.Row())
        table.set_row_values(table.height - 1, list(row))
    document.body.append(table)
    document.save(str(path))


def odt_of(path: Path, rows: Rows = TABLE) -> None:
    document = odfdo.Document("text")
    document.body.clear()
    document.body.append(odfdo.Header(1, "Gateways"))
    document.body.append(odfdo.List(["one", "two"]))
    table = odfdo.Table("t")
    for row in rows:
        table.append_row(odfdo.Row())
        table.set_row_values(table.height - 1, list(row))
    document.body.append(table)
    document.body.append(odfdo.Paragraph("After  the\ttable."))
    document.save(str(path))


def odp_of(path: Path, rows: Rows = TABLE) -> None:
    document = odfdo.Document("presentation")
    document.body.clear()
    for number, words in enumerate(("Welcome", " ".join(rows[2]))):
        page = odfdo.DrawPage(f"page{number}", name=f"Page {number}")
        page.append(odfdo.Frame.text_frame(words, size=("7cm", "5cm"), position=("1cm", "1cm")))
        document.body.append(page)
    document.save(str(path))


def rtf_of(path: Path, rows: Rows = TABLE) -> None:
    written = "".join(
        rf"\trowd\cellx2000\cellx6000\intbl {left}\cell {right}\cell\row" + "\n" for left, right in rows
    )  # fmt: skip
    path.write_text(
        r"{\rtf1\ansi\deff0{\fonttbl{\f0 Arial;}}" + f"\\pard Gateways\\par\n{written}\\pard caf\\'e9\\par}}"
    )


def mail(*attached: tuple[str, bytes], subject: str = "Gateways", rows: Rows = TABLE) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "ada@example.org", "team@example.org"
    message.set_content("".join(" | ".join(row) + "\n" for row in (rows[0], rows[-1])))
    message.add_alternative("<p>the same as a page</p>", subtype="html")
    for name, raw in attached:
        message.add_attachment(raw, maintype="application", subtype="octet-stream", filename=name)
    return message


def eml_of(path: Path, rows: Rows = TABLE) -> None:
    path.write_bytes(mail(("list.csv", b"a,b\n1,2\n"), rows=rows).as_bytes())


def csv_of(path: Path, rows: Rows = TABLE) -> None:
    path.write_text("\n".join(f'"{left}";"{right}"' for left, right in rows))


def zip_of(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, raw in members:
            packed.writestr(name, raw)
    return path


def epub_of(path: Path, rows: Rows = TABLE) -> None:
    cells = "".join(f"<tr><td>{left}</td><td>{right}</td></tr>" for left, right in rows)
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        '<dc:title>The book</dc:title></metadata><manifest><item id="b" href="b%20b.xhtml" media-type='
        '"application/xhtml+xml"/><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    found = '<c xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfile full-path="o/b.opf"/></c>'
    zip_of(
        path,
        ("mimetype", b"application/epub+zip"),
        ("META-INF/container.xml", found.encode()),
        ("o/b.opf", book.encode()),
        ("o/a.xhtml", b"<h1>First</h1>"),
        ("o/b b.xhtml", f"<h1>Gateways</h1><table>{cells}</table>".encode()),
    )


def pdf_of(path: Path, *contents: str, title: str = "", picture: bytes | None = None, unicode_of_x: str = "") -> Path:
    """
    Write a PDF with a page for each of *contents*, in the page's own language; *picture* is grey, 400 x 100.

    *unicode_of_x* is the meaning of the letter x, in UTF-16 as hexadecimal digits.
    """
    writer = PdfWriter()
    font = DictionaryObject({NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1")})
    font[NameObject("/BaseFont")] = NameObject("/Helvetica")
    if unicode_of_x:
        mapping = DecodedStreamObject()
        mapping.set_data(f"begincmap 1 beginbfchar <78> <{unicode_of_x}> endbfchar endcmap".encode())
        font[NameObject("/Encoding")] = NameObject("/WinAnsiEncoding")
        font[NameObject("/ToUnicode")] = writer._add_object(mapping)
    for content in contents:
        page = writer.add_blank_page(500, 500)
        resources = DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})})
        if picture is not None:
            resources[NameObject("/XObject")] = DictionaryObject(
                {NameObject("/I"): writer._add_object(_image(picture))}
            )
        page[NameObject("/Resources")] = resources
        stream = DecodedStreamObject()
        stream.set_data(content.encode("latin-1"))
        page[NameObject("/Contents")] = writer._add_object(stream)
    if title:
        writer.add_metadata({"/Title": title})
    writer.write(path)
    return path


def _image(grey: bytes) -> DecodedStreamObject:
    image = DecodedStreamObject()
    image.set_data(grey)
    for name, value in (("Type", "/XObject"), ("Subtype", "/Image"), ("ColorSpace", "/DeviceGray")):
        image[NameObject(f"/{name}")] = NameObject(value)
    for name, number in (("Width", 400), ("Height", 100), ("BitsPerComponent", 8)):
        image[NameObject(f"/{name}")] = FloatObject(number)
    return image


def words(text: str, x: int, y: int, size: int = 10) -> str:
    """Return *text* at a place of a page."""
    return f"BT /F1 {size} Tf {x} {y} Td ({text}) Tj ET\n"


def ruled(rows: Sequence[Sequence[str]], x: int = 50, top: int = 400, width: int = 150, height: int = 20) -> str:
    """Return a table with rules around each cell; a cell with a line end has two lines."""
    content = ""
    columns = len(rows[0])
    for line in range(len(rows) + 1):
        content += f"{x} {top - line * height} m {x + columns * width} {top - line * height} l S\n"
    for column in range(columns + 1):
        content += f"{x + column * width} {top} m {x + column * width} {top - len(rows) * height} l S\n"
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            for line, text in enumerate(cell.split("\n")):
                content += words(text, x + column * width + 4, top - number * height - 9 - 9 * line, 8)
    return content


def ruled_pdf_of(path: Path, rows: Rows = TABLE) -> None:
    text = words("Gateways", 50, 450, 20) + "".join(words(f"Line {n} of the text.", 50, 300 - 12 * n) for n in range(9))
    pdf_of(path, words("Welcome", 50, 400), text + ruled(rows), title="Guide")


def loop_zip(levels: int) -> bytes:
    """Return a ZIP file in a ZIP file, and so on, *levels* deep, with a text in the innermost."""
    raw, name = b"deep", "deep.txt"
    for _ in range(levels):
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w") as outer:
            outer.writestr(name, raw)
        raw, name = packed.getvalue(), "in.zip"
    return raw


WRITERS: dict[str, FileWriter] = {
    "docx": docx_of,
    "pptx": pptx_of,
    "xlsx": xlsx_of,
    "ods": ods_of,
    "odt": odt_of,
    "odp": odp_of,
    "rtf": rtf_of,
    "eml": eml_of,
    "csv": csv_of,
    "epub": epub_of,
    "pdf": ruled_pdf_of,
}
