"""Revocations reach every worker with the next request and outlive a restart; what cannot be read is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from datafari_rag.adapters.rights import MAX_BYTES, RevocationFile
from datafari_rag.core.access import NEVER
from datafari_rag.core.errors import AuthorityUnavailable


def kept(tmp_path: Path) -> RevocationFile:
    """Return what one more worker knows."""
    return RevocationFile(tmp_path / "revocations", now=lambda: 1000.0)


def test_without_a_revocation_nothing_is_revoked_and_no_file_is_made(tmp_path: Path) -> None:
    assert kept(tmp_path).latest("ann") == kept(tmp_path).latest(None) == NEVER
    assert list(tmp_path.iterdir()) == []


def test_every_worker_knows_it_with_the_next_request_and_after_a_restart(tmp_path: Path) -> None:
    one, other = kept(tmp_path), kept(tmp_path)
    before = other.latest("ann")
    one.add("Ann", by="root")
    assert other.latest("ann") != before
    assert other.latest("ann").at_s == kept(tmp_path).latest("ANN").at_s == 1000.0
    assert other.latest("bob") == other.latest(None) == NEVER
    again = other.latest("ann")
    one.add("ann", by="root")
    assert other.latest("ann") != again


def test_one_of_everybody_concerns_each_user_and_the_anonymous(tmp_path: Path) -> None:
    one = kept(tmp_path)
    one.add("ann", by="root")
    before = {name: one.latest(name) for name in ("ann", "bob", None)}
    one.add(None, by="root")
    for name, old in before.items():
        assert one.latest(name) != old
        assert one.latest(name).at_s == 1000.0


def test_without_a_file_this_process_keeps_them() -> None:
    one = RevocationFile(now=lambda: 5.0)
    one.add("ann", by="root")
    assert one.latest("ann").at_s == 5.0
    assert one.latest("bob") == NEVER


@pytest.mark.parametrize("change", ["removed", "replaced", "cut"])
def test_a_file_that_somebody_changed_voids_all_that_is_remembered(tmp_path: Path, change: str) -> None:
    path, one = tmp_path / "revocations", kept(tmp_path)
    one.add("ann", by="root")
    before = {name: one.latest(name) for name in ("ann", "bob", None)}
    if change == "replaced":
        (tmp_path / "new").write_bytes(path.read_bytes())
        (tmp_path / "new").replace(path)
    elif change == "removed":
        path.unlink()
    else:
        path.write_bytes(b"")
    after = {name: one.latest(name) for name in before}
    assert all(after[name].serial != before[name].serial for name in before)
    assert after["bob"].at_s is None, "who was never revoked needs no new token"
    assert after == {name: one.latest(name) for name in before}, "and once is enough"


def test_what_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "revocations"
    one = kept(tmp_path)
    path.write_bytes(b'{"user":"ann"}\n')
    with pytest.raises(AuthorityUnavailable):
        one.latest("bob")
    path.unlink()
    path.mkdir()
    with pytest.raises(AuthorityUnavailable):
        kept(tmp_path).latest("bob")
    with pytest.raises(AuthorityUnavailable):
        kept(tmp_path).add("bob", by="root")


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path, one = tmp_path / "revocations", kept(tmp_path)
    with path.open("wb") as file:
        file.write(b'{"at":7,"us')
        file.flush()
        assert one.latest("ann") == NEVER
        file.write(b'er":"ann"}\n')
    assert one.latest("ann").at_s == 7.0


def test_half_a_line_of_a_process_that_ended_is_no_line(tmp_path: Path) -> None:
    (tmp_path / "revocations").write_bytes(b'{"at":7,"us')
    one = kept(tmp_path)
    one.add("ann", by="root")
    assert one.latest("ann").at_s == 1000.0
    assert kept(tmp_path).latest("ann").at_s == 1000.0


def test_a_full_file_takes_no_more_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "revocations"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES)
        file.seek(MAX_BYTES - 1)
        file.write(b"\n")
    with pytest.raises(AuthorityUnavailable):
        kept(tmp_path).add("ann", by="root")


def test_clocks_that_were_set_back_give_no_token_back(tmp_path: Path) -> None:
    now = [1000.0]
    one = RevocationFile(tmp_path / "revocations", now=lambda: now[0])
    one.add("ann", by="root")
    now[0] = 10.0
    one.add("ann", by="root")
    assert one.latest("ann").at_s == 1000.0
