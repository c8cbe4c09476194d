"""The pages' scripts are plain JavaScript with types in their comments, which TypeScript's checker reads strictly."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.required import present, program

ROOT = Path(__file__).parents[2]
CHECKER = ROOT / "tests" / "clients" / "node_modules" / "typescript" / "bin" / "tsc"
SCRIPTS = ROOT / "datafari_rag" / "resources" / "static"


def complaints(project: Path) -> list[str]:
    """Return what the checker says of the scripts of *project*, a line each."""
    node, checker = program("node", ".ci/setup test"), present(CHECKER, ".ci/setup long")
    command = [node, str(checker), "--pretty", "false", "-p", str(project)]
    run = subprocess.run(command, cwd=project.parent, capture_output=True, text=True, timeout=120, check=False)
    return run.stdout.splitlines()


def test_the_scripts_have_no_wrong_type() -> None:
    assert complaints(ROOT / "jsconfig.json") == []


def test_a_wrong_type_is_found(tmp_path: Path) -> None:
    """Else its silence would mean nothing; the rules are those of the project."""
    shutil.copytree(SCRIPTS, tmp_path / "static")
    rules = json.loads((ROOT / "jsconfig.json").read_text("utf-8"))
    (tmp_path / "jsconfig.json").write_text(json.dumps(rules | {"include": ["static/*.js"]}), "utf-8")
    wrong = '// @ts-check\nimport { filled } from "./element.js";\nexport const told = filled("{a}", 3);\n'
    (tmp_path / "static" / "wrong.js").write_text(wrong, "utf-8")

    found = complaints(tmp_path / "jsconfig.json")
    assert [line.split("(")[0] for line in found if line.startswith("static")] == ["static/wrong.js"]


def test_every_script_asks_for_the_check() -> None:
    assert [
        path.name for path in SCRIPTS.glob("*.js") if not path.read_text("utf-8").startswith("// @ts-check\n")
    ] == []
