"""`datafari-rag audit verify`: what it says and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.observability.audit_trail import AuditTrail
from datafari_rag.commands.records import audit
from datafari_rag.core.answer.audit_record import AuditKey
from tests.end_to_end.matrix import Record, tell

FOUND = "`audit verify` with `audit.key`: exit 1, it is named"


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
    result = verify(tmp_path)
    assert (result.exit_code, result.output) == (0, "There are no chains: nothing was verified.\n")


@pytest.mark.parametrize(("audits", "exit_code"), [(True, 1), (False, 0)])
def test_where_answers_are_audited_a_folder_without_a_chain_is_an_error(
    tmp_path: Path, audits: bool, exit_code: int
) -> None:
    conf, kept = tmp_path / "rag.properties", tmp_path / "audit"
    conf.write_text(f"audit.folder={kept}\n" if audits else "")
    trail = AuditTrail(kept)
    trail.append({"id": 1})
    trail.close()
    assert CliRunner().invoke(audit, ["verify", str(kept), "--conf", str(conf)]).exit_code == 0
    for path in kept.iterdir():
        path.unlink()
    result = CliRunner().invoke(audit, ["verify", str(kept), "--conf", str(conf)])
    assert result.exit_code == exit_code
    assert ("there is no chain" in result.output) == audits


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


KEY, OLD_KEY = "k" * 32, "o" * 32


def conf(folder: Path, **keys: str) -> Path:
    path = folder.parent / f"{folder.name}.properties"
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in keys.items()))
    path.chmod(0o600)
    return path


def written(folder: Path, key: str | None, lines: int = 3) -> Path:
    """Write one chain signed with *key*; return its file."""
    before = set(folder.glob("*.jsonl"))
    trail = AuditTrail(folder, signing=AuditKey(key) if key else None)
    for number in range(lines):
        trail.append(
            {"id": number, "documents": [{"id": f"d{number}", "version": "7"}], "at": f"2026-01-0{number + 1}"}
        )
    trail.close()
    (chain,) = set(folder.glob("*.jsonl")) - before
    return chain


def verified(folder: Path, *options: str, **keys: str) -> Result:
    return CliRunner().invoke(audit, ["verify", str(folder), "--conf", str(conf(folder, **keys)), *options])


def test_old_chains_and_those_of_an_earlier_key_still_verify_with_the_new_one(folder: Path) -> None:
    written(folder, OLD_KEY)
    written(folder, KEY)
    result = verified(folder, "--unsigned", audit_key=f"{KEY},{OLD_KEY}")
    assert (result.exit_code, result.output) == (0, "4 chains, 16 lines: nothing was changed.\n")
    assert verified(folder, audit_key=KEY).exit_code == 1, "the earlier key is needed for what it signed"
    assert verify(folder).exit_code == 1


def test_a_chain_that_was_written_without_the_key_is_found(tmp_path: Path, record_property: Record) -> None:
    written(tmp_path, KEY)
    late = written(tmp_path, None)
    result = verified(tmp_path, audit_key=KEY)
    assert (result.exit_code, result.output) == (1, f"{late}:1: This line is not signed.\n")
    assert verified(tmp_path, "--unsigned", audit_key=KEY).exit_code == 0
    tell(record_property, "audit: a chain added without the key", FOUND)


def test_the_answers_that_used_a_document_are_listed_in_order(tmp_path: Path) -> None:
    for key in (None, KEY):
        chain = written(tmp_path, key)
    with chain.open("ab") as file:
        file.write(b'half a li\n[]\n{"documents":5}\n{"documents":[5]}\n')
    result = CliRunner().invoke(audit, ["find", str(tmp_path), "--document", "d1"])
    found = [json.loads(line) for line in result.output.splitlines()]
    assert [(one["at"], one["id"], one["versions"]) for one in found] == [("2026-01-02", 1, ["7"])] * 2
    assert CliRunner().invoke(audit, ["find", str(tmp_path), "--document", "d9"]).exit_code == 1
