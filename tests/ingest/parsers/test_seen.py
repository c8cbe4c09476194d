"""
Of each format a file made by its own library, with a word in each place: what a reader sees is found or said to be left
out, what nobody sees is not.

A word that begins with "seen" is in such a place, one with "blind" in the other kind.
"""

from __future__ import annotations

import datetime
import re
import zipfile
from base64 import b64encode
from collections.abc import Callable
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from io import BytesIO
from pathlib import Path

import docx
import odfdo
import openpyxl
import pptx
import pytest
import xlwt
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from docx.shared import RGBColor
from pptx.util import Inches
from pypdf import PdfWriter
from pypdf.annotations import FreeText
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

from datafari_rag.ingest.parsers import blocks, registry, sheets
from datafari_rag.ingest.parsers.parsed import Parsed
from datafari_rag.ingest.parsers.sheets import shown
from tests.ingest.parsers import written

Written = Callable[[Path], None]


def parse(path: Path, *inside: tuple[int, str]) -> Parsed:
    with path.open("rb") as file:
        return registry.parse(file, path.name, inside)


def word(path: Path) -> None:
    document = docx.Document()
    document.add_heading("seenHeading", 1)
    paragraph = document.add_paragraph("seenBody ")
    hidden = paragraph.add_run("blindVanish ")
    hidden.font.hidden = True
    white = paragraph.add_run("blindWhite ")
    white.font.color.rgb = RGBColor(255, 255, 255)
    style = document.styles.add_style("Secret", WD_STYLE_TYPE.CHARACTER)
    style.font.hidden = True
    paragraph.add_run("blindStyle ", style="Secret")
    document.add_comment(paragraph.runs[:1], text="seenComment", author="Ada")
    document.add_paragraph("seenItem", style="List Bullet")
    document.add_paragraph("seenStep", style="List Number")
    table = document.add_table(2, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "seenColumn", "seenOther"
    table.cell(1, 0).text = "seenCell"
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "seenInner"
    document.sections[0].header.paragraphs[0].text = "seenHeader"
    document.sections[0].footer.paragraphs[0].text = "seenFooter"
    runs = {
        "ins w:id='1'": "seenInserted",
        "moveTo w:id='2'": "seenMoved",
        "fldSimple w:instr='DATE'": "seenField",
        "smartTag": "seenTag",
        "hyperlink": "seenLink",
        "del w:id='3'": "blindDeleted",
        "moveFrom w:id='4'": "blindMoved",
    }
    for start, words in runs.items():
        kind = "delText" if start.startswith("del ") else "t"
        end = start.partition(" ")[0]
        xml = f"<w:p {nsdecls('w')}><w:{start}><w:r><w:{kind}>{words}</w:{kind}></w:r></w:{end}></w:p>"
        paragraph._p.addnext(parse_xml(xml))
        paragraph._p.append(parse_xml(xml)[0])
        cell = table.cell(1, 0).paragraphs[0]._p
        cell.append(parse_xml(xml.replace(words, f"{words}InCell"))[0])
    box = (
        f"<w:r {nsdecls('w')} xmlns:v='urn:schemas-microsoft-com:vml'><w:pict><v:shape><v:textbox><w:txbxContent><w:p>"
        "<w:r><w:t>seenBox</w:t></w:r></w:p></w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
    )
    paragraph._p.append(parse_xml(box))
    for kind, entries in (
        ("ddList", '<w:result w:val="1"/><w:listEntry w:val="blindRed"/><w:listEntry w:val="seenChosen"/>'),
        ("checkBox", "<w:checked/>"),
    ):
        field = f'<w:fldChar w:fldCharType="begin"><w:ffData><w:{kind}>{entries}</w:{kind}></w:ffData></w:fldChar>'
        paragraph._p.append(parse_xml(f"<w:r {nsdecls('w')}>{field}</w:r>"))
    paragraph._p.append(
        parse_xml(f"<w:r {nsdecls('w', 'wp')}><w:drawing><wp:docPr id='1' name='x' descr='seenAlt'/></w:drawing></w:r>")
    )
    control = "<w:sdt {}><w:sdtContent><w:p><w:r><w:t>seenControl</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    document.element.body.insert(0, parse_xml(control.format(nsdecls("w"))))
    document.save(str(path))


PAGE = """<html><head><title>seenTitle</title><style>.blindStyle{}</style></head><body><h1>seenHeading</h1>
<!-- blindComment --><script>blindScript</script><template>blindTemplate</template><p hidden>blindHidden</p>
<p style="display:none">blindDisplay</p><span style="color:#fff;background-color:#fff">blindWhite</span>
<p>seenBody <span>seenSpan</span><br>seenLine <img alt="seenAlt" src="x"></p><ul><li>seenItem<ul><li>seenInner</ul></ul>
<dl><dt>seenTerm<dd>seenMeaning</dl><details><summary>seenSummary</summary>seenDetails</details>
<table><caption>seenCaption</caption><tr><th>seenColumn</th><th>seenOther</th></tr><tr><td>seenCell</td><td>
<table><tr><td>seenNested</td></tr></table></td></tr></table><form><label>seenLabel</label><input value="seenValue">
<input type="hidden" value="blindInput"><textarea>seenArea</textarea><select><option>seenOption</select></form>
<svg><title>blindTooltip</title><text>seenDrawn</text></svg><dialog>blindDialog</dialog><dialog open>seenDialog</dialog>
<pre>seenCode</pre><blockquote>seenQuote</blockquote></body></html>"""


def page(path: Path) -> None:
    path.write_text(PAGE)


def marks(path: Path) -> None:
    text = """---
title: blindFront
---
# seenHeading

seenBody **seenBold** `seenCode` ![seenAlt](x.png)

- seenItem

| seenColumn | b |
|---|---|
| seenCell | 2 |

<details><summary>seenSummary</summary>

seenDetails

</details>

<table><tr><td>seenRaw</td><td>x</td></tr></table>

<p align=center>seenAligned</p>

<!-- blindComment -->

    seenIndented

```
seenFence
```
"""
    path.write_bytes(text.replace("\n", "\r\n").encode())


def mail(path: Path) -> None:
    outer = MIMEMultipart("mixed")
    outer["Subject"], outer["From"], outer["To"] = "seenSubject", "seenSender <a@example.org>", "seenReader@example.org"
    both = MIMEMultipart("alternative")
    both.attach(MIMEText("seenBody in words that say all that there is to say", "plain"))
    both.attach(MIMEText("<p>the same</p>", "html"))
    outer.attach(both)
    picture = MIMEText("x", "plain")
    picture.add_header("Content-Disposition", "inline", filename="plan.pdf")
    outer.attach(picture)
    outer.attach(MIMEText("seenSecond Größe", "plain", "iso-8859-15"))
    outer.attach(MIMEText("<p>seenPage</p><p hidden>blindHidden</p>", "html"))
    outer.attach(MIMEText(r"{\rtf1\ansi blindCode}", "rtf"))
    path.write_bytes(outer.as_bytes())


def mailbox(path: Path) -> None:
    first, second = EmailMessage(), EmailMessage()
    for message, words in ((first, "seenFirst"), (second, "seenÄnderung")):
        message["Subject"], message["From"], message["To"] = words, "a@example.org", "b@example.org"
        message.set_content(f"{words}\n\nFrom here on it is text.\n", cte="base64" if message is second else None)
    path.write_bytes(
        b"".join(b"From a@example.org Mon Mar  2 09:00:00 2026\n" + m.as_bytes() + b"\n" for m in (first, second))
    )


def book(path: Path) -> None:
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "seenSheet"
    for row in (("seenColumn", "Rate", "Code", "Day"), ("seenCell", 0.075, 123, datetime.date(2026, 3, 15))):
        sheet.append(row)
    sheet["B2"].number_format, sheet["C2"].number_format, sheet["D2"].number_format = "0.00%", "00000", "dd/mm/yyyy"
    sheet["A2"].comment = openpyxl.comments.Comment("seenNote", "Ada")
    sheet.append(["blindRow"])
    sheet.row_dimensions[3].hidden = True
    sheet["A5"] = "blindWhite"
    sheet["A5"].font = openpyxl.styles.Font(color="FFFFFFFF")
    sheet["A6"] = "seenOnColour"
    sheet["A6"].font = openpyxl.styles.Font(color="FFFFFFFF")
    sheet["A6"].fill = openpyxl.styles.PatternFill("solid", fgColor="FF003366")
    sheet["F2"] = "blindColumn"
    sheet.column_dimensions["F"].hidden = True
    made.create_sheet("Secret").append(["blindSheet"])
    made["Secret"].sheet_state = "hidden"
    made.save(path)


def old_book(path: Path) -> None:
    made = xlwt.Workbook()
    sheet = made.add_sheet("seenSheet")
    percent = xlwt.easyxf(num_format_str="0.00%")
    for column, name in enumerate(("seenColumn", "Rate")):
        sheet.write(0, column, name)
    sheet.write_merge(1, 2, 0, 0, "seenCell")
    sheet.write(1, 1, 0.075, percent)
    sheet.write(2, 1, 0.08, percent)
    sheet.write(3, 0, "blindRow")
    sheet.row(3).hidden = True
    secret = made.add_sheet("Secret")
    secret.write(0, 0, "blindSheet")
    secret.visibility = 1
    made.save(str(path))


def open_book(path: Path) -> None:
    made = odfdo.Document("spreadsheet")
    made.body.clear()
    table = odfdo.Table("seenSheet")
    for row in (["seenColumn", "Rate"], ["seenCell", 0.075], ["blindRow", 1]):
        table.append_row(odfdo.Row())
        table.set_row_values(table.height - 1, row)
    table.set_cell((1, 1), odfdo.Cell(0.075, text="7.50%", cell_type="percentage"))
    hidden = table.get_row(2)
    hidden.set_attribute("table:visibility", "collapse")
    table.set_row(2, hidden)
    made.body.append(table)
    made.save(str(path))


def open_text(path: Path) -> None:
    made = odfdo.Document("text")
    made.body.clear()
    made.body.append(odfdo.Header(1, "seenHeading"))
    paragraph = odfdo.Paragraph("seenBody seenNoted")
    paragraph.insert_note(after="seenBody", note_id="n1", citation="1", body="seenNote")
    paragraph.insert_annotation(after="seenNoted", body="seenComment", creator="Ada")
    made.body.append(paragraph)
    made.body.append(odfdo.List(["seenItem"]))
    table = odfdo.Table("t", 2, 2)
    table.set_value((0, 0), "seenCell")
    made.body.append(table)
    made.body.append(odfdo.Frame.text_frame("seenBox", size=("5cm", "2cm")))
    made.insert_style(odfdo.Style("text", name="Secret", display=False), automatic=True)
    hidden = odfdo.Element.from_tag('<text:p>x <text:span text:style-name="Gone">blindSpan</text:span></text:p>')
    style = (
        '<style:style style:name="Gone" style:family="text"><style:text-properties text:display="none"/></style:style>'
    )
    made.get_part("content").get_element("//office:automatic-styles").append(odfdo.Element.from_tag(style))
    made.body.append(hidden)
    for xml in (
        "<text:p>x<text:hidden-paragraph text:is-hidden='true'/>blindParagraph</text:p>",
        "<text:section text:name='s' text:display='none'><text:p>blindSection</text:p></text:section>",
        "<text:section text:name='t' text:is-hidden='true'><text:p>blindCondition</text:p></text:section>",
        "<text:p>on <text:date>seenDate</text:date></text:p>",
        "<office:forms><form:form><form:checkbox form:label='seenTicked' form:current-state='checked'/></form:form>"
        "</office:forms>",
    ):
        made.body.append(odfdo.Element.from_tag(xml))
    gone = "<text:tracked-changes><text:changed-region text:id='a'><text:deletion><text:p>blindDeleted</text:p>"
    made.body.insert(odfdo.Element.from_tag(gone + "</text:deletion></text:changed-region></text:tracked-changes>"), 0)
    made.save(str(path))


def show(path: Path) -> None:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "seenTitle"
    slide.placeholders[1].text_frame.text = "seenBullet"
    slide.placeholders[1].text_frame.add_paragraph().text = "seenSecond"
    table = slide.shapes.add_table(3, 2, Inches(1), Inches(3), Inches(4), Inches(1)).table
    for place, words in (((0, 0), "seenColumn"), ((0, 1), "b"), ((1, 0), "seenMerged"), ((1, 1), "1"), ((2, 1), "2")):
        table.cell(*place).text = words
    table.cell(1, 0).merge(table.cell(2, 0))
    box = slide.shapes.add_textbox(Inches(1), Inches(5), Inches(3), Inches(1))
    box.text_frame.text = "seenBox"
    hidden = slide.shapes.add_textbox(Inches(1), Inches(6), Inches(3), Inches(1))
    hidden.text_frame.text = "blindShape"
    next(hidden._element.iter("{*}cNvPr")).set("hidden", "1")
    slide.notes_slide.notes_text_frame.text = "seenSpoken"
    picture = slide.shapes.add_picture(BytesIO(PICTURE), Inches(1), Inches(7))
    next(picture._element.iter("{*}cNvPr")).set("descr", "seenAlt")
    secret = made.slides.add_slide(made.slide_layouts[5])
    secret.shapes.title.text = "blindSlide"
    secret._element.set("show", "0")
    made.save(str(path))


def form(path: Path) -> None:
    written.pdf_of(path, written.words("Applicant:", 50, 400) + written.words("seenBody", 50, 300), title="seenTitle")
    writer = PdfWriter(clone_from=path)
    page = writer.pages[0]
    free = FreeText(text="seenFree", rect=(50, 200, 200, 220))
    writer.add_annotation(0, free)
    fields = ArrayObject()
    for flag, value, low in ((0, "seenField", 395), (2, "blindField", 100)):
        field = DictionaryObject()
        for key, entry in {
            "/Type": NameObject("/Annot"), "/Subtype": NameObject("/Widget"), "/FT": NameObject("/Tx"),
            "/T": TextStringObject(f"f{low}"), "/V": TextStringObject(value), "/F": NumberObject(flag),
            "/Rect": ArrayObject([FloatObject(n) for n in (120, low, 300, low + 18)]),
        }.items():  # fmt: skip
            field[NameObject(key)] = entry
        reference = writer._add_object(field)
        fields.append(reference)
        page[NameObject("/Annots")].append(reference)
    writer.root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): fields})
    writer.write(path)


