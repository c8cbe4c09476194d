"""The file of thumbs: a line is there whole, or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from datafari_rag.web.pages import feedback
from tests.adapters.observability.test_audit_trail import full_disk


def test_a_disk_that_takes_a_part_of_a_line_first_glues_no_lines_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
    for number in range(2):
        feedback.append(tmp_path / "thumbs", {"request_id": f"r{number}", "verdict": "up"})
    lines = (tmp_path / "thumbs").read_text("utf-8").splitlines()
    assert [json.loads(line)["request_id"] for line in lines] == ["r0", "r1"]


def test_a_line_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "thumbs"
    feedback.append(path, {"request_id": "r0"})
    with full_disk(path.stat().st_size + 5), pytest.raises(OSError, match="File too large"):
        feedback.append(path, {"request_id": "r1"})
    feedback.append(path, {"request_id": "r2"})
    assert [json.loads(line)["request_id"] for line in path.read_text("utf-8").splitlines()] == ["r0", "r2"]
