"""One file of each kind into text; broken and hostile ones are reported, never raised as something else."""

from __future__ import annotations

import unicodedata
import zipfile
from pathlib import Path

import docx
import pytest
import xlwt
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from datafari_rag.ingest.parsers import registry
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, MAX_TITLE_CHARS, Parsed, Unreadable, parsed
from datafari_rag.ingest.parsers.registry import is_jsonl, is_known
from tests.growth import too_fast

PAGE = """<!DOCTYPE html><html><head><title>The &amp; title</title><style>p {}</style></head><body>
<script>alert("no")</script><!-- no --><h1>Head</h1><p>One <b>bold</b>
 word.<p>Two&nbsp;words<br>and a line<ul><li>first<li>second</ul><pre>a
  b</pre><table><tr><td>1</td><td>2</td></tr></table><template>no</template></body></html>"""

MARKS = """---
title: no
---
# The *title*

A [link](http://x) and `code`, ![picture](p.png).
Second line.

- one
- two

| a | b |
|---|---|
| 1 | 2 |

```py
x = 1
```
"""


def parse(path: Path) -> Parsed:
    with path.open("rb") as file:
        return registry.parse(file, path.name)


def pdf_of(path: Path, *lines: str, password: str = "") -> Path:
    writer = PdfWriter()
    for line in lines:
        page = writer.add_blank_page(300, 300)
        font = DictionaryObject(
            {
                NameObject("/Type"): NameObject("/Font"),
                NameObject("/Subtype"): NameObject("/Type1"),
                NameObject("/BaseFont"): NameObject("/Helvetica"),
            }
        )
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({line}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    writer.add_metadata({"/Title": "The PDF"})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


def docx_of(path: Path) -> Path:
    document = docx.Document()
    document.core_properties.title = "The letter"
    document.add_paragraph("First paragraph.")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.add_paragraph("After the table.")
    document.save(str(path))
    return path


@pytest.mark.parametrize(
    ("name", "raw", "text", "title"),
    [
        pytest.param("a.txt", b"Title\n\nBody", "Title\n\nBody", "Title", id="text"),
        pytest.param("a.txt", b"\xef\xbb\xbfA\r\nB\rC", "A\nB\nC", "A", id="a mark and line ends of three kinds"),
        pytest.param("a.txt", "é à".encode("cp1252"), "é à", "é à", id="a Western code"),
        pytest.param("a.txt", "é".encode("utf-16"), "é", "é", id="UTF-16"),
        pytest.param(
            "a.txt", unicodedata.normalize("NFD", "été").encode(), "été", "été", id="accents apart are joined"
        ),
        pytest.param("a.txt", b"x" * 200, "x" * 200, None, id="a long first line is no title"),
        pytest.param("a.txt", b"", "", None, id="an empty file"),
        pytest.param("README", b"no ending", "no ending", "no ending", id="an unknown ending is text"),
        pytest.param(
            "a.html",
            PAGE.encode(),
            "# Head\n\nOne bold word.\n\nTwo words\nand a line\n\n- first\n- second\n\na\n  b\n\n1 | 2",
            "The & title",
            id="a page",
        ),
        pytest.param(
            "a.htm", b"<h1>Only a heading</h1>", "# Only a heading", "Only a heading", id="a page without title"
        ),
        pytest.param(
            "a.html", b'<meta charset="iso-8859-1"><p>\xe9t\xe9', "été", None, id="a page that names its code"
        ),
        pytest.param("a.html", "<p>été".encode(), "été", None, id="a page that does not"),
        pytest.param("a.html", b"<div>" * 2_000 + b"deep", "deep", None, id="a page nested deeply"),
        pytest.param(
            "a.md",
            MARKS.encode(),
            "# The title\n\nA link and code, picture. Second line.\n\n- one\n- two\n\na | b\n--- | ---\n1 | 2\n\nx = 1",
            "The title",
            id="Markdown",
        ),
        pytest.param("a.md", b"no heading", "no heading", None, id="Markdown without heading"),
    ],
)
def test_text_and_title(tmp_path: Path, name: str, raw: bytes, text: str, title: str | None) -> None:
    (tmp_path / name).write_bytes(raw)
    found = parse(tmp_path / name)
    assert found == Parsed(text, title)


def test_a_pdf_page_by_page(tmp_path: Path) -> None:
    found = parse(pdf_of(tmp_path / "a.PDF", "First page", "Second page"))
    assert found == Parsed("First page\n\nSecond page", "The PDF", "0 page 1\n12 page 2")


def test_a_word_file_with_its_tables_in_place(tmp_path: Path) -> None:
    found = parse(docx_of(tmp_path / "a.docx"))
    assert found == Parsed("First paragraph.\n\nleft | right\n\nAfter the table.", "The letter")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        pytest.param(
            "<table><caption>Hours</caption> <thead> <tr><th>Day</th> <th>Open</th></tr> </thead>\n<tbody> <tr><td>"
            "<p>Mon</p>day</td><td>9<br>to 5</td></tr> <tr><td>Tuesday</td><td> </td></tr></tbody></table>",
            "Hours\n\n| Day | Open |\n| --- | --- |\n| Mon day | 9 to 5 |\n| Tuesday |  |",
            id="rows are neighbours, cells one line",
        ),
        pytest.param(
            "<table><tr><td><p>Left side.</p></td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>",
            "Left side.\n\na | b",
            id="a table that only lays out a page",
        ),
        pytest.param("<table><tr><td>alone</td></tr><tr></tr></table>", "alone", id="a row of one cell"),
        pytest.param(f"<table><tr><td>{'x' * 5000}<td>y</table>", f"{'x' * 5000}\n\ny", id="a row that is a page"),
        pytest.param("<table><tr><td> </td><td></td></tr><tr><td>a<td>b</table>", "a | b", id="cells never closed"),
        pytest.param(
            "<ol start=3><li><p>Three</p></li> <li>Four</li></ol><ol start=x><li>One</ol>",
            "3. Three\n4. Four\n1. One",
            id="steps",
        ),
        pytest.param("<ul><li><p>loose</p></li></ul><h2><span>Head</span></h2>", "- loose\n\n## Head", id="marks"),
    ],
)
def test_the_structure_of_a_page_survives_in_its_text(tmp_path: Path, page: str, text: str) -> None:
    (tmp_path / "a.html").write_text(page)
    assert parse(tmp_path / "a.html").text == text


