"""`datafari-rag summarize` and `compare` over an embedded index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.bootstrap import writer_for
from datafari_rag.commands.main import main
from tests.end_to_end.processes import write_settings
from tests.settings import settings_with

FERRY = "The ferry to Ouessant leaves Brest at nine in summer. A ticket for the crossing costs 18 euros. See below."
BUS = "The bus to Ouessant does not exist, because it is an island. A ticket for the bus in Brest costs 2 euros."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole")
    index = f"embedded:{path / 'index'}"
    writer = writer_for(settings_with(solr_url=index))
    writer.add(
        [
            {"id": "ferry", "title": "Ferry", "exactContent": FERRY},
            {"id": "bus", "title": "Bus", "exactContent": BUS},
            {"id": "hidden", "title": "Hidden", "exactContent": BUS, "allow_token_document": ["managers"]},
        ]
    )
    writer.commit()
    writer.close()
    write_settings(path, {"solr.url": index, "rag.api.endpoint": "builtin:extractive"})
    return path


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--conf", str(folder / "rag.properties")])


def test_a_document_is_summarised_with_its_proofs(folder: Path) -> None:
    done = run(folder, "summarize", "ferry", "--length", "short")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("The ferry to Ouessant leaves Brest at nine in summer [1]. ")
    assert "[Ferry] verified" in done.stdout
    assert "1 piece, no model" in done.stderr


def test_the_cost_alone_and_the_reply_can_be_had(folder: Path) -> None:
    cost = run(folder, "summarize", "ferry", "--estimate")
    assert (cost.exit_code, cost.stdout) == (0, "")
    assert f"{len(FERRY)} characters" in cost.stderr
    reply = json.loads(run(folder, "summarize", "ferry", "--json").stdout)
    assert (reply["status"], reply["content"]["citations"][0]["document_id"]) == ("OK", "ferry")


def test_documents_are_compared_and_those_left_out_are_named(folder: Path) -> None:
    done = run(folder, "compare", "ferry", "hidden", "bus", "gone", "--question", "What does a ticket cost?")
    assert done.exit_code == 0, done.stderr
    assert "18 euros" in done.stdout and "2 euros" in done.stdout
    assert "Left out: hidden (not there for this user)\nLeft out: gone (not there for this user)\n" in done.stderr
    assert "managers" not in done.output


@pytest.mark.parametrize("command", ["summarize", "compare"])
def test_what_is_not_there_is_told(folder: Path, command: str) -> None:
    done = run(folder, command, "hidden")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "Error: notFound: There is no such document."


def test_a_question_has_a_bound(folder: Path) -> None:
    assert run(folder, "compare", "ferry", "--question", "x" * 4001).exit_code == 2
