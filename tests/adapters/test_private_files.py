"""Which accounts may read what holds texts of documents."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from datafari_rag.adapters.embedded.schema import opened
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.private_files import group_with_rights, made_private
from datafari_rag.bootstrap import retriever_for
from tests.settings import settings_with

DOCUMENT: dict[str, object] = {"id": "salary", "exactContent": "My salary is 4711.", "language": "en"}


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


def indexed(folder: Path) -> None:
    with closing(EmbeddedWriter(folder)) as writer:
        writer.add([DOCUMENT])
        writer.commit()


def test_a_new_index_is_for_its_account_alone(tmp_path: Path) -> None:
    index = tmp_path / "index"
    indexed(index)
    assert modes(index)["index"] == 0o700
    assert not [name for name, mode in modes(index).items() if mode & 0o007]


@pytest.mark.parametrize(
    "begin",
    [opened, lambda folder: retriever_for(settings_with(solr_url=f"embedded:{folder}"))],
    ids=["opened", "started"],
)
def test_an_index_that_is_open_to_all_is_closed_to_others(tmp_path: Path, begin: Callable[[Path], object]) -> None:
    indexed(tmp_path)
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    begin(tmp_path)
    assert {mode & 0o007 for mode in modes(tmp_path).values()} == {0}
    assert group_with_rights(tmp_path) is not None


def test_what_is_added_to_a_shared_index_is_shared_with_its_group(tmp_path: Path) -> None:
    index = tmp_path / "index"
    made_private(index)
    index.chmod(0o750)
    before = os.umask(0o077)
    try:
        indexed(index)
    finally:
        os.umask(before)
    assert {mode & 0o077 for name, mode in modes(index).items() if name.endswith(".store")} == {0o040}


@pytest.mark.parametrize("group", [0o000, 0o050])
def test_the_group_that_may_read_is_named(tmp_path: Path, group: int) -> None:
    tmp_path.chmod(0o700 | group)
    assert (group_with_rights(tmp_path) is not None) == bool(group)
    assert group_with_rights(tmp_path / "absent") is None


def test_links_and_what_is_behind_them_stay(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.write_text("")
    outside.chmod(0o644)
    made_private(folder)
    (folder / "link").symlink_to(outside)
    made_private(folder)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_what_a_command_writes_is_for_its_account_alone(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "content": "My salary is 4711.", "allow": ["u"]}\n')
    (tmp_path / "rag.properties").write_text("solr.url=embedded:index\n")
    command = [sys.executable, "-m", "datafari_rag", "index", "docs.jsonl", "--conf", "rag.properties"]
    subprocess.run(command, cwd=tmp_path, umask=0o022, capture_output=True, check=True)
    assert {mode & 0o077 for mode in modes(tmp_path / "index").values()} == {0}