def rich(path: Path) -> None:
    path.write_text(
        r"{\rtf1\ansi{\info{\title seenTitle}{\author blindAuthor}}\pard seenBody {\b seenBold}\par "
        r"{\v blindHidden}{\deleted blindDeleted}\par "
        r"\v blindOn\v0 seenAfter{\footnote\pard seenNote}{\*\annotation\pard seenComment}\par"
        r"{\shp{\*\shpinst{\sp{\sn blindName}{\sv 1}}{\shptxt \pard seenBox\par}}}\par"
        r"\trowd\cellx2000\cellx4000\intbl seenCell\cell seenOther\cell\row\pard\par}"
    )


def open_show(path: Path) -> None:
    made = odfdo.Document("presentation")
    made.body.clear()
    slide = odfdo.DrawPage("page1", name="Page 1")
    slide.append(odfdo.Frame.text_frame("seenBody", size=("7cm", "5cm"), position=("1cm", "1cm")))
    box = "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>"
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    row = f"<table:table-row>{cell.format('seenCell')}{cell.format('seenOther')}</table:table-row>"
    for xml in (
        f"<draw:g>{box.format('seenGrouped')}</draw:g>",
        '<draw:frame presentation:class="title"><draw:text-box><text:p>seenTitle</text:p></draw:text-box></draw:frame>',
        "<draw:custom-shape><svg:desc>seenAlt</svg:desc><text:p>seenShape</text:p></draw:custom-shape>",
        f"<draw:frame><table:table>{row}{row}</table:table></draw:frame>",
        f"<presentation:notes>{box.format('seenSpoken')}</presentation:notes>",
        "<office:annotation><dc:creator>blindAuthor</dc:creator><text:p>seenComment</text:p></office:annotation>",
        '<draw:frame><draw:text-box><text:p>x <text:span text:style-name="Gone">blindSpan</text:span></text:p>'
        "</draw:text-box></draw:frame>",
    ):
        slide.append(odfdo.Element.from_tag(xml))
    hides = '<style:text-properties text:display="none"/>'
    style = f'<style:style style:name="Gone" style:family="text">{hides}</style:style>'
    made.get_part("content").get_element("//office:automatic-styles").append(odfdo.Element.from_tag(style))
    made.body.append(slide)
    made.save(str(path))


