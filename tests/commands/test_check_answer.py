"""`datafari-rag check-answer`: statuses, colours, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.commands.check import check_answer


@pytest.fixture
def fact(tmp_path: Path) -> str:
    path = tmp_path / "ferry.txt"
    path.write_text("The ferry leaves at nine.\nA ticket, sold on board, costs 12 euros.", "utf-8")
    return str(path)


def run(*arguments: str, text: str | bytes = "", color: bool = False) -> Result:
    return CliRunner().invoke(check_answer, arguments, input=text, color=color)


def test_every_sentence_stands_behind_its_status(fact: str) -> None:
    done = run("--fact", fact, text="A ticket costs 12 euros. The moon is cheese. …")
    lines = done.output.splitlines()
    assert lines[0] == "near         A ticket costs 12 euros."
    assert lines[1] == '             [ferry.txt] "A ticket, sold on board, costs 12 euros."'
    assert lines[2].startswith("unsupported  The moon")
    assert (lines[-1], done.exit_code) == ("Verified: 0%", 1)
    assert "\x1b" not in done.output
    assert "\x1b[36mnear" in run("--fact", fact, text="A ticket costs 12 euros.", color=True).output


def test_all_that_is_verified_ends_well(fact: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer.txt"
    answer.write_text("The ferry leaves at nine.", "utf-8")
    assert run(str(answer), "--fact", fact).exit_code == 0
    assert run("--fact", fact, text="A ticket costs 12 euros.").exit_code == 1
    nothing = run("--fact", fact, text="…")
    assert (nothing.exit_code, nothing.output.splitlines()[-1]) == (0, "No sentence needs proof.")


def test_the_reply_of_the_service_can_be_had(fact: str) -> None:
    done = run("--fact", fact, "--json", text="A ticket costs 12 euros.")
    assert json.loads(done.output)["citedChunks"][0]["sourceMetadata"]["title"] == "ferry.txt"


def test_a_terminal_is_not_told_what_to_do(fact: str) -> None:
    assert "\x1b" not in run("--fact", fact, text="The \x1b[31mmoon is cheese.").output


@pytest.mark.parametrize(
    ("arguments", "text", "code", "told"),
    [
        ((), "x", 1, "badRequest: Send either facts or documentIds."),
        (("--document", "d", "--conf", "/nowhere/rag.properties"), "x", 1, "rag.properties"),
        (("--nothing",), "x", 2, "No such option"),
    ],
)
def test_what_cannot_be_checked_says_why(arguments: tuple[str, ...], text: str, code: int, told: str) -> None:
    done = run(*arguments, text=text)
    assert (done.exit_code, told in done.output) == (code, True)


def test_a_file_that_is_no_text_is_named_so(fact: str) -> None:
    done = run("--fact", fact, text=b"\xff\xfe\x00")
    assert (done.exit_code, "UTF-8" in done.output) == (1, True)
