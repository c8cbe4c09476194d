"""What is found below a PATH, and that nothing outside of it is ever opened."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from datafari_rag.ingest.files import MAX_DEPTH, File, NotTaken, files_of, key_of, opened

OUT = "This link points outside the indexed folder and is not followed."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with one file, beside a folder with a secret."""
    for name, text in (("share/a.txt", "shared"), ("share/in/b.txt", "shared"), ("secret/pay.txt", "secret")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "share"


def taken(root: Path) -> list[str]:
    return [str(found.path.relative_to(root)) for found in files_of(root) if isinstance(found, File)]


def named(root: Path) -> dict[str, str]:
    return {str(found.path.relative_to(root)): found.why for found in files_of(root) if isinstance(found, NotTaken)}


@pytest.mark.parametrize(
    ("name", "target", "why"),
    [
        pytest.param("x.txt", "{out}/pay.txt", OUT, id="a file by its whole path"),
        pytest.param("x.txt", "../secret/pay.txt", OUT, id="a file beside"),
        pytest.param("x.txt", "in/../../secret/pay.txt", OUT, id="a file on a way round"),
        pytest.param("in/x.txt", "../../secret/pay.txt", OUT, id="a file from a folder further down"),
        pytest.param("x.txt", "{root}/../secret/pay.txt", OUT, id="a path that begins inside"),
        pytest.param("x.txt", "{root}-other/pay.txt", OUT, id="a folder whose name begins alike"),
        pytest.param("x", "../secret", OUT, id="a folder"),
        pytest.param("x", "/", OUT, id="the root of all"),
        pytest.param("x.txt", "/proc/self/environ", OUT, id="a file of the system"),
        pytest.param("x.txt", "nowhere.txt", "This link points to a file that does not exist.", id="nothing"),
        pytest.param("x.txt", "x.txt", "This link is part of a loop.", id="itself"),
        pytest.param("x.txt", "a.txt", "", id="a file inside"),
        pytest.param("x.txt", "{root}/in/b.txt", "", id="a file inside by its whole path"),
        pytest.param("in/x.txt", "../a.txt", "", id="a file inside, above"),
        pytest.param("x", "in", "", id="a folder inside"),
        pytest.param("in/x", "..", "", id="the folder above, inside"),
        pytest.param("x", "{root}", "", id="the indexed folder"),
    ],
)
def test_a_link_is_never_followed_and_named_when_it_leads_out(root: Path, name: str, target: str, why: str) -> None:
    (root / name).symlink_to(target.format(root=root, out=root.parent / "secret"))
    assert taken(root) == ["a.txt", "in/b.txt"]
    assert named(root) == ({name: why} if why else {})


def test_a_chain_of_links_is_named_where_its_end_leads_out(root: Path) -> None:
    (root / "one.txt").symlink_to("two.txt")
    (root / "two.txt").symlink_to("in/three.txt")
    (root / "in" / "three.txt").symlink_to("../../secret/pay.txt")
    (root / "four.txt").symlink_to("folder/pay.txt")
    (root / "folder").symlink_to("../secret")
    assert taken(root) == ["a.txt", "in/b.txt"]
    assert named(root) == dict.fromkeys(["one.txt", "two.txt", "in/three.txt", "four.txt", "folder"], OUT)


def test_what_is_no_file_is_named_and_never_opened(root: Path) -> None:
    os.mkfifo(root / "pipe.txt")
    os.mkfifo(root / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "s.md"))
        assert named(root) == dict.fromkeys(["pipe.txt", "pipe.jsonl", "s.md"], "This is not a regular file.")
    assert taken(root) == ["a.txt", "in/b.txt"]
    assert [found.why for found in files_of(root / "pipe.txt") if isinstance(found, NotTaken)]


@pytest.mark.parametrize("is_folder", [False, True], ids=["the file", "its folder"])
def test_a_link_that_takes_the_place_of_what_was_found_is_not_opened(root: Path, is_folder: bool) -> None:
    file = next(found for found in files_of(root) if found.path == root / "in" / "b.txt")
    assert isinstance(file, File)
    with opened(root, file) as number:
        assert os.read(number, 100) == b"shared"
    (root.parent / "secret" / "b.txt").write_text("secret")
    (root / "in").rename(root.parent / "old")
    if is_folder:
        (root / "in").symlink_to("../secret")
    else:
        (root / "in").mkdir()
        (root / "in" / "b.txt").symlink_to("../../secret/b.txt")
    with pytest.raises(OSError), opened(root, file):  # its number differs between systems
        pass


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(root: Path) -> None:
    file = next(iter(files_of(root)))
    assert isinstance(file, File)
    file.path.unlink()
    os.mkfifo(file.path)
    with pytest.raises(OSError, match="not a regular file"), opened(root, file):
        pass


def test_a_file_named_itself_is_opened_and_a_missing_one_is_named(root: Path) -> None:
    (found,) = files_of(root / "a.txt")
    assert isinstance(found, File)
    with opened(root / "a.txt", found) as number:
        assert os.read(number, 100) == b"shared"
    (missing,) = files_of(root / "gone.txt")
    assert missing == NotTaken(root / "gone.txt", "No such file or directory", is_gone=False)


def test_folders_nested_without_end_are_named(root: Path) -> None:
    number = os.open(root, os.O_RDONLY)
    for _ in range(MAX_DEPTH + 5):
        os.mkdir("d", dir_fd=number)
        inner = os.open("d", os.O_RDONLY, dir_fd=number)
        os.close(number)
        number = inner
    os.close(number)
    assert taken(root) == ["a.txt", "in/b.txt"]
    assert list(named(root).values()) == [f"Its folders are nested more than {MAX_DEPTH} levels deep."]


def test_a_name_that_is_not_utf8_has_a_key_of_its_own(root: Path) -> None:
    strange = Path(os.fsdecode(os.fsencode(root) + b"/\xff.txt"))
    strange.write_text("text")
    (root / "\\udcff.txt").write_text("text")
    keys = [found.key for found in files_of(root) if isinstance(found, File)]
    assert len({key.encode() for key in keys}) == 4
    assert f"{root.as_uri()}/%FF.txt" in keys
    assert key_of(root / "é.txt") == f"{root}/é.txt"


def test_a_file_changed_under_an_old_time_has_another_stamp(root: Path) -> None:
    (before,) = files_of(root / "a.txt")
    (root / "a.txt").write_text("forged")
    assert isinstance(before, File)
    os.utime(root / "a.txt", (before.modified_s, before.modified_s))
    (after,) = files_of(root / "a.txt")
    assert isinstance(after, File)
    assert (after.size_bytes, after.stamp == before.stamp) == (before.size_bytes, False)
