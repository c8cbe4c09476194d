from __future__ import annotations

from pathlib import Path

import pytest

from datafari_rag.web.ops.metrics import LastFailures

NOON = 1_700_000_000.0


@pytest.mark.parametrize(
    ("label", "part"),
    [
        ("searchTimeout", "search"),
        ("authorityUnavailable", "rights"),
        ("modelBusy", "model"),
        ("contentFiltered", "model"),
    ],
)
def test_a_failure_is_noted_under_its_part(label: str, part: str) -> None:
    failures = LastFailures(None, lambda: NOON)
    failures.note(label)

    assert failures.latest(part) == {"label": label, "at": "2023-11-14T22:13:20Z"}
    assert [one for one in ("search", "rights", "model") if failures.latest(one)] == [part]


@pytest.mark.parametrize("outcome", ["ok", "aborted", "passed", "noDocuments", "badRequest"])
def test_what_is_nobodys_failure_is_not_noted(outcome: str) -> None:
    failures = LastFailures(None, lambda: NOON)
    failures.note(outcome)
    assert [failures.latest(part) for part in ("search", "rights", "model")] == [None, None, None]


def test_every_worker_knows_what_one_has_seen(tmp_path: Path) -> None:
    one, other = LastFailures(tmp_path, lambda: NOON), LastFailures(tmp_path, lambda: NOON + 60)
    one.note("searchTimeout")
    assert other.latest("search") == {"label": "searchTimeout", "at": "2023-11-14T22:13:20Z"}
    other.note("searchUnavailable")
    assert one.latest("search") == {"label": "searchUnavailable", "at": "2023-11-14T22:14:20Z"}


def test_a_folder_that_is_gone_leaves_what_this_worker_knows(tmp_path: Path) -> None:
    failures = LastFailures(tmp_path / "none", lambda: NOON)
    failures.note("searchTimeout")
    assert failures.latest("search") == {"label": "searchTimeout", "at": "2023-11-14T22:13:20Z"}


def test_of_two_failures_in_one_second_the_later_one_is_the_last_in_every_worker(tmp_path: Path) -> None:
    now = [NOON]
    one, other = LastFailures(tmp_path, lambda: now[0]), LastFailures(tmp_path, lambda: now[0])
    for number, label in enumerate(("modelTimeout", "modelUnavailable", "modelBusy")):
        now[0] = NOON + number / 10
        one.note(label)

        assert one.latest("model") == other.latest("model") == {"label": label, "at": "2023-11-14T22:13:20Z"}


def test_a_failure_that_goes_on_is_written_once_a_second(tmp_path: Path) -> None:
    now = [NOON]
    failures, other = LastFailures(tmp_path, lambda: now[0]), LastFailures(tmp_path, lambda: now[0])
    told = []
    for tenth in range(25):
        now[0] = NOON + tenth / 10
        failures.note("searchTimeout")
        told.append((tmp_path / "last-search.json").stat().st_mtime_ns)

    assert len(set(told)) <= 3
    assert other.latest("search") == {"label": "searchTimeout", "at": "2023-11-14T22:13:22Z"}
