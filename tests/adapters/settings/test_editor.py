"""The settings file as the administration keeps it, and its log of changes."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from datafari_rag.adapters.settings.file import SettingsEditor, SettingsFile


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "rag.properties"
    path.write_text(
        "# first\nrag.maxToken=100\nrag.model = ${MODEL}\nrag.api.token=sk-secret\nsolr.url=http://u:p@solr/solr/c\n",
        encoding="utf-8",
    )
    path.chmod(0o600)
    return path


def keeper(conf: Path | None, **overrides: str) -> SettingsEditor:
    return SettingsEditor(SettingsFile(conf, environ={"MODEL": "m"}, overrides=overrides), lambda: 1_700_000_000.0)


def test_it_tells_the_texts_as_they_stand_under_their_own_names(conf: Path) -> None:
    found = keeper(conf)
    assert found.file_values()["rag.maxTokens"] == "100"
    assert found.file_values()["rag.model"] == "${MODEL}"
    assert found.name == "rag.properties"
    assert list(keeper(conf, **{"server.port": "1"}).fixed()) == ["server.port"]


def test_a_preview_writes_nothing(conf: Path) -> None:
    before = conf.read_bytes()
    preview = keeper(conf).preview({"rag.temperature": "9", "rag.maxFiles": "2"})

    assert preview.settings.rag.max_files == 2
    assert [problem.key for problem in preview.problems if problem.severity == "error"] == ["rag.temperature"]
    assert conf.read_bytes() == before


def test_a_saving_is_logged_without_secrets(conf: Path) -> None:
    found = keeper(conf)
    changes = {"rag.api.token": "sk-new", "solr.url": "http://u:q@solr2/solr/c", "rag.maxTokens": None}

    assert found.save(changes, "admin") == ()
    log = conf.with_name("rag.properties.changes.jsonl")
    assert "sk-" not in log.read_text("utf-8") and ":p@" not in log.read_text("utf-8")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    (entry,) = found.history()
    assert entry["at"] == "2023-11-14T22:13:20+00:00" and entry["who"] == "admin"
    assert entry["changes"] == [
        {"key": "rag.api.token", "from": "***", "to": "***"},
        {"key": "solr.url", "from": "http://***@solr/solr/c", "to": "http://***@solr2/solr/c"},
        {"key": "rag.maxTokens", "from": "100", "to": None},
    ]
    assert conf.read_text("utf-8").startswith("# first\n")


def test_what_would_be_wrong_is_neither_saved_nor_logged(conf: Path) -> None:
    found = keeper(conf)
    (problem,) = found.save({"rag.temperature": "hot"}, "admin")

    assert problem.message == 'Invalid value for rag.temperature property: "hot". A number between 0 and 2 is expected.'
    assert found.history() == []


def test_the_latest_saving_comes_first_and_a_damaged_line_is_left_out(conf: Path) -> None:
    found = keeper(conf)
    found.save({"rag.maxFiles": "2"}, "ann")
    with conf.with_name("rag.properties.changes.jsonl").open("a", encoding="utf-8") as log:
        log.write("{half\n[1]\n" + json.dumps({"at": "later", "who": "bo", "changes": []}) + "\n")

    assert [entry["who"] for entry in found.history()] == ["bo", "ann"]


def test_without_a_file_there_is_nothing_to_tell() -> None:
    found = keeper(None)
    assert (found.name, dict(found.file_values()), found.history()) == ("", {}, [])