def novel(path: Path) -> None:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata><title xmlns="http://purl.org/dc/elements/1.1/">'
        'seenTitle</title></metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    found = '<c xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfile full-path="b.opf"/></c>'
    note = (
        '<html><body><p>seenBody<a href="#n">1</a></p><aside>seenNote</aside><p hidden="">blindNote</p></body></html>'
    )
    written.zip_of(
        path,
        ("META-INF/container.xml", found.encode()),
        ("b.opf", package.encode()),
        ("a.xhtml", PAGE.encode()),
        ("b.xhtml", note.encode()),
        ("c.xhtml", b"<p>blindUnlisted</p>"),
    )


def values(path: Path) -> None:
    path.write_bytes(
        'seenReport\n\nseenColumn;seenOther\r\n"seenCell, 1\nseenLine";3,5\r\n;seenÄrmel\r\n'.encode("cp1252")
    )


def outlook(path: Path) -> None:
    """seenSubject, seenSender, seenReader, seenBody, seenAttached: written once by a library of others."""
    path.write_bytes((written.DATA / "seen.msg").read_bytes())


def binary_book(path: Path) -> None:
    """seenSheet, seenColumn, seenCell: written once by a library of others, with a hidden sheet of a word."""
    path.write_bytes((written.DATA / "seen.xlsb").read_bytes())


PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360000000020001487"
    "ff2b50000000049454e44ae426082"
)
"""A PNG of one point."""

WRITTEN: dict[str, Written] = {
    ".docx": word,
    ".html": page,
    ".md": marks,
    ".eml": mail,
    ".mbox": mailbox,
    ".xlsx": book,
    ".xls": old_book,
    ".ods": open_book,
    ".odt": open_text,
    ".pptx": show,
    ".pdf": form,
    ".rtf": rich,
    ".odp": open_show,
    ".epub": novel,
    ".csv": values,
    ".msg": outlook,
    ".xlsb": binary_book,
}


READ = (".eml", ".txt")


def words_of(path: Path) -> tuple[str, Parsed]:
    """Return the title and text of *path* and of the files in it, and what was made of *path* itself."""
    found = parse(path)
    inner = [parse(path, (n, Path(name).suffix)) for n, name in enumerate(found.members) if Path(name).suffix in READ]
    return "\n".join(f"{one.title}\n{one.text}" for one in (found, *inner)), found


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_a_reader_sees_is_read_and_what_nobody_sees_is_not(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a{kind}"
    WRITTEN[kind](path)
    text, _ = words_of(path)
    source = Path(__file__).read_text("utf-8")
    function = source[source.index(f"def {WRITTEN[kind].__name__}(") :].partition("\n\n\n")[0]
    function += PAGE if kind in (".html", ".epub") else ""
    wanted = set(re.findall(r"seen[A-ZÄ]\w*", function))
    assert len(wanted) > 1
    assert {word for word in wanted if word not in text} == set()
    assert re.findall(r"blind\w+", text) == []


def test_cells_of_word_keep_what_was_inserted_moved_and_counted(tmp_path: Path) -> None:
    word(tmp_path / "a.docx")
    text = parse(tmp_path / "a.docx").text
    row = next(line for line in text.split("\n") if "seenCell" in line)
    assert all(f"{kind}InCell" in row for kind in ("seenInserted", "seenMoved", "seenField"))
    assert "blind" not in row and row.endswith("| seenInner")
    assert "1. seenStep" in text and "- seenItem" in text


def test_what_was_left_out_of_a_file_is_counted_by_kind(tmp_path: Path) -> None:
    word(tmp_path / "a.docx")
    page(tmp_path / "a.html")
    assert parse(tmp_path / "a.docx").left_out["hidden text"] >= 5
    assert parse(tmp_path / "a.html").left_out == {"hidden text": 4}


MERGED = """<table><tr><th rowspan=2>Region<th colspan=2>2024</tr><tr><th>Q1<th>Q2</tr>
<tr><td rowspan=2>North<td>1<td>2</tr><tr><td>3<td></tr><tr><td colspan=3>Total follows</tr></table>"""


def test_merged_cells_are_filled_and_empty_ones_keep_their_column(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(MERGED)
    assert parse(tmp_path / "a.html").text.split("\n") == [
        "| Region | 2024 Q1 | 2024 Q2 |",
        "| --- | --- | --- |",
        "| North | 1 | 2 |",
        "| North | 3 |  |",
        "| Total follows |  |  |",
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Artikel;Preis\nWinkel, Edelstahl, 40x40;3,75\nRohr, lang, 2 m;4,20", "Winkel, Edelstahl, 40x40 | 3,75"),
        ("sep=;\na;b\n1,5;2,5", "1,5 | 2,5"),
        ("Route,Vehicle,Fare\nSund,Car,41\n,Truck,96", "|  | Truck | 96 |"),
        ("a\tb\n1,2\t3,4", "1,2 | 3,4"),
        ("1,5;2,5\n3,5;4,5", "3,5 | 4,5"),
        ("Report\n\na;b\r\n1,5;2", "1,5 | 2"),
        ("Notes\nHello, world\nMore, text", "Hello, world"),
    ],
    ids=[
        "decimal commas",
        "the line of Excel",
        "an empty first value",
        "tabs",
        "decimals alone",
        "below a title",
        "sentences",
    ],
)
def test_the_columns_of_a_csv_say_what_separates_them(tmp_path: Path, text: str, rows: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert rows in parse(tmp_path / "a.csv").text.split("\n")
    assert "sep=" not in parse(tmp_path / "a.csv").text


def test_an_attachment_is_read_in_the_code_that_its_mail_names(tmp_path: Path) -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "x", "a@example.org"
    message.set_content("text")
    message.add_attachment("Größe 5 €", charset="iso-8859-15", filename="a.txt")
    (tmp_path / "a.eml").write_bytes(message.as_bytes())
    assert parse(tmp_path / "a.eml", (0, ".txt")).text == "Größe 5 €"


INVITATION = b"""From: a@example.org
Subject: S
Content-Type: multipart/alternative; boundary=B

--B
Content-Type: text/plain

in short
--B
Content-Type: multipart/mixed; boundary=C

--C
Content-Type: text/html

<p>in short</p>
--C
Content-Type: application/pdf; name=plan.pdf

x
--C--
--B
Content-Type: text/calendar; charset=utf-8

SUMMARY:Crane
--B--
"""


BASE64 = "\r\nContent-Transfer-Encoding: base64"


def headed(headers: str, body: bytes) -> bytes:
    return f"From: a@example.org\r\n{headers}\r\n\r\n".encode("latin-1") + body


@pytest.mark.parametrize(
    ("raw", "text", "members"),
    [
        (INVITATION, "in short", ("plan.pdf", "calendar.txt")),
        (headed("Content-Type: application/pdf; name=scan.pdf", b"x"), "From: a@example.org", ("scan.pdf",)),
        (
            headed("Subject: Gr\xfc\xdfe\r\nContent-Type: text/plain; charset=koi8-r", "насос".encode("koi8-r")),
            "насос",
            (),
        ),
        (headed("Content-Type: text/plain; charset=us-ascii", "Größe".encode()), "Größe", ()),
        (headed("Content-Type: text/plain; charset=gb2312", "镕".encode("gb18030")), "镕", ()),
        (headed("Content-Type: text/plain; charset=no-code", "Größe".encode()), "Größe", ()),
        (headed("Content-Type: text/plain; charset=idna", b"Gr\0\xf6\xdfe"), "Größe", ()),
        (headed("Content-Type: text/plain; charset=utf-8", "Grö\0ße".encode()), "Größe", ()),
        (headed(f"Content-Type: text/plain; charset=utf-16{BASE64}", b64encode("Größe".encode("utf-16"))), "Größe", ()),
        (headed(f"Content-Type: text/plain{BASE64}", b64encode("Größe".encode("utf-16-be"))), "Größe", ()),
        (headed("Content-Type: text/html", '<meta charset="windows-1251">насос'.encode("cp1251")), "насос", ()),
    ],
    ids=[
        "all forms have their files",
        "a file alone",
        "KOI8",
        "not ASCII",
        "GB 18030",
        "unknown",
        "IDNA",
        "a NUL",
        "UTF-16",
        "no code",
        "the page",
    ],
)
def test_a_mail_is_read_in_its_codes_and_with_all_of_its_files(
    tmp_path: Path, raw: bytes, text: str, members: tuple[str, ...]
) -> None:
    (tmp_path / "a.eml").write_bytes(raw)
    found = parse(tmp_path / "a.eml")
    assert found.text.endswith(text) and found.members == members
    assert "Subject: Gr" not in raw.decode("latin-1") or found.title == "Grüße"


def test_a_mailbox_is_parted_at_its_lines_alone(tmp_path: Path) -> None:
    line = b"From - Mon Mar  2 09:00:00 2026\r\n"
    mail = b"From: a@example.org\r\nSubject: S\r\n\r\nFrom here on\r\nNote: text\r\n>From me\r\n"
    (tmp_path / "Inbox").write_bytes(line + mail + line + mail)
    assert parse(tmp_path / "Inbox").members == ("1.eml", "2.eml")
    assert parse(tmp_path / "Inbox", (1, ".eml")).text.endswith("From here on\nNote: text\nFrom me")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Привет, насос номер семь стоит во дворе.", "cp1251"),
        ("ポンプ七号は庭にあります。毎週月曜日に点検します。", "shift_jis"),
        ("水泵七号位于院子里。每周一检查一次。", "gb18030"),
        ("Η αντλία βρίσκεται στην αυλή.", "iso8859-7"),
        ("Größe 5 €", "cp1252"),
        ("Hello pump seven", "utf-32"),
        ("Größe of pump seven", "utf-16-le"),
        ("Größe of pump seven", "utf-16-be"),
    ],
)
def test_a_text_that_names_no_code_is_read_in_its_own(tmp_path: Path, text: str, code: str) -> None:
    # Also of a long text, wherever its beginning ends.
    for whole in (text, "\n".join(["a", *[text] * 20_000])):
        (tmp_path / "a.txt").write_bytes(whole.encode(code))
        assert parse(tmp_path / "a.txt").text == whole


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: Pump\n---\n", "Pump"),
        ("\ufeff---  \r\ntitle: 'Pump'\r\ntags:\r\n- a\r\n\r\n...\r\n", "Pump"),
        ("---\rtitle: Pump\r---\r", "Pump"),
        ('+++\ntitle = "Pump"\n+++\n', "Pump"),
        ("---\nNot so: yes\n\nwords\n\n---\n", None),
    ],
)
def test_what_stands_above_a_page_of_markdown_is_no_text(tmp_path: Path, front: str, title: str | None) -> None:
    (tmp_path / "a.md").write_bytes(f"{front}body".encode())
    found = parse(tmp_path / "a.md")
    assert (found.text, found.title) == ("body" if title else "Not so: yes\n\nwords\n\nbody", title)


