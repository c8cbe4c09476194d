"""The text of a properties file: read with lines, edited without touching the rest."""

from __future__ import annotations

import javaproperties
import pytest

from datafari_rag.adapters.settings.file import decoded, edited, entries_of

READ = [
    pytest.param("a=1\nb:2\nc 3\n", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")], id="three ways to separate"),
    pytest.param("# x\n\n! y\n  a = 1", [(4, "a", "1")], id="comments and blank lines count"),
    pytest.param("a=1\\\n  2\\\n  3\nb=4", [(1, "a", "123"), (4, "b", "4")], id="continued lines count"),
    pytest.param("a=1\r\nb=2\rc=3", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3")], id="line ends of all systems"),
    pytest.param("a=caf\\u00e9 \\ud83d\\ude00", [(1, "a", "café 😀")], id="escapes"),
    pytest.param("a", [(1, "a", "")], id="a key alone"),
    pytest.param("", [], id="nothing"),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_entries_have_their_lines(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert [(entry.line, entry.key, entry.value) for entry in entries_of(text)] == expected


def test_every_bad_escape_is_a_flaw_of_its_own_entry() -> None:
    text = "# \\uzz is a comment\na=C:\\users\nb=1\nc=x\\\n  #\\unit\nd=\\\\u fine\ne=\\u00"
    assert [(entry.line, entry.key, bool(entry.flaw)) for entry in entries_of(text)] == [
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
def test_both_encodings_are_read_and_written_back(data: bytes, text: str) -> None:
    assert decoded(data).text == text
    assert decoded(data).encoded() == data


EDITS = [
    pytest.param("# c\na = 1\nb=2\n", {"a": "9"}, "# c\na = 9\nb=2\n", id="spacing stays"),
    pytest.param("a=1\r\nb=2", {"b": "3"}, "a=1\r\nb=3\r\n", id="the file's line ends stay"),
    pytest.param("a=1\\\n  2\nb=3\n", {"a": "4"}, "a=4\nb=3\n", id="a continued value becomes one line"),
    pytest.param("a=1\n#x\na=2\n", {"a": "3"}, "a=1\n#x\na=3\n", id="of doubles the one that counts"),
    pytest.param("a 1\n", {"a": "2"}, "a=2\n", id="a blank for an equals sign"),
    pytest.param("# help\n#b=7\n\nc=1\n", {"b": "8"}, "# help\n#b=7\nb=8\n\nc=1\n", id="behind its commented default"),
    pytest.param("a=1", {"b": "2"}, "a=1\nb=2\n", id="a new key at the end"),
    pytest.param("", {"b": "2"}, "b=2\n", id="into an empty file"),
    pytest.param("a=1\nb=2\na=3\n", {"a": None}, "#a=1\nb=2\n#a=3\n", id="back to the default"),
    pytest.param("a=1\n", {"b": None}, "a=1\n", id="back to a default that it had"),
    pytest.param("rag.maxToken=1\n", {"rag.maxTokens": "2"}, "rag.maxTokens=2\n", id="an alias gets its name"),
    pytest.param("a=1\n", {"a": "http://h:1/x?y=z#w!"}, "a=http://h:1/x?y=z#w!\n", id="addresses stay readable"),
]


@pytest.mark.parametrize(("text", "changes", "expected"), EDITS)
def test_only_what_is_changed_changes(text: str, changes: dict[str, str | None], expected: str) -> None:
    assert edited(text, changes) == expected


@pytest.mark.parametrize(
    "value", ["", " lead", "trail ", "a\\b", "C:\\temp\\u", "=x", ":x", "#x", "é😀", "a\tb\nc", "x\\", '"q"', "${A}"]
)
@pytest.mark.parametrize("text", ["k=1\n", "k = 1\n", "k:1", "", "#k=0\n"])
def test_what_is_written_is_read_again(text: str, value: str) -> None:
    new = edited(text, {"k": value})
    assert javaproperties.loads(new) == {"k": value}
    assert new.isascii()
