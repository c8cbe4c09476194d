"""The progress of a long run: a bar on a terminal, otherwise only the problems, and never a command to the terminal."""

from __future__ import annotations

import pytest

from datafari_rag.commands.terminal.progress import CLEARED, ProblemListener, ProgressListener, printable, progress


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
