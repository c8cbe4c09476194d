"""The list of commands, and the message when the extra of one is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from datafari_rag.commands.main import EXTRAS

WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys({missing!r})); from datafari_rag.commands.main import main; main()"
)


def without(missing: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process that cannot import *missing*."""
    line = (sys.executable, "-c", WITHOUT.format(missing=missing), *arguments)
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("library", sorted(EXTRAS))
def test_a_command_without_its_extra_says_how_to_install_it(library: str) -> None:
    done = without((library,), "eval", "questions.jsonl")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: `eval` needs the extra `eval`: pip install 'datafari-rag[eval]'\n"


def test_each_command_names_its_own_extra() -> None:
    done = without(("rich",), "conformance", "http://127.0.0.1:9")
    assert done.stderr.endswith("pip install 'datafari-rag[conformance]'\n")


def test_what_is_missing_otherwise_is_not_taken_for_an_extra() -> None:
    assert "ModuleNotFoundError" in without(("orjson",), "eval", "--help").stderr


@pytest.mark.parametrize("arguments", [("--help",), ("index", "--help"), ("ask", "--help"), ("serve", "--help")])
def test_the_core_needs_no_library_of_an_extra(arguments: tuple[str, ...]) -> None:
    done = without(("rich", "pygments", "matplotlib", "aiohttp"), *arguments)
    assert (done.returncode, done.stderr) == (0, "")
