"""The list of commands, and the message when the extra of one is not installed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from datafari_rag.commands.main import main
from datafari_rag.commands.terminal import program

WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys({missing!r})); from datafari_rag.commands.main import main; main()"
)


def without(missing: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that cannot import *missing*."""
    line = (sys.executable, "-c", WITHOUT.format(missing=missing), *arguments)
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9/v1/embeddings", "onnx:model"])
def test_an_index_with_vectors_without_the_extra_is_one_sentence(tmp_path: Path, endpoint: str) -> None:
    """A server makes the vectors in the first case; keeping them here needs a library all the same."""
    conf = tmp_path / "rag.properties"
    conf.write_text(f"solr.url=embedded:index\nembeddings.endpoint={endpoint}\n")
    (tmp_path / "a.txt").write_text("The ferry leaves at nine.")

    done = without(("numpy",), "index", str(tmp_path / "a.txt"), "--conf", str(conf))

    assert done.returncode == 1
    assert ": Search by meaning needs the extra `vectors`: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_missing_otherwise_is_not_taken_for_an_extra() -> None:
    assert "ModuleNotFoundError" in without(("orjson",), "eval", "--help").stderr


@pytest.mark.parametrize("arguments", [("--help",), ("index", "--help"), ("ask", "--help"), ("serve", "--help")])
def test_the_core_needs_no_library_of_an_extra(arguments: tuple[str, ...]) -> None:
    done = without(("rich", "pygments", "matplotlib", "aiohttp"), *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def every_help(command: click.Command, parent: click.Context | None = None) -> Iterator[str]:
    """Yield the help of *command*, and of all commands that are below it."""
    context = click.Context(command, parent=parent, info_name=command.name)
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from every_help(below, context)


def test_an_example_can_be_pasted_where_the_program_is_not_on_the_path() -> None:
    text = "\n".join(every_help(main))

    assert f'{program()} ask "…" | {program()} check-answer ' in text
    assert f"{program()} solr start" in text
    assert re.findall(r"(?m)^.*(?:^ +|\| )datafari-rag .*$", text) == []
