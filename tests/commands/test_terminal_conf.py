"""Every command finds its settings in the same way."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from datafari_rag.commands.main import COMMANDS, LazyGroup
from datafari_rag.commands.terminal import SettingsPath, demo_place

WITHOUT_SETTINGS = {"demo", "check", "model", "llm-service"}
"""Commands that have no settings, or whose argument they are."""


def commands() -> list[tuple[str, click.Command]]:
    group, found = LazyGroup(), []
    for name in sorted(COMMANDS.keys() - WITHOUT_SETTINGS - {"demo-watch", "audit"}):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        inner = list(command.commands.values()) if isinstance(command, click.Group) else [command]
        found += [(name, one) for one in inner]
    return found


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_is_where_the_list_says(name: str) -> None:
    group = LazyGroup()
    assert group.get_command(click.Context(group), name) is not None


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda one: one if isinstance(one, str) else "")
def test_a_command_has_the_one_option(name: str, command: click.Command) -> None:
    option = next(param for param in command.params if param.name == "conf")
    assert isinstance(option.type, SettingsPath)
    assert (option.default, option.required) == ("conf/rag.properties", False)


def test_a_folder_stands_for_its_settings_or_for_those_of_its_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAFARI_RAG_HOME", str(tmp_path / "home"))
    with_settings, notes = tmp_path / "conf", tmp_path / "notes"
    with_settings.mkdir()
    notes.mkdir()
    (with_settings / "rag.properties").touch()
    with pytest.raises(click.BadParameter, match="datafari_rag demo"):
        SettingsPath().convert(str(notes), None, None)
    demo_place(notes).mkdir(parents=True)
    (demo_place(notes) / "rag.properties").touch()

    assert SettingsPath().convert(str(with_settings), None, None) == with_settings / "rag.properties"
    assert SettingsPath().convert(str(notes), None, None) == demo_place(notes) / "rag.properties"
    assert SettingsPath().convert("no/such", None, None) == Path("no/such")


def test_the_index_of_a_folder_that_a_demo_serves_is_asked_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATAFARI_RAG_HOME", str(tmp_path / "home"))
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ferry.txt").write_text("The ferry to the island leaves at nine.")
    place = demo_place(notes)
    place.mkdir(parents=True)
    (place / "rag.properties").write_text("solr.url=embedded:index\nrag.api.endpoint=builtin:extractive\n")
    group = LazyGroup()

    def said(*arguments: str) -> str:
        result = CliRunner().invoke(group, [*arguments, "--conf", str(notes)])
        assert result.exit_code == 0, result.output
        return result.output

    said("index", str(notes))
    assert "The ferry to the island leaves at nine." in said("ask", "When does the ferry leave?")
