"""`datafari-rag costs`: what was counted as a table and as JSON, and a sentence where nothing is counted."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.ledgers import FILE, SqliteLedger
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.commands.records import costs
from datafari_rag.core.accounts import CostRow, TokenUse, period_at


def run(folder: Path, *arguments: str, store: str = "accounts") -> Result:
    conf = folder / "rag.properties"
    conf.write_text(f"solr.url=embedded:index\nlimits.store={store}\n", "utf-8")
    return CliRunner().invoke(costs, ["--conf", str(conf), *arguments])


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    today = period_at(MACHINE.wall(), "day")
    with closing(SqliteLedger(tmp_path / "accounts")) as ledger:
        for name, tokens in (("ann", 1_000), ("", 5)):
            use = TokenUse(tokens, 0, 1)
            ledger.settle((), 0, [CostRow(today, "user", name, "gpt", "chat", 1, 0, use, tokens)])
        ledger.settle((), 0, [CostRow("2000-01-01", "user", "old", "gpt", "chat", 1, 0, TokenUse(1), 1)])
    return tmp_path


def test_the_largest_is_first_and_what_is_too_old_is_not_there(counted: Path) -> None:
    lines = run(counted).output.splitlines()
    assert [line.split()[0] for line in lines] == ["user", "ann", "(not"]
    assert lines[1].split()[1:] == ["1", "1,000", "0", "1", "0.001000"]


def test_programs_read_json(counted: Path) -> None:
    (found,) = json.loads(run(counted, "--by", "model", "--json").output)
    assert (found["name"], found["calls"], found["money"]) == ("gpt", 2, "0.001005")


def test_where_nothing_is_counted_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, store="")
    assert (done.exit_code, done.output) == (1, "Error: limits.store is empty: nothing is counted.\n")


def test_a_file_that_cannot_be_read_is_a_sentence(counted: Path) -> None:
    (counted / "accounts" / FILE).write_bytes(b"no database" * 999)
    done = run(counted)
    assert done.exit_code == 1 and done.output.startswith("Error: The accounts cannot be read: ")
