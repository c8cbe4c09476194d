"""A properties file with all that it refers to: environment, secrets, instructions, modes."""

from __future__ import annotations

from pathlib import Path

import pytest

from datafari_rag.adapters.settings.file import SettingsSnapshot, StartRefused, packaged_instructions, snapshot_of


def read(folder: Path, text: str, mode: int = 0o600, **environ: str) -> SettingsSnapshot:
    path = folder / "rag.properties"
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return snapshot_of(path, environ=environ)


def test_variables_and_files_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "token.txt").write_text("sk-file\n")
    (tmp_path / "token.txt").chmod(0o600)
    snapshot = read(
        tmp_path,
        "rag.api.token=file:token.txt\nserver.secret=${SECRET}\nsolr.url=http://${HOST}/solr/${NAME}\n",
        SECRET="s" * 16,
        HOST="h:1",
        NAME="c",
    )
    assert snapshot.problems == ()
    assert snapshot.settings.rag.api_token == "sk-file"
    assert snapshot.settings.server.secret == "s" * 16
    assert snapshot.settings.solr.url == "http://h:1/solr/c"


def test_no_secret_is_in_a_repr_or_a_line(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("hunter2")
    snapshot = read(tmp_path, "rag.api.token=${T}\nserver.secret=file:s\nsolr.password=hunter2\n", T="hunter2")
    assert snapshot.settings.rag.api_token == snapshot.settings.solr.password == "hunter2"
    assert "hunter2" not in repr(snapshot) + "".join(snapshot.lines())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param("rag.api.token=${GONE}", "The environment variable GONE is not set.", id="no variable"),
        pytest.param("rag.api.token=file:gone", "The file gone cannot be read.", id="no file"),
        pytest.param(r"rag.api.token=file:\users\me", "The file �sersme cannot be read.", id="a backslash alone"),
        pytest.param("rag.api.token=file:long", "The file long is too long for a secret.", id="a long file"),
    ],
)
def test_a_reference_to_nothing_is_an_error(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "long").write_text("x" * 70_000)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    snapshot = read(tmp_path, text)
    assert part in snapshot.lines()[0]
    assert snapshot.bad_setting is not None and "GONE" not in snapshot.bad_setting


def test_a_file_reference_is_for_secrets_alone(tmp_path: Path) -> None:
    assert read(tmp_path, "rag.model=file:x").settings.rag.model == "file:x"


@pytest.mark.parametrize(
    ("text", "mode", "warned"),
    [
        pytest.param("rag.api.token=sk", 0o644, True, id="a secret for everybody"),
        pytest.param("rag.api.token=${T}", 0o644, False, id="a reference is no secret"),
        pytest.param("rag.api.token=a${T}", 0o644, True, id="half a reference is"),
        pytest.param("rag.api.token=file:t", 0o600, True, id="the file of the secret for everybody"),
    ],
)
def test_a_secret_that_others_can_read_is_told(tmp_path: Path, text: str, mode: int, warned: bool) -> None:
    (tmp_path / "t").write_text("x")
    (tmp_path / "t").chmod(0o644)
    snapshot = read(tmp_path, text, mode, T="x")
    assert [problem.severity for problem in snapshot.problems] == ["warning"] * warned


def test_instructions_come_from_beside_the_file_else_from_the_package(tmp_path: Path) -> None:
    assert read(tmp_path, "").instructions == packaged_instructions()
    (tmp_path / "rag-instructions.txt").write_text("Beside.\n")
    assert read(tmp_path, "").instructions == "Beside."


def test_instructions_that_cannot_be_read_are_no_start(tmp_path: Path) -> None:
    (tmp_path / "rag-instructions.txt").mkdir()
    with pytest.raises(StartRefused) as caught:
        read(tmp_path, "")
    assert caught.value.lines == (f"{tmp_path}/rag-instructions.txt: this is a folder, a file is expected",)


def test_overrides_win_over_the_file_and_no_file_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "rag.properties"
    path.write_text("server.port=1\nrag.maxFiles=5\n")
    snapshot = snapshot_of(path, environ={}, overrides={"server.port": "99"})
    assert (snapshot.settings.server.port, snapshot.settings.rag.max_files, snapshot.problems) == (99, 5, ())
    bare = snapshot_of(None, environ={}, overrides={"server.port": "x"})
    assert bare.lines() == ('settings: Invalid value for server.port property: "x". An integer is expected.',)


@pytest.mark.parametrize("name", ["gone", "."], ids=["no file", "a folder"])
def test_what_cannot_be_read_refuses_to_start(tmp_path: Path, name: str) -> None:
    with pytest.raises(StartRefused):
        snapshot_of(tmp_path / name, environ={})


STARTS = [
    pytest.param("rag.solrField=x", True, id="a bad answer setting starts"),
    pytest.param("server.port=x", False, id="a bad server setting does not"),
    pytest.param("security.mode=x", False, id="a bad security setting does not"),
    pytest.param("security.identity=jwt", False, id="security that contradicts itself does not"),
    pytest.param("server.prot=1", True, id="an unknown key starts"),
]


@pytest.mark.parametrize(("text", "starts"), STARTS)
def test_who_starts_with_a_bad_value(tmp_path: Path, text: str, starts: bool) -> None:
    snapshot = read(tmp_path, text)
    assert (snapshot.bad_setting is not None) == (starts and "prot" not in text)
    if starts:
        snapshot.require()
        return
    with pytest.raises(StartRefused) as caught:
        snapshot.require()
    assert caught.value.lines[0].startswith(f"{tmp_path}/rag.properties:1: ")


def test_a_command_needs_only_its_own_keys(tmp_path: Path) -> None:
    snapshot = read(tmp_path, "rag.maxFiles=x\nserver.port=x\n")
    snapshot.require("solr.", "security.")
    with pytest.raises(StartRefused):
        snapshot.require("server.")


def test_what_every_answer_fails_with_is_the_first_bad_value(tmp_path: Path) -> None:
    snapshot = read(tmp_path, "rag.model=m\nrag.solrField=x\nrag.maxFiles=y\n")
    assert snapshot.bad_setting is not None
    assert snapshot.bad_setting == (
        "Invalid value for rag.solrField property. "
        'Valid values are "highlighting", "preview_content" and "exactContent".'
    )
