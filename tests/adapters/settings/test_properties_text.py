"""The text of a properties file: read with lines."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.settings.file import decoded, entries_of

READ = [
    pytest.param("a=1\nb:2\nc 3\n", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")], id="three ways to separate"),
    pytest.param("# x\n\n! y\n  a = 1", [(4, "a", "1")], id="comments and blank lines count"),
    pytest.param("a=1\\\n  2\\\n  3\nb=4", [(1, "a", "123"), (4, "b", "4")], id="continued lines count"),
    pytest.param("a=1\r\nb=2\rc=3", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")], id="line ends of all systems"),
    pytest.param("a=caf\\u00e9 \\ud83d\\ude00", [(1, "a", "café 😀")], id="escapes"),
    pytest.param("", [], id="nothing"),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_entries_have_their_lines(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert [(entry.line, entry.key, entry.value) for entry in entries_of(text)] == expected


def test_every_bad_escape_spoils_its_own_entry_alone() -> None:
    text = "# \\uzz is a comment\na=C:\\users\nb=1\nc=x\\\n  #\\unit\nd=\\\\u fine\ne=\\u00"
    assert [(entry.line, entry.key, "\0" in entry.value) for entry in entries_of(text)] == [
        (2, "a", True),
        (3, "b", False),
        (4, "c", True),
        (6, "d", False),
        (7, "e", True),
    ]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param("a=é".encode(), "a=é", id="UTF-8"),
        pytest.param("a=é".encode("latin-1"), "a=é", id="Latin-1"),
        pytest.param(b"\xef\xbb\xbfa=1", "a=1", id="with a byte order mark"),
    ],
)
def test_both_encodings_are_read(data: bytes, text: str) -> None:
    assert decoded(data) == text
