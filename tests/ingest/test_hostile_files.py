"""Files that want time, memory or the process: each ends in a sentence that names it, and the others go on."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import odfdo
import pytest
import xlsxwriter
from PIL import Image
from pypdf import PdfReader, PdfWriter

from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable
from datafari_rag.ingest.sandbox import Sandbox, SandboxLimits
from tests.ingest.parsers.written import WRITERS, loop_zip, pdf_of, words, zip_of

LIMITS = SandboxLimits(seconds=20, memory_mb=700)
ENTITIES = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "lolololololololololol">'
    + "".join(f'<!ENTITY {after} "{f"&{name};" * 10}">' for name, after in zip("abcdefghi", "bcdefghij", strict=True))
    + '<!ENTITY f SYSTEM "file:///etc/passwd">]>'
)
PARTS = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/sharedStrings.xml",
    "ods": "content.xml",
    "odt": "content.xml",
    "odp": "content.xml",
    "epub": "o/b.opf",
}
LOCKED = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000)


@pytest.fixture(scope="module")
def reader() -> Iterator[Sandbox]:
    with Sandbox(LIMITS) as sandbox:
        yield sandbox


def read(reader: Sandbox, path: Path, *inside: tuple[int, str]) -> Parsed | str:
    """Return what is found in *path*, or the sentence that names it."""
    number = os.open(path, os.O_RDONLY)
    try:
        return reader.parse(number, path.name, None, inside)
    except Unreadable as error:
        return str(error)
    finally:
        os.close(number)


def changed(path: Path, part: str, change: Callable[[bytes], bytes]) -> None:
    """Write the ZIP file *path* again, with *part* changed."""
    with zipfile.ZipFile(path) as packed:
        members = [(name, packed.read(name)) for name in packed.namelist()]
    zip_of(path, *((name, change(raw) if name == part else raw) for name, raw in members))


def declared(path: Path, size: int) -> None:
    """Write a ZIP file of one entry that says that it unpacks to *size* bytes."""
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("content.xml", b"x")
        packed.infolist()[0].file_size = size


@pytest.mark.parametrize("kind", [*PARTS, "xlsm", "zip"])
def test_what_unpacks_without_end_is_named(reader: Sandbox, tmp_path: Path, kind: str) -> None:
    declared(tmp_path / f"a.{kind}", 600_000_000)
    assert "unpacks to more than 500 MB" in str(read(reader, tmp_path / f"a.{kind}"))


@pytest.mark.parametrize("kind", [*PARTS, "zip"])
def test_what_unpacks_to_more_than_it_says_is_named(reader: Sandbox, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind in WRITERS:
        WRITERS[kind](path)
        changed(path, PARTS[kind], lambda raw: raw + b" " * 20_000_000)
    else:
        zip_of(path, ("a.txt", b" " * 20_000_000))
    # The size is before the entry and in the list at the end.
    path.write_bytes(path.read_bytes().replace((20_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    found = read(reader, path, (0, ".txt")) if kind == "zip" else read(reader, path)
    assert isinstance(found, str) or len(found.text) < MAX_CHARS


@pytest.mark.parametrize("kind", PARTS)
def test_entities_are_neither_multiplied_nor_fetched(reader: Sandbox, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    WRITERS[kind](path)

    def laughing(raw: bytes) -> bytes:
        body = raw.partition(b"?>")[2] if raw.startswith(b"<?xml") else raw
        for word in (b"Gateway", b"Welcome", b"The book"):
            body = body.replace(word, b"&j;&f;")
        return ENTITIES.encode() + body

    changed(path, PARTS[kind], laughing)
    found = read(reader, path)
    text = found if isinstance(found, str) else found.text
    assert "lolol" not in text and "root:" not in text and len(text) < 10_000


@pytest.mark.parametrize("kind", PARTS)
def test_elements_nested_without_end_are_read_or_named(reader: Sandbox, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    WRITERS[kind](path)
    deep = 100_000
    changed(path, PARTS[kind], lambda raw: raw.replace(b"Gateway", b"<x>" * deep + b"</x>" * deep))
    found = read(reader, path)
    assert found.endswith(".") if isinstance(found, str) else len(found.text) < MAX_CHARS


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "braces.rtf": (lambda path: path.write_text("{\\rtf1" + "{" * 300_000 + "x" + "}" * 300_000), ""),
    "words.rtf": (lambda path: path.write_text("{\\rtf1 " + "\\pard\\u-1?" * 100_000 + "}"), ""),
    "empty.rtf": (lambda path: path.write_text("{\\rtf1 {\\*\\generator x}}"), "No text"),
    "not.rtf": (lambda path: path.write_text("words"), "not an RTF"),
    "parts.eml": (
        lambda path: path.write_text(
            "From: a\n" + "".join(f'Content-Type: multipart/mixed; boundary="{n}"\n\n--{n}\n' for n in range(1000))
        ),
        "",
    ),
    "many.eml": (
        lambda path: path.write_text(
            'From: a\nContent-Type: multipart/mixed; boundary="b"\n\n' + "--b\n\nx\n" * 2100 + "--b--\n"
        ),
        "more than 2,000 parts",
    ),
    "heads.eml": (lambda path: path.write_text("From: " + "=?utf-8?q?a?= " * 50_000 + "\n\nx"), ""),
    "not.eml": (lambda path: path.write_text("words"), "not a mail"),
    "locked.xlsx": (lambda path: path.write_bytes(LOCKED), "workbook"),
    "locked.docx": (lambda path: path.write_bytes(LOCKED), "password"),
    "locked.pptx": (lambda path: path.write_bytes(LOCKED), "password"),
    "broken.msg": (lambda path: path.write_bytes(LOCKED), "broken"),
    "loop.msg": (lambda path: path.write_bytes(LOCKED[:512] + bytes([0, 0, 0, 0] * 5000)), "broken"),
    "locked.odt": (lambda path: sealed(path), "password"),
    "locked.zip": (lambda path: sealed(path), "password"),
    "locked.epub": (
        lambda path: (
            WRITERS["epub"](path),
            changed(path, "mimetype", lambda raw: raw),
            added(path, "META-INF/encryption.xml", b"<e><EncryptedKey/></e>"),
        ),
        "publisher",
    ),
    "locked.pdf": (lambda path: locked_pdf(path), "password"),
    "loop.pdf": (lambda path: looping_pdf(path), ""),
    "rules.pdf": (lambda path: pdf_of(path, "".join(f"{n} 0 m {n} 500 l S\n" for n in range(0, 500, 1)) * 3
        + "".join(f"0 {n} m 500 {n} l S\n" for n in range(0, 500, 1)) + words("squared", 50, 50)), ""),
    "huge.pdf": (lambda path: pdf_of(path, "q " * 2_000_000), "no text"),
    "corners.xlsx": (lambda path: corners(path), ""),
    "repeated.ods": (lambda path: repeated(path), ""),
    "repeated.odt": (lambda path: repeated_odt(path), ""),
    "commas.csv": (lambda path: path.write_text("," * 500_000 + "\n;" * 100_000), ""),
    "span.html": (lambda path: path.write_text("<table><tr><td>a<td colspan=9999>b<tr><td>c<td>d<td>e</table>"), ""),
    "hidden.rtf": (lambda path: path.write_text("{\\rtf1 " + "{\\v " * 50_000 + "x"), "No text"),
    "wide.csv": (lambda path: path.write_text('"' + "x" * 2_000_000), "1,000,000 characters"),
    "huge.png": (lambda path: Image.new("1", (9000, 9000)).save(path), "dots|picture"),
    "bomb.bmp": (lambda path: path.write_bytes(b"BM" + bytes(12) + b"\x28\0\0\0" + b"\xff\xff\xff\x7f" * 9),
        "picture"),
}  # fmt: skip


def sealed(path: Path) -> None:
    zip_of(path, ("content.xml", b"x"))
    raw = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(mark) + place] |= 1
    path.write_bytes(raw)


def added(path: Path, name: str, raw: bytes) -> None:
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr(name, raw)


def locked_pdf(path: Path) -> None:
    writer = PdfWriter(PdfReader(pdf_of(path, words("secret", 50, 50))))
    writer.encrypt("x", algorithm="RC4-128")
    writer.write(path)


def looping_pdf(path: Path) -> None:
    pdf_of(path, words("one", 50, 50))
    raw = path.read_bytes()
    # The tree of pages has itself among its children.
    begin = raw.index(b"/Kids [") + 7
    path.write_bytes(raw[:begin] + b" 1 0 R " + raw[begin:])


def corners(path: Path) -> None:
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        sheet.write(0, 0, "a")
        sheet.write(1_048_575, 16_383, "b")


def repeated(path: Path) -> None:
    WRITERS["ods"](path)
    changed(
        path,
        "content.xml",
        lambda raw: raw.replace(b"<table:table-row", b'<table:table-row table:number-rows-repeated="1048576"').replace(
            b"<table:table-cell", b'<table:table-cell table:number-columns-repeated="1024"'
        ),
    )


def repeated_odt(path: Path) -> None:
    document = odfdo.Document("text")
    table = odfdo.Table("t", 2, 2)
    document.body.append(table)
    document.save(str(path))
    changed(
        path,
        "content.xml",
        lambda raw: raw.replace(b"<table:table-row", b'<table:table-row table:number-rows-repeated="9999999"').replace(
            b"<table:table-cell", b'<table:table-cell table:number-columns-repeated="99999"'
        ),
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_named_or_read_within_the_bounds(reader: Sandbox, tmp_path: Path, name: str) -> None:
    make, wanted = HOSTILE[name]
    make(tmp_path / name)
    found = read(reader, tmp_path / name)
    if wanted:
        assert isinstance(found, str), found.text[:100]
        assert any(word in found for word in wanted.split("|")), found
    else:
        assert found.endswith(".") if isinstance(found, str) else len(found.text) <= MAX_CHARS


def test_a_million_cells_are_read(reader: Sandbox, tmp_path: Path) -> None:
    row = ",".join(["12.5"] * 100)
    (tmp_path / "a.csv").write_text(f"{row}\n" * 10_000)
    found = read(reader, tmp_path / "a.csv")
    assert not isinstance(found, str) and found.text.count("|") == 990_000


def test_macros_are_not_looked_at(reader: Sandbox, tmp_path: Path) -> None:
    WRITERS["xlsx"](tmp_path / "a.xlsx")
    added(tmp_path / "a.xlsx", "xl/vbaProject.bin", b'Sub Auto_Open()\nShell "touch /tmp/opened"\nEnd Sub')
    (tmp_path / "a.xlsx").rename(tmp_path / "a.xlsm")
    found = read(reader, tmp_path / "a.xlsm")
    assert not isinstance(found, str) and "sg.vpn.example.org" in found.text and "Auto_Open" not in found.text


def test_a_member_that_is_none_is_named(reader: Sandbox, tmp_path: Path) -> None:
    zip_of(tmp_path / "a.zip", ("a.docx", b"nothing"), ("b.zip", loop_zip(2)))
    assert "broken" in str(read(reader, tmp_path / "a.zip", (0, ".docx")))
    inner = read(reader, tmp_path / "a.zip", (1, ".zip"), (0, ".zip"), (0, ".txt"))
    assert not isinstance(inner, str) and inner.text == "deep"


@pytest.mark.slow
def test_a_zip_of_very_many_names_is_named(reader: Sandbox, tmp_path: Path) -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as whole:
        for number in range(100_001):
            whole.writestr(zipfile.ZipInfo(str(number)), b"")
    (tmp_path / "a.zip").write_bytes(packed.getvalue())
    assert isinstance(read(reader, tmp_path / "a.zip"), str)
