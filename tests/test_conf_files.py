"""The files that are written from the settings table, and their packaged copies."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from datafari_rag.adapters.settings.file import packaged_instructions, snapshot_of
from datafari_rag.core.settings.parsing import ALIASES, WITHOUT_EFFECT
from datafari_rag.core.settings.reference import SEED_KEYS, as_markdown, as_properties, on_one_screen
from datafari_rag.core.settings.table import BY_KEY, ROWS, Settings

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"
PACKAGED = ROOT / "datafari_rag" / "resources" / "conf"
MEND = "run: python docs/write_settings.py"


@pytest.mark.parametrize("name", ["rag.properties", "rag-instructions.txt"])
def test_the_packaged_copy_is_the_same(name: str) -> None:
    assert (CONF / name).read_bytes() == (PACKAGED / name).read_bytes(), MEND


@pytest.mark.parametrize(("shown", "name"), [("solr", "conf"), ("solr-passages", "passages")])
def test_the_packaged_config_set_of_solr_is_the_same(shown: str, name: str) -> None:
    packaged = ROOT / "trials" / "datafari_rag_trials" / "resources" / "solr" / name
    ours, theirs = ({path.name: path.read_bytes() for path in at.iterdir()} for at in (CONF / shown, packaged))
    assert ours and ours == theirs


def test_the_properties_file_is_written_from_the_table() -> None:
    assert (CONF / "rag.properties").read_text("utf-8") == on_one_screen(), MEND


def test_the_page_of_settings_is_written_from_the_table() -> None:
    assert (ROOT / "docs" / "settings.md").read_text("utf-8") == as_markdown(), MEND


def test_the_shipped_file_gives_the_defaults_without_a_problem() -> None:
    snapshot = snapshot_of(CONF / "rag.properties", environ={})
    assert (snapshot.settings, list(snapshot.problems)) == (Settings(), [])
    assert snapshot.instructions == packaged_instructions()


def test_the_file_that_people_edit_says_a_sentence_of_each_setting() -> None:
    lines = on_one_screen().splitlines()
    settings = [number for number, line in enumerate(lines) if re.match(r"#?[a-z][\w.]+=", line)]
    assert all(re.fullmatch(r"# .*[.…]", lines[number - 1]) for number in settings)


def test_a_key_without_effect_and_an_alias_are_no_settings() -> None:
    assert not any(BY_KEY.get(key) for key in (*WITHOUT_EFFECT, *ALIASES))


def test_the_file_that_people_edit_fits_on_a_screen() -> None:
    assert len(on_one_screen().splitlines()) <= 90


SHIPPED = [
    path
    for folder in ("conf", "datafari_rag", "deploy", "docs", "extras", "tests", "trials")
    for path in (ROOT / folder).rglob("*.properties")
]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_properties_file_has_no_error(path: Path) -> None:
    problems = snapshot_of(path, environ=Anything()).problems
    errors = [problem for problem in problems if problem.severity == "error"]
    # A place of another machine is not an error here.
    assert [problem.message for problem in errors if problem.stops or problem.key not in BY_KEY] == []


class Anything(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, key: str, default: object = None) -> str:  # type: ignore[override]
        return "a value that is long enough for a secret"


def test_each_commented_default_can_be_uncommented(tmp_path: Path) -> None:
    lines = as_properties().splitlines()
    keys = {row.key for row in ROWS}
    bare = [line[1:] if line.startswith("#") and line[1:].partition("=")[0] in keys else line for line in lines]
    (tmp_path / "rag.properties").write_text("\n".join(bare), "utf-8")
    snapshot = snapshot_of(tmp_path / "rag.properties", environ={})
    assert sum("=" in line and not line.startswith("#") for line in bare) == len(ROWS)
    assert (snapshot.settings, list(snapshot.problems)) == (Settings(), [])


def test_the_seeds_keys_are_set_in_it() -> None:
    text = (CONF / "rag.properties").read_text("utf-8")
    assert all(f"\n{key}=" in text for key in SEED_KEYS)


def test_the_instructions_have_both_slots_and_no_other() -> None:
    text = packaged_instructions()
    assert "{language}" in text and "{format}" in text
    assert "{" not in text.replace("{language}", "").replace("{format}", "")


def test_every_dependency_is_accounted_for() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    lines = [parser["options"]["install_requires"], *parser["options.extras_require"].values()]
    lines.append((ROOT / "requirements-dev.in").read_text("utf-8"))
    names = re.findall(r"(?m)^([A-Za-z][\w.-]*)", "\n".join(lines))
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8").lower()
    listed = set(re.findall(r"[a-z0-9][\w.-]*", page[page.index("## core") :]))
    assert not {name.lower() for name in names} - listed
