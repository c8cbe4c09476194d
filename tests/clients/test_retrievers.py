"""What stands on `POST /retrieve`: the retrievers of extras/, and a client made of the service's own description."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.conftest import ENVIRONMENTS, HERE, Saw
from tests.end_to_end.processes import Running
from tests.required import present

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.mark.parametrize("name", ["langchain", "llamaindex"])
def test_the_suite_of_an_installed_retriever_passes(
    good: Running, extras_suite: Callable[[str, str], str], saw: Saw, name: str
) -> None:
    """LangChain's has the standard suites of its makers, for chat models over both APIs too."""
    last = extras_suite(name, good.url)
    saw(last)
    assert "passed" in last and "failed" not in last


def test_a_client_made_of_the_description_retrieves(good: Running, tmp_path: Path, saw: Saw) -> None:
    """The generator leaves out streams and some unions of other paths, and says so; nothing of this one."""
    python = present(ENVIRONMENTS / "openapi" / "bin" / "python", ".ci/setup long")
    generated = subprocess.run(
        [
            *(str(python), "-m", "openapi_python_client", "generate"),
            *("--url", f"{good.url}/openapi.json", "--meta", "none", "--output-path", str(tmp_path / "rag_client")),
            *("--config", str(HERE / "openapi-client.json")),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert generated.returncode == 0, generated.stdout + generated.stderr
    warned = generated.stdout + generated.stderr
    assert "/retrieve" not in warned and "/schemas/Retrieve" not in warned
    ran = subprocess.run(
        [str(python), str(HERE / "generated_client.py"), good.url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    saw(told)
    assert told["alice"] == ["py-howto-enum"] and told["bob"] == told["nothing"] == []
    assert told["text"] and told["end"] - told["start"] == len(told["text"])
    assert told["error"] == ["tooManyValues", "documents", 400]
