"""Real servers for clients that others wrote: the production server over the demo documents and the stub model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.processes import Running, service, stub_llm
from tests.required import present, program

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"
USERS = HERE.parents[1] / "datafari_rag" / "resources" / "demo" / "users.json"
ENVIRONMENTS = HERE.parents[1] / ".venvs"
LANGCHAIN = ENVIRONMENTS / "langchain" / "bin" / "python"

Script = Callable[..., Any]
Saw = Callable[..., None]


@pytest.fixture
def saw(request: pytest.FixtureRequest) -> Saw:
    """Keep what a client saw, to be printed at the end of the run."""
    name = request.node.nodeid.rpartition("/")[2]
    return lambda *said: request.node.user_properties.append(("saw", f"{name}: {' '.join(str(one) for one in said)}"))


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with stub_llm(tmp_path_factory.mktemp("stub")) as found:
        yield found


def settings_for(demo_index: Path, stub: Running, model: str, **more: str) -> Mapping[str, str]:
    return {
        "solr.url": f"embedded:{demo_index}",
        "rag.api.endpoint": f"{stub.url}/v1/chat/completions",
        "rag.model": model,
        "llm.limits.retries": "0",
        "chat.memory.enabled": "true",
        "server.secret": "a secret for these tests",
        "security.identity": "header",
        "security.tokens": "file",
        "security.tokens.file": str(USERS),
        **more,
    }


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory, demo_index: Path, stub: Running) -> Iterator[Running]:
    """A service whose model cites its first document."""
    with service(tmp_path_factory.mktemp("good"), dict(settings_for(demo_index, stub, "cite")), workers=2) as found:
        yield found


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory, demo_index: Path, stub: Running) -> Iterator[Running]:
    """A service whose model breaks off after five words."""
    with service(tmp_path_factory.mktemp("broken"), dict(settings_for(demo_index, stub, "cite-cut-after-5"))) as found:
        yield found


@pytest.fixture(scope="session")
def node() -> Script:
    """Run one of the scripts beside this file with Node; return the object it printed."""
    program("node", ".ci/setup test")
    present(NODE_MODULES, ".ci/setup long")

    def run(script: str, *arguments: str) -> Any:
        return _printed(["node", str(HERE / script), *arguments])

    return run


@pytest.fixture(scope="session")
def langchain() -> Script:
    """Run the script of langchain-openai in its own environment; return the object it printed."""
    python = present(LANGCHAIN, ".ci/setup long")
    return lambda *arguments: _printed([str(python), str(HERE / "langchain_client.py"), *arguments])


@pytest.fixture(scope="session")
def extras_suite(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """
    Run the tests of extras/NAME against a service, as who installs it has it; return the last line of pytest.

    The wheel is built of a copy, and installed beside the environment of its libraries.
    """

    def run(name: str, url: str) -> str:
        python, folder = (
            present(ENVIRONMENTS / name / "bin" / "python", ".ci/setup long"),
            tmp_path_factory.mktemp(name),
        )
        source, site = folder / "source", folder / "site"
        shutil.copytree(HERE.parents[1] / "extras" / name, source)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        built = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)]
        _output([*pip, *built], folder)
        (wheel,) = folder.glob("*.whl")
        _output([*pip, "install", "--no-deps", "--no-index", "--target", str(site), str(wheel)], folder)
        suite = folder / "suite"
        shutil.copytree(source / "tests", suite / "tests")
        shutil.copy(source / "pyproject.toml", suite)
        variables = {"PYTHONPATH": str(site), "DATAFARI_RAG_URL": url, "PYTEST_ADDOPTS": ""}
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml"]
        return _output(command, suite, **variables).strip().splitlines()[-1]

    return run


def _output(command: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=folder, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    return done.stdout


def _printed(command: list[str]) -> Any:
    return json.loads(_output(command, HERE))
