"""
The kit against a fresh demo service whose model is the stub: every row is as it says, and every reply has the keys of
`tests/golden/conformance.txt`. `GOLDEN_UPDATE=1` writes that file again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.commands.demo.index import build_demo_index
from datafari_rag_trials.conformance.command import KitTarget, Outcome, kit_of, outcomes
from tests.end_to_end.processes import free_port, running, stub_llm
from tests.golden.files import compare

GOLDEN = Path(__file__).parents[1] / "golden" / "conformance.txt"


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


@pytest.fixture(scope="module")
def run(target: KitTarget) -> list[Outcome]:
    kit = kit_of(1)
    return list(outcomes(kit, kit.rows, target, variables={}))


def test_every_row_is_as_it_says(run: list[Outcome]) -> None:
    assert {one.row.id: one.problem for one in run if one.problem} == {}


def test_every_reply_has_the_keys_of_the_file(run: list[Outcome]) -> None:
    compare(GOLDEN, "".join(f"{one.row.id} {shown(one.view)}\n" for one in run))


def shown(view: Mapping[str, Any] | None) -> str:
    """Return status, media type and keys of a reply."""
    if view is None:
        return "no reply"
    rows = view.get("lines") or view.get("events") or [view.get("json")]
    keys = dict.fromkeys(keys_of(row) for row in rows)
    return " ".join([str(view["status"]), view["type"] or "-", *filter(None, keys)])


def keys_of(value: object, depth: int = 2) -> str:
    """Return the names of a value's keys and those of its parts, in order, down to *depth*."""
    if isinstance(value, list):
        parts = dict.fromkeys(keys_of(one, depth) for one in value)
        return "".join(f"[{part}]" for part in parts if part)
    if not isinstance(value, Mapping) or not depth:
        return ""
    return "{" + " ".join(f"{key}{keys_of(value[key], depth - 1)}" for key in sorted(value)) + "}"


def _with_model(settings: Path, endpoint: str) -> Path:
    kept = [line for line in settings.read_text("utf-8").splitlines() if not line.startswith("rag.api.endpoint=")]
    kept = [line for line in kept if not line.startswith("rag.model=")]
    settings.write_text("\n".join([*kept, f"rag.api.endpoint={endpoint}", "rag.model=quote", ""]), "utf-8")
    settings.chmod(0o600)
    return settings
