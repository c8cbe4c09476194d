"""The kit against a fresh demo service whose model is the stub: every row is as it says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from datafari_rag.commands.demo.index import build_demo_index
from datafari_rag_trials.conformance.command import KitTarget, kit_of, outcomes
from tests.end_to_end.processes import free_port, running, stub_llm


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KitTarget]:
    folder = tmp_path_factory.mktemp("kit")
    build_demo_index(folder / "index")
    for name in ("rag.properties", "users.json"):
        with resources.as_file(resources.files("datafari_rag.resources") / "demo" / name) as source:
            shutil.copyfile(source, folder / name)
    port, invoke_port = free_port(), free_port()
    invoking = running(folder, "invoke", "llm-service", "--port", str(invoke_port), port=invoke_port, health="/health")
    with stub_llm(folder) as model, invoking as invoke:
        settings = _with_model(folder / "rag.properties", f"{model.url}/v1/chat/completions")
        command = ("serve", "--conf", str(settings), "--port", str(port), "--workers", "1")
        with running(folder, "serve", *command, port=port, health="/health/live") as service:
            yield KitTarget(service.url, model.url, invoke.url)


def test_every_row_is_as_it_says(target: KitTarget) -> None:
    kit = kit_of(1)
    wrong = {one.row.id: one.problem for one in outcomes(kit, kit.rows, target, variables={}) if one.problem}
    assert wrong == {}


def _with_model(settings: Path, endpoint: str) -> Path:
    kept = [line for line in settings.read_text("utf-8").splitlines() if not line.startswith("rag.api.endpoint=")]
    kept = [line for line in kept if not line.startswith("rag.model=")]
    settings.write_text("\n".join([*kept, f"rag.api.endpoint={endpoint}", "rag.model=quote", ""]), "utf-8")
    settings.chmod(0o600)
    return settings