@pytest.mark.parametrize(
    "title",
    [
        "untitled",
        "(anonymous)",
        "Microsoft Word - Plan 3.docx",
        "Document 1",
        "a.docx",
        "Unbenannt-2",
        "[New document (3)]",
        "1",
        "stdin",
    ],
)
def test_a_title_that_is_none_gives_way_to_the_largest_heading(tmp_path: Path, title: str) -> None:
    document = docx.Document()
    document.core_properties.title = title
    document.add_heading("Second", 2)
    document.add_heading("First", 1)
    document.save(str(tmp_path / "a.docx"))
    assert parse(tmp_path / "a.docx").title == "First"


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.075, "0.00%", "7.50%"),
        (1234.5, '"€"#,##0.00', "€1,234.50"),
        (1234.5, '_-* #,##0.00\\ "€"_-;\\-* #,##0.00\\ "€"_-', "1,234.50 €"),
        (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
        (123, "00000", "00123"),
        (123456789, "000-00-0000", "123-45-6789"),
        (-5, "0.00;[Red]-0.00", "-5.00"),
        (-5, "#,##0;(#,##0)", "(5)"),
        (0, '0;-0;"none"', "none"),
        (5, ";;;", ""),
        (12, '0 "kg"', "12 kg"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (0.1 + 0.2, "General", "0.3"),
        (0.5, "# ?/?", "0.5"),
        (7.0, "0.##", "7"),
        (datetime.datetime(2026, 3, 15), "dd/mm/yyyy", "15/03/2026"),
        (datetime.datetime(2026, 3, 15), "mm-dd-yy", "2026-03-15"),
        (datetime.datetime(2026, 3, 15, 9, 5), "d. mmmm yyyy hh:mm", "15. March 2026 09:05"),
        (datetime.time(14, 5), "h:mm AM/PM", "2:05 PM"),
        (datetime.timedelta(hours=30, minutes=5), "[h]:mm", "30:05"),
        (datetime.timedelta(minutes=3, seconds=7), "[mm]:ss", "03:07"),
        (datetime.timedelta(minutes=3, seconds=7.26), "[mm]:ss.0", "03:07.3"),
        (datetime.timedelta(seconds=59.996), "[h]:mm:ss.00", "0:01:00.00"),
        (datetime.timedelta(seconds=59.996), "[ss].000", "59.996"),
        (datetime.timedelta(hours=30, seconds=7.5), "[h]:mm:ss;@", "30:00:08"),
        (datetime.timedelta(hours=-30), "[h]:mm;-[h]:mm;0", "-30:00"),
        (datetime.timedelta(hours=30), ";[h]:mm", "30:00:00"),
        (datetime.timedelta(hours=30), "General", "30:00:00"),
        (datetime.timedelta(hours=30), f"[{'h' * 300}]", "30:00:00"),
        (datetime.timedelta(hours=30), "[h]ss." + "0" * 200, "3000.000000"),
        (1234.5, "[" * 100_000, "1234.5"),
        (5, '[>=50]"high";"low"', "5"),
        (True, "General", "TRUE"),
    ],
)
def test_a_value_of_a_workbook_is_what_a_person_sees(value: object, form: str, text: str) -> None:
    assert shown(value, form) == text


