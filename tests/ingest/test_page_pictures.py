"""A page of an indexed PDF file as a picture: the words that are marked, and every file that is not shown."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from datafari_rag.core.documents import FILE_FIELD, Document
from datafari_rag.core.errors import NotFound, Overloaded
from datafari_rag.ingest import page_pictures
from datafari_rag.ingest.page_pictures import PagePictures
from datafari_rag.ingest.page_words import PageJob, letters_of, places_of
from datafari_rag.ingest.sandbox import SandboxLimits
from tests.attack.test_ingest import CATALOGUE, HANGS, PAGES, packed_stream, pdf_file
from tests.ingest import paged
from tests.ingest.house import House
from tests.ingest.parsers.written import pdf_of, words


@pytest.fixture
def pictures() -> PagePictures:
    return PagePictures()


def span_of(document: Document, text: str) -> tuple[int, int]:
    start = document.text.index(text)
    return start, start + len(text)


def indexed(house: House, write: Callable[[Path], object], name: str = "a.pdf") -> Document:
    path = house.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    house.run()
    return paged.document_in(house, name)


@pytest.mark.parametrize(
    ("write", "page", "quote", "box"),
    [
        pytest.param(paged.two_columns, 2, paged.LEFT[0], (7, 18, 35, 21), id="a line of the left column"),
        pytest.param(paged.two_columns, 2, paged.RIGHT[0], (55, 18, 83, 21), id="a line of the right column"),
        pytest.param(paged.table, 1, "Grace Hopper", (40, 28, 51, 30), id="a cell of a table"),
        pytest.param(paged.rotated, 1, paged.LEFT[0], (79, 7, 82, 35), id="a page that is turned"),
        pytest.param(paged.scanned, 1, paged.LEFT[0], (7, 18, 35, 21), id="a scan with a text behind it"),
    ],
)
def test_the_words_are_marked_where_they_stand(
    house: House, pictures: PagePictures, write: Callable[[Path], object], page: int, quote: str, box: tuple[int, ...]
) -> None:
    document = indexed(house, write)
    drawn = pictures(document, page, span_of(document, quote), 800)
    found = paged.yellow(drawn.png)
    assert drawn.is_marked is True and found is not None and found[4] == 800
    assert all(abs(is_at - meant) <= 3 for is_at, meant in zip(found[:4], box, strict=True)), found
    assert paged.yellow(pictures(document, page, None, 800).png) is None


def test_a_passage_is_marked_across_lines_and_their_hyphens(house: House, pictures: PagePictures) -> None:
    document = indexed(house, paged.two_columns)
    start = document.text.index(paged.LEFT[0])
    end = document.text.index("Lyon.") + 5
    drawn = pictures(document, 2, (start, end), 800)
    found = paged.yellow(drawn.png)
    assert drawn.is_marked is True and found is not None
    assert found[3] - found[1] > 5 and found[2] < 50, "three lines of the left column, nothing of the right one"


def test_a_row_is_marked_cell_by_cell_where_the_page_has_another_order() -> None:
    letters = letters_of("Hall North hall South hall Inspector Ada Lovelace Grace Hopper")

    def found(*cells: str, repeats: int = 0) -> list[str]:
        job = PageJob(1, 100, [letters_of(cell) for cell in cells], repeats, "")
        return [f"{start} {letters[start:end]}" for start, end in places_of(job, letters)]

    assert found("South hall", "Grace Hopper") == ["13 southhall", "42 gracehopper"]
    assert found("South hall", "Another name that is longer") == []
    assert found("hall", repeats=2) == ["18 hall"] and found("hall", repeats=9) == ["18 hall"], "fewer: the last"


@pytest.mark.parametrize("text", ["e\u0301tat", "\u00e9tat", "\u00c9TAT", "e\u00adtat", "e-\ntat"])
def test_letters_are_compared_without_what_typography_adds(text: str) -> None:
    assert letters_of(text) == "etat"


def test_of_words_that_stand_there_several_times_the_right_ones_are_marked(
    house: House, pictures: PagePictures
) -> None:
    document = indexed(
        house, lambda path: pdf_of(path, words("Closed on Monday", 50, 400) + words("Closed on Monday", 50, 100))
    )
    second = document.text.rindex("Closed")
    found = paged.yellow(pictures(document, 1, (second, second + 16), 400).png)
    assert found is not None and found[1] > 70


def test_a_passage_that_goes_on_is_marked_on_both_pages(house: House, pictures: PagePictures) -> None:
    document = indexed(
        house, lambda path: pdf_of(path, words("the first half", 50, 100), words("the second half", 50, 400), "0 g")
    )
    whole = (document.text.index("first"), document.text.index("second half") + len("second half"))
    drawn = [pictures(document, page, whole, 400) for page in (1, 2, 3)]
    assert [one.is_marked for one in drawn] == [True, True, None] and {one.pages for one in drawn} == {3}


def test_a_text_that_no_letter_of_the_page_has_is_not_marked(house: House, pictures: PagePictures) -> None:
    document = indexed(house, paged.two_columns)
    text = "Words that OCR read from a picture. "
    other = replace(document, text=text, places="0 page 2")
    drawn = pictures(other, 2, (0, len(text)), 400)
    assert drawn.is_marked is False and paged.yellow(drawn.png) is None


@pytest.mark.parametrize(
    ("sides", "size"),
    [((500, 500), (1600, 1600)), ((500, 50_000), None), ((14_400, 14_400), (1600, 1600)), ((3, 3), (1600, 1600))],
)
def test_a_picture_is_a_png_of_bounded_size(
    house: House, pictures: PagePictures, sides: tuple[int, int], size: tuple[int, int] | None
) -> None:
    box = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents 4 0 R>>" % sides
    document = drawable(house, lambda path: pdf_file(path, CATALOGUE, PAGES, box, packed_stream(b"0 g")))
    picture = Image.open(BytesIO(pictures(document, 1, None, 1600).png))
    assert picture.format == "PNG" and (size is None or picture.size == size)
    assert picture.width * picture.height <= 8_100_000 and picture.width <= 1600


def drawable(house: House, write: Callable[[Path], object]) -> Document:
    """Return the document of a file without text, as if it had been indexed with some."""
    path = house.root / "hostile.pdf"
    document = indexed(house, paged.two_columns, "good.pdf")
    write(path)
    now, good = path.stat(), str(document.file).split()
    stamp = f"{now.st_size} {now.st_mtime_ns} {good[2]} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return replace(document, id=path.as_uri(), file=stamp)


def is_hidden(pictures: PagePictures, document: Document, page: int = 1) -> bool:
    with pytest.raises(NotFound):
        pictures(document, page, None, 200)
    return True


MANY = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 500]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>"


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(paged.locked, id="locked by a password"),
        pytest.param(lambda path: path.write_bytes(b"%PDF-1.4\nno more"), id="broken"),
        pytest.param(lambda path: path.write_bytes(b"no PDF at all"), id="no PDF"),
        pytest.param(
            lambda path: pdf_file(path, CATALOGUE, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"), id="pages in a circle"
        ),
    ],
)
def test_what_cannot_be_drawn_is_not_found(
    house: House, pictures: PagePictures, write: Callable[[Path], object]
) -> None:
    assert is_hidden(pictures, drawable(house, write))


def test_a_page_that_takes_more_than_the_limits_is_not_found(house: House) -> None:
    """Each form draws the next one twenty times, so that a file of two kilobytes has 64 million lines."""
    form = b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</I %d 0 R>>>>"
    forms = [packed_stream(b"/I Do " * 20).replace(b"<<", form % number, 1) for number in range(6, 12)]
    parts = (packed_stream(b"/I Do"), *forms, packed_stream(b"0 0 m 9 9 l S").replace(b"<<", form % 99, 1))
    document = drawable(house, lambda path: pdf_file(path, CATALOGUE, PAGES, MANY, *parts))
    assert is_hidden(PagePictures(SandboxLimits(seconds=2)), document)


@pytest.mark.parametrize("name", [name for name in HANGS if name.endswith(".pdf")])
def test_a_hostile_file_is_a_bounded_picture_or_none(house: House, name: str) -> None:
    document = drawable(house, HANGS[name])
    try:
        png = PagePictures(SandboxLimits(seconds=5))(document, 1, (0, 9), 200).png
    except NotFound:
        return
    assert Image.open(BytesIO(png)).width == 200


def test_a_picture_in_a_page_is_unpacked_to_what_is_shown_of_it(house: House, pictures: PagePictures) -> None:
    """Of 900 MB as one image pdfium reads line by line; whatever it does, the answer is bounded."""
    kind = b"<</Type/XObject/Subtype/Image/Width 30000/Height 30000/ColorSpace/DeviceGray/BitsPerComponent 8"
    image = packed_stream(packed_stream(b"\0" * 30_000)[-60:] * 2).replace(b"<<", kind, 1)
    content = packed_stream(b"q 500 0 0 500 0 0 cm /I Do Q")
    document = drawable(house, lambda path: pdf_file(path, CATALOGUE, PAGES, MANY, content, image))
    assert Image.open(BytesIO(pictures(document, 1, None, 400).png)).size == (400, 400)


def test_no_more_pages_are_drawn_at_a_time_than_a_worker_has_room_for(
    house: House, pictures: PagePictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = indexed(house, paged.two_columns)
    monkeypatch.setattr(page_pictures, "AT_ONCE", 0)
    monkeypatch.setattr(page_pictures, "WAIT_S", 0.0)
    with pytest.raises(Overloaded):
        PagePictures()(document, 1, None, 64)
    assert pictures(document, 1, None, 64).pages == 3


def test_pages_that_there_are_not_are_not_found(house: House, pictures: PagePictures) -> None:
    document = indexed(house, paged.two_columns)
    assert all(is_hidden(pictures, document, page) for page in (0, 4, 999_999_999_999))


def changed_text(path: Path) -> None:
    paged.rotated(path)


def same_size_and_time(path: Path) -> None:
    """Somebody with the right to write exchanges the content, and sets the time back."""
    before, raw = path.stat(), path.read_bytes()
    path.write_bytes(raw.replace(b"Welcome", b"welcome"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def link_to_a_copy(path: Path) -> None:
    """The same bytes, size and time, but behind a link."""
    before = path.stat()
    aside = path.parent.parent / "aside.pdf"
    path.rename(aside)
    path.symlink_to(aside)
    os.utime(aside, ns=(before.st_atime_ns, before.st_mtime_ns))


def linked_folder(path: Path) -> None:
    path.parent.rename(path.parent.parent.parent / "elsewhere")
    path.parent.symlink_to(path.parent.parent.parent / "elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "change",
    [changed_text, same_size_and_time, link_to_a_copy, linked_folder, pipe, Path.unlink, lambda path: os.utime(path)],
    ids=["changed", "same size and time", "a link", "a folder that is a link", "a pipe", "gone", "another time"],
)
def test_a_file_that_is_not_as_it_was_indexed_is_not_shown(
    house: House, pictures: PagePictures, change: Callable[[Path], object]
) -> None:
    document = indexed(house, paged.two_columns, "inner/a.pdf")
    assert pictures(document, 1, None, 200).pages == 3
    change(house.root / "inner/a.pdf")
    assert is_hidden(pictures, document)


@pytest.mark.parametrize(
    "lie",
    [
        lambda one: replace(one, file=None),
        lambda one: replace(one, file="1 2 3"),
        lambda one: replace(one, file=f"{one.file} 1"),
        lambda one: replace(one, id=one.id.replace("file://", "file://host")),
        lambda one: replace(one, id=one.id.replace("/files/", "/files/../files/")),
        lambda one: replace(one, id=one.id.replace("/a.pdf", "//a.pdf")),
        lambda one: replace(one, id=f"{one.id}#inner"),
        lambda one: replace(one, id=f"{one.id}%00"),
        lambda one: replace(one, id=one.id.replace("file://", "https://")),
        lambda one: replace(one, file=str(one.file).replace(" 1 ", " 9999 ")),
        lambda one: replace(one, file=str(one.file).replace(" 1 ", " 0 "), id=one.id.replace("a.pdf", "")),
    ],
)
def test_an_address_or_a_stamp_that_no_run_wrote_opens_nothing(
    house: House, pictures: PagePictures, lie: Callable[[Document], Document]
) -> None:
    assert is_hidden(pictures, lie(indexed(house, paged.two_columns)))


def test_files_by_any_name_are_shown_and_only_pdf_files_have_a_stamp(house: House, pictures: PagePictures) -> None:
    assert pictures(indexed(house, paged.two_columns, "é%20 #?&\u202e.PDF"), 1, None, 64).pages == 3
    house.write("a.txt", "some words")
    house.write("a.jsonl", [{"id": "x", "content": "words", FILE_FIELD: "1 2 3 " + "0" * 64}])
    house.run()
    stamped = [name for name, stored in house.writer.found.items() if FILE_FIELD in stored]
    assert len(house.writer.found) == 3 and [name[-4:] for name in stamped] == [".PDF"]


def test_a_file_named_as_the_path_is_shown(house: House, pictures: PagePictures) -> None:
    path = house.root / "a.pdf"
    paged.two_columns(path)
    house.run(path)
    document = paged.document_in(house, "a.pdf")
    drawn = pictures(document, 1, None, 64)
    assert struct.unpack(">II", drawn.png[16:24]) == (64, 64) and str(document.file).split()[2] == "0"


def test_of_a_long_passage_the_beginning_is_marked(house: House, pictures: PagePictures) -> None:
    lines = [f"Rule {number} says that hall {number} is closed at night." for number in range(60)]
    page = "".join(words(line, 40, 480 - 8 * number, 7) for number, line in enumerate(lines))
    document = indexed(house, lambda path: pdf_of(path, page))
    drawn = pictures(document, 1, (0, len(document.text)), 400)
    found = paged.yellow(drawn.png)
    assert drawn.is_marked is True and found is not None and 40 < found[3] < 60


def test_letters_that_take_more_room_than_a_job_has_fail_alone(house: House, pictures: PagePictures) -> None:
    document = indexed(house, paged.two_columns)
    long = replace(document, text="\ufdfa" * 2_000, places="0 page 1")
    with pytest.raises(NotFound):
        pictures(long, 1, (0, 2_000), 64)
    assert pictures(document, 1, None, 64).pages == 3
