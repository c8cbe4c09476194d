"""`datafari-rag audit verify`: what it says and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.observability.audit_trail import AuditTrail
from datafari_rag.commands.audit import audit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the chains of two workers, five lines each."""
    for _ in range(2):
        trail = AuditTrail(tmp_path)
        for number in range(5):
            trail.append({"id": number})
        trail.close()
    return tmp_path


def verify(folder: Path) -> Result:
    return CliRunner().invoke(audit, ["verify", str(folder)])


def test_whole_chains_are_said_to_be_whole(folder: Path) -> None:
    result = verify(folder)
    assert (result.exit_code, result.output) == (0, "2 chains, 10 lines: nothing was changed.\n")


def test_an_empty_folder_has_nothing_wrong(tmp_path: Path) -> None:
    assert verify(tmp_path).exit_code == 0


def test_a_changed_line_is_named(folder: Path) -> None:
    chain = sorted(folder.glob("*.jsonl"))[0]
    chain.write_bytes(chain.read_bytes().replace(b'"id":2', b'"id":9'))
    result = verify(folder)
    assert result.exit_code == 1
    assert f"{chain}:3: This line was changed." in result.output


@pytest.mark.parametrize("which", range(5))
def test_a_missing_line_is_found_the_last_one_too(folder: Path, which: int) -> None:
    chain = sorted(folder.glob("*.jsonl"))[1]
    lines = chain.read_bytes().splitlines(keepends=True)
    chain.write_bytes(b"".join(lines[:which] + lines[which + 1 :]))
    result = verify(folder)
    assert result.exit_code == 1
    assert f"{chain}:{which + 1}: " in result.output


@pytest.mark.parametrize("suffix", [".jsonl", ".head"])
def test_a_missing_file_is_found(folder: Path, suffix: str) -> None:
    sorted(folder.glob(f"*{suffix}"))[0].unlink()
    result = verify(folder)
    assert result.exit_code == 1
    assert "missing" in result.output


def test_a_folder_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    assert verify(tmp_path / "nowhere").exit_code == 2
