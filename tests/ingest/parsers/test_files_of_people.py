"""One file of each common kind: its text, its rows, and their places in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import docx
import pytest

from datafari_rag.core.documents import place_at
from datafari_rag.ingest.parsers import mails, registry
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.pdf import _PdfLine, _undivided
from tests.ingest.parsers.written import ROW, WRITERS, mail, pdf_of, ruled, words, zip_of

DATA = Path(__file__).parents[2] / "data" / "files"


def parse(path: Path, *inside: tuple[int, str]) -> Parsed:
    with path.open("rb") as file:
        return registry.parse(file, path.name, inside)


def written(path: Path) -> Parsed:
    WRITERS[path.suffix[1:]](path)
    return parse(path)


def label_of(found: Parsed, quote: str) -> str | None:
    place = place_at(found.places, found.text, found.text.index(quote))
    return None if place is None else place.label()


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if kind != "odp"])
def test_a_row_of_a_table_is_a_line(tmp_path: Path, kind: str) -> None:
    assert ROW in written(tmp_path / f"a.{kind}").text.split("\n")


@pytest.mark.parametrize("kind", ["docx", "pptx", "odt", "pdf", "epub"])
def test_a_heading_has_its_mark(tmp_path: Path, kind: str) -> None:
    assert written(tmp_path / f"a.{kind}").text.count("# Gateways\n") == 1


@pytest.mark.parametrize(
    ("kind", "quote", "label"),
    [
        pytest.param("pdf", ROW, "p. 2", id="a page"),
        pytest.param("pdf", "Welcome", "p. 1", id="the first page"),
        pytest.param("pptx", ROW, "Slide 2", id="a slide"),
        pytest.param("pptx", "Say it slowly.", "Slide 2", id="the notes of a slide"),
        pytest.param("odp", "sg.vpn", "Slide 2", id="a slide of OpenDocument"),
        pytest.param("xlsx", ROW, "Sheet Q3, row 14", id="a row of a sheet"),
        pytest.param("xlsx", "Total", "Sheet Q3, row 21", id="a row behind empty ones"),
        pytest.param("xlsx", "Q3", "Sheet Q3", id="the name of a sheet"),
        pytest.param("xlsx", "nothing", "Sheet Q1, row 1", id="a row of another sheet"),
        pytest.param("ods", ROW, "Sheet Q3, row 3", id="a row of an OpenDocument sheet"),
        pytest.param("csv", ROW, "Row 3", id="a record"),
        pytest.param("docx", ROW, None, id="a Word file has no pages of its own"),
        pytest.param("eml", ROW, None, id="a mail neither"),
    ],
)
def test_where_a_quote_stands(tmp_path: Path, kind: str, quote: str, label: str | None) -> None:
    assert label_of(written(tmp_path / f"a.{kind}"), quote) == label


def test_the_cells_of_a_sheet_are_shown_as_they_are_typed(tmp_path: Path) -> None:
    assert "Total | 42 | TRUE" in written(tmp_path / "a.xlsx").text.split("\n")


def test_the_text_of_a_slide_from_top_to_bottom(tmp_path: Path) -> None:
    text = written(tmp_path / "a.pptx").text
    assert text.index("# Gateways") < text.index(ROW) < text.index("In a group") < text.index("Say it slowly.")


def test_an_opendocument_text(tmp_path: Path) -> None:
    text = written(tmp_path / "a.odt").text
    assert "- one\n- two\n" in text and text.endswith("After  the\ttable.")


RTF = r"{\rtf1\ansi{\stylesheet{\s0 Normal;}{\s1\sb240\outlinelevel0 {\*\x y}Title 1;}{\s2\b heading 2;}{\s3 Body;}}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(r"\pard\s1\sb9 Gateways\par\pard\s3 Asia\par}", "# Gateways\n\nAsia", id="a style with a level"),
        pytest.param(r"\pard\s2 {\b Gate}ways\par\pard Asia\par}", "## Gateways\n\nAsia", id="a style named a heading"),
        pytest.param(
            r"\pard\outlinelevel2 Gateways\par Asia\par}", "### Gateways\n\nAsia", id="a paragraph's own level"
        ),
        pytest.param(r"\pard\s1\outlinelevel0 Gateways\par}", "# Gateways", id="both"),
        pytest.param(r"\pard\s1\par\pard Asia\par}", "Asia", id="an empty heading"),
        pytest.param(
            r"\pard Asia \\s1 \\outlinelevel0\par}", r"Asia \s1 \outlinelevel0", id="words that look like marks"
        ),
        pytest.param(r"\pard\s1 " + "x" * 201 + r"\par}", "x" * 201, id="a heading as long as a paragraph"),
        pytest.param(r"\trowd\intbl\s1 Region\cell Gateway\cell\row}", "Region | Gateway", id="a row is no heading"),
    ],
)
def test_a_heading_of_rtf_is_told_by_its_level(tmp_path: Path, body: str, text: str) -> None:
    (tmp_path / "a.rtf").write_text(RTF + body)

    assert parse(tmp_path / "a.rtf").text == text


@pytest.mark.parametrize(
    ("line", "elsewhere", "text"),
    [
        pytest.param(
            "cross\ufffefunctional", "A cross-functional team", "cross-functional", id="written with a hyphen"
        ),
        pytest.param("infor\x02mation", "the information", "information", id="written as one word"),
        pytest.param("infor\ufffemation", "", "information", id="written nowhere else"),
        pytest.param("e\ufffemail", "e-mail or email", "email", id="written both ways"),
        pytest.param("COVID\ufffe19", "", "COVID-19", id="a number"),
        pytest.param("Nord\ufffeSüd", "", "Nord-Süd", id="a capital"),
        pytest.param("INFOR\ufffeMATION", "", "INFORMATION", id="capitals alone"),
        pytest.param("cross\ufffe", "", "cross", id="the end of a page"),
        pytest.param("1\ufffe2", "", "12", id="no word"),
    ],
)
def test_a_word_that_the_end_of_a_line_divides_is_as_elsewhere(line: str, elsewhere: str, text: str) -> None:
    found = _undivided([[_PdfLine(line, 9.0)], [_PdfLine(elsewhere, 9.0)]])

    assert found[0] == [_PdfLine(text, 9.0)]


def test_characters_beyond_the_first_plane_leave_rows_and_headings(tmp_path: Path) -> None:
    """The letter x is an emoji there, two of the numbers by which the library counts."""
    rows = ruled([["Region", "x Gateway"], ["Asia", "sg.vpn x"]])
    text = "".join(words(f"Line {n} x of the story.", 50, 300 - 12 * n) for n in range(9))
    path = pdf_of(tmp_path / "a.pdf", words("x Gateways", 50, 450, 20) + text + rows, unicode_of_x="D83DDE00")
    found = parse(path).text

    assert "# 😀 Gateways\n" in found
    assert {"Region | 😀 Gateway", "Asia | sg.vpn 😀", "Line 0 😀 of the story."} <= set(found.split("\n"))


def test_rtf_spells_its_characters(tmp_path: Path) -> None:
    assert written(tmp_path / "a.rtf").text.endswith("café")


def test_a_book_in_the_order_of_reading_each_page_once(tmp_path: Path) -> None:
    found = written(tmp_path / "a.epub")
    assert (found.title, found.text.count("# First")) == ("The book", 1)
    assert found.text.index("# First") < found.text.index("# Gateways")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_records_whatever_separates_their_values(tmp_path: Path, separator: str) -> None:
    (tmp_path / "a.csv").write_text(
        f'name{separator}note\nx{separator}"two\nlines{separator} quoted"\n\n\ny{separator}\n'
    )
    found = parse(tmp_path / "a.csv")
    lines = found.text.split("\n")
    assert lines[0] == "name | note" and lines[1].startswith("x | two lines")
    assert label_of(found, "y") == "Row 5"


def test_a_mail_says_who_wrote_and_names_its_attachments(tmp_path: Path) -> None:
    found = written(tmp_path / "a.eml")
    assert found.text.startswith("# Gateways\n\nFrom: ada@example.org\nTo: team@example.org\n\n")
    assert (found.title, found.members, "as a page" in found.text) == ("Gateways", ("list.csv",), False)
    assert parse(tmp_path / "a.eml", (0, ".csv")).text == "a | b\n1 | 2"


def test_a_mail_that_is_only_a_page_and_one_in_a_code_nobody_knows(tmp_path: Path) -> None:
    head = b"From: a@example.org\nSubject: x\nContent-Type: text/"
    (tmp_path / "a.eml").write_bytes(head + b"html\n\n<p>Hello <b>you</b></p>")
    (tmp_path / "b.eml").write_bytes(head + b"plain; charset=nonsense\n\nHello you")
    assert [parse(tmp_path / name).text for name in ("a.eml", "b.eml")] == [
        "# x\n\nFrom: a@example.org\n\nHello you"
    ] * 2


def test_a_mail_in_a_mail_is_one_member_and_keeps_its_own(tmp_path: Path) -> None:
    outer = mail(subject="Outer")
    outer.add_attachment(mail(("n.txt", b"note"), subject="Inner"))
    (tmp_path / "a.eml").write_bytes(outer.as_bytes())
    assert parse(tmp_path / "a.eml").members == ("mail.eml",)
    inner = parse(tmp_path / "a.eml", (0, ".eml"))
    assert (inner.title, inner.members) == ("Inner", ("n.txt",))
    assert parse(tmp_path / "a.eml", (0, ".eml"), (0, ".txt")).text == "note"


def test_a_mail_of_outlook() -> None:
    path = DATA / "mail_with_attachments.msg"
    found = parse(path)
    assert found.members == ("test-unicode.doc", "pj1.txt")
    assert found.text.startswith("# test pièce jointe 1\n\nFrom: ") and found.text.endswith("contenu")
    assert parse(path, (1, ".txt")).text


def test_a_zip_has_no_text_of_its_own(tmp_path: Path) -> None:
    zip_of(tmp_path / "a.zip", ("b/", b""), ("b/c.txt", b"words"))
    assert parse(tmp_path / "a.zip") == Parsed("", members=("b/c.txt",))
    assert parse(tmp_path / "a.zip", (0, ".txt")).text == "words"


def test_cells_of_several_lines_and_empty_ones_of_a_pdf(tmp_path: Path) -> None:
    rows = (("City", "Limit", "Note"), ("Paris", "", "only during\ntrade fairs"), ("Rome", "90", ""))
    around = words("Before.", 50, 460) + ruled(rows, width=100, height=24) + words("Behind.", 50, 200)
    text = parse(pdf_of(tmp_path / "a.pdf", around)).text
    assert [line for line in text.split("\n") if line] == [
        "Before.", "| City | Limit | Note |", "| Paris |  | only during trade fairs |", "| Rome | 90 |  |", "Behind."
    ]  # fmt: skip


def test_columns_of_a_pdf_without_rules_are_apart(tmp_path: Path) -> None:
    lines = ("Region", "Gateway"), ("Asia", "sg vpn"), ("Europe", "eu vpn")
    content = "".join(
        f"BT /F1 10 Tf 50 {400 - 15 * n} Td ({left} ) Tj 200 0 Td ({right}) Tj ET\n"
        for n, (left, right) in enumerate(lines)
    )
    assert parse(pdf_of(tmp_path / "a.pdf", content)).text == "Region\tGateway\nAsia\tsg vpn\nEurope\teu vpn"


def test_two_columns_of_text_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = "".join(words(f"left {n} goes on", 40, 400 - 12 * n) for n in range(6))
    right = "".join(words(f"right {n} goes on", 280, 400 - 12 * n) for n in range(6))
    text = parse(pdf_of(tmp_path / "a.pdf", left + right)).text
    assert text.index("left 5") < text.index("right 0")


def test_large_lines_of_a_pdf_are_headings_where_most_are_not(tmp_path: Path) -> None:
    body = "".join(words(f"Line {n} of what is said here.", 50, 400 - 12 * n) for n in range(20))
    assert parse(pdf_of(tmp_path / "a.pdf", words("Part", 50, 450, 24) + body)).text.startswith("# Part\n\nLine 0")
    all_large = "".join(words(f"Slide line {n}", 50, 400 - 30 * n, 20 + 8 * (n % 2)) for n in range(8))
    assert "#" not in parse(pdf_of(tmp_path / "b.pdf", all_large)).text


def test_content_controls_and_text_boxes_of_a_word_file(tmp_path: Path) -> None:
    document = docx.Document()
    body = document.element.body
    space = body.nsmap["w"]
    for xml in (
        "<w:sdt xmlns:w='{}'><w:sdtContent><w:p><w:r><w:t>in a control</w:t></w:r></w:p></w:sdtContent></w:sdt>",
        "<w:p xmlns:w='{}'><w:r><w:t>Name: </w:t></w:r><w:sdt><w:sdtContent><w:r><w:t>chosen</w:t></w:r></w:sdtContent>"
        "</w:sdt></w:p>",
    ):
        body.insert(len(body) - 1, docx.oxml.parse_xml(xml.format(space)))
    document.save(str(tmp_path / "a.docx"))
    assert parse(tmp_path / "a.docx").text == "in a control\n\nName: chosen"


@pytest.mark.parametrize("kind", [*WRITERS, "msg", "zip"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_file_of_any_kind_that_is_cut_is_read_or_named(tmp_path: Path, kind: str, share: float) -> None:
    path = tmp_path / f"a.{kind}"
    if kind in WRITERS:
        WRITERS[kind](path)
    elif kind == "zip":
        zip_of(path, ("a.txt", b"words"))
    else:
        path.write_bytes((DATA / "mail_with_attachments.msg").read_bytes())
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    try:
        assert isinstance(parse(path).text, str)
    except Unreadable as error:
        assert str(error).endswith(".")


class Counted:
    """A pattern that says how often it was looked for."""

    def __init__(self, pattern: re.Pattern[bytes], sought: list[int]) -> None:
        self.pattern, self.sought = pattern, sought

    def finditer(self, raw: bytes) -> Iterator[re.Match[bytes]]:
        self.sought.append(len(raw))
        return self.pattern.finditer(raw)


def test_a_mailbox_is_looked_through_once_for_all_its_mails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = b"From a@example.org Tue Mar  3 10:00:00 2026\nFrom: a@example.org\nSubject: mail %d\n\nHello\n\n"
    path = tmp_path / "a.mbox"
    path.write_bytes(b"".join(one % number for number in range(5)))
    sought: list[int] = []
    monkeypatch.setattr(mails, "_FROM", Counted(mails._FROM, sought))
    titles = []
    for number in range(5):
        with path.open("rb") as file:
            titles.append(registry.parse(file, path.name, [(number, ".eml")]).title)
    assert titles == [f"mail {number}" for number in range(5)]
    assert len(sought) == 1
    path.write_bytes(one % 7)
    with path.open("rb") as file:
        assert registry.parse(file, path.name, [(0, ".eml")]).title == "mail 7"
