"""`datafari-rag index` is killed while it reads files that need a parser, and files in files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.commands.test_index import CHILD, Place, killed_after
from tests.end_to_end.matrix import Record, tell
from tests.ingest.parsers.written import TABLE, WRITERS, zip_of

ONE_COMMIT = f"from datafari_rag.ingest import run; run.FIRST_S = 60.0; {CHILD}"
"""Files that take longer are read after a commit of all others: on a slow machine there would be a state in between."""

MEMBERS = ("docx", "pdf", "xlsx", "eml")


def write_version(folder: Path, version: int) -> None:
    """Write a file of each kind, and a ZIP file with several of them; the last row of each table has the version."""
    rows = (*TABLE[:2], (TABLE[2][0], marker(version)))
    for kind, write in WRITERS.items():
        write(folder / f"a.{kind}", rows)
    zip_of(folder / "a.zip", *((f"in.{kind}", (folder / f"a.{kind}").read_bytes()) for kind in MEMBERS))


def marker(version: int) -> str:
    return f"version{version:03}x"


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.trials)])
def test_a_kill_while_files_are_parsed_leaves_the_old_state_or_the_new_one(
    tmp_path: Path, kills: int, record_property: Record
) -> None:
    place = Place(tmp_path)
    write_version(place.files, 0)
    run_s = killed_after(place, None, ONE_COMMIT)
    first = place.texts()
    # The last one is the attachment of the mail in the ZIP file.
    members = ("a.eml#list.csv", *(f"a.zip#in.{kind}" for kind in MEMBERS), "list.csv")
    assert first.keys() == {*(f"a.{kind}" for kind in WRITERS), *members}
    assert sum(marker(0) in text for text in first.values()) == len(WRITERS) + len(MEMBERS)

    state, rng, seen = first, random.Random(kills), {"old": 0, "new": 0}
    for version in range(1, kills + 1):
        write_version(place.files, version)
        new = {name: text.replace(marker(0), marker(version)) for name, text in first.items()}
        killed_after(place, rng.uniform(0, run_s * 1.2), ONE_COMMIT)
        found = place.texts()
        assert found in (state, new)
        seen["new" if found == new else "old"] += 1
        state = found
    killed_after(place, None, ONE_COMMIT)
    assert place.texts() == new
    assert f"{len(WRITERS) + 1} files unchanged, 0 problems" in place.run(place.files).stdout
    saw = f"{seen['old']} times the old state, {seen['new']} times the new one, never one in between"
    tell(
        record_property, f"index: {kills} kills while files of every kind are parsed", saw, then="the next run is whole"
    )