def test_headings_lists_and_merged_cells_of_a_word_file(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Guide", 0)
    document.add_heading("Gateways", 2)
    document.add_paragraph("one", style="List Bullet")
    table = document.add_table(3, 3)
    for place, words in enumerate(("Region", "Gate\nway", "Port")):
        table.cell(0, place).text = words
    table.cell(1, 0).merge(table.cell(1, 1)).text = "Asia"
    table.cell(1, 2).text = "443"
    document.save(str(tmp_path / "a.docx"))
    assert parse(tmp_path / "a.docx").text == (
        "# Guide\n\n## Gateways\n\n- one\n\nRegion | Gate way | Port\nAsia | Asia | 443"
    )


def test_steps_and_loose_lists_of_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("## Steps\n\n1. One\n2. Two\n\n- a\n\n- b\n\n| a | b |\n|---|---|\n|  |  |\n")
    assert parse(tmp_path / "a.md").text == "## Steps\n\n1. One\n2. Two\n- a\n- b\n\na | b"


def test_a_pdf_without_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="only pictures"):
        parse(pdf_of(tmp_path / "a.pdf", ""))


def test_a_locked_pdf_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="password"):
        parse(pdf_of(tmp_path / "a.pdf", "secret", password="x"))


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.pdf", b""),
        ("a.pdf", b"%PDF-1.7\nnothing"),
        ("a.pdf", b"\0" * 5000),
        ("a.docx", b""),
        ("a.docx", b"PK\x03\x04 nothing"),
        ("a.txt", b"text \0 then not"),
        ("a.md", b"\0"),
        ("a.html", b"\0\0"),
        ("a.html", b"<div>" * 20_000 + b"deep"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_told(tmp_path: Path, name: str, raw: bytes) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(Unreadable):
        parse(tmp_path / name)


@pytest.mark.parametrize("form", ["[h]:mm", "yyyy-mm-dd"])
def test_an_old_workbook_with_a_time_that_no_calendar_has_is_told(tmp_path: Path, form: str) -> None:
    made = xlwt.Workbook()
    made.add_sheet("a").write(0, 0, 1e308, xlwt.easyxf(num_format_str=form))
    made.save(str(tmp_path / "a.xls"))
    with pytest.raises(Unreadable, match="broken"):
        parse(tmp_path / "a.xls")


def test_a_zip_without_the_parts_of_a_word_file_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as packed:
        packed.writestr("x", "y")
    with pytest.raises(Unreadable, match="broken"):
        parse(tmp_path / "a.docx")


def test_a_word_file_that_unpacks_without_end_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as packed:
        for number in range(6):
            packed.writestr(f"word/{number}.xml", b"\0" * 100_000_000)
    with pytest.raises(Unreadable, match="500 MB"):
        parse(tmp_path / "a.docx")


def test_a_missing_library_is_told_with_the_extra_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pdf").write_bytes(b"")
    monkeypatch.setitem(registry.PARSERS, ".pdf", "a_parser_whose_library_is_absent")
    with pytest.raises(Unreadable, match=r"pip install 'datafari-rag\[ingest\]'"):
        parse(tmp_path / "a.pdf")


def test_what_is_too_long_is_cut_and_surrogates_are_replaced() -> None:
    assert len(parsed("x" * (MAX_CHARS + 5)).text) == MAX_CHARS
    assert parsed("a\ud800b", "t\n t\udfff") == Parsed("a\ufffdb", "t t\ufffd")


def test_what_is_taken_from_a_folder() -> None:
    assert [is_known(Path(name)) for name in ("a.PDF", "b.jsonl", "c.ndjson", "d.jsonl.gz")] == [True] * 4
    assert [is_known(Path(name)) for name in ("a.exe", "b.gz", "c", "d.json")] == [False] * 4
    assert (is_jsonl(Path("X.JSONL")), is_jsonl(Path("x.json"))) == (True, False)


def test_a_cell_over_very_many_columns_is_told(tmp_path: Path) -> None:
    """The library makes one cell for each column: 5,000,000 of them took minutes, in a file of 900 bytes."""
    document = docx.Document()
    cell = document.add_table(1, 1).cell(0, 0)
    cell.text = "wide"
    cell._tc.grid_span = 1000
    document.save(str(tmp_path / "a.docx"))
    assert parse(tmp_path / "a.docx").text == "wide"
    cell._tc.grid_span = 1001
    document.save(str(tmp_path / "a.docx"))
    with pytest.raises(Unreadable, match="a row of more than 1,000 cells"):
        parse(tmp_path / "a.docx")


def test_merged_cells_do_not_make_a_text_without_end(tmp_path: Path) -> None:
    document = docx.Document()
    cell = document.add_table(1, 1).cell(0, 0)
    cell.text = "long " * 10_000
    cell._tc.grid_span = 1000
    document.save(str(tmp_path / "a.docx"))
    assert len(parse(tmp_path / "a.docx").text) <= MAX_CHARS


@pytest.mark.parametrize(
    "unit",
    ["<a ", "<!--", "</", "<![CDATA[", '<a b="', "<?", "<!x", "<", "&", "&lt", "<title>", "<script>", "<p", "<a b=c "],
)
def test_broken_tags_need_time_in_step_with_their_number(tmp_path: Path, unit: str) -> None:
    """Python's own HTML parser needed its square: 500 KB were an hour."""

    def page(chars: int) -> Path:
        path = tmp_path / f"{chars}.html"
        path.write_text(unit * (chars // len(unit)))
        return path

    assert too_fast(parse, page, 125_000) == ""


@pytest.mark.parametrize("unit", ["\t", " ", " \n", "\n", "\n\t", "\r", "\x0b", "\n ", "\n  "])
def test_kept_white_space_needs_time_in_step_with_its_length(tmp_path: Path, unit: str) -> None:
    def page(chars: int) -> Path:
        path = tmp_path / f"{chars}.html"
        path.write_text("<pre>x" + unit * (chars // len(unit)) + "x</pre>")
        return path

    assert too_fast(parse, page, 125_000) == ""


def test_a_title_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<title>{'t' * 5000}</title>text")
    assert parse(tmp_path / "a.html") == Parsed("text", "t" * MAX_TITLE_CHARS)
