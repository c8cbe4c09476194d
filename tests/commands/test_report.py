"""`datafari-rag report`: as one administrator may read it, as lines, JSON and HTML; a sentence where it cannot be."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.question_file import QuestionFile
from datafari_rag.commands.records import report
from datafari_rag.core.answer.question_report import KeptQuestion


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.add([{"id": "open", "title": ["Holiday rules"], "exactContent": ["25 days."]}])
        writer.commit()
    with closing(QuestionFile(tmp_path / "report", 30)) as store:
        asked = KeptQuestion("r", MACHINE.wall(), "", "<i>holiday</i>", "en", "ok", ("open",), is_near=True)
        for person in ("ann", "bob", "eve"):
            store.keep(replace(asked, person=person))
        store.keep(replace(asked, at_s=MACHINE.wall() - 9 * 86_400, text="older"))
    return tmp_path


def run(folder: Path, *arguments: str, store: str = "report") -> Result:
    conf = folder / "rag.properties"
    conf.write_text(
        f"solr.url=embedded:index\nsecurity.mode=none\nsecurity.admins=ann\nreport.store={store}\n", "utf-8"
    )
    return CliRunner().invoke(report, ["--conf", str(conf), *arguments])


def test_it_is_lines_json_or_a_page(place: Path) -> None:
    lines = run(place, "--as", "ann").output.splitlines()
    assert lines[0] == "3 questions" and "3 asked by 3: <i>holiday</i>: near only 3" in lines[1]
    assert "3 shown and never cited: Holiday rules" in lines[2]
    assert json.loads(run(place, "--as", "ann", "--json").output)["groups"][0]["texts"] == ["<i>holiday</i>"]
    page = run(place, "--as", "ann", "--html").output
    assert page.startswith("<!doctype html>") and "&lt;i&gt;holiday&lt;/i&gt;" in page and "jsonl" not in page
    assert run(place, "--as", "ann", "--since", "30d").output.startswith("4 questions")


def test_one_who_is_no_administrator_reads_nothing(place: Path) -> None:
    done = run(place, "--as", "bob")
    assert (done.exit_code, done.output) == (1, "Error: bob is not one of security.admins.\n")


def test_what_cannot_be_read_is_a_sentence(place: Path) -> None:
    assert run(place, "--as", "ann", store="").output == "Error: No questions are kept here: report.store is empty.\n"
    (place / "report" / "questions.sqlite3").write_bytes(b"no database" * 999)
    done = run(place, "--as", "ann")
    assert done.exit_code == 1 and done.output.startswith("Error: The questions cannot be read at the moment.")


@pytest.mark.parametrize("since", ["7", "0d", "367d", "1w", "-1d"])
def test_a_time_that_is_none_is_wrong_usage(place: Path, since: str) -> None:
    assert run(place, "--as", "ann", "--since", since).exit_code == 2
