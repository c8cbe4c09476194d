"""File names from other people, and what they become."""

from __future__ import annotations

import pytest

from datafari_rag.web.dropped_files import MAX_NAME_BYTES, file_name_of

NAMES = [
    pytest.param("report.pdf", "report.pdf", id="a plain name"),
    pytest.param("Übersicht 2026.docx", "Übersicht 2026.docx", id="letters and spaces"),
    pytest.param("U\u0308ber.md", "Über.md", id="letters in two characters"),
    pytest.param("../../etc/passwd.txt", "passwd.txt", id="a way up"),
    pytest.param("/etc/cron.d/job.txt", "job.txt", id="an absolute path"),
    pytest.param("C:\\Users\\ann\\note.txt", "note.txt", id="a path of Windows"),
    pytest.param("..\\..\\note.txt", "note.txt", id="a way up in Windows"),
    pytest.param(".bashrc.txt", "bashrc.txt", id="a hidden file"),
    pytest.param("...a.txt", "a.txt", id="dots before"),
    pytest.param("a.txt. .", "a.txt", id="dots and spaces behind"),
    pytest.param("a\r\n\x1b[31mb.txt", "a[31mb.txt", id="commands to a terminal"),
    pytest.param("invoice\u202etxt.exe.pdf", "invoicetxt.exe.pdf", id="a mark that turns the direction of writing"),
    pytest.param("a\x00.txt", "a.txt", id="a null character"),
    pytest.param("a\ud800.txt", "a.txt", id="half a character"),
    pytest.param("<img src=x onerror=alert(1)>.md", "<img src=x onerror=alert(1)>.md", id="markup is text"),
    pytest.param("report", None, id="no ending"),
    pytest.param("report.", None, id="an empty ending"),
    pytest.param(".pdf", None, id="an ending alone"),
    pytest.param("..", None, id="the folder above"),
    pytest.param("folder/", None, id="a folder"),
    pytest.param("", None, id="nothing"),
    pytest.param("\u200b.txt", None, id="nothing that can be seen"),
    pytest.param("a." + "x" * 17, None, id="an ending that is none"),
]


@pytest.mark.parametrize(("named", "kept"), NAMES)
def test_a_name_is_one_name_in_one_folder(named: str, kept: str | None) -> None:
    assert file_name_of(named) == kept


@pytest.mark.parametrize("letter", ["a", "é", "界", "🦓", "/", ".", " ", "\u0301"], ids=ascii)
def test_a_long_name_is_cut_and_keeps_its_ending(letter: str) -> None:
    kept = file_name_of("b" + letter * 50_000 + "c.docx") or ""

    assert kept.endswith(".docx")
    assert 0 < len(kept.encode()) <= MAX_NAME_BYTES
