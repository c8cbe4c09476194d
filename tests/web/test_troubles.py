from __future__ import annotations

from pathlib import Path

import pytest

from datafari_rag.web.troubles import Troubles

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
    troubles = Troubles(None, lambda: NOON)
    troubles.note(label)

    assert troubles.latest(part) == {"label": label, "at": "2023-11-14T22:13:20Z"}
    assert [one for one in ("search", "rights", "model") if troubles.latest(one)] == [part]


@pytest.mark.parametrize("outcome", ["ok", "aborted", "passed", "noDocuments", "badRequest"])
def test_what_is_nobodys_failure_is_not_noted(outcome: str) -> None:
    troubles = Troubles(None, lambda: NOON)
    troubles.note(outcome)
    assert [troubles.latest(part) for part in ("search", "rights", "model")] == [None, None, None]


def test_every_worker_knows_what_one_has_seen(tmp_path: Path) -> None:
    one, other = Troubles(tmp_path, lambda: NOON), Troubles(tmp_path, lambda: NOON + 60)
    one.note("searchTimeout")
    assert other.latest("search") == {"label": "searchTimeout", "at": "2023-11-14T22:13:20Z"}
    other.note("searchUnavailable")
    assert one.latest("search") == {"label": "searchUnavailable", "at": "2023-11-14T22:14:20Z"}


def test_a_folder_that_is_gone_leaves_what_this_worker_knows(tmp_path: Path) -> None:
    troubles = Troubles(tmp_path / "none", lambda: NOON)
    troubles.note("searchTimeout")
    assert troubles.latest("search") == {"label": "searchTimeout", "at": "2023-11-14T22:13:20Z"}
