"""`datafari-rag usage`: tokens by user and day, and a sentence where nothing is counted."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.usage_file import FILE, UsageFile
from datafari_rag.commands.records import usage
from datafari_rag.core.usage import day_of

TODAY = day_of(MACHINE.wall())


def run(folder: Path, *arguments: str, store: str = "usage", **settings: str) -> Result:
    conf = folder / "rag.properties"
    lines = {"limits.store": store, "solr.url": "embedded:index", **settings}
    conf.write_text("".join(f"{key}={text}\n" for key, text in lines.items()), "utf-8")
    return CliRunner().invoke(usage, ["--conf", str(conf), *arguments])


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    with closing(UsageFile(tmp_path / "usage")) as store:
        store.add("an\x1b[2Jn", TODAY, 12_000)
        store.add("", TODAY, 5)
        store.add("bob", f"{int(TODAY[:4]) - 1}-01-01", 7)
    return tmp_path


def test_each_user_of_each_day_is_a_line(counted: Path) -> None:
    lines = [line.split() for line in run(counted, "--days", "1").output.splitlines()]
    assert lines == [[TODAY, "5", "(not", "signed", "in)"], [TODAY, "12,000", "an[2Jn"]]


def test_programs_read_json(counted: Path) -> None:
    found = json.loads(run(counted, "--days", "731", "--json").output)
    assert [row["tokens"] for row in found] == [7, 5, 12_000]
    assert found[1] == {"day": TODAY, "user": "", "tokens": 5}


def test_where_nothing_is_counted_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, store="")
    assert (done.exit_code, done.output) == (1, "Error: limits.store is empty: nothing is counted.\n")


def test_a_file_that_cannot_be_read_is_a_sentence(counted: Path) -> None:
    (counted / "usage" / FILE).write_bytes(b"no database" * 999)
    done = run(counted)
    assert done.exit_code == 1 and "limits.store: SQLITE_NOTADB" in done.output


def test_only_the_settings_that_it_needs_have_to_be_usable(counted: Path) -> None:
    assert run(counted, **{"solr.url": "nonsense", "rag.maxFiles": "many"}).exit_code == 0
    done = run(counted, **{"limits.tokens": "many"})
    assert done.exit_code == 1 and "limits.tokens" in done.output
