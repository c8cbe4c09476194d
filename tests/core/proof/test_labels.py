from __future__ import annotations

import sys
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.documents import Document
from datafari_rag.core.proof.labels import DocumentLabels, file_name, key_of, labels_for, title_of


@pytest.mark.parametrize(
    ("title", "url", "wanted"),
    [
        pytest.param("Plan", "file:///x/a.pdf", "Plan", id="the title"),
        pytest.param(None, "file:///x/My%20plan.pdf", "My plan.pdf", id="else the file name of the URL"),
        pytest.param("  ", "https://host/dir/", "dir", id="else the last folder of the URL"),
        pytest.param(None, "http://[bad", "id-1", id="else the id, also when the URL cannot be read"),
        pytest.param("Plan [final].pdf", None, "Plan final.pdf", id="brackets are taken out"),
        pytest.param("【Draft】［x］", None, "Draftx", id="full-width brackets too"),
        pytest.param("Part 1: Costs: all", None, "Part 1 Costs all", id="no colon before a space"),
        pytest.param("En juillet : fruits", None, "En juillet fruits", id="one space where a colon was"),
        pytest.param("a\r\nb\u2028c\u200b", None, "a b c", id="neither line ends nor invisible characters"),
        pytest.param("[]", None, "id-1", id="the id when nothing is left"),
        pytest.param("x" * 80, None, "x" * 60, id="sixty characters at most"),
    ],
)
def test_a_label_is_short_and_plain(title: str | None, url: str | None, wanted: str) -> None:
    assert labels_for([Document("id-1", "", title=title, url=url)]) == (wanted,)


@pytest.mark.parametrize(
    "title", ["1", " 2. ", "[3]", "１", "①", "doc 1", "Source: 2", "Document #3", "^4", "1, 2", "5†x"]
)
@pytest.mark.parametrize(
    ("url", "id_", "wanted"),
    [
        pytest.param("https://host/tariff.pdf", "7", "tariff.pdf", id="the file's name"),
        pytest.param("https://host/2/", "leaflet", "leaflet", id="the id where the file's name is a number too"),
        pytest.param("https://host/2/", "7", "document", id="neither"),
    ],
)
def test_a_title_that_reads_as_a_number_is_no_label(title: str, url: str, id_: str, wanted: str) -> None:
    labels = labels_for([Document("first", "", title="Handbook"), Document(id_, "", title=title, url=url)])
    assert labels == ("Handbook", wanted)
    assert DocumentLabels(labels).places("1") == (0,) and DocumentLabels(labels).places("2") == (1,)


def test_labels_never_clash_however_they_are_written() -> None:
    titles = ["Plan", "plan", "PLAN", "ﬁle", "file", "Plan (2)", "y" * 70, "y" * 70]
    labels = labels_for([Document(str(number), "", title=title) for number, title in enumerate(titles)])
    assert labels[:4] == ("Plan", "plan (2)", "PLAN (3)", "ﬁle")
    assert labels[4:6] == ("file (2)", "Plan (2) (2)")
    assert labels[7] == "y" * 56 + " (2)"


def test_a_thousand_documents_of_one_title_are_numbered_without_comparing_them_in_pairs() -> None:
    documents = [Document(str(number), "", title="Report") for number in range(1_000)]
    comparisons = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal comparisons
        comparisons += event == "call" and frame.f_code is key_of.__code__

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        labels = labels_for(documents)
    finally:
        sys.setprofile(before)
    assert labels[::333] == ("Report", "Report (334)", "Report (667)", "Report (1000)")
    assert comparisons < 10 * len(documents)


@given(st.lists(st.text(max_size=80), max_size=6))
def test_whatever_the_titles_labels_are_unique_bounded_and_free_of_marks(titles: list[str]) -> None:
    labels = labels_for([Document(f"id{number}", "", title=title) for number, title in enumerate(titles)])
    assert len({key_of(label) for label in labels}) == len(titles)
    assert [DocumentLabels(labels).places(f"{number}") for number in range(1, 7)] == [
        (number,) if number < len(titles) else () for number in range(6)
    ]
    assert all(0 < len(label) <= 60 and not set("[]\n\r") & set(label) for label in labels)
    assert not any(": " in label for label in labels)


HIDDEN = "\u202e\u2066\u200b\u00ad\ufeff\U000e0041\x1b\x07"


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        pytest.param(Document("id", "", title=f"exe.{HIDDEN}txt\r\n é "), "exe.txt  é", id="a title"),
        pytest.param(Document("id", "", title=HIDDEN, url="file:///a%E2%80%AEb.pdf"), "ab.pdf", id="the file's name"),
        pytest.param(Document(f"i{HIDDEN}d", "", title=" "), "id", id="the id"),
        pytest.param(Document(HIDDEN, ""), "document", id="nothing that is seen"),
    ],
)
def test_a_title_is_read_as_it_stands(document: Document, wanted: str) -> None:
    assert title_of(document) == wanted


def test_of_names_that_are_long_the_first_characters_are_read() -> None:
    assert title_of(Document("id", "", title="x" * 2001)) == "x" * 2000
    assert title_of(Document("x" * 2001, "")) == "x" * 2000
    assert file_name("file:///" + "x" * 2001) == "x" * 2000


LONG = DocumentLabels(["x" * 240, "x" * 241])


def test_longer_brackets_than_marks_are_name_nothing() -> None:
    assert LONG.places("x" * 240) == (0,)
    assert LONG.places("x" * 241) == ()
