"""The trail on disk: whole chains, no request that waits, a disk that is full and gets better."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from datafari_rag.adapters.observability.audit_trail import MAX_WAITING, AuditTrail, key_in
from datafari_rag.core.answer.audit_record import broken, keyed, read_head


def chains(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def problems(chain: Path) -> list[tuple[int, str]]:
    with chain.open("rb") as lines:
        return list(broken(lines, read_head(chain.with_suffix(".head").read_bytes())))


def records(chain: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in chain.read_bytes().splitlines()]


def test_records_become_one_whole_chain_in_their_order(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path / "new" / "audit")
    for number in range(500):
        trail.append({"id": number})
    trail.close()
    (chain,) = chains(tmp_path / "new" / "audit")
    assert [one["id"] for one in records(chain)] == list(range(500))
    assert problems(chain) == []
    assert trail.problem() is None


def test_each_trail_has_a_chain_of_its_own_that_others_cannot_read(tmp_path: Path) -> None:
    for number in range(3):
        trail = AuditTrail(tmp_path)
        trail.append({"id": number})
        trail.close()
    assert len(chains(tmp_path)) == 3
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_workers_of_one_folder_hash_a_question_alike_with_a_key_that_others_cannot_read(tmp_path: Path) -> None:
    found = []
    for _ in range(3):
        trail = AuditTrail(tmp_path)
        trail.append({"id": 1}, question="common report")
        trail.close()
    for chain in chains(tmp_path):
        (record,) = records(chain)
        found.append(record["question_hmac"])
        assert problems(chain) == []
    key = (tmp_path / "audit.key").read_bytes()
    assert found == [keyed("common report", key)] * 3
    assert hashlib.sha256(b"common report").hexdigest() not in found
    assert sorted(path.stat().st_mode & 0o777 for path in tmp_path.iterdir()) == [0o600] * 7


def test_a_key_that_another_worker_made_meanwhile_stays(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: key_in(tmp_path / "audit"), range(64)))
    assert len(keys) == 1
    assert [path.name for path in (tmp_path / "audit").iterdir()] == ["audit.key"]


def test_a_key_that_is_cut_is_said_and_nothing_is_written_with_it(tmp_path: Path) -> None:
    (tmp_path / "audit.key").write_bytes(b"short")
    trail = AuditTrail(tmp_path)
    trail.append({"id": 1}, question="common report")
    assert trail.problem() is not None
    (tmp_path / "audit.key").unlink()
    assert trail.problem() is None
    assert len(chains(tmp_path)) == 1


@contextmanager
def full_disk(limit: int) -> Iterator[None]:
    """Let no file of this process grow over *limit* bytes, which fails as a full disk does."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_request_that_ends_after_its_trail_was_replaced_goes_on_with_the_chain(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)
    trail.append({"id": 1})
    trail.close()
    trail.append({"id": 2})
    (chain,) = chains(tmp_path)
    assert [one["id"] for one in records(chain)] == [1, 2]
    assert problems(chain) == []


def test_a_full_disk_is_said_and_leaves_no_half_line(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)
    trail.append({"id": "first"})
    assert trail.problem() is None
    with full_disk(400):
        for number in range(20):
            trail.append({"id": number, "filler": "x" * 100})
        assert "cannot be written" in (trail.problem() or "")
    assert trail.problem() is None, "what waited is written when somebody looks"
    (chain,) = chains(tmp_path)
    assert [one["id"] for one in records(chain)] == ["first", *range(20)]
    assert problems(chain) == []


@pytest.mark.parametrize("limit", [0, 1, 40])
def test_a_key_first_needed_on_a_full_disk_is_made_whole_when_there_is_room(tmp_path: Path, limit: int) -> None:
    trail = AuditTrail(tmp_path)
    with full_disk(limit):
        trail.append({"id": 1}, question="common report")
        assert trail.problem() is not None
        assert not (tmp_path / "audit.key").exists()
    assert trail.problem() is None
    (chain,) = chains(tmp_path)
    assert [one["question_hmac"] for one in records(chain)] == [
        keyed("common report", (tmp_path / "audit.key").read_bytes())
    ]
    assert problems(chain) == []


def test_what_was_lost_while_the_disk_was_full_is_told_in_the_chain(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)
    with full_disk(0):
        for number in range(MAX_WAITING + 5):
            trail.append({"id": number})
        assert trail.problem() is not None
    trail.close()
    (chain,) = chains(tmp_path)
    assert [one["lost"] for one in records(chain) if one.get("kind") == "gap"] == [5]
    assert len(records(chain)) == MAX_WAITING + 1
    assert problems(chain) == []


def test_a_folder_that_cannot_be_written_is_said_before_the_first_record(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert AuditTrail(tmp_path / "file" / "audit").problem() is not None or os.geteuid() == 0
    trail = AuditTrail(tmp_path / "file" / "audit")
    trail.append({"id": 1})
    assert trail.problem() is not None


def test_a_file_that_is_taken_away_is_followed_by_a_new_chain(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)
    trail.append({"id": 1})
    chains(tmp_path)[0].unlink()
    trail.append({"id": 2})
    trail.close()
    (chain,) = chains(tmp_path)
    assert [one["id"] for one in records(chain)] == [2]
    assert problems(chain) == []


def test_a_record_that_is_no_json_is_told_as_lost_and_holds_up_nothing(tmp_path: Path) -> None:
    trail = AuditTrail(tmp_path)
    trail.append({"id": object()})
    trail.append({"id": 2})
    trail.close()
    (chain,) = chains(tmp_path)
    assert [one.get("lost", one.get("id")) for one in records(chain)] == [1, 2]


HELD_UP = """
import gevent.monkey; gevent.monkey.patch_all()
import os, sys, pathlib, gevent
from dataclasses import replace
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.observability.audit_trail import AuditTrail
event = gevent.monkey.get_original("threading", "Event")()
def write(handle, data):
    assert event.wait(30), "nobody else went on"
    return os.write(handle, data)
trail = AuditTrail(pathlib.Path(sys.argv[1]), replace(MACHINE, write=write))
others = [gevent.spawn(trail.append, {"id": number}) for number in range(3)]
gevent.sleep(0)
assert not any(other.ready() for other in others)
others[1].kill()
event.set()
gevent.joinall([others[0], others[2]])
trail.close()
"""


def test_a_slow_disk_holds_up_no_other_request_and_who_leaves_meanwhile_is_recorded(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", HELD_UP, str(tmp_path)], check=True, timeout=120)
    (chain,) = chains(tmp_path)
    assert sorted(one["id"] for one in records(chain)) == [0, 1, 2]
    assert problems(chain) == []
