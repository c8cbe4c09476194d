"""The progress of a long run: a bar on a terminal, else problems and some lines; no command to a terminal in those."""

from __future__ import annotations

import pytest

from datafari_rag.commands.terminal import (
    CLEARED,
    LineListener,
    ProblemListener,
    ProgressListener,
    printable,
    progress,
)


def run(listener: ProblemListener) -> None:
    listener.started(100)
    listener.reading("a.txt")
    listener.advanced(40, 3)
    listener.failed("b\n\x1b[2J.txt", "It is empty.")
    listener.advanced(60, 4)


def test_without_a_terminal_only_problems_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Indexing", "documents") as listener:
        run(listener)

    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "b\\n\\x1b[2J.txt: It is empty.\n")


def test_a_bar_that_has_not_begun_prints_problems_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    listener = ProgressListener("Indexing", "documents")
    listener.advanced(40, 3)
    listener.failed("a.txt", "It is empty.")

    assert capsys.readouterr().err == f"{CLEARED}a.txt: It is empty.\n"


@pytest.mark.parametrize(("label", "noun"), [("Indexing", "documents"), ("Passages", "passages")])
def test_on_a_terminal_a_bar_shows_what_was_done(
    label: str, noun: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    with progress(label, noun) as listener:
        run(listener)

    printed = capsys.readouterr()
    assert printed.out == ""
    assert label in printed.err and f"7 {noun}, " in printed.err and printed.err.endswith(CLEARED)
    assert f"{CLEARED}b\\n\\x1b[2J.txt: It is empty.\n" in printed.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a b é.txt", "a b é.txt"), ("a\x1b]0;x\x07", "a\\x1b]0;x\\x07"), ("\u202egnp.exe", "\\u202egnp.exe")],
)
def test_what_cannot_be_seen_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_where_nobody_watches_a_line_is_printed_each_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((0.0, 0.0, 10.0, 31.0, 40.0, 62.0))
    listener = LineListener("Indexing", "documents", clock=lambda: next(times))
    listener.started(1000)
    for _ in range(4):
        listener.advanced(200, 3)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["Indexing: 6 documents, 40 %, 31 s", "Indexing: 12 documents, 80 %, 62 s"]


def test_how_far_a_long_file_is_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    times = iter((0.0, 0.0, 0.0, 31.0, 32.0))
    lines = LineListener("Indexing", "documents", clock=lambda: next(times))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = ProgressListener("Indexing", "documents")
    for listener in (lines, bar):
        listener.started(1000)
        listener.reading("/home/big\n log.txt")
        listener.within(0.25)
        listener.within(0.5)
    printed = capsys.readouterr().err
    assert printed.startswith("Indexing: 0 documents, 0 %, 31 s, big\\n log.txt (25%)\n")
    assert ", big\\n log.txt (50%)" in printed