@pytest.mark.parametrize("kind", [".xlsx", ".xls", ".ods"])
def test_workbooks_show_formats_and_count_what_is_hidden(tmp_path: Path, kind: str) -> None:
    WRITTEN[kind](tmp_path / f"a{kind}")
    found = parse(tmp_path / f"a{kind}")
    # The library writes what is shown of a cell of OpenDocument itself, and rounds it.
    assert f"seenCell | {'7 %' if kind == '.ods' else '7.50%'}" in found.text
    assert found.left_out["hidden row"] == 1 and (kind == ".ods" or found.left_out["hidden sheet"] == 1)
    assert kind != ".xlsx" or "seenCell | 7.50% | 00123 | 15/03/2026" in found.text
    assert kind != ".xls" or "seenCell | 8.00%" in found.text


def test_formulas_that_nobody_has_calculated_and_values_without_text_are_not_lost_in_silence(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    for row in (["Rent", 5], ["Sum", "=B1*2"]):
        made.active.append(row)
    made.save(tmp_path / "a.xlsx")
    sheet = odfdo.Document("spreadsheet")
    sheet.body.clear()
    table = odfdo.Table("T")
    for name in ("A1", "A2"):
        table.set_cell(name, odfdo.Cell(0.075, cell_type="percentage"))
    for text in table.get_elements("//text:p"):
        text.delete()
    sheet.body.append(table)
    sheet.save(str(tmp_path / "a.ods"))

    assert parse(tmp_path / "a.xlsx").left_out == {"formula without a stored value": 1}
    assert "7.5%" in parse(tmp_path / "a.ods").text


def test_a_workbook_that_openpyxl_refuses_is_read_without_formats(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    made.active.append(["seen", 0.5])
    made.create_chartsheet("Empty")
    made.save(tmp_path / "a.xlsx")
    found = parse(tmp_path / "a.xlsx")
    assert "seen | 0.5" in found.text and found.left_out == {"number formats of a workbook": 1}


def test_what_is_hidden_in_a_large_workbook_is_left_out_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = openpyxl.Workbook()
    for row in (["seenName", "blindColumn", "seenRate"], ["blindRow", 1, 2], ["seenLast", "blindToo", 3]):
        made.active.append(row)
    made.active.row_dimensions[2].hidden = made.active.column_dimensions["B"].hidden = True
    made.save(tmp_path / "a.xlsx")
    monkeypatch.setattr(sheets, "MAX_XML_BYTES", 0)
    found = parse(tmp_path / "a.xlsx")
    assert found.text.split("\n")[-2:] == ["seenName | seenRate", "seenLast | 3"]
    assert (found.left_out["hidden row"], found.left_out["hidden column"]) == (1, 1)


def test_what_is_hidden_in_an_xlsb_is_left_out_too(tmp_path: Path) -> None:
    """The bits of [MS-XLSB] 2.4.741 (BrtRowHdr, fDyZero) and 2.4.339 (BrtColInfo, fHidden), set by hand."""
    with zipfile.ZipFile(written.DATA / "seen.xlsb") as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    sheet = bytearray(parts["xl/worksheets/sheet1.bin"])
    first = parse(written.DATA / "seen.xlsb").text.split("\n")
    row, columns = sheet.index(b"\x00\x19\x01" + bytes(7)), sheet.index(b"\x3c\x12\x01" + bytes(3))
    sheet[row + 2 + 11] |= 0x10
    sheet[columns + 2 + 16] |= 1
    with zipfile.ZipFile(tmp_path / "a.xlsb", "w") as packed:
        for name, raw in (parts | {"xl/worksheets/sheet1.bin": bytes(sheet)}).items():
            packed.writestr(name, raw)
    found = parse(tmp_path / "a.xlsb")
    assert (found.left_out["hidden row"], found.left_out["hidden column"]) == (1, 1)
    assert first[2:] == [
        "| seenColumn | Day |", "| seenCell | 1 |", "|  | 2.5 |", "| x | 2026-03-02 |", "| t | TRUE |"
    ]  # fmt: skip
    assert found.text.split("\n")[2:] == ["seenColumn", "x", "t"]


def test_merged_cells_and_tables_in_cells_of_rtf_keep_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_text(
        r"{\rtf1\ansi\trowd\clvmgf\cellx1000\cellx2000\pard\intbl Yard\cell 1\cell\row"
        r"\trowd\clvmrg\cellx1000\cellx2000\pard\intbl\cell 2\cell\row"
        r"\trowd\cellx1000\cellx2000\pard\intbl Hut\cell"
        r"{\itap2 a\nestcell b\nestcell{\*\nesttableprops\nestrow}}\cell\row}"
    )
    assert parse(tmp_path / "a.rtf").text.split("\n") == ["Yard | 1", "Yard | 2", "Hut | a; b;"]


def test_a_filled_field_stands_behind_its_label(tmp_path: Path) -> None:
    form(tmp_path / "a.pdf")
    assert "Applicant: seenField" in parse(tmp_path / "a.pdf").text.split("\n")


def test_merged_cells_of_a_slide_and_a_page_are_filled(tmp_path: Path) -> None:
    show(tmp_path / "a.pptx")
    assert {"seenMerged | 1", "seenMerged | 2"} <= set(parse(tmp_path / "a.pptx").text.split("\n"))


def test_of_a_text_without_end_the_beginning_is_kept_also_in_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_CHARS", 100)
    rows = "".join(f"<tr><td>row {n}<td><table><tr><td>in<td>{n}</table>" for n in range(50))
    (tmp_path / "a.html").write_text(f"<p>first</p><table>{rows}</table>")
    text = parse(tmp_path / "a.html").text
    assert text.startswith("first\n\n") and "row 3" in text and "row 49" not in text
